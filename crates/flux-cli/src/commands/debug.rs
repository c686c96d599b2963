//! `debug`: the status, the variables and the values behind an object, secrets included.

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::args::{Call, CommandResult, action};
use crate::cluster::{Cluster, Resource, namespace_of, text_at};
use crate::command::{Node, Plain};
use crate::commands::create::merge;
use crate::flag::switch;
use crate::resource_kinds;
use crate::{format, logger};

pub(crate) fn node() -> Node {
    Node::group(
        "debug",
        "Look behind an object",
        vec![
            Node::leaf(
                "kustomization",
                "Look behind a Kustomization; prints secrets",
                action(|call: Call| async move { kustomization(&call).await }),
            )
            .alias(&["ks"])
            .takes("NAME")
            .plain(Plain::Exactly(1))
            .flags(&[
                switch("show-status", "Print the status"),
                switch("show-vars", "Print the variables of the build as an env file"),
                switch("show-history", "Print the history"),
            ])
            .example("Which variables does the build see?", "debug kustomization apps --show-vars"),
            Node::leaf(
                "helmrelease",
                "Look behind a HelmRelease; prints secrets",
                action(|call: Call| async move { release(&call).await }),
            )
            .alias(&["hr"])
            .takes("NAME")
            .plain(Plain::Exactly(1))
            .flags(&[
                switch("show-status", "Print the status"),
                switch("show-values", "Print the merged values"),
                switch("show-history", "Print the history"),
            ])
            .example("Which values does the chart get?", "debug hr web -n shop --show-values"),
        ],
    )
}

fn print_status(object: &Value, url: &str) {
    logger::data(&format!("# Status documentation: {url}\n{}", format::yaml(&status(object))));
}

/// The status as Go prints it: Helm snapshots always say whether they were deleted.
fn status(object: &Value) -> Value {
    let mut status = object.get("status").cloned().unwrap_or_else(|| json!({}));
    if object["kind"] == "HelmRelease"
        && let Some(history) = status.get_mut("history").and_then(Value::as_array_mut)
    {
        for snapshot in history.iter_mut().filter_map(Value::as_object_mut) {
            snapshot.entry("deleted").or_insert(Value::Null);
        }
    }
    status
}

fn print_history(object: &Value, url: &str) {
    let history = status(object).get("history").cloned().unwrap_or_else(|| json!([]));
    logger::data(&format!("# History documentation: {url}\n{}", format::yaml(&history)));
}

async fn kustomization(call: &Call) -> CommandResult {
    let flags = ["show-status", "show-vars", "show-history"];
    if flags.iter().filter(|f| call.on(f)).count() != 1 {
        bail!("exactly one of --show-status, --show-vars, or --show-history must be set");
    }
    let cluster = Cluster::connect(call).await?;
    let object =
        cluster.get(&resource_kinds::KUSTOMIZATION.resource(), call.namespace(), &call.args[0]).await?;
    const PAGE: &str = "https://fluxcd.io/flux/components/kustomize/kustomizations";
    if call.on("show-status") {
        print_status(&object, &format!("{PAGE}/#kustomization-status"));
    } else if call.on("show-history") {
        print_history(&object, &format!("{PAGE}/#history"));
    } else {
        if object.pointer("/spec/postBuild").is_none() {
            bail!("no post build substitutions found");
        }
        for (name, value) in variables(&cluster, &object).await? {
            logger::data_line(&format!("{name}={value}"));
        }
    }
    Ok(())
}

