//! Admission: built-in plugins, policies and webhooks.

pub(crate) mod plugins;
mod policy;
mod webhook_config;

use std::sync::{Arc, Mutex};

use base64::Engine as _;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::crd::convert;
use crate::object;
use crate::resource_type::ResourceType;
use crate::server::{Inner, RequestContext, Target};
use crate::status::{ApiError, ApiResult};
use crate::store::Store;
use webhook_config::Webhook;

const MUTATING: &str = "admissionregistration.k8s.io/mutatingwebhookconfigurations";
const VALIDATING: &str = "admissionregistration.k8s.io/validatingwebhookconfigurations";

#[derive(Debug, Default)]
struct WebhookConfigs {
    mutating: Vec<Arc<Webhook>>,
    validating: Vec<Arc<Webhook>>,
}

/// The configured webhooks, reloaded when a configuration changed.
#[derive(Debug)]
pub(crate) struct Webhooks {
    store: Store,
    changes: [watch::Receiver<u64>; 2],
    cached: Mutex<([u64; 2], Arc<WebhookConfigs>)>,
    policies: policy::Policies,
}

/// One write, as admission sees it; Kubernetes' `admission.Attributes`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AdmissionAttributes<'a> {
    pub(crate) ctx: &'a RequestContext,
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
            cached: Mutex::new(([u64::MAX; 2], Arc::default())),
            policies: policy::Policies::new(store),
        }
    }

    fn configs(&self) -> Arc<WebhookConfigs> {
        let now = [*self.changes[0].borrow(), *self.changes[1].borrow()];
        let mut cached = self.cached.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if cached.0 != now {
            let read = |table: &str| -> Vec<Arc<Webhook>> {
                let (_, items, _) = self.store.list(table, "", None, 0);
                items.iter().flat_map(|(_, e)| Webhook::list(&e.value())).map(Arc::new).collect()
            };
            *cached =
                (now, Arc::new(WebhookConfigs { mutating: read(MUTATING), validating: read(VALIDATING) }));
        }
        cached.1.clone()
    }

    /// Calls the mutating webhooks.
    pub(crate) async fn mutate(
        &self,
        inner: &Arc<Inner>,
        attributes: AdmissionAttributes<'_>,
        object: &mut Value,
    ) -> ApiResult<()> {
        let mut object = Some(object);
        self.mutate_all(inner, attributes, &mut object).await
    }

    /// Admits a deletion. Mutating webhooks are called first, as upstream, though they cannot change
    /// anything.
    pub(crate) async fn delete(
        &self,
        inner: &Arc<Inner>,
        attributes: AdmissionAttributes<'_>,
    ) -> ApiResult<()> {
        self.mutate_all(inner, attributes, &mut None).await?;
        self.validate(inner, attributes, None).await
    }

    async fn mutate_all(
        &self,
        inner: &Arc<Inner>,
        attributes: AdmissionAttributes<'_>,
        object: &mut Option<&mut Value>,
    ) -> ApiResult<()> {
        let configs = self.configs();
        if configs.mutating.is_empty() || is_exempt(attributes.target) {
            return Ok(());
        }
        // A webhook with `reinvocationPolicy: IfNeeded` is called once more if later webhooks changed the
        // object. The second round calls only these, and there is no third.
        let (mut waiting, mut again) = (Vec::new(), Vec::new());
        for round in 0..2 {
            for (i, webhook) in configs.mutating.iter().enumerate() {
                if round == 1 && !again.contains(&i) {
                    continue;
                }
                let Some(changed) = call_mutating(inner, webhook, attributes, object).await? else {
                    continue;
                };
                if changed {
                    again.append(&mut waiting);
                }
                if webhook.reinvoke {
                    waiting.push(i);
                }
            }
            if again.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// Evaluates the policies and calls the validating webhooks; for a deletion, `object` is the one to be
    /// deleted.
    pub(crate) async fn validate(
        &self,
        inner: &Arc<Inner>,
        attributes: AdmissionAttributes<'_>,
        object: Option<&Value>,
    ) -> ApiResult<()> {
        self.policies.check(inner, attributes, object)?;
        let configs = self.configs();
        if configs.validating.is_empty() || is_exempt(attributes.target) {
            return Ok(());
        }
        let calls = configs.validating.iter().map(|webhook| async move {
            let Some(call) = WebhookCall::new(inner, webhook, attributes, object, false).await? else {
                return Ok(());
            };
            call.send(inner).await.map(|_| ())
        });
        for response in futures::future::join_all(calls).await {
            response?;
        }
        Ok(())
    }
}

/// Webhook configurations are exempt from webhooks: a broken one must stay repairable.
fn is_exempt(target: &Target) -> bool {
    target.rt.group == "admissionregistration.k8s.io"
}

/// Calls one mutating webhook and applies its patch. `None` if it does not match, else whether the object
/// changed.
async fn call_mutating(
    inner: &Arc<Inner>,
    webhook: &Webhook,
    attributes: AdmissionAttributes<'_>,
    object: &mut Option<&mut Value>,
) -> ApiResult<Option<bool>> {
    let Some(call) = WebhookCall::new(inner, webhook, attributes, object.as_deref(), true).await? else {
        return Ok(None);
    };
    let Some(response) = call.send(inner).await? else { return Ok(Some(false)) };
    let Some(patch) = response.get("patch").and_then(Value::as_str).filter(|p| !p.is_empty()) else {
        return Ok(Some(false));
    };
    let patch = base64::engine::general_purpose::STANDARD.decode(patch).map_err(|e| e.to_string()).and_then(
        |bytes| serde_json::from_slice::<Value>(&bytes).map_err(|_| fl_go::json_syntax_error(&bytes)),
    );
    let patch = match patch {
        Ok(patch) => patch,
        Err(why) => {
            failed(webhook, &format!("received undecodable patch in webhook response: {why}"))?;
            return Ok(Some(false));
        }
    };
    if patch.as_array().is_some_and(Vec::is_empty) {
        return Ok(Some(false));
    }
    let (Some(object), Some(shown)) = (object.as_deref_mut(), call.object) else {
        return Err(ApiError::internal(format!(
            "admission webhook {:?} attempted to modify the object, which is not supported for this operation",
            webhook.name
        )));
    };
    let mut patched = shown.clone();
    fl_ssa::patch::json_patch(&mut patched, &patch).map_err(|e| ApiError::internal(e.to_string()))?;
    if patched == shown {
        return Ok(Some(false));
    }
    call.webhook_rt.strategy.default(&mut patched);
    call.webhook_rt.strategy.normalize(&mut patched);
    *object = in_version(inner, &call.webhook_rt, &attributes.target.rt, patched).await?;
    Ok(Some(true))
}

/// Converts an object to another version of its resource.
async fn in_version(
    inner: &Inner,
    from: &ResourceType,
    to: &ResourceType,
    object: Value,
) -> ApiResult<Value> {
    if from.version == to.version && from.group == to.group {
        return Ok(object);
    }
    if from.conversion.is_some() {
        return convert::to_version(inner, from, object, &to.api_version()).await;
    }
    Ok(to.strategy.read_from_storage(from.strategy.to_storage(object)))
}

/// One call of a webhook.
struct WebhookCall<'a> {
    webhook: &'a Webhook,
    attributes: AdmissionAttributes<'a>,
    /// The resource in the version that the webhook matches.
    webhook_rt: Arc<ResourceType>,
    object: Option<Value>,
    review: Value,
    mutating: bool,
}

