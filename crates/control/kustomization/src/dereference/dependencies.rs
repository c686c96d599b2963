//! The Kustomizations that `spec.dependsOn` names.

use fl_api::Resource as _;
use fl_api::kustomize::Kustomization;
use fl_api::meta::artifact::Artifact;
use fl_cel::Expression;
use fl_runtime::{
    ClientError, Conditions as _, Informers, Key, Kind, Reconciled as _, Resolver, Runtime, WatchSpec,
};
use serde_json::Value;

use crate::validate::source_reference;

/// Why a dependency does not meet its condition.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DependencyNotReady {
    /// `readyExpr` is invalid: only a change of the spec resolves it.
    #[error("{0}")]
    InvalidExpression(String),
    /// The dependency is not ready yet.
    #[error("{0}")]
    Waiting(String),
    /// Lock-down forbids the reference.
    #[error("{0}")]
    Denied(String),
}

/// Checks that everything in `dependsOn` is ready.
pub(crate) async fn dependencies(
    object: &Kustomization,
    artifact: &Artifact,
    runtime: &Runtime,
) -> Result<(), DependencyNotReady> {
    let own = serde_json::to_value(object).unwrap_or_default();
    for dependency in object.spec.depends_on.iter().flatten() {
        let namespace =
            dependency.namespace.as_deref().filter(|n| !n.is_empty()).unwrap_or(object.namespace());
        let name = format!("{namespace}/{}", dependency.name);
        let waiting = |what: &str| DependencyNotReady::Waiting(format!("dependency '{name}' {what}"));
        let expression = dependency.ready_expr.as_deref();
        let lockdown = runtime.options().lockdown();
        lockdown
            .check_dependency(
                object.namespace(),
                Kustomization::KIND,
                namespace,
                &dependency.name,
                expression,
            )
            .map_err(|denied| DependencyNotReady::Denied(denied.to_string()))?;
        let found = other(runtime, namespace, &dependency.name).await;
        let value = found.map_err(|e| waiting(&format!("not found: {e}")))?;
        if let Some(text) = expression.filter(|t| !t.is_empty()) {
            let refuse = |why: String| {
                DependencyNotReady::InvalidExpression(format!(
                    "terminal error: failed to evaluate dependency {}: {why}",
                    dependency.name
                ))
            };
            let expression = Expression::compile(text, &["self", "dep"])
                .map_err(|e| refuse(format!("failed to parse the CEL expression '{text}': {e}")))?;
            if let Some(other) = expression.never_bool() {
                return Err(refuse(format!(
                    "CEL expression output type mismatch: expected bool, got {other}"
                )));
            }
            // The reason of a failure may quote the other object, which is another tenant's in another namespace.
            let foreign = namespace != object.namespace();
            match expression.decide(&[("self", &own), ("dep", &value)], foreign) {
                Ok(true) => {}
                Ok(false) => return Err(waiting("is not ready according to readyExpr eval")),
                Err(why) => return Err(DependencyNotReady::Waiting(why)),
            }
            if !runtime.options().gates.enabled("AdditiveCELDependencyCheck") {
                continue;
            }
        }
        let dep: Kustomization = serde_json::from_value(value).map_err(|_| waiting("is not ready"))?;
        if dep.conditions().is_empty()
            || dep.observed_generation() != Some(dep.generation())
            || !dep.is_true("Ready")
        {
            return Err(waiting("is not ready"));
        }
        let same_source = Resolver::key(&source_reference(&dep), dep.namespace())
            == Resolver::key(&source_reference(object), object.namespace());
        let applied = dep.status.as_ref().and_then(|s| s.last_applied_revision.as_deref());
        if same_source && applied != Some(artifact.revision.as_str()) {
            return Err(waiting("revision is not up to date"));
        }
    }
    Ok(())
}

/// Reads another Kustomization: from the watch cache, which has the engine's own writes at once, else from the server.
async fn other(runtime: &Runtime, namespace: &str, name: &str) -> Result<Value, ClientError> {
    let kind = Kind::of::<Kustomization>();
    let store = Informers::watch(runtime.informers(), WatchSpec::full(kind.clone()));
    if let Some(live) = store.get(namespace, name) {
        return Ok(live.value());
    }
    runtime.cluster().get(&kind, Some(namespace), name).await
}

/// The members of a `dependsOn` cycle that the object is part of.
pub(crate) fn cycle(runtime: &Runtime, key: &Key) -> Option<String> {
    let path = runtime.graph().cycle(key)?;
    Some(path.iter().map(|k| format!("{}/{}", k.namespace(), k.name())).collect::<Vec<_>>().join(" -> "))
}
