//! `create`: objects from flags, printed or applied and waited for.

mod automation;
mod checks;
mod notification;
mod secret;
mod source;
mod tenant;
mod upsert;
mod workload;

pub(crate) use checks::{ecdsa_curve, key_algorithm, oci_provider, rsa_bits, safe_path};
pub(crate) use secret::{Content, webhook_path};
pub(crate) use upsert::secret as upsert_secret;
pub(crate) use workload::merge;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use anyhow::bail;
use regex::Regex;
use serde_json::{Map, Value, json};

use crate::args::{Call, CommandResult};
use crate::command::Node;
use crate::flag::{Flag, duration, list, switch};
use crate::resource_kinds::Kind;
use crate::{format, logger};

const FLAGS: &[Flag] = &[
    duration("interval", "1m0s", "How often the object is reconciled"),
    switch("export", "Print the object as YAML instead of applying it"),
    list("label", "Labels of the object, key=value; comma separated"),
];

const SOURCE_FLAGS: &[Flag] = &[duration("fetch-timeout", "0s", "How long a fetch may take")];

/// A leaf whose behaviour is an async function over the call.
macro_rules! leaf {
    ($name:literal, $about:literal, $run:path) => {
        Node::leaf($name, $about, action(|call: Call| async move { $run(&call).await })).takes("NAME")
    };
}
use leaf;

pub(crate) fn node() -> Node {
    let sources = Node::group(
        "source",
        "Create or update sources",
        vec![
            source::git_node(),
            source::oci_node(),
            source::helm_node(),
            source::chart_node(),
            source::bucket_node(),
        ],
    )
    .shared(SOURCE_FLAGS);
    let images = Node::group(
        "image",
        "Create or update image automation objects",
        vec![automation::repository_node(), automation::policy_node(), automation::update_node()],
    );
    Node::group(
        "create",
        "Create or update objects",
        vec![
            sources,
            workload::kustomization_node(),
            workload::release_node(),
            images,
            notification::receiver_node(),
            notification::alert_node(),
            notification::provider_node(),
            tenant::node(),
            secret::node(),
        ],
    )
    .shared(FLAGS)
}

static NAME: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^[a-z0-9]([a-z0-9\-]){0,61}[a-z0-9]$").expect("a fixed expression"));

/// The name every `create` command starts with.
///
/// # Errors
/// There is none, or it is no name Kubernetes takes.
pub(crate) fn check_name(call: &Call) -> CommandResult {
    let Some(name) = call.args.first() else { bail!("name is required") };
    if !NAME.is_match(name) {
        bail!(
            "name '{name}' is invalid, it should adhere to standard defined in RFC 1123, \
             the name can only contain alphanumeric characters or '-'"
        );
    }
    Ok(())
}

fn name(call: &Call) -> &str {
    call.args.first().map_or("", String::as_str)
}

fn labels(call: &Call) -> anyhow::Result<BTreeMap<String, String>> {
    let mut labels = BTreeMap::new();
    for label in call.list("label") {
        let parts: Vec<&str> = label.split('=').collect();
        let [key, value] = parts[..] else { bail!("invalid label format '{label}', must be key=value") };
        if let Err(error) = fl_types::check_qualified_name(key) {
            // For labels the library words it so, and differently for other names.
            let why = error.messages().join(" ").replace("a qualified name must", "a valid label key must");
            bail!("invalid label '{key}': [{why}]");
        }
        if let Err(error) = fl_types::check_label_value(value) {
            bail!("invalid label value '{value}': [{}]", error.messages().join(" "));
        }
        labels.insert(key.to_owned(), value.to_owned());
    }
    Ok(labels)
}

/// Announces the object, unless it is only printed.
fn generating(call: &Call, what: &str) {
    if !call.on("export") {
        logger::generate(format!("generating {what}"));
    }
}

/// A field list in which what is empty leaves no trace, as Go's encoder leaves it out.
#[derive(Default)]
struct Fields(Map<String, Value>);

