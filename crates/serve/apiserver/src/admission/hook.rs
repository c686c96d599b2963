//! One configured webhook: what it wants to see and where it is.

use std::time::Duration;

use base64::Engine as _;
use serde_json::{Value, json};

use super::Write;
use crate::object;
use crate::selector::LabelSelector;
use crate::server::Inner;

#[derive(Debug)]
struct Rule {
    operations: Vec<String>,
    groups: Vec<String>,
    versions: Vec<String>,
    resources: Vec<String>,
    scope: String,
}

#[derive(Debug)]
pub(super) struct Hook {
    pub(super) name: String,
    pub(super) ca: Option<Vec<u8>>,
    pub(super) server_name: Option<String>,
    pub(super) ignore_failure: bool,
    pub(super) reinvoke: bool,
    pub(super) dry_run_safe: bool,
    pub(super) timeout: Duration,
    equivalent: bool,
    config: Value,
    rules: Vec<Rule>,
    namespaces: LabelSelector,
    objects: LabelSelector,
    conditions: Vec<Result<fl_cel::Expression, String>>,
}

fn strings(value: Option<&Value>) -> Vec<String> {
    value
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

fn any(list: &[String], wanted: &str) -> bool {
    list.iter().any(|x| x == "*" || x == wanted)
}

impl Rule {
    fn read(rule: &Value) -> Self {
        Self {
            operations: strings(rule.get("operations")),
            groups: strings(rule.get("apiGroups")),
            versions: strings(rule.get("apiVersions")),
            resources: strings(rule.get("resources")),
            scope: rule.get("scope").and_then(Value::as_str).unwrap_or("*").to_owned(),
        }
    }

    fn matches(&self, write: Write<'_>, equivalent: bool) -> bool {
        let rt = &write.target.rt;
        let sub = &write.target.subresource;
        let resource = self.resources.iter().any(|r| {
            let (name, wanted) = r.split_once('/').unwrap_or((r, ""));
            (name == "*" || name == rt.plural)
                && (wanted == sub || (wanted == "*" && r.contains('/')) || r == "*/*")
        });
        let scope = match self.scope.as_str() {
            "Cluster" => !rt.namespaced,
            "Namespaced" => rt.namespaced,
            _ => true,
        };
        any(&self.operations, write.operation)
            && any(&self.groups, &rt.group)
            && (equivalent || any(&self.versions, &rt.version))
            && resource
            && scope
    }
}

impl Hook {
    /// The webhooks of one configuration.
    pub(super) fn list(configuration: &Value) -> Vec<Self> {
        let hooks = configuration.get("webhooks").and_then(Value::as_array).cloned().unwrap_or_default();
        hooks.iter().map(Self::read).collect()
    }

    fn read(hook: &Value) -> Self {
        let text = |pointer: &str| hook.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let selector = |field: &str| hook.get(field).and_then(LabelSelector::from_object).unwrap_or_default();
        let service = hook.pointer("/clientConfig/service").filter(|s| !s.is_null());
        Self {
            name: text("/name").to_owned(),
            ca: base64::engine::general_purpose::STANDARD
                .decode(text("/clientConfig/caBundle"))
                .ok()
                .filter(|b| !b.is_empty()),
            server_name: service.map(|s| {
                format!(
                    "{}.{}.svc",
                    s["name"].as_str().unwrap_or_default(),
                    s["namespace"].as_str().unwrap_or_default()
                )
            }),
            ignore_failure: text("/failurePolicy") == "Ignore",
            reinvoke: text("/reinvocationPolicy") == "IfNeeded",
            dry_run_safe: matches!(text("/sideEffects"), "None" | "NoneOnDryRun"),
            timeout: Duration::from_secs(
                hook.get("timeoutSeconds").and_then(Value::as_u64).unwrap_or(10).clamp(1, 30),
            ),
            equivalent: text("/matchPolicy") != "Exact",
            rules: hook
                .get("rules")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .map(Rule::read)
                .collect(),
            namespaces: selector("namespaceSelector"),
            objects: selector("objectSelector"),
            conditions: hook
                .get("matchConditions")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(|c| c.get("expression").and_then(Value::as_str))
                .map(|e| {
                    fl_cel::Expression::compile(e, &["object", "oldObject", "request"])
                        .map_err(|e| e.to_string())
                })
                .collect(),
            config: hook.get("clientConfig").cloned().unwrap_or_else(|| json!({})),
        }
    }

    /// Whether the hook is to be asked; an error is a match condition that cannot be told.
    pub(super) fn concerns(
        &self,
        inner: &Inner,
        write: Write<'_>,
        object: Option<&Value>,
        request: &Value,
    ) -> Result<bool, String> {
        if !self.rules.iter().any(|r| r.matches(write, self.equivalent))
            || !self.in_namespace(inner, write, object)
        {
            return Ok(false);
        }
        let labelled =
            |o: Option<&Value>| o.is_some_and(|o| self.objects.matches(o.pointer("/metadata/labels")));
        if !self.objects.is_empty() && !labelled(object) && !labelled(write.old) {
            return Ok(false);
        }
        let none = Value::Null;
        let mut unclear = None;
        for condition in &self.conditions {
            let variables = [
                ("object", object.unwrap_or(&none)),
                ("oldObject", write.old.unwrap_or(&none)),
                ("request", request),
            ];
            match condition
                .as_ref()
                .map_err(Clone::clone)
                .and_then(|c| c.eval_bool(&variables).map_err(|e| e.to_string()))
            {
                Ok(true) => {}
                // One condition that says no outweighs any that fail.
                Ok(false) => return Ok(false),
                Err(why) => unclear = Some(why),
            }
        }
        unclear.map_or(Ok(true), Err)
    }

    fn in_namespace(&self, inner: &Inner, write: Write<'_>, object: Option<&Value>) -> bool {
        if self.namespaces.is_empty() {
            return true;
        }
        let rt = &write.target.rt;
        if rt.group.is_empty() && rt.plural == "namespaces" {
            return self.namespaces.matches(object.or(write.old).and_then(|o| o.pointer("/metadata/labels")));
        }
        if !rt.namespaced {
            return true;
        }
        let namespace = inner.store.latest("/namespaces", &object::key("", &write.target.namespace));
        namespace.is_some_and(|n| self.namespaces.matches(n.value().pointer("/metadata/labels")))
    }

    /// Where the hook listens: its URL, or an endpoint of its service.
    pub(super) fn url(&self, inner: &Inner) -> Result<String, String> {
        client_url(inner, &self.config)
    }
}

/// The URL of a client configuration.
pub(crate) fn client_url(inner: &Inner, config: &Value) -> Result<String, String> {
    if let Some(url) = config.get("url").and_then(Value::as_str) {
        return Ok(url.to_owned());
    }
    let text = |field: &str| {
        config.pointer(&format!("/service/{field}")).and_then(Value::as_str).unwrap_or_default()
    };
    let (namespace, name) = (text("namespace"), text("name"));
    let path = text("path").trim_start_matches('/');
    let port = config.pointer("/service/port").and_then(Value::as_u64).unwrap_or(443);
    let key = object::key(namespace, name);
    let Some(service) = inner.store.get("/services", &key) else {
        return Err(format!("service {name:?} not found"));
    };
    let service = service.value();
    if service.pointer("/spec/type").and_then(Value::as_str) == Some("ExternalName") {
        let host = service.pointer("/spec/externalName").and_then(Value::as_str).unwrap_or_default();
        return Ok(format!("https://{host}:{port}/{path}"));
    }
    // There is no cluster network: an endpoint is addressed directly.
    let endpoints = inner.store.get("/endpoints", &key).map(|e| e.value()).unwrap_or_default();
    let address = endpoints.pointer("/subsets/0/addresses/0/ip").and_then(Value::as_str);
    let target = endpoints.pointer("/subsets/0/ports/0/port").and_then(Value::as_u64);
    match (address, target) {
        (Some(ip), Some(target)) => Ok(format!("https://{ip}:{target}/{path}")),
        _ => Err(format!("no endpoints available for service {name:?}")),
    }
}