/// The variables of a build: those of the objects named, in order, and the ones written down last.
pub(crate) async fn variables(cluster: &Cluster, object: &Value) -> anyhow::Result<BTreeMap<String, String>> {
    let mut variables = BTreeMap::new();
    for reference in
        object.pointer("/spec/postBuild/substituteFrom").and_then(Value::as_array).into_iter().flatten()
    {
        let (kind, name) = (text_at(reference, "/kind"), text_at(reference, "/name"));
        let optional = reference["optional"].as_bool().unwrap_or(false);
        let resource = match kind {
            "Secret" => Resource::new("v1", "Secret", "secrets", true),
            _ => Resource::new("v1", "ConfigMap", "configmaps", true),
        };
        let found = match cluster.get(&resource, namespace_of(object), name).await {
            Ok(found) => found,
            Err(error) if optional && error.is_not_found() => continue,
            Err(error) => bail!("substitute from '{kind}/{name}' error: {error}"),
        };
        for (key, value) in data(&found)? {
            variables.insert(key, value.replace('\n', ""));
        }
    }
    for (key, value) in
        object.pointer("/spec/postBuild/substitute").and_then(Value::as_object).into_iter().flatten()
    {
        variables.insert(key.clone(), value.as_str().unwrap_or_default().replace('\n', ""));
    }
    Ok(variables)
}

/// The entries of a ConfigMap or Secret as text.
fn data(object: &Value) -> anyhow::Result<BTreeMap<String, String>> {
    let mut out = BTreeMap::new();
    for (key, value) in object["data"].as_object().into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        let value = match object["kind"].as_str() {
            Some("Secret") => String::from_utf8_lossy(&STANDARD.decode(value)?).into_owned(),
            _ => value.to_owned(),
        };
        out.insert(key.clone(), value);
    }
    Ok(out)
}

async fn release(call: &Call) -> CommandResult {
    let flags = ["show-status", "show-values", "show-history"];
    if flags.iter().filter(|f| call.on(f)).count() != 1 {
        bail!("exactly one of --show-status, --show-values, or --show-history must be set");
    }
    let cluster = Cluster::connect(call).await?;
    let object =
        cluster.get(&resource_kinds::HELM_RELEASE.resource(), call.namespace(), &call.args[0]).await?;
    const PAGE: &str = "https://fluxcd.io/flux/components/helm/helmreleases";
    if call.on("show-status") {
        print_status(&object, &format!("{PAGE}/#helmrelease-status"));
    } else if call.on("show-history") {
        print_history(&object, &format!("{PAGE}/#history"));
    } else {
        logger::data(&format::yaml(&values(&cluster, &object).await?));
    }
    Ok(())
}

/// The values of a release: those of the objects named, in order, with the ones written down on top.
async fn values(cluster: &Cluster, object: &Value) -> anyhow::Result<Value> {
    let mut merged = Map::new();
    for reference in object.pointer("/spec/valuesFrom").and_then(Value::as_array).into_iter().flatten() {
        let (kind, name) = (text_at(reference, "/kind"), text_at(reference, "/name"));
        let key = match text_at(reference, "/valuesKey") {
            "" => "values.yaml",
            key => key,
        };
        let optional = reference["optional"].as_bool().unwrap_or(false);
        let namespace = namespace_of(object);
        let resource = match kind {
            "Secret" => Resource::new("v1", "Secret", "secrets", true),
            "ConfigMap" => Resource::new("v1", "ConfigMap", "configmaps", true),
            _ => bail!("unsupported ValuesReference kind '{kind}'"),
        };
        let found = match cluster.get(&resource, namespace, name).await {
            Ok(found) => found,
            Err(error) if optional && error.is_not_found() => continue,
            Err(error) if error.is_not_found() => bail!("could not find values {kind} '{namespace}/{name}'"),
            Err(error) => bail!(
                "could not resolve {kind} chart values reference '{namespace}/{name}' with key '{key}': {error}"
            ),
        };
        let Some(text) = data(&found)?.remove(key) else {
            if optional {
                continue;
            }
            bail!("missing key '{key}' in {kind} '{namespace}/{name}'");
        };
        match text_at(reference, "/targetPath") {
            "" => {
                let read = format::documents(text.as_bytes()).with_context(|| {
                    format!("unable to read values from key '{key}' in {kind} '{namespace}/{name}'")
                })?;
                if let Some(Value::Object(map)) = read.into_iter().next() {
                    merge(&mut merged, map);
                }
            }
            path => {
                let literal = reference["literal"].as_bool().unwrap_or(false);
                set_path(&mut merged, path, text.trim_end_matches('\n'), literal).with_context(|| {
                    format!("unable to set value from key '{key}' of {kind} '{namespace}/{name}' at '{path}'")
                })?;
            }
        }
    }
    if let Some(Value::Object(map)) = object.pointer("/spec/values") {
        merge(&mut merged, map.clone());
    }
    let mut value = Value::Object(merged);
    format::go_numbers(&mut value);
    Ok(value)
}

