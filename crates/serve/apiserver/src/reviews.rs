//! Token and access reviews, and token requests.

use std::sync::Arc;

use fl_schema::FieldError;
use serde_json::{Value, json};

use crate::auth::rbac::Rule;
use crate::auth::{Attributes, User, authenticate};
use crate::object;
use crate::resource_type::ResourceType;
use crate::response::ApiResponse;
use crate::server::{Inner, RequestContext, Target};
use crate::status::{ApiError, ApiResult};
use crate::verbs::decode;
use crate::verbs::identity::check_namespace;
use crate::verbs::managed_fields::Tracker;

/// Whether objects of a type are only answered and never stored.
pub(crate) fn is_review(rt: &ResourceType) -> bool {
    matches!(rt.group.as_str(), "authentication.k8s.io" | "authorization.k8s.io")
        && rt.kind.ends_with("Review")
}

pub(crate) fn create(inner: &Arc<Inner>, ctx: &RequestContext, target: &Target) -> ApiResult<ApiResponse> {
    let rt = &target.rt;
    let options = crate::verbs::options::read(ctx, "CreateOptions", false)?;
    let mut review = decode::body(inner, ctx, rt, options.validation)?;
    object::meta_mut(&mut review);
    check_namespace(&mut review, target)?;
    if matches!(rt.kind.as_str(), "TokenReview") || rt.kind.ends_with("AccessReview") {
        track(inner, ctx, target, &mut review)?;
    }
    match rt.kind.as_str() {
        "TokenReview" => token_review(inner, ctx, &mut review)?,
        "SelfSubjectReview" => {
            review["metadata"]["creationTimestamp"] = json!(ctx.now_text());
            review["status"] = json!({"userInfo": ctx.user.to_json()});
        }
        "SelfSubjectRulesReview" => rules_review(inner, ctx, &mut review)?,
        "SelfSubjectAccessReview" => access_review(inner, &ctx.user, &mut review, false, None)?,
        "SubjectAccessReview" | "LocalSubjectAccessReview" => {
            let user = subject(&review);
            let local = rt.namespaced.then_some(target.namespace.as_str());
            access_review(inner, &user, &mut review, true, local)?;
        }
        _ => return Err(ApiError::method_not_allowed()),
    }
    Ok(ApiResponse::Document { code: 201, value: review })
}

/// Sets managed fields: reviews have them like all created objects.
fn track(inner: &Inner, ctx: &RequestContext, target: &Target, object: &mut Value) -> ApiResult<()> {
    let options = crate::verbs::options::read(ctx, "CreateOptions", false)?;
    let (registry, now) = (inner.registry(), ctx.now_text());
    let tracker = Tracker {
        registry: &registry,
        rt: &target.rt,
        options: &options,
        subresource: &target.subresource,
        now: &now,
        conversions: &ctx.conversions,
    };
    tracker.track_now(&crate::verbs::managed_fields::empty_object(&target.rt), object);
    Ok(())
}

fn subject(review: &Value) -> User {
    let text = |field: &str| review["spec"].get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    User {
        name: text("user"),
        groups: object::strings(review["spec"].get("groups")),
        uid: text("uid"),
        ..User::default()
    }
}

fn access_review(
    inner: &Inner,
    user: &User,
    review: &mut Value,
    named: bool,
    local: Option<&str>,
) -> ApiResult<()> {
    let spec = &review["spec"];
    let errors = fl_builtin::access_review(spec, named, local);
    if !errors.is_empty() {
        // Upstream's error does not name the kind.
        return Err(ApiError::invalid_kind("authorization.k8s.io", "", "", &errors));
    }
    let (resource, path) = (spec.get("resourceAttributes"), spec.get("nonResourceAttributes"));
    let from = resource.filter(|r| !r.is_null()).or(path).cloned().unwrap_or_default();
    let text = |field: &str| from.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let at = Attributes {
        verb: text("verb"),
        group: text("group"),
        resource: text("resource"),
        subresource: text("subresource"),
        name: text("name"),
        namespace: text("namespace"),
        path: text("path"),
    };
    let allowed = inner.authorizer.allows(user, &at);
    review["status"] = json!({"allowed": allowed});
    if allowed
        && !user.in_group("system:masters")
        && let Some(reason) = inner.authorizer.index().reason(user, &at)
    {
        review["status"]["reason"] = json!(reason);
    }
    Ok(())
}

