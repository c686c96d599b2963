//! The verbs: what a request on a resource does.

pub(crate) mod apply;
mod binding;
pub(crate) mod change;
pub(crate) mod create;
pub(crate) mod decode;
pub(crate) mod delete;
mod empties;
pub(crate) mod fields;
pub(crate) mod lifecycle;
pub(crate) mod metadata;
pub(crate) mod options;
pub(crate) mod patch;
mod read;
pub(crate) mod scale;
mod watch;

use std::sync::Arc;

use crate::answer::Answer;
use crate::resource::ResourceType;
use crate::reviews;
use crate::server::Inner;
use crate::server::{Call, Target};
use crate::status::{ApiError, Outcome};

/// Runs one verb.
pub(crate) async fn run(inner: &Arc<Inner>, call: &Call, target: &Target, verb: &str) -> Outcome<Answer> {
    let rt = &target.rt;
    if !target.subresource.is_empty() {
        return subresource(inner, call, target, verb).await;
    }
    let allowed = match verb {
        // A collection takes POST, one object everything else.
        "create" => {
            target.name.is_empty()
                && (!rt.namespaced || !target.namespace.is_empty() || reviews::is_review(rt))
        }
        "update" | "patch" => !target.name.is_empty(),
        "deletecollection" => !rt.namespaced || !target.namespace.is_empty(),
        _ => true,
    };
    if target.name.is_empty() && rt.namespaced && target.namespace.is_empty() && unlisted(rt) {
        return Err(ApiError::no_such_resource());
    }
    if !allowed || !rt.has_verb(verb) {
        return Err(ApiError::method_not_allowed());
    }
    match verb {
        "get" => read::get(inner, call, target).await,
        "list" => read::list(inner, call, target).await,
        "watch" => watch::start(inner, call, target).await,
        "create" if reviews::is_review(rt) => reviews::create(inner, call, target),
        "create" if rt.group.is_empty() && rt.plural == "bindings" => {
            binding::bind_named(inner, call, target).await
        }
        "create" => create::run(inner, call, target).await,
        "update" => change::put(inner, call, target).await,
        "patch" => patch::run(inner, call, target).await,
        "delete" => delete::one(inner, call, target).await,
        "deletecollection" => delete::collection(inner, call, target).await,
        _ => Err(ApiError::method_not_allowed()),
    }
}

/// Built-in types that can only be created have no path across namespaces.
fn unlisted(rt: &ResourceType) -> bool {
    !rt.is_custom() && !rt.has_verb("list") && !reviews::is_review(rt)
}

async fn subresource(inner: &Arc<Inner>, call: &Call, target: &Target, verb: &str) -> Outcome<Answer> {
    let Some(sub) = target.rt.subresource(&target.subresource) else {
        if target.rt.is_custom() {
            return Err(ApiError::not_found(&target.rt, &target.name));
        }
        return Err(ApiError::no_such_resource());
    };
    if !sub.verbs.iter().any(|v| v == verb) {
        return Err(if target.rt.is_custom() {
            ApiError::method_not_supported(&target.rt, verb)
        } else {
            ApiError::method_not_allowed()
        });
    }
    match (target.subresource.as_str(), verb) {
        ("scale", _) => scale::run(inner, call, target, verb).await,
        ("token", "create") => reviews::token_request(inner, call, target),
        ("binding", "create") => binding::bind(inner, call, target).await,
        ("eviction", "create") => binding::evict(inner, call, target).await,
        ("log", "get") => binding::log(inner, call, target),
        ("status" | "finalize" | "approval" | "ephemeralcontainers" | "resize", "get") => {
            read::get(inner, call, target).await
        }
        ("status" | "finalize" | "approval" | "ephemeralcontainers" | "resize", "update") => {
            change::put(inner, call, target).await
        }
        ("status" | "approval" | "ephemeralcontainers" | "resize", "patch") => {
            patch::run(inner, call, target).await
        }
        _ => Err(not_run(inner, target)),
    }
}

/// Why nothing can be done with what runs: it is not there, it is nowhere, or, at last, nothing runs here.
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
