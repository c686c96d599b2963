//! The verbs of requests on resources.

pub(crate) mod apply;
pub(crate) mod create;
pub(crate) mod decode;
pub(crate) mod delete;
mod empty_values;
pub(crate) mod guaranteed_update;
pub(crate) mod identity;
pub(crate) mod managed_fields;
pub(crate) mod metadata;
pub(crate) mod options;
pub(crate) mod patch;
mod patch_type;
mod persist;
pub(crate) mod pipeline;
mod pod_subresources;
mod read;
pub(crate) mod scale;
mod verb;
mod watch;

pub(crate) use verb::Verb;

use std::sync::Arc;

use crate::resource_type::ResourceType;
use crate::response::ApiResponse;
use crate::reviews;
use crate::server::Inner;
use crate::server::{RequestContext, Target};
use crate::status::{ApiError, ApiResult};

/// Runs one verb.
pub(crate) async fn run(
    inner: &Arc<Inner>,
    ctx: &RequestContext,
    target: &Target,
    verb: Verb,
) -> ApiResult<ApiResponse> {
    let rt = &target.rt;
    if !target.subresource.is_empty() {
        return subresource(inner, ctx, target, verb).await;
    }
    let allowed = match verb {
        // POST goes to a collection, all other verbs to an object.
        Verb::Create => {
            target.name.is_empty()
                && (!rt.namespaced || !target.namespace.is_empty() || reviews::is_review(rt))
        }
        Verb::Update | Verb::Patch => !target.name.is_empty(),
        Verb::DeleteCollection => !rt.namespaced || !target.namespace.is_empty(),
        _ => true,
    };
    if target.name.is_empty() && rt.namespaced && target.namespace.is_empty() && unlisted(rt) {
        return Err(ApiError::no_such_resource());
    }
    if !allowed || !rt.has_verb(verb.as_str()) {
        return Err(ApiError::method_not_allowed());
    }
    match verb {
        Verb::Get => read::get(inner, ctx, target).await,
        Verb::List => read::list(inner, ctx, target).await,
        Verb::Watch => watch::start(inner, ctx, target).await,
        Verb::Create if reviews::is_review(rt) => reviews::create(inner, ctx, target),
        Verb::Create if rt.group.is_empty() && rt.plural == "bindings" => {
            pod_subresources::bind_named(inner, ctx, target).await
        }
        Verb::Create => create::run(inner, ctx, target).await,
        Verb::Update => guaranteed_update::put(inner, ctx, target).await,
        Verb::Patch => patch::run(inner, ctx, target).await,
        Verb::Delete => delete::one(inner, ctx, target).await,
        Verb::DeleteCollection => delete::collection(inner, ctx, target).await,
    }
}

/// Built-in types that can only be created have no path across namespaces.
fn unlisted(rt: &ResourceType) -> bool {
    !rt.is_custom() && !rt.has_verb(Verb::List.as_str()) && !reviews::is_review(rt)
}

async fn subresource(
    inner: &Arc<Inner>,
    ctx: &RequestContext,
    target: &Target,
    verb: Verb,
) -> ApiResult<ApiResponse> {
    let Some(sub) = target.rt.subresource(&target.subresource) else {
        if target.rt.is_custom() {
            return Err(ApiError::not_found(&target.rt, &target.name));
        }
        return Err(ApiError::no_such_resource());
    };
    if !sub.verbs.iter().any(|v| v == verb.as_str()) {
        return Err(if target.rt.is_custom() {
            ApiError::method_not_supported(&target.rt, verb.as_str())
        } else {
            ApiError::method_not_allowed()
        });
    }
    match (target.subresource.as_str(), verb) {
        ("scale", _) => scale::run(inner, ctx, target, verb).await,
        ("token", Verb::Create) => reviews::token_request(inner, ctx, target),
        ("binding", Verb::Create) => pod_subresources::bind(inner, ctx, target).await,
        ("eviction", Verb::Create) => pod_subresources::evict(inner, ctx, target).await,
        ("log", Verb::Get) => pod_subresources::log(inner, ctx, target),
        ("status" | "finalize" | "approval" | "ephemeralcontainers" | "resize", Verb::Get) => {
            read::get(inner, ctx, target).await
        }
        ("status" | "finalize" | "approval" | "ephemeralcontainers" | "resize", Verb::Update) => {
            guaranteed_update::put(inner, ctx, target).await
        }
        ("status" | "approval" | "ephemeralcontainers" | "resize", Verb::Patch) => {
            patch::run(inner, ctx, target).await
        }
        _ => Err(not_run(inner, target)),
    }
}

/// The error of a subresource that needs a running container: the object is missing, it has no node, or this
/// server does not run containers.
fn not_run(inner: &Inner, target: &Target) -> ApiError {
    let (rt, name) = (&target.rt, &target.name);
    let Some(entry) = inner.store.latest(target.table(), &target.key()) else {
        return ApiError::not_found(rt, name);
    };
    let value = entry.value();
    let nowhere =
        value.pointer("/spec/nodeName").and_then(serde_json::Value::as_str).is_none_or(str::is_empty);
    if rt.group.is_empty() && rt.plural == "pods" && nowhere && target.subresource != "proxy" {
        return ApiError::bad_request(format!("pod {name} does not have a host assigned"));
    }
    let message = format!("this server runs no containers: {:?} is not available", target.subresource);
    ApiError::new(501, "NotImplemented", message)
}