fn rules_review(inner: &Inner, ctx: &RequestContext, review: &mut Value) -> ApiResult<()> {
    let namespace = review["spec"].get("namespace").and_then(Value::as_str).unwrap_or_default().to_owned();
    if namespace.is_empty() {
        return Err(ApiError::bad_request("no namespace on request"));
    }
    let mut rules = inner.authorizer.index().rules(&ctx.user, &namespace);
    if ctx.user.in_group("system:masters") && rules.is_empty() {
        let all = vec!["*".to_owned()];
        rules.push(Rule {
            verbs: all.clone(),
            groups: all.clone(),
            resources: all.clone(),
            ..Rule::default()
        });
        rules.push(Rule { verbs: all.clone(), urls: all, ..Rule::default() });
    }
    let (mut resources, mut paths) = (Vec::new(), Vec::new());
    for rule in rules {
        if !rule.resources.is_empty() {
            let mut entry =
                json!({"verbs": rule.verbs, "apiGroups": rule.groups, "resources": rule.resources});
            if !rule.names.is_empty() {
                entry["resourceNames"] = json!(rule.names);
            }
            resources.push(entry);
        }
        if !rule.urls.is_empty() {
            paths.push(json!({"verbs": rule.verbs, "nonResourceURLs": rule.urls}));
        }
    }
    // The response does not repeat the spec.
    review["spec"] = json!({});
    review["status"] = json!({"resourceRules": resources, "nonResourceRules": paths, "incomplete": false});
    Ok(())
}

/// Why a token is rejected; for a valid token of other audiences, the message names them.
fn refusal(inner: &Inner, ctx: &RequestContext, token: &str, wanted: &[String]) -> String {
    const INVALID: &str = "invalid bearer token";
    let for_others = (!wanted.is_empty())
        .then(|| audiences_of(token))
        .flatten()
        .filter(|own| inner.authenticator.token(token, own, ctx.now.as_second()).is_some());
    match for_others {
        Some(own) => {
            let list =
                |names: &[String]| names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(" ");
            let (own, wanted) = (list(&own), list(wanted));
            format!("[{INVALID}, token audiences [{own}] is invalid for the target audiences [{wanted}]]")
        }
        None => INVALID.to_owned(),
    }
}

/// The audiences that a token claims.
fn audiences_of(token: &str) -> Option<Vec<String>> {
    use base64::Engine as _;
    let claims = token.split('.').nth(1)?;
    let text = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(claims).ok()?;
    let claims: Value = serde_json::from_slice(&text).ok()?;
    Some(object::strings(claims.get("aud"))).filter(|found| !found.is_empty())
}

fn token_review(inner: &Inner, ctx: &RequestContext, review: &mut Value) -> ApiResult<()> {
    let token = review["spec"].get("token").and_then(Value::as_str).unwrap_or_default().to_owned();
    if token.is_empty() {
        let message = "token is required for TokenReview in authentication";
        return Err(ApiError::bad_request(message));
    }
    let audiences = object::strings(review["spec"].get("audiences"));
    let status = match inner.authenticator.token(&token, &audiences, ctx.now.as_second()) {
        Some(user) => {
            let mut status = json!({"authenticated": true, "user": user.to_json()});
            if !audiences.is_empty() {
                status["audiences"] = json!(audiences);
            } else {
                status["audiences"] = json!([authenticate::ISSUER]);
            }
            status
        }
        None => json!({"user": {}, "error": refusal(inner, ctx, &token, &audiences)}),
    };
    review["status"] = status;
    Ok(())
}