/// Puts one value at a Helm path (`a.b[0].c`), read as `helm --set` would read it; text in quotes stays text.
fn set_path(into: &mut Map<String, Value>, path: &str, text: &str, literal: bool) -> anyhow::Result<()> {
    let unquoted = ['"', '\''].iter().find_map(|q| text.strip_prefix(*q)?.strip_suffix(*q));
    let value = match (literal, unquoted) {
        (true, _) => json!(text),
        (false, Some(inner)) => json!(inner),
        (false, None) => typed(text),
    };
    let mut root = Value::Object(std::mem::take(into));
    let mut slot = &mut root;
    for step in steps(path)? {
        slot = match step {
            Step::Key(key) => {
                if !slot.is_object() {
                    *slot = json!({});
                }
                &mut slot[key]
            }
            Step::Index(index) => {
                if !slot.is_array() {
                    *slot = json!([]);
                }
                let list = slot.as_array_mut().expect("made above");
                if list.len() <= index {
                    list.resize(index + 1, Value::Null);
                }
                &mut list[index]
            }
        };
    }
    *slot = value;
    if let Value::Object(map) = root {
        *into = map;
    }
    Ok(())
}

fn typed(text: &str) -> Value {
    if let Some(items) = text.strip_prefix('{').and_then(|t| t.strip_suffix('}')) {
        return items.split(',').filter(|i| !i.is_empty()).map(|i| typed(i.trim())).collect();
    }
    match text {
        "true" => json!(true),
        "false" => json!(false),
        "null" => Value::Null,
        "0" => json!(0),
        // A leading zero is text to Helm: an account number, not a count.
        _ if text.starts_with('0') => json!(text),
        _ => text.parse::<i64>().map_or_else(|_| json!(text), |n| json!(n)),
    }
}

enum Step {
    Key(String),
    Index(usize),
}

fn steps(path: &str) -> anyhow::Result<Vec<Step>> {
    const MOST: usize = 65_536;
    let (mut steps, mut key, mut chars) = (Vec::new(), String::new(), path.chars());
    let finish = |key: &mut String, steps: &mut Vec<Step>| {
        if !key.is_empty() {
            steps.push(Step::Key(std::mem::take(key)));
        }
    };
    while let Some(c) = chars.next() {
        match c {
            '\\' => key.extend(chars.next()),
            '.' => finish(&mut key, &mut steps),
            '[' => {
                finish(&mut key, &mut steps);
                let digits: String = chars.by_ref().take_while(|c| *c != ']').collect();
                let index = digits
                    .parse()
                    .ok()
                    .filter(|i| *i <= MOST)
                    .with_context(|| format!("bad index [{digits}]"))?;
                steps.push(Step::Index(index));
            }
            other => key.push(other),
        }
    }
    finish(&mut key, &mut steps);
    Ok(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_read_as_text() {
        let secret = json!({"kind": "Secret", "data": {"a": "eA=="}});
        assert_eq!(data(&secret).unwrap()["a"], "x");
        let mut values = Map::new();
        set_path(&mut values, r"a.b\.c[1].d", "7", false).unwrap();
        set_path(&mut values, "t", "'7'", false).unwrap();
        assert_eq!(Value::Object(values), json!({"a": {"b.c": [null, {"d": 7}]}, "t": "7"}));
        assert_eq!(
            status(&json!({"kind": "HelmRelease", "status": {"history": [{"name": "a"}]}}))["history"][0]["deleted"],
            Value::Null
        );
    }
}
