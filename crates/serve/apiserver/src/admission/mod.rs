//! Admission webhooks: who is asked about a write, and what their answers do.

mod client;
mod hook;

use std::sync::{Arc, Mutex};

use base64::Engine as _;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::object;
use crate::server::{Call, Inner, Target};
use crate::status::{ApiError, Outcome};
use crate::store::Store;
pub(crate) use client::post_json;
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
        Self { store: store.clone(), changes, kept: Mutex::new(([u64::MAX; 2], Arc::default())) }
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

    /// Lets the mutating webhooks change an object; true when one did.
    pub(crate) async fn mutate(
        &self,
        inner: &Arc<Inner>,
        write: Write<'_>,
        object: &mut Value,
    ) -> Outcome<bool> {
        let configured = self.configured();
        if configured.mutating.is_empty() || is_exempt(write.target) {
            return Ok(false);
        }
        let mut changed = false;
        let mut again = Vec::new();
        for (i, hook) in configured.mutating.iter().enumerate() {
            if ask_one(inner, hook, write, object).await? {
                changed = true;
                // Earlier hooks that want to see later changes are asked once more.
                again = configured.mutating[..i].iter().filter(|h| h.reinvoke).cloned().collect();
            }
        }
        for hook in again {
            changed |= ask_one(inner, &hook, write, object).await?;
        }
        Ok(changed)
    }

    /// Asks the validating webhooks about an object (or, for a deletion, about the one that goes).
    pub(crate) async fn validate(
        &self,
        inner: &Arc<Inner>,
        write: Write<'_>,
        object: Option<&Value>,
    ) -> Outcome<()> {
        let configured = self.configured();
        let (mutating, validating) = (&configured.mutating, &configured.validating);
        let deletion = write.operation == "DELETE";
        if (validating.is_empty() && (mutating.is_empty() || !deletion)) || is_exempt(write.target) {
            return Ok(());
        }
        let hooks = if deletion { mutating.iter().chain(validating) } else { [].iter().chain(validating) };
        let asked = hooks.map(|hook| ask(inner, hook, write, object));
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

/// Asks one mutating hook and applies its patch; true when the object changed.
async fn ask_one(inner: &Arc<Inner>, hook: &Hook, write: Write<'_>, object: &mut Value) -> Outcome<bool> {
    let shown = object.clone();
    let Some(response) = ask(inner, hook, write, Some(&shown)).await? else { return Ok(false) };
    let Some(encoded) = response.get("patch").and_then(Value::as_str).filter(|p| !p.is_empty()) else {
        return Ok(false);
    };
    let bad = |why: String| {
        ApiError::internal(format!("failed to apply the patch of webhook {:?}: {why}", hook.name))
    };
    let bytes = base64::engine::general_purpose::STANDARD.decode(encoded).map_err(|e| bad(e.to_string()))?;
    let patch: Value = serde_json::from_slice(&bytes).map_err(|e| bad(e.to_string()))?;
    let mut patched = object.clone();
    fl_ssa::patch::json_patch(&mut patched, &patch).map_err(|e| bad(e.to_string()))?;
    if patched == *object {
        return Ok(false);
    }
    *object = patched;
    write.target.rt.behaviour.default(object);
    write.target.rt.behaviour.normalize(object);
    Ok(true)
}

/// Asks one hook. `None` when it is not concerned or its failure is to be ignored.
async fn ask(
    inner: &Arc<Inner>,
    hook: &Hook,
    write: Write<'_>,
    object: Option<&Value>,
) -> Outcome<Option<Value>> {
    let review = review(write, object);
    match hook.concerns(inner, write, object, &review["request"]) {
        Ok(true) => {}
        Ok(false) => return Ok(None),
        Err(why) => return failed(hook, &why),
    }
    if write.dry_run && !hook.dry_run_safe {
        let message = format!("admission webhook {:?} does not support dry run", hook.name);
        return Err(ApiError::bad_request(message));
    }
    let url = match hook.url(inner) {
        Ok(url) => url,
        Err(why) => return failed(hook, &why),
    };
    let answer =
        match post_json(&url, hook.ca.as_deref(), hook.server_name.as_deref(), &review, hook.timeout).await {
            Ok(answer) => answer,
            Err(why) => return failed(hook, &format!("failed to call webhook: Post {url:?}: {why}")),
        };
    let response = answer.get("response").cloned().unwrap_or(Value::Null);
    if response.get("uid") != review["request"].get("uid") {
        return failed(hook, "invalid admission response: the uid is not the request's");
    }
    for warning in
        response.get("warnings").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    {
        write.call.warn(warning);
    }
    if response.get("allowed").and_then(Value::as_bool) == Some(true) {
        return Ok(Some(response));
    }
    Err(denied(hook, response.get("status")))
}

fn failed(hook: &Hook, why: &str) -> Outcome<Option<Value>> {
    if hook.ignore_failure {
        return Ok(None);
    }
    Err(ApiError::internal(format!("failed calling webhook {:?}: {why}", hook.name)))
}

fn denied(hook: &Hook, status: Option<&Value>) -> ApiError {
    let text = |field: &str| status.and_then(|s| s.get(field)).and_then(Value::as_str).unwrap_or_default();
    let why = if text("message").is_empty() { text("reason") } else { text("message") };
    let message = if why.is_empty() {
        format!("admission webhook {:?} denied the request without explanation", hook.name)
    } else {
        format!("admission webhook {:?} denied the request: {why}", hook.name)
    };
    let code = status.and_then(|s| s.get("code")).and_then(Value::as_u64).unwrap_or(0);
    let code = u16::try_from(code).ok().filter(|c| (400..600).contains(c)).unwrap_or(400);
    let given = text("reason");
    let reason = if given.is_empty() { "Forbidden" } else { given };
    let code = if given.is_empty() && code == 400 { 403 } else { code };
    let mut error = ApiError::new(code, "Forbidden", message);
    let mut whole = error.to_status();
    whole["reason"] = json!(reason);
    if let Some(details) = status.and_then(|s| s.get("details")) {
        whole["details"] = details.clone();
    }
    error.whole = Some(Box::new(whole));
    error
}

fn review(write: Write<'_>, object: Option<&Value>) -> Value {
    let (rt, target) = (&write.target.rt, write.target);
    let kind = json!({"group": rt.group, "version": rt.version, "kind": rt.kind});
    let resource = json!({"group": rt.group, "version": rt.version, "resource": rt.plural});
    let name =
        if target.name.is_empty() { object.map(object::name).unwrap_or_default() } else { &target.name };
    let options = match write.operation {
        "CREATE" => "CreateOptions",
        "UPDATE" => "UpdateOptions",
        _ => "DeleteOptions",
    };
    let mut request = json!({
        "uid": uuid::Uuid::new_v4().to_string(), "kind": kind, "resource": resource, "requestKind": kind,
        "requestResource": resource, "name": name, "operation": write.operation, "userInfo": write.call.user.to_json(),
        "object": object, "oldObject": write.old, "dryRun": write.dry_run,
        "options": {"kind": options, "apiVersion": "meta.k8s.io/v1"}
    });
    if rt.namespaced {
        request["namespace"] = json!(target.namespace);
    } else if rt.group.is_empty() && rt.plural == "namespaces" {
        request["namespace"] = json!(name);
    }
    if !target.subresource.is_empty() {
        request["subResource"] = json!(target.subresource);
        request["requestSubResource"] = json!(target.subresource);
    }
    json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request})
}