pub(crate) fn token_request(
    inner: &Arc<Inner>,
    ctx: &RequestContext,
    target: &Target,
) -> ApiResult<ApiResponse> {
    let text = decode::json_text(ctx)?;
    let body: Value = serde_json::from_slice(&text).map_err(|e| ApiError::bad_request(e.to_string()))?;
    let spec = body.get("spec").cloned().unwrap_or_else(|| json!({}));
    let entry = inner
        .store
        .get(target.table(), &target.key())
        .ok_or_else(|| ApiError::not_found(&target.rt, &target.name))?;
    let account = entry.value();
    let seconds = spec.get("expirationSeconds").and_then(Value::as_i64).unwrap_or(3600);
    let field = "spec.expirationSeconds";
    let wrong = if seconds < 600 {
        Some("may not specify a duration less than 10 minutes".to_owned())
    } else if seconds > 1 << 32 {
        Some("may not specify a duration larger than 2^32 seconds".to_owned())
    } else {
        None
    };
    if let Some(detail) = wrong {
        let error = FieldError::invalid(field, &json!(seconds), detail);
        return Err(ApiError::invalid_kind("authentication.k8s.io", "TokenRequest", "", &[error]));
    }
    let mut audiences = object::strings(spec.get("audiences"));
    let named = !audiences.is_empty();
    if !named {
        audiences.push(authenticate::ISSUER.to_owned());
    }
    let bound = bound_object(inner, target, &spec)?;
    let now = ctx.now.as_second();
    let claims = authenticate::claims(&account, &audiences, bound, now, seconds);
    let token = inner.authenticator.signer.sign(&claims).map_err(ApiError::internal)?;
    let expires = jiff::Timestamp::from_second(now + seconds).unwrap_or(ctx.now);
    let mut shown = json!({"expirationSeconds": seconds, "boundObjectRef": spec.get("boundObjectRef").cloned().unwrap_or(Value::Null)});
    shown["audiences"] = json!(audiences);
    let mut tracked = json!({"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "metadata": {}, "spec": spec});
    if tracked["spec"].get("expirationSeconds").is_none() {
        tracked["spec"]["expirationSeconds"] = json!(seconds);
    }
    track_request(ctx, &mut tracked)?;
    let mut value = json!({
        "kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1",
        "metadata": {
            "name": target.name, "namespace": target.namespace, "creationTimestamp": ctx.now_text(),
            "uid": object::uid(&account)
        },
        "spec": shown,
        "status": {"token": token, "expirationTimestamp": crate::server::rfc3339(expires)}
    });
    if let Some(managed) = tracked.pointer("/metadata/managedFields") {
        value["metadata"]["managedFields"] = managed.clone();
    }
    Ok(ApiResponse::Document { code: 201, value })
}

/// Sets managed fields of a token request, whose type belongs to another group.
fn track_request(ctx: &RequestContext, request: &mut Value) -> ApiResult<()> {
    let options = crate::verbs::options::read(ctx, "CreateOptions", false)?;
    let now = ctx.now_text();
    let Some(schema) = fl_kubeschema::schema("authentication.k8s.io", "v1", "TokenRequest") else {
        return Ok(());
    };
    let nothing = fl_ssa::Set::new();
    let described = fl_ssa::Request {
        schema: &schema,
        api_version: "authentication.k8s.io/v1",
        kind: "TokenRequest",
        subresource: "token",
        manager: &options.manager,
        now: &now,
        reset: &nothing,
        versions: &fl_ssa::OneVersion,
    };
    // Go's empty value of the type has a spec with an empty reference.
    let spec = json!({"boundObjectRef": null});
    let empty =
        json!({"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "spec": spec, "status": {}});
    fl_ssa::update(described, &empty, request);
    Ok(())
}

/// The claims that bind a token to a pod or secret.
fn bound_object(inner: &Inner, target: &Target, spec: &Value) -> ApiResult<Option<Value>> {
    let Some(reference) = spec.get("boundObjectRef").filter(|r| !r.is_null()) else { return Ok(None) };
    let text = |field: &str| reference.get(field).and_then(Value::as_str).unwrap_or_default();
    let (plural, claim) = match text("kind") {
        "Pod" => ("pods", "pod"),
        "Secret" => ("secrets", "secret"),
        other => {
            let (group, version) = object::split_api_version(text("apiVersion"));
            return Err(ApiError::bad_request(format!(
                "cannot bind token to object of type {group}/{version}, Kind={other}"
            )));
        }
    };
    let registry = inner.registry();
    let key = object::key(&target.namespace, text("name"));
    let found = inner.store.get(&format!("/{plural}"), &key);
    match (found, registry.find("", "v1", plural)) {
        (Some(entry), _) => {
            let object = entry.value();
            if !text("uid").is_empty() && text("uid") != object::uid(&object) {
                let (kind, name) = (text("kind"), text("name"));
                let why = format!(
                    "Operation cannot be fulfilled on {kind} {name:?}: the UID in the bound object reference ({}) does not match the UID in record. The object might have been deleted and then recreated",
                    text("uid")
                );
                let details = json!({"name": name, "kind": kind});
                return Err(ApiError::new(409, "Conflict", why).with_details(details));
            }
            Ok(Some(json!({claim: {"name": object::name(&object), "uid": object::uid(&object)}})))
        }
        (None, Some(rt)) => Err(ApiError::not_found(rt, text("name"))),
        (None, None) => Err(ApiError::no_such_resource()),
    }
}
