//! The verbs: what a request on a resource does.

pub(crate) mod apply;
mod binding;
pub(crate) mod change;
pub(crate) mod create;
pub(crate) mod decode;
pub(crate) mod delete;
mod empties;
pub(crate) mod fields;
pub(crate) mod identity;
pub(crate) mod lifecycle;
pub(crate) mod metadata;
pub(crate) mod options;
pub(crate) mod patch;
mod patch_type;
mod persist;
pub(crate) mod pipeline;
mod read;
pub(crate) mod scale;
mod verb;
mod watch;

pub(crate) use verb::Verb;

use std::sync::Arc;

use crate::answer::Answer;
use crate::resource::ResourceType;
use crate::reviews;
use crate::server::Inner;
use crate::server::{Call, Target};
use crate::status::{ApiError, Outcome};

/// Runs one verb.
pub(crate) async fn run(inner: &Arc<Inner>, call: &Call, target: &Target, verb: Verb) -> Outcome<Answer> {
    let rt = &target.rt;
    if !target.subresource.is_empty() {
        return subresource(inner, call, target, verb).await;
    }
    let allowed = match verb {
        // A collection takes POST, one object everything else.
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
        Verb::Get => read::get(inner, call, target).await,
        Verb::List => read::list(inner, call, target).await,
        Verb::Watch => watch::start(inner, call, target).await,
        Verb::Create if reviews::is_review(rt) => reviews::create(inner, call, target),
        Verb::Create if rt.group.is_empty() && rt.plural == "bindings" => {
            binding::bind_named(inner, call, target).await
        }
        Verb::Create => create::run(inner, call, target).await,
        Verb::Update => change::put(inner, call, target).await,
        Verb::Patch => patch::run(inner, call, target).await,
        Verb::Delete => delete::one(inner, call, target).await,
        Verb::DeleteCollection => delete::collection(inner, call, target).await,
    }
}

/// Built-in types that can only be created have no path across namespaces.
fn unlisted(rt: &ResourceType) -> bool {
    !rt.is_custom() && !rt.has_verb(Verb::List.as_str()) && !reviews::is_review(rt)
}

async fn subresource(inner: &Arc<Inner>, call: &Call, target: &Target, verb: Verb) -> Outcome<Answer> {
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
        ("scale", _) => scale::run(inner, call, target, verb).await,
        ("token", Verb::Create) => reviews::token_request(inner, call, target),
        ("binding", Verb::Create) => binding::bind(inner, call, target).await,
        ("eviction", Verb::Create) => binding::evict(inner, call, target).await,
        ("log", Verb::Get) => binding::log(inner, call, target),
        ("status" | "finalize" | "approval" | "ephemeralcontainers" | "resize", Verb::Get) => {
            read::get(inner, call, target).await
        }
        ("status" | "finalize" | "approval" | "ephemeralcontainers" | "resize", Verb::Update) => {
            change::put(inner, call, target).await
        }
        ("status" | "approval" | "ephemeralcontainers" | "resize", Verb::Patch) => {
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
