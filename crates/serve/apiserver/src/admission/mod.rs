//! Admission policies and webhooks: who is asked about a write, and what their answers do.

mod hook;
mod policy;

use std::sync::{Arc, Mutex};

use base64::Engine as _;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::crd::convert;
use crate::object;
use crate::resource::ResourceType;
use crate::server::{Call, Inner, Target};
use crate::status::{ApiError, Outcome};
use crate::store::Store;
use hook::Hook;

const MUTATING: &str = "admissionregistration.k8s.io/mutatingwebhookconfigurations";
const VALIDATING: &str = "admissionregistration.k8s.io/validatingwebhookconfigurations";

#[derive(Debug, Default)]
struct Configured {
    mutating: Vec<Arc<Hook>>,
    validating: Vec<Arc<Hook>>,
}

/// The configured webhooks, read again only after a configuration changed.
#[derive(Debug)]
pub(crate) struct Webhooks {
    store: Store,
    changes: [watch::Receiver<u64>; 2],
    kept: Mutex<([u64; 2], Arc<Configured>)>,
    policies: policy::Policies,
}

/// One write, as webhooks are told about it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Write<'a> {
    pub(crate) call: &'a Call,
    pub(crate) target: &'a Target,
    /// `CREATE`, `UPDATE` or `DELETE`.
    pub(crate) operation: &'a str,
    pub(crate) old: Option<&'a Value>,
    pub(crate) dry_run: bool,
}

impl Webhooks {
    pub(crate) fn new(store: &Store) -> Self {
        let changes = [store.subscribe(MUTATING), store.subscribe(VALIDATING)];
        Self {
            store: store.clone(),
            changes,
            kept: Mutex::new(([u64::MAX; 2], Arc::default())),
            policies: policy::Policies::new(store),
        }
    }

    fn configured(&self) -> Arc<Configured> {
        let now = [*self.changes[0].borrow(), *self.changes[1].borrow()];
        let mut kept = self.kept.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if kept.0 != now {
            let read = |table: &str| -> Vec<Arc<Hook>> {
                let (_, items, _) = self.store.list(table, "", None, 0);
                items.iter().flat_map(|(_, e)| Hook::list(&e.value())).map(Arc::new).collect()
            };
            *kept = (now, Arc::new(Configured { mutating: read(MUTATING), validating: read(VALIDATING) }));
        }
        kept.1.clone()
    }

    /// Lets the mutating webhooks change an object.
    pub(crate) async fn mutate(
        &self,
        inner: &Arc<Inner>,
        write: Write<'_>,
        object: &mut Value,
    ) -> Outcome<()> {
        let mut object = Some(object);
        self.mutate_all(inner, write, &mut object).await
    }

    /// Asks about a deletion; mutating webhooks come first, though there is nothing for them to change.
    pub(crate) async fn delete(&self, inner: &Arc<Inner>, write: Write<'_>) -> Outcome<()> {
        self.mutate_all(inner, write, &mut None).await?;
        self.validate(inner, write, None).await
    }

