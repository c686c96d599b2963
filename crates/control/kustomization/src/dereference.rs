//! Everything a Kustomization refers to: its source, its dependencies, its variables and its keys.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fl_api::Resource as _;
use fl_api::kustomize::Kustomization;
use fl_api::meta::artifact::Artifact;
use fl_api::meta::references::ValuesKind;
use fl_api::source::ExternalArtifact;
use fl_cel::Expression;
use fl_runtime::{
    ClientError, Conditions as _, Hub, Key, Kind, Reconciled as _, ResolveError, Resolver, Runtime, WatchSpec,
};
use fl_types::Secret;
use serde_json::Value;

use crate::validate::source_reference;

/// Why there is no artifact to build.
#[derive(Debug)]
pub(crate) enum NoSource {
    /// The source does not exist.
    NotFound(String),
    /// It may not be used.
    Denied(String),
    /// It exists and has published nothing.
    NoArtifact,
    /// It could not be read.
    Unavailable(String),
}

/// The artifact a Kustomization builds from.
pub(crate) async fn source(object: &Kustomization, resolver: &Resolver) -> Result<Artifact, NoSource> {
    let reference = source_reference(object);
    let own = object.namespace();
    match resolver.resolve(&reference, own).await {
        Ok(source) => source.artifact.ok_or(NoSource::NoArtifact),
        Err(ResolveError::NotFound(_)) => {
            let key = Resolver::key(&reference, own);
            Err(NoSource::NotFound(format!("{}.{} \"{}\" not found", key.kind(), key.group(), key.name())))
        }
        Err(error @ ResolveError::AccessDenied(_)) => Err(NoSource::Denied(error.to_string())),
        Err(ResolveError::GateClosed(_)) => {
            let (kind, namespace) = (ExternalArtifact::KIND, reference.namespace_or(own));
            let text = format!(
                "can't access '{kind}/{namespace}/{}', {kind} feature gate is disabled",
                reference.name
            );
            Err(NoSource::Denied(text))
        }
        Err(error) => Err(NoSource::Unavailable(error.to_string())),
    }
}

/// Why a Kustomization has to wait for another.
#[derive(Debug)]
pub(crate) enum Unready {
    /// Only the spec can mend it.
    Terminal(String),
    /// It may come.
    Waiting(String),
    /// Lock-down forbids it.
    Denied(String),
}

/// Checks everything in `dependsOn`.
pub(crate) async fn dependencies(
    object: &Kustomization,
    artifact: &Artifact,
    runtime: &Runtime,
) -> Result<(), Unready> {
    let own = serde_json::to_value(object).unwrap_or_default();
    for dependency in object.spec.depends_on.iter().flatten() {
        let namespace =
            dependency.namespace.as_deref().filter(|n| !n.is_empty()).unwrap_or(object.namespace());
        let name = format!("{namespace}/{}", dependency.name);
        let waiting = |what: &str| Unready::Waiting(format!("dependency '{name}' {what}"));
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
            .map_err(|denied| Unready::Denied(denied.to_string()))?;
        let found = other(runtime, namespace, &dependency.name).await;
        let value = found.map_err(|e| waiting(&format!("not found: {e}")))?;
        if let Some(text) = expression.filter(|t| !t.is_empty()) {
            let refuse = |why: String| {
                Unready::Terminal(format!(
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
                Err(why) => return Err(Unready::Waiting(why)),
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

/// Another Kustomization: from the watch that has our own writes at once, from the server when it is not there.
async fn other(runtime: &Runtime, namespace: &str, name: &str) -> Result<Value, ClientError> {
    let kind = Kind::of::<Kustomization>();
    let store = Hub::watch(runtime.hub(), WatchSpec::full(kind.clone()));
    if let Some(live) = store.get(namespace, name) {
        return Ok(live.value());
    }
    runtime.cluster().get(&kind, Some(namespace), name).await
}

/// The members of a cycle of dependencies, when the object is one of them.
pub(crate) fn cycle(runtime: &Runtime, key: &Key) -> Option<String> {
    let path = runtime.graph().cycle(key)?;
    Some(path.iter().map(|k| format!("{}/{}", k.namespace(), k.name())).collect::<Vec<_>>().join(" -> "))
}

/// Values for substitution. They may come from Secrets, so they are treated as such.
pub(crate) type Variables = Secret<BTreeMap<String, String>>;

/// The variables of `postBuild`: those of ConfigMaps and Secrets in order, then those in the spec.
///
/// # Errors
/// The text of Flux for an object that cannot be read.
pub(crate) async fn variables(object: &Kustomization, runtime: &Runtime) -> Result<Variables, String> {
    let mut variables = BTreeMap::new();
    let Some(post_build) = &object.spec.post_build else { return Ok(Secret::new(variables)) };
    let plain = |text: &str| text.replace('\n', "");
    for reference in post_build.substitute_from.iter().flatten() {
        let (kind, word) = match reference.kind {
            ValuesKind::ConfigMap => (Kind::config_map(), "ConfigMap"),
            ValuesKind::Secret => (Kind::secret(), "Secret"),
        };
        let found = match runtime.cluster().get(&kind, Some(object.namespace()), &reference.name).await {
            Ok(found) => found,
            Err(error) if error.is_not_found() && reference.optional => continue,
            Err(error) => return Err(format!("substitute from '{word}/{}' error: {error}", reference.name)),
        };
        for (key, value) in found["data"].as_object().into_iter().flatten() {
            let text = value.as_str().unwrap_or_default();
            let value = match reference.kind {
                ValuesKind::ConfigMap => plain(text),
                ValuesKind::Secret => {
                    plain(&String::from_utf8_lossy(&STANDARD.decode(text).unwrap_or_default()))
                }
            };
            variables.insert(key.clone(), value);
        }
    }
    for (key, value) in post_build.substitute.iter().flatten() {
        variables.insert(key.clone(), plain(value));
    }
    Ok(Secret::new(variables))
}

/// The data of a Secret, decoded.
///
/// # Errors
/// The server's text when it cannot be read.
pub(crate) async fn secret_data(
    runtime: &Runtime,
    namespace: &str,
    name: &str,
) -> Result<BTreeMap<String, Secret<Vec<u8>>>, ClientError> {
    let secret = runtime.cluster().get(&Kind::secret(), Some(namespace), name).await?;
    let data = secret["data"].as_object().into_iter().flatten();
    Ok(data
        .filter_map(|(key, value)| {
            let bytes = STANDARD.decode(value.as_str()?).ok()?;
            Some((key.clone(), Secret::new(bytes)))
        })
        .collect())
}
