//! The source of a chart: which object it is, and whether it can be used.

use fl_api::Resource;
use fl_api::helm::HelmRelease;
use fl_api::meta::artifact::Artifact;
use fl_api::source::{HelmChart, OCIRepository};
use fl_runtime::{Context, ResolveError, ResolvedSource, Resolver};
use fl_types::ObjectReference;
use serde_json::Value;

use crate::spec::ReleaseSpec;

/// A reference that the multi-tenancy lockdown forbids. Flux's message differs from that for Kustomizations.
#[derive(Debug, thiserror::Error)]
#[error("cross-namespace references are not allowed: cannot access {kind} {namespace}/{name}")]
pub(crate) struct CrossNamespaceDenied {
    kind: String,
    namespace: String,
    name: String,
}

/// Why the source of a chart cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SourceError {
    #[error("invalid Chart reference")]
    NoReference,
    #[error(transparent)]
    CrossNamespace(#[from] CrossNamespaceDenied),
    #[error("can't access '{kind}/{namespace}/{name}', ExternalArtifact feature gate is disabled")]
    GateClosed { kind: String, namespace: String, name: String },
    /// The reference may not be followed.
    #[error("{0}")]
    Denied(ResolveError),
    /// The source does not exist, or could not be read.
    #[error("{0}")]
    Unavailable(ResolveError),
    /// The source has no artifact, or none of its current generation.
    #[error("{kind} '{name}' is not ready: {why}")]
    NotReady { kind: String, name: String, why: String },
}

/// Checks whether the lockdown allows the release to use an object in a namespace.
pub(crate) fn check_access(
    cx: &Context<HelmRelease>,
    kind: &str,
    namespace: &str,
    name: &str,
) -> Result<(), CrossNamespaceDenied> {
    let lockdown = cx.runtime.options().lockdown();
    lockdown.check_reference(cx.object.own_namespace(), kind, namespace, name).map_err(|_| {
        CrossNamespaceDenied { kind: kind.to_owned(), namespace: namespace.to_owned(), name: name.to_owned() }
    })
}

/// The reference to the chart's source.
pub(crate) fn reference(object: &HelmRelease) -> Option<ObjectReference> {
    if let Some(chart) = &object.spec.chart_ref {
        return Some(ObjectReference {
            api_version: chart.api_version.clone(),
            kind: chart.kind.clone(),
            name: chart.name.clone(),
            namespace: chart.namespace.clone().filter(|namespace| !namespace.is_empty()),
        });
    }
    let template = object.spec.chart.as_ref()?;
    Some(ObjectReference {
        api_version: None,
        kind: HelmChart::KIND.to_owned(),
        name: object.chart_object_name(),
        namespace: template.spec.source_ref.namespace.clone().filter(|namespace| !namespace.is_empty()),
    })
}

/// Resolves the reference to the chart's source.
pub(crate) async fn find(
    cx: &Context<HelmRelease>,
    resolver: &Resolver,
) -> Result<ResolvedSource, SourceError> {
    let Some(reference) = reference(&cx.object) else {
        return Err(SourceError::NoReference);
    };
    let own = cx.object.own_namespace();
    let namespace = reference.namespace_or(own).to_owned();
    check_access(cx, &reference.kind, &namespace, &reference.name)?;
    resolver.resolve(&reference, own).await.map_err(|error| match error {
        ResolveError::GateClosed(kind) => {
            SourceError::GateClosed { kind, namespace, name: reference.name.clone() }
        }
        denied @ ResolveError::AccessDenied(_) => SourceError::Denied(denied),
        other => SourceError::Unavailable(other),
    })
}

/// Completes when the source publishes another artifact than this one.
pub(crate) async fn moved(cx: &Context<HelmRelease>, resolver: &Resolver, artifact: &Artifact) {
    match reference(&cx.object) {
        Some(reference) => resolver.moved(&reference, cx.object.own_namespace(), artifact).await,
        None => std::future::pending().await,
    }
}

/// The artifact of a source that is ready.
pub(crate) fn artifact(source: &ResolvedSource) -> Result<Artifact, SourceError> {
    let (kind, name) = (source.key.kind(), format!("{}/{}", source.key.namespace(), source.key.name()));
    let not_ready = |why: &str| {
        let (kind, name) = (kind.to_owned(), name.clone());
        Err(SourceError::NotReady { kind, name, why: why.to_owned() })
    };
    let own = matches!(kind, HelmChart::KIND | OCIRepository::KIND) && source.key.group() == HelmChart::GROUP;
    if own {
        let value = source.object.value();
        let status = &value["status"];
        if status["observedGeneration"].as_i64() != Some(source.object.generation()) {
            let failed = condition(status, "Ready").filter(|ready| ready["status"] == "False");
            let why = failed.and_then(|ready| ready["message"].as_str());
            return not_ready(why.unwrap_or("latest generation of object has not been reconciled"));
        }
        if let Some(stalled) = condition(status, "Stalled").filter(|stalled| stalled["status"] == "True") {
            return not_ready(stalled["message"].as_str().unwrap_or_default());
        }
    }
    match &source.artifact {
        Some(artifact) => Ok(artifact.clone()),
        None => not_ready("does not have an artifact"),
    }
}

fn condition<'v>(status: &'v Value, kind: &str) -> Option<&'v Value> {
    status["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind)
}

/// Whether the revision of a source has a digest that becomes part of the chart's version.
pub(crate) fn has_digest(source: &ResolvedSource, artifact: &Artifact) -> bool {
    match source.key.kind() {
        OCIRepository::KIND if source.key.group() == OCIRepository::GROUP => true,
        HelmChart::KIND if source.key.group() == HelmChart::GROUP => false,
        _ => artifact.revision.contains(':'),
    }
}