impl<'a> WebhookCall<'a> {
    /// `None` if the webhook does not match.
    async fn new(
        inner: &Arc<Inner>,
        webhook: &'a Webhook,
        attributes: AdmissionAttributes<'a>,
        object: Option<&Value>,
        mutating: bool,
    ) -> ApiResult<Option<Self>> {
        let Some(webhook_rt) = webhook.matching_version(inner, attributes, object) else { return Ok(None) };
        let rt = &attributes.target.rt;
        let mut versions = [None, None];
        for (slot, given) in versions.iter_mut().zip([object, attributes.old]) {
            if let Some(given) = given {
                *slot = Some(in_version(inner, rt, &webhook_rt, given.clone()).await?);
            }
        }
        let [object, old] = versions;
        let review =
            review(webhook.review.unwrap_or("v1"), attributes, &webhook_rt, object.as_ref(), old.as_ref());
        match webhook.conditions_hold(object.as_ref(), old.as_ref(), &review["request"]) {
            Ok(true) => Ok(Some(Self { webhook, attributes, webhook_rt, object, review, mutating })),
            Ok(false) => Ok(None),
            Err(_) if webhook.ignore_failure => Ok(None),
            Err(why) => Err(ApiError::forbidden(rt, &attributes.target.name, &why)),
        }
    }