    async fn mutate_all(
        &self,
        inner: &Arc<Inner>,
        write: Write<'_>,
        object: &mut Option<&mut Value>,
    ) -> Outcome<()> {
        let configured = self.configured();
        if configured.mutating.is_empty() || is_exempt(write.target) {
            return Ok(());
        }
        // A hook that wants to see the changes of later ones is asked once more when there were some. A second round
        // asks nobody for the first time, and there is no third.
        let (mut waiting, mut again) = (Vec::new(), Vec::new());
        for round in 0..2 {
            for (i, hook) in configured.mutating.iter().enumerate() {
                if round == 1 && !again.contains(&i) {
                    continue;
                }
                let Some(changed) = ask_to_change(inner, hook, write, object).await? else { continue };
                if changed {
                    again.append(&mut waiting);
                }
                if hook.reinvoke {
                    waiting.push(i);
                }
            }
            if again.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// Asks the policies and the validating webhooks about an object, or, for a deletion, about the one that goes.
    pub(crate) async fn validate(
        &self,
        inner: &Arc<Inner>,
        write: Write<'_>,
        object: Option<&Value>,
    ) -> Outcome<()> {
        self.policies.check(inner, write, object)?;
        let configured = self.configured();
        if configured.validating.is_empty() || is_exempt(write.target) {
            return Ok(());
        }
        let asked = configured.validating.iter().map(|hook| async move {
            let Some(question) = Question::about(inner, hook, write, object, false).await? else {
                return Ok(());
            };
            question.ask(inner).await.map(|_| ())
        });
        for answer in futures::future::join_all(asked).await {
            answer?;
        }
        Ok(())
    }
}

/// Configurations of webhooks are not subject to webhooks: a broken one must stay repairable.
fn is_exempt(target: &Target) -> bool {
    target.rt.group == "admissionregistration.k8s.io"
}

/// Asks one mutating hook and applies its patch. `None` when it was not asked, else whether the object changed.
async fn ask_to_change(
    inner: &Arc<Inner>,
    hook: &Hook,
    write: Write<'_>,
    object: &mut Option<&mut Value>,
) -> Outcome<Option<bool>> {
    let Some(question) = Question::about(inner, hook, write, object.as_deref(), true).await? else {
        return Ok(None);
    };
    let Some(response) = question.ask(inner).await? else { return Ok(Some(false)) };
    let Some(patch) = response.get("patch").and_then(Value::as_str).filter(|p| !p.is_empty()) else {
        return Ok(Some(false));
    };
    let patch = base64::engine::general_purpose::STANDARD.decode(patch).map_err(|e| e.to_string()).and_then(
        |bytes| serde_json::from_slice::<Value>(&bytes).map_err(|_| fl_schema::go_syntax_error(&bytes)),
    );
    let patch = match patch {
        Ok(patch) => patch,
        Err(why) => {
            failed(hook, &format!("received undecodable patch in webhook response: {why}"))?;
            return Ok(Some(false));
        }
    };
    if patch.as_array().is_some_and(Vec::is_empty) {
        return Ok(Some(false));
    }
    let (Some(object), Some(shown)) = (object.as_deref_mut(), question.object) else {
        return Err(ApiError::internal(format!(
            "admission webhook {:?} attempted to modify the object, which is not supported for this operation",
            hook.name
        )));
    };
    let mut patched = shown.clone();
    fl_ssa::patch::json_patch(&mut patched, &patch).map_err(|e| ApiError::internal(e.to_string()))?;
    if patched == shown {
        return Ok(Some(false));
    }
    question.seen.strategy.default(&mut patched);
    question.seen.strategy.normalize(&mut patched);
    *object = in_version(inner, &question.seen, &write.target.rt, patched).await?;
    Ok(Some(true))
}

/// An object in another version of its resource.
async fn in_version(inner: &Inner, from: &ResourceType, to: &ResourceType, object: Value) -> Outcome<Value> {
    if from.version == to.version && from.group == to.group {
        return Ok(object);
    }
    if from.conversion.is_some() {
        return convert::to_version(inner, from, object, &to.api_version()).await;
    }
    Ok(to.strategy.read_from_storage(from.strategy.to_storage(object)))
}

/// One hook that is to be asked, and what about.
struct Question<'a> {
    hook: &'a Hook,
    write: Write<'a>,
    /// The version the hook asked for.
    seen: Arc<ResourceType>,
    object: Option<Value>,
    review: Value,
    mutating: bool,
}

impl<'a> Question<'a> {
    /// `None` when the hook is not concerned.
    async fn about(
        inner: &Arc<Inner>,
        hook: &'a Hook,
        write: Write<'a>,
        object: Option<&Value>,
        mutating: bool,
    ) -> Outcome<Option<Self>> {
        let Some(seen) = hook.wants(inner, write, object) else { return Ok(None) };
        let rt = &write.target.rt;
        let mut versions = [None, None];
        for (slot, given) in versions.iter_mut().zip([object, write.old]) {
            if let Some(given) = given {
                *slot = Some(in_version(inner, rt, &seen, given.clone()).await?);
            }
        }
        let [object, old] = versions;
        let review = review(hook.review.unwrap_or("v1"), write, &seen, object.as_ref(), old.as_ref());
        match hook.conditions_hold(object.as_ref(), old.as_ref(), &review["request"]) {
            Ok(true) => Ok(Some(Self { hook, write, seen, object, review, mutating })),
            Ok(false) => Ok(None),
            Err(_) if hook.ignore_failure => Ok(None),
            Err(why) => Err(ApiError::forbidden(rt, &write.target.name, &why)),
        }
    }

