//! One configured webhook: rules, selectors and client configuration.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::AdmissionAttributes;
use crate::object;
use crate::resource_type::ResourceType;
use crate::selector::LabelSelector;
use crate::server::Inner;
use crate::webhook::Remote;

#[derive(Debug)]
struct Rule {
    operations: Vec<String>,
    groups: Vec<String>,
    versions: Vec<String>,
    resources: Vec<String>,
    /// Resource names; empty matches all.
    names: Vec<String>,
    scope: String,
}

#[derive(Debug)]
pub(super) struct Webhook {
    pub(super) name: String,
    pub(super) remote: Remote,
    /// The first supported version of AdmissionReview.
    pub(super) review: Option<&'static str>,
    pub(super) ignore_failure: bool,
    pub(super) reinvoke: bool,
    pub(super) dry_run_safe: bool,
    pub(super) timeout: Duration,
    equivalent: bool,
    rules: Vec<Rule>,
    namespaces: LabelSelector,
    objects: LabelSelector,
    conditions: Vec<(String, Result<fl_cel::Expression, String>)>,
}

fn any(list: &[String], wanted: &str) -> bool {
    list.iter().any(|x| x == "*" || x == wanted)
}

impl Rule {
    fn read(rule: &Value) -> Self {
        Self {
            operations: object::strings(rule.get("operations")),
            groups: object::strings(rule.get("apiGroups")),
            versions: object::strings(rule.get("apiVersions")),
            resources: object::strings(rule.get("resources")),
            names: object::strings(rule.get("resourceNames")),
            scope: rule.get("scope").and_then(Value::as_str).unwrap_or("*").to_owned(),
        }
    }

    fn matches(&self, rt: &ResourceType, sub: &str, operation: &str) -> bool {
        let resource = self.resources.iter().any(|r| {
            let (name, wanted) = r.split_once('/').unwrap_or((r, ""));
            (name == "*" || name == rt.plural) && (wanted == "*" || wanted == sub)
        });
        let scope = match self.scope.as_str() {
            "Cluster" => !rt.namespaced,
            "Namespaced" => rt.namespaced,
            _ => true,
        };
        any(&self.operations, operation)
            && any(&self.groups, &rt.group)
            && any(&self.versions, &rt.version)
            && resource
            && scope
    }
}

impl Webhook {
    /// The webhooks of one configuration.
    pub(super) fn list(configuration: &Value) -> Vec<Self> {
        let hooks = configuration.get("webhooks").and_then(Value::as_array).cloned().unwrap_or_default();
        hooks.iter().map(Self::read).collect()
    }

    /// Rules and selectors only, for policies.
    pub(super) fn matching(found: &Value) -> Self {
        Self::read(found)
    }

    fn read(webhook: &Value) -> Self {
        let text = |pointer: &str| webhook.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let selector =
            |field: &str| webhook.get(field).and_then(LabelSelector::from_object).unwrap_or_default();
        Self {
            name: text("/name").to_owned(),
            remote: Remote::read(webhook.get("clientConfig").unwrap_or(&Value::Null)),
            review: object::strings(webhook.get("admissionReviewVersions")).iter().find_map(|v| {
                match v.as_str() {
                    "v1" => Some("v1"),
                    "v1beta1" => Some("v1beta1"),
                    _ => None,
                }
            }),
            ignore_failure: text("/failurePolicy") == "Ignore",
            reinvoke: text("/reinvocationPolicy") == "IfNeeded",
            dry_run_safe: matches!(text("/sideEffects"), "None" | "NoneOnDryRun"),
            timeout: Duration::from_secs(
                webhook.get("timeoutSeconds").and_then(Value::as_u64).unwrap_or(10).clamp(1, 30),
            ),
            equivalent: text("/matchPolicy") != "Exact",
            rules: webhook
                .get("rules")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .map(Rule::read)
                .collect(),
            namespaces: selector("namespaceSelector"),
            objects: selector("objectSelector"),
            conditions: webhook
                .get("matchConditions")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(|c| c.get("expression").and_then(Value::as_str))
                .map(|e| {
                    let compiled = fl_cel::Expression::compile(e, &["object", "oldObject", "request"]);
                    (e.to_owned(), compiled.map_err(|e| e.to_string()))
                })
                .collect(),
        }
    }

