//! ValidatingAdmissionPolicies.

use std::sync::{Arc, Mutex};

use serde_json::{Map, Value, json};
use tokio::sync::watch;

use super::webhook_config::Webhook;
use super::{AdmissionAttributes, is_exempt, review};
use crate::object;
use crate::selector::LabelSelector;
use crate::server::Inner;
use crate::status::{ApiError, ApiResult};
use crate::store::Store;

const POLICIES: &str = "admissionregistration.k8s.io/validatingadmissionpolicies";
const BINDINGS: &str = "admissionregistration.k8s.io/validatingadmissionpolicybindings";

/// Variables that expressions can use.
const VARIABLES: &[&str] =
    &["object", "oldObject", "request", "params", "namespaceObject", "authorizer", "variables"];

type CompiledExpression = Result<fl_cel::Expression, String>;

/// Resources that a policy or binding includes, and those it excludes from them.
#[derive(Debug)]
struct MatchResources {
    included: Option<Webhook>,
    excluded: Webhook,
}

impl MatchResources {
    /// Reads `matchConstraints` or `matchResources`; a binding without rules matches everything its policy
    /// matches.
    fn read(found: &Value, binding: bool) -> Self {
        let webhook = |rules: &Value| {
            Webhook::matching(&json!({
                "rules": rules, "matchPolicy": found["matchPolicy"],
                "namespaceSelector": found["namespaceSelector"], "objectSelector": found["objectSelector"]
            }))
        };
        let all = json!([{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*", "*"]}]);
        let open = found["resourceRules"].as_array().is_none_or(Vec::is_empty);
        let included = match (open, binding) {
            (true, true) if found.is_null() => None,
            (true, true) => Some(webhook(&all)),
            _ => Some(webhook(&found["resourceRules"])),
        };
        let excluded = Webhook::matching(&json!({"rules": found["excludeResourceRules"]}));
        Self { included, excluded }
    }

    fn matches(&self, inner: &Inner, attributes: AdmissionAttributes<'_>, object: Option<&Value>) -> bool {
        let in_it = self
            .included
            .as_ref()
            .is_none_or(|webhook| webhook.matching_version(inner, attributes, object).is_some());
        in_it && self.excluded.matching_version(inner, attributes, object).is_none()
    }
}

#[derive(Debug)]
struct Validation {
    source: String,
    expression: CompiledExpression,
    message: String,
    message_expression: Option<CompiledExpression>,
    reason: &'static str,
}

#[derive(Debug)]
struct Binding {
    name: String,
    match_resources: MatchResources,
    actions: Vec<String>,
    parameters: Value,
}

#[derive(Debug)]
struct Policy {
    name: String,
    match_resources: MatchResources,
    ignore_failure: bool,
    parameters: Option<(String, String)>,
    /// Source and expression.
    conditions: Vec<(String, CompiledExpression)>,
    variables: Vec<(String, CompiledExpression)>,
    checks: Vec<Validation>,
    bindings: Vec<Binding>,
}

fn string_field(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().trim().to_owned()
}

fn items<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value[key].as_array().into_iter().flatten()
}

fn compile(source: &str) -> CompiledExpression {
    fl_cel::Expression::compile(source, VARIABLES).map_err(|why| format!("compilation error: {why}"))
}

impl Policy {
    fn read(policy: &Value, bindings: &[Value]) -> Self {
        let (name, spec) = (object::name(policy).to_owned(), &policy["spec"]);
        let kind = &spec["paramKind"];
        Self {
            match_resources: MatchResources::read(&spec["matchConstraints"], false),
            ignore_failure: spec["failurePolicy"] == "Ignore",
            parameters: kind
                .is_object()
                .then(|| (string_field(kind, "apiVersion"), string_field(kind, "kind"))),
            conditions: items(spec, "matchConditions")
                .map(|one| (string_field(one, "expression"), compile(&string_field(one, "expression"))))
                .collect(),
            variables: items(spec, "variables")
                .map(|one| (string_field(one, "name"), compile(&string_field(one, "expression"))))
                .collect(),
            checks: items(spec, "validations")
                .map(|check| {
                    let (source, message_expression) =
                        (string_field(check, "expression"), string_field(check, "messageExpression"));
                    Validation {
                        expression: compile(&source),
                        source,
                        message: string_field(check, "message"),
                        message_expression: (!message_expression.is_empty())
                            .then(|| compile(&message_expression)),
                        reason: match check["reason"].as_str() {
                            Some("Unauthorized") => "Unauthorized",
                            Some("Forbidden") => "Forbidden",
                            Some("RequestEntityTooLarge") => "RequestEntityTooLarge",
                            _ => "Invalid",
                        },
                    }
                })
                .collect(),
            bindings: bindings
                .iter()
                .filter(|binding| string_field(&binding["spec"], "policyName") == name)
                .map(|binding| Binding {
                    name: object::name(binding).to_owned(),
                    match_resources: MatchResources::read(&binding["spec"]["matchResources"], true),
                    actions: items(&binding["spec"], "validationActions")
                        .filter_map(|action| action.as_str().map(str::to_owned))
                        .collect(),
                    parameters: binding["spec"]["paramRef"].clone(),
                })
                .collect(),
            name,
        }
    }
}

/// Reason and message of a denial.
type Denial = (&'static str, String);

/// The policies with their bindings, reloaded when one changed.
#[derive(Debug)]
pub(super) struct Policies {
    store: Store,
    changes: [watch::Receiver<u64>; 2],
    cached: Mutex<([u64; 2], Arc<Vec<Policy>>)>,
}

impl Policies {
    pub(super) fn new(store: &Store) -> Self {
        let changes = [store.subscribe(POLICIES), store.subscribe(BINDINGS)];
        Self { store: store.clone(), changes, cached: Mutex::new(([u64::MAX; 2], Arc::default())) }
    }

    fn policies(&self) -> Arc<Vec<Policy>> {
        let now = [*self.changes[0].borrow(), *self.changes[1].borrow()];
        let mut cached = self.cached.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if cached.0 != now {
            let read = |table: &str| -> Vec<Value> {
                self.store.list(table, "", None, 0).1.iter().map(|(_, entry)| entry.value()).collect()
            };
            let (found, bindings) = (read(POLICIES), read(BINDINGS));
            let policies = found.iter().map(|policy| Policy::read(policy, &bindings));
            // A policy without a binding has no effect.
            *cached = (now, Arc::new(policies.filter(|policy| !policy.bindings.is_empty()).collect()));
        }
        cached.1.clone()
    }

    /// Evaluates every policy that is bound to a write.
    pub(super) fn check(
        &self,
        inner: &Inner,
        attributes: AdmissionAttributes<'_>,
        object: Option<&Value>,
    ) -> ApiResult<()> {
        let policies = self.policies();
        if policies.is_empty() || is_exempt(attributes.target) {
            return Ok(());
        }
        for policy in
            policies.iter().filter(|policy| policy.match_resources.matches(inner, attributes, object))
        {
            for binding in
                policy.bindings.iter().filter(|b| b.match_resources.matches(inner, attributes, object))
            {
                for (reason, why) in policy.decide(inner, attributes, binding, object) {
                    let names = format!(
                        "ValidatingAdmissionPolicy '{}' with binding '{}'",
                        policy.name, binding.name
                    );
                    if binding.actions.iter().any(|action| action == "Warn") {
                        attributes.ctx.warn(format!("Validation failed for {names}: {why}"));
                    }
                    if binding.actions.iter().any(|action| action == "Deny") {
                        return Err(denied(
                            attributes,
                            object,
                            reason,
                            &format!("{names} denied request: {why}"),
                        ));
                    }
                }
            }
        }
        Ok(())
    }
}

fn denied(
    attributes: AdmissionAttributes<'_>,
    object: Option<&Value>,
    reason: &'static str,
    why: &str,
) -> ApiError {
    let target = attributes.target;
    let name =
        if target.name.is_empty() { object.map(object::name).unwrap_or_default() } else { &target.name };
    let mut error = ApiError::forbidden(&target.rt, name, why);
    (error.reason, error.code) = match reason {
        "Unauthorized" => (reason, 401),
        "Forbidden" => (reason, 403),
        "RequestEntityTooLarge" => (reason, 413),
        _ => ("Invalid", 422),
    };
    if let Some(details) = &mut error.details {
        details["causes"] = json!([{"message": why}]);
    }
    error
}

impl Policy {
    /// The denials of a write, for each of the parameters of a binding.
    fn decide(
        &self,
        inner: &Inner,
        attributes: AdmissionAttributes<'_>,
        binding: &Binding,
        object: Option<&Value>,
    ) -> Vec<Denial> {
        let parameters = match self.parameters_of(inner, attributes, binding) {
            Ok(parameters) => parameters,
            Err(_) if self.ignore_failure => return Vec::new(),
            Err(why) => return vec![("Invalid", format!("failed to configure binding: {why}"))],
        };
        let rt = &attributes.target.rt;
        let review = review("v1", attributes, rt, object, attributes.old);
        let mut request = review["request"].clone();
        let scale = rt.strategy.scale_paths().filter(|_| attributes.target.subresource == "scale");
        let (new, old) = match scale {
            // The written object is the scale, not the resource it belongs to.
            Some(paths) => {
                for key in ["kind", "requestKind"] {
                    request[key] = json!({"group": "autoscaling", "version": "v1", "kind": "Scale"});
                }
                let scale = |object: &Value| crate::verbs::scale::scale_of(object, &paths);
                (object.map(scale), attributes.old.map(scale))
            }
            None => (None, None),
        };
        let (object, old) = (new.as_ref().or(object), old.as_ref().or(attributes.old));
        if let Some(request) = request.as_object_mut() {
            request.remove("object");
            request.remove("oldObject");
        }
        let namespace = if rt.namespaced {
            let entry = inner.store.latest("/namespaces", &object::key("", &attributes.target.namespace));
            entry.map_or(Value::Null, |entry| entry.value())
        } else {
            Value::Null
        };
        let none = Value::Null;
        let mut found = Vec::new();
        for params in &parameters {
            let base = [
                ("object", object.unwrap_or(&none)),
                ("oldObject", old.unwrap_or(&none)),
                ("request", &request),
                ("params", params),
                ("namespaceObject", &namespace),
            ];
            found.extend(self.decide_once(&base));
        }
        found
    }

    fn decide_once(&self, base: &[(&str, &Value)]) -> Vec<Denial> {
        let fails = |why: String| if self.ignore_failure { Vec::new() } else { vec![("Invalid", why)] };
        let mut unclear = Vec::new();
        for (source, condition) in &self.conditions {
            match condition.clone().and_then(|c| c.eval_bool(base).map_err(|why| why.to_string())) {
                Ok(true) => {}
                // One false condition outweighs conditions that fail.
                Ok(false) => return Vec::new(),
                Err(why) => unclear.push(format!("expression '{source}' resulted in error: {why}")),
            }
        }
        match unclear.as_slice() {
            [] => {}
            [one] => return fails(one.clone()),
            several => return fails(format!("[{}]", several.join(", "))),
        }
        // An error in a variable fails only the expressions that use it.
        let (mut variables, mut failed) = (Map::new(), Vec::new());
        for (name, expression) in &self.variables {
            let held = Value::Object(variables.clone());
            let all: Vec<(&str, &Value)> =
                base.iter().copied().chain(std::iter::once(("variables", &held))).collect();
            let value = match expression {
                Ok(expression) => expression.eval_composed(&all, &failed),
                Err(why) => Err(fl_cel::EvalError::Message(why.clone())),
            };
            match value {
                Ok(value) => {
                    variables.insert(name.clone(), value);
                }
                Err(why) => failed.push((name.clone(), why)),
            }
        }
        let held = Value::Object(variables);
        let all: Vec<(&str, &Value)> =
            base.iter().copied().chain(std::iter::once(("variables", &held))).collect();
        let mut found = Vec::new();
        for check in &self.checks {
            let outcome = check
                .expression
                .as_ref()
                .map_err(Clone::clone)
                .and_then(|e| e.eval_composed(&all, &failed).map_err(|why| why.to_string()));
            match outcome {
                Ok(Value::Bool(true)) => {}
                Ok(_) => found.push((check.reason, check.failure_message(&all, &failed))),
                Err(why) => {
                    found.extend(fails(format!("expression '{}' resulted in error: {why}", check.source)));
                }
            }
        }
        found
    }

    /// The parameter objects of a binding; a policy without parameters is evaluated once.
    fn parameters_of(
        &self,
        inner: &Inner,
        attributes: AdmissionAttributes<'_>,
        binding: &Binding,
    ) -> Result<Vec<Value>, String> {
        let (Some((api_version, kind)), false) = (&self.parameters, binding.parameters.is_null()) else {
            return Ok(vec![Value::Null]);
        };
        let registry = inner.registry();
        let Some(rt) = registry.iter().find(|rt| rt.api_version() == *api_version && rt.kind == *kind) else {
            return Err(format!("paramKind kind `{api_version}, Kind={kind}` not known"));
        };
        let reference = &binding.parameters;
        let namespace = match (rt.namespaced, string_field(reference, "namespace")) {
            (false, _) => String::new(),
            (true, named) if !named.is_empty() => named,
            (true, _) => attributes.target.namespace.clone(),
        };
        let (table, name) = (&rt.storage.prefix, string_field(reference, "name"));
        let read = |stored: Value| rt.strategy.read_from_storage(stored);
        let found: Vec<Value> = if name.is_empty() {
            let selector = LabelSelector::from_object(&reference["selector"]).unwrap_or_default();
            let all = inner.store.list(table, &format!("{namespace}/"), None, 0).1;
            let values = all.iter().map(|(_, entry)| entry.value());
            values.filter(|one| selector.matches(one.pointer("/metadata/labels"))).map(read).collect()
        } else {
            let entry = inner.store.latest(table, &object::key(&namespace, &name));
            entry.map(|entry| read(entry.value())).into_iter().collect()
        };
        if found.is_empty() && string_field(reference, "parameterNotFoundAction") == "Deny" {
            return Err("no params found for policy binding with `Deny` parameterNotFoundAction".to_owned());
        }
        Ok(found)
    }
}

impl Validation {
    /// The message of a failed validation.
    fn failure_message(
        &self,
        variables: &[(&str, &Value)],
        failed: &[(String, fl_cel::EvalError)],
    ) -> String {
        let evaluated = self
            .message_expression
            .as_ref()
            .and_then(|expression| expression.as_ref().ok()?.eval_composed(variables, failed).ok());
        let message = evaluated.as_ref().and_then(Value::as_str).unwrap_or_default().trim().to_owned();
        if !message.is_empty() && !message.contains('\n') {
            message
        } else if self.message.is_empty() {
            format!("failed expression: {}", self.source)
        } else {
            self.message.clone()
        }
    }
}