    /// Asks. `None` when there is no answer and that is to be ignored.
    async fn ask(&self, inner: &Arc<Inner>) -> Outcome<Option<Value>> {
        let hook = self.hook;
        if self.write.dry_run && !hook.dry_run_safe {
            let message = format!("admission webhook {:?} does not support dry run", hook.name);
            return Err(ApiError::bad_request(message));
        }
        let Some(version) = hook.review else {
            let why = "webhook does not accept known AdmissionReview versions (v1, v1beta1)";
            return failed(hook, &format!("could not create admission objects: {why}"));
        };
        let answer = match hook.remote.post(inner, &self.review, hook.timeout).await {
            Ok(answer) => answer,
            Err(why) => return failed(hook, &format!("failed to call webhook: {why}")),
        };
        if version == "v1"
            && answer["kind"] == "AdmissionReview"
            && answer["apiVersion"] == "admission.k8s.io/v1beta1"
        {
            let why = "converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion";
            return failed(hook, &format!("failed to call webhook: {why}"));
        }
        let response = match verified(&answer, version, &self.review["request"]["uid"], self.mutating) {
            Ok(response) => response,
            Err(why) => return failed(hook, &format!("received invalid webhook response: {why}")),
        };
        let warnings = response.get("warnings").and_then(Value::as_array).into_iter().flatten();
        for warning in warnings.filter_map(Value::as_str) {
            self.write.call.warn(warning);
        }
        if response.get("allowed").and_then(Value::as_bool) == Some(true) {
            return Ok(Some(response.clone()));
        }
        Err(denied(hook, response.get("status")))
    }
}

/// The response of an answer, if it is one to this request.
fn verified<'a>(answer: &'a Value, version: &str, uid: &Value, mutating: bool) -> Result<&'a Value, String> {
    let Some(response) = answer.get("response").filter(|r| !r.is_null()) else {
        return Err("webhook response was absent".to_owned());
    };
    if version == "v1beta1" {
        return Ok(response);
    }
    let text = |value: &Value, field: &str| value[field].as_str().unwrap_or_default().to_owned();
    let given = text(response, "uid");
    if Some(given.as_str()) != uid.as_str() {
        return Err(format!("expected response.uid={uid}, got {given:?}"));
    }
    let (api_version, kind) = (text(answer, "apiVersion"), text(answer, "kind"));
    if api_version != "admission.k8s.io/v1" || kind != "AdmissionReview" {
        let (group, version) = object::split_api_version(&api_version);
        return Err(format!(
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {group}/{version}, Kind={kind}"
        ));
    }
    let has_patch = !text(response, "patch").is_empty();
    let patch_type = response.get("patchType").filter(|t| !t.is_null()).and_then(Value::as_str);
    match (mutating, has_patch, patch_type) {
        (false, true, _) => Err("validating webhook may not return response.patch".to_owned()),
        (false, false, Some(_)) => Err("validating webhook may not return response.patchType".to_owned()),
        (true, true, None) => Err("webhook returned response.patch but not response.patchType".to_owned()),
        (true, false, Some(_)) => {
            Err("webhook returned response.patchType but not response.patch".to_owned())
        }
        (true, true, Some("")) => Err("webhook returned invalid response.patchType of \"\"".to_owned()),
        (true, true, Some(other)) if other != "JSONPatch" => Err(format!("unsupported patch type {other:?}")),
        _ => Ok(response),
    }
}