    /// Sends the review. `None` if the call failed and failures are ignored.
    async fn send(&self, inner: &Arc<Inner>) -> ApiResult<Option<Value>> {
        let webhook = self.webhook;
        if self.attributes.dry_run && !webhook.dry_run_safe {
            let message = format!("admission webhook {:?} does not support dry run", webhook.name);
            return Err(ApiError::bad_request(message));
        }
        let Some(version) = webhook.review else {
            let why = "webhook does not accept known AdmissionReview versions (v1, v1beta1)";
            return failed(webhook, &format!("could not create admission objects: {why}"));
        };
        let response = match webhook.remote.post(inner, &self.review, webhook.timeout).await {
            Ok(response) => response,
            Err(why) => return failed(webhook, &format!("failed to call webhook: {why}")),
        };
        if version == "v1"
            && response["kind"] == "AdmissionReview"
            && response["apiVersion"] == "admission.k8s.io/v1beta1"
        {
            let why = "converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion";
            return failed(webhook, &format!("failed to call webhook: {why}"));
        }
        let response = match verified(&response, version, &self.review["request"]["uid"], self.mutating) {
            Ok(response) => response,
            Err(why) => return failed(webhook, &format!("received invalid webhook response: {why}")),
        };
        let warnings = response.get("warnings").and_then(Value::as_array).into_iter().flatten();
        for warning in warnings.filter_map(Value::as_str) {
            self.attributes.ctx.warn(warning);
        }
        if response.get("allowed").and_then(Value::as_bool) == Some(true) {
            return Ok(Some(response.clone()));
        }
        Err(denied(webhook, response.get("status")))
    }
}

/// The `response` of a review, if it is valid for this request.
fn verified<'a>(review: &'a Value, version: &str, uid: &Value, mutating: bool) -> Result<&'a Value, String> {
    let Some(response) = review.get("response").filter(|r| !r.is_null()) else {
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
    let (api_version, kind) = (text(review, "apiVersion"), text(review, "kind"));
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

fn failed(webhook: &Webhook, why: &str) -> ApiResult<Option<Value>> {
    if webhook.ignore_failure {
        return Ok(None);
    }
    Err(ApiError::internal(format!("failed calling webhook {:?}: {why}", webhook.name)))
}

/// The error for a denial, from the Status of the webhook.
fn denied(webhook: &Webhook, status: Option<&Value>) -> ApiError {
    let text = |field: &str| status.and_then(|s| s.get(field)).and_then(Value::as_str).unwrap_or_default();
    let by = format!("admission webhook {:?} denied the request", webhook.name);
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
    attributes: AdmissionAttributes<'_>,
    webhook_rt: &ResourceType,
    object: Option<&Value>,
    old: Option<&Value>,
) -> Value {
    let (rt, target) = (&attributes.target.rt, attributes.target);
    let kind = |rt: &ResourceType| json!({"group": rt.group, "version": rt.version, "kind": rt.kind});
    let resource =
        |rt: &ResourceType| json!({"group": rt.group, "version": rt.version, "resource": rt.plural});
    let name =
        if target.name.is_empty() { object.map(object::name).unwrap_or_default() } else { &target.name };
    let mut request = json!({
        "uid": uuid::Uuid::new_v4().to_string(), "kind": kind(webhook_rt), "resource": resource(webhook_rt),
        "requestKind": kind(rt), "requestResource": resource(rt), "operation": attributes.operation,
        "userInfo": attributes.ctx.user.to_json(), "object": object, "oldObject": old, "dryRun": attributes.dry_run,
        "options": options(attributes)
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

/// The options of the request, as far as the caller set them.
fn options(attributes: AdmissionAttributes<'_>) -> Value {
    let query = &attributes.ctx.query;
    let kind = match attributes.operation {
        "CREATE" => "CreateOptions",
        "UPDATE" => "UpdateOptions",
        _ => "DeleteOptions",
    };
    let mut options = json!({"kind": kind, "apiVersion": "meta.k8s.io/v1"});
    if attributes.dry_run {
        options["dryRun"] = json!(["All"]);
    }
    let given: &[&str] = if attributes.operation == "DELETE" {
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