    /// The resource in the version that the webhook matches; `None` if it does not match.
    pub(super) fn matching_version(
        &self,
        inner: &Inner,
        attributes: AdmissionAttributes<'_>,
        object: Option<&Value>,
    ) -> Option<Arc<ResourceType>> {
        let (rt, sub) = (&attributes.target.rt, attributes.target.subresource.as_str());
        // A new object is matched by the name in its metadata.
        let name = match attributes.target.name.as_str() {
            "" => object.map(object::name).unwrap_or_default(),
            name => name,
        };
        let named = |r: &&Rule| r.names.is_empty() || r.names.iter().any(|wanted| wanted == name);
        let direct = self.rules.iter().filter(named).any(|r| r.matches(rt, sub, attributes.operation));
        let webhook_rt = if direct { rt.clone() } else { self.equivalent_of(inner, attributes, &named)? };
        let labelled =
            |o: Option<&Value>| o.is_some_and(|o| self.objects.matches(o.pointer("/metadata/labels")));
        let selected = self.objects.is_empty() || labelled(object) || labelled(attributes.old);
        (selected && self.in_namespace(inner, attributes, object)).then_some(webhook_rt)
    }

    /// An equivalent version of the resource that a rule matches.
    fn equivalent_of(
        &self,
        inner: &Inner,
        attributes: AdmissionAttributes<'_>,
        named: &dyn Fn(&&Rule) -> bool,
    ) -> Option<Arc<ResourceType>> {
        if !self.equivalent {
            return None;
        }
        let (rt, sub) = (&attributes.target.rt, attributes.target.subresource.as_str());
        let registry = inner.registry();
        self.rules.iter().filter(|rule| named(rule)).find_map(|rule| {
            registry
                .iter()
                .filter(|other| other.storage.prefix == rt.storage.prefix)
                .find(|other| rule.matches(other, sub, attributes.operation))
                .cloned()
        })
    }

    /// Whether the match conditions hold; an error if one of them fails.
    pub(super) fn conditions_hold(
        &self,
        object: Option<&Value>,
        old: Option<&Value>,
        request: &Value,
    ) -> Result<bool, String> {
        let none = Value::Null;
        let variables =
            [("object", object.unwrap_or(&none)), ("oldObject", old.unwrap_or(&none)), ("request", request)];
        let mut unclear = Vec::new();
        for (text, condition) in &self.conditions {
            let held = condition.as_ref().map_err(Clone::clone);
            match held.and_then(|c| c.eval_bool(&variables).map_err(|e| e.to_string())) {
                Ok(true) => {}
                // One false condition outweighs conditions that fail.
                Ok(false) => return Ok(false),
                Err(why) => unclear.push(format!("expression '{text}' resulted in error: {why}")),
            }
        }
        match unclear.as_slice() {
            [] => Ok(true),
            [one] => Err(one.clone()),
            several => Err(format!("[{}]", several.join(", "))),
        }
    }

    fn in_namespace(
        &self,
        inner: &Inner,
        attributes: AdmissionAttributes<'_>,
        object: Option<&Value>,
    ) -> bool {
        if self.namespaces.is_empty() {
            return true;
        }
        let rt = &attributes.target.rt;
        if rt.group.is_empty() && rt.plural == "namespaces" {
            return self
                .namespaces
                .matches(object.or(attributes.old).and_then(|o| o.pointer("/metadata/labels")));
        }
        if !rt.namespaced {
            return true;
        }
        let namespace = inner.store.latest("/namespaces", &object::key("", &attributes.target.namespace));
        namespace.is_some_and(|n| self.namespaces.matches(n.value().pointer("/metadata/labels")))
    }
}