fn failed(hook: &Hook, why: &str) -> Outcome<Option<Value>> {
    if hook.ignore_failure {
        return Ok(None);
    }
    Err(ApiError::internal(format!("failed calling webhook {:?}: {why}", hook.name)))
}

/// The Status the webhook gave, completed.
fn denied(hook: &Hook, status: Option<&Value>) -> ApiError {
    let text = |field: &str| status.and_then(|s| s.get(field)).and_then(Value::as_str).unwrap_or_default();
    let by = format!("admission webhook {:?} denied the request", hook.name);
    let message = match (text("message"), text("reason")) {
        ("", "") => format!("{by} without explanation"),
        ("", reason) => format!("{by}: {reason}"),
        (message, _) => format!("{by}: {message}"),
    };
    let code = status.and_then(|s| s.get("code")).and_then(Value::as_u64).unwrap_or(0);
    let code = u16::try_from(code).ok().filter(|c| (400..600).contains(c)).unwrap_or(400);
    let mut error = ApiError::new(code, "", message);
    let mut whole = error.to_status();
    for field in ["reason", "details"] {
        if let Some(given) = status.and_then(|s| s.get(field)).filter(|v| !v.is_null() && *v != "") {
            whole[field] = given.clone();
        }
    }
    error.whole = Some(Box::new(whole));
    error
}

fn review(
    version: &str,
    write: Write<'_>,
    seen: &ResourceType,
    object: Option<&Value>,
    old: Option<&Value>,
) -> Value {
    let (rt, target) = (&write.target.rt, write.target);
    let kind = |rt: &ResourceType| json!({"group": rt.group, "version": rt.version, "kind": rt.kind});
    let resource =
        |rt: &ResourceType| json!({"group": rt.group, "version": rt.version, "resource": rt.plural});
    let name =
        if target.name.is_empty() { object.map(object::name).unwrap_or_default() } else { &target.name };
    let mut request = json!({
        "uid": uuid::Uuid::new_v4().to_string(), "kind": kind(seen), "resource": resource(seen),
        "requestKind": kind(rt), "requestResource": resource(rt), "operation": write.operation,
        "userInfo": write.call.user.to_json(), "object": object, "oldObject": old, "dryRun": write.dry_run,
        "options": options(write)
    });
    if !name.is_empty() {
        request["name"] = json!(name);
    }
    if rt.namespaced {
        request["namespace"] = json!(target.namespace);
    } else if rt.group.is_empty() && rt.plural == "namespaces" && !name.is_empty() {
        request["namespace"] = json!(name);
    }
    if !target.subresource.is_empty() {
        request["subResource"] = json!(target.subresource);
        request["requestSubResource"] = json!(target.subresource);
    }
    json!({"kind": "AdmissionReview", "apiVersion": format!("admission.k8s.io/{version}"), "request": request})
}

/// The options of the request, as far as the caller gave any.
fn options(write: Write<'_>) -> Value {
    let query = &write.call.query;
    let kind = match write.operation {
        "CREATE" => "CreateOptions",
        "UPDATE" => "UpdateOptions",
        _ => "DeleteOptions",
    };
    let mut options = json!({"kind": kind, "apiVersion": "meta.k8s.io/v1"});
    if write.dry_run {
        options["dryRun"] = json!(["All"]);
    }
    let given: &[&str] = if write.operation == "DELETE" {
        &["propagationPolicy"]
    } else {
        &["fieldManager", "fieldValidation"]
    };
    for field in given {
        if !query.get(field).is_empty() {
            options[*field] = json!(query.get(field));
        }
    }
    options
}