impl Fields {
    fn text(mut self, key: &str, value: &str) -> Fields {
        if !value.is_empty() {
            self.0.insert(key.to_owned(), json!(value));
        }
        self
    }

    fn flag(mut self, key: &str, value: bool) -> Fields {
        if value {
            self.0.insert(key.to_owned(), json!(true));
        }
        self
    }

    fn list(mut self, key: &str, values: &[String]) -> Fields {
        if !values.is_empty() {
            self.0.insert(key.to_owned(), json!(values));
        }
        self
    }

    /// Always there, empty or not.
    fn put(mut self, key: &str, value: impl Into<Value>) -> Fields {
        self.0.insert(key.to_owned(), value.into());
        self
    }

    fn maybe(mut self, key: &str, value: Option<Value>) -> Fields {
        if let Some(value) = value {
            self.0.insert(key.to_owned(), value);
        }
        self
    }

    /// `{name: value}`, as references to secrets are written.
    fn name_of(self, key: &str, name: &str) -> Fields {
        let reference = (!name.is_empty()).then(|| json!({"name": name}));
        self.maybe(key, reference)
    }

    /// A duration of a flag; zero leaves it out.
    fn time(self, key: &str, call: &Call, flag: &str) -> Fields {
        let given = (call.duration(flag) != fl_types::Duration::ZERO).then(|| json!(call.text(flag)));
        self.maybe(key, given)
    }

    fn build(self) -> Value {
        Value::Object(self.0)
    }
}

/// The object of a kind with this command's name, namespace and labels.
fn object(call: &Call, kind: &Kind, labels: &BTreeMap<String, String>, spec: Fields) -> Value {
    json!({
        "apiVersion": kind.api_version(),
        "kind": kind.kind,
        "metadata": metadata(name(call), call.namespace(), labels),
        "spec": spec.build(),
    })
}

fn metadata(name: &str, namespace: &str, labels: &BTreeMap<String, String>) -> Value {
    let labels = (!labels.is_empty()).then(|| json!(labels));
    Fields::default().text("name", name).text("namespace", namespace).maybe("labels", labels).build()
}

fn print(object: &Value) -> CommandResult {
    logger::data(&format::exported(object));
    Ok(())
}

/// `name` or `namespace/name`, as dependencies are named.
fn depends_on(names: &[String]) -> Option<Value> {
    let one = |name: &String| {
        let (namespace, name) = match name.split_once('/') {
            Some((namespace, name)) => (namespace, name),
            None => ("", name.as_str()),
        };
        Fields::default().text("name", name).text("namespace", namespace).build()
    };
    (!names.is_empty()).then(|| names.iter().map(one).collect())
}

/// Lines of ignore patterns.
fn ignore(call: &Call) -> String {
    call.list("ignore-paths").join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str, label: &str) -> Call {
        Call::new(vec![], vec![name.to_owned()], FLAGS, &[(0, "label", label.to_owned())]).unwrap()
    }

    #[test]
    fn names_and_labels_are_checked_as_flux_checks_them() {
        assert!(check_name(&call("my-app", "")).is_ok());
        for bad in ["a", "A-b", "a_b", "-ab", "a."] {
            assert!(check_name(&call(bad, "")).is_err(), "{bad}");
        }
        assert_eq!(labels(&call("x", "a=b,c=d")).unwrap().len(), 2);
        assert_eq!(
            labels(&call("x", "nokey")).unwrap_err().to_string(),
            "invalid label format 'nokey', must be key=value"
        );
    }

    #[test]
    fn empty_fields_are_omitted() {
        let fields =
            Fields::default().text("a", "").flag("b", false).list("c", &[]).name_of("d", "").put("e", "");
        assert_eq!(fields.build(), json!({"e": ""}));
        assert_eq!(
            depends_on(&["a".into(), "b/c".into()]),
            Some(json!([{"name": "a"}, {"name": "c", "namespace": "b"}]))
        );
    }
}
