//! Where the chart comes from: a HelmChart made for the release, or a source it names.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use fl_api::Resource;
use fl_api::helm::HelmRelease;
use fl_api::meta::artifact::Artifact;
use fl_api::source::{HelmChart, OCIRepository};
use fl_apply::{Cluster, Delete, ObjectRef, Owned, Write};
use fl_runtime::{EventKind, Kind, Pass, ResolveError, ResolvedSource, Resolver, WatchSpec};
use fl_types::ObjectReference;
use serde_json::{Map, Value, json};

use crate::action::MANAGER;
use crate::action::post_render::owner_labels;
use crate::spec::Asked;

/// Why a chart's source cannot be used.
#[derive(Debug)]
pub(crate) enum SourceError {
    /// Nobody but the user can help.
    Denied(String),
    /// It may come.
    Unavailable(String),
}

/// What is remembered of HelmCharts that were applied: nothing is written when nothing changed.
#[derive(Debug, Default)]
pub(crate) struct AppliedCharts(Mutex<HashMap<String, String>>);

impl AppliedCharts {
    fn same(&self, id: &str, wanted: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(id).is_some_and(|known| known == wanted)
    }

    fn remember(&self, id: &str, wanted: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id.to_owned(), wanted);
    }

    fn forget(&self, id: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }
}

/// Makes, changes or removes the HelmChart of a release.
pub(crate) async fn chart_template(
    pass: &mut Pass<HelmRelease>,
    cluster: &Cluster,
    applied: &AppliedCharts,
) -> Result<(), String> {
    let deleting = pass.object.metadata.deletion_timestamp.is_some();
    let wanted = pass.object.spec.chart.as_ref().map(|template| {
        let namespace =
            template.spec.source_ref.namespace.as_deref().filter(|namespace| !namespace.is_empty());
        let namespace = namespace.unwrap_or_else(|| pass.object.own_namespace());
        (namespace.to_owned(), pass.object.chart_object_name())
    });
    let id = wanted.as_ref().map(|(namespace, name)| format!("{namespace}/{name}"));
    let known = pass
        .object
        .status
        .as_ref()
        .and_then(|status| status.helm_chart.clone())
        .filter(|chart| !chart.is_empty());
    // A pass that was cut off may have made it without writing that down.
    let known = match &id {
        Some(id) if known.is_none() && deleting && is_labelled(pass, cluster, id).await? => Some(id.clone()),
        _ => known,
    };
    if let Some(known) = known
        && (deleting || id.as_deref() != Some(known.as_str()))
    {
        remove_chart(pass, cluster, &known).await?;
        applied.forget(&known);
    }
    let (Some((namespace, name)), Some(id)) = (wanted, id) else { return Ok(()) };
    if deleting {
        return Ok(());
    }
    allowed(pass, HelmChart::KIND, &namespace, &name)?;
    let object = chart_object(&pass.object, &namespace, &name);
    let text = object.to_string();
    let kind = Kind::of::<HelmChart>();
    let live = pass.runtime.hub().watch(WatchSpec::full(kind.clone())).get(&namespace, &name);
    if applied.same(&id, &text) && live.as_ref().is_some_and(|live| holds(&live.value(), &object)) {
        pass.object.status.get_or_insert_default().helm_chart = Some(id);
        return Ok(());
    }
    // What others write to its status meanwhile is no change of ours.
    let marks = |o: &Value| (o["metadata"]["generation"].clone(), o["metadata"]["labels"].clone());
    let noted = pass.object.status.as_ref().and_then(|status| status.helm_chart.as_ref()) == Some(&id);
    let before = match &live {
        Some(live) => Some(marks(&live.value())),
        // Made before this process began, and not seen by it yet.
        None if noted => {
            let reference = ObjectRef::new("source.toolkit.fluxcd.io/v1", HelmChart::KIND, &namespace, &name);
            cluster.get(&reference).await.ok().flatten().as_ref().map(marks)
        }
        None => None,
    };
    let write = Write { manager: MANAGER, force: true, ..Write::default() };
    let answer = cluster.apply(&object, &write).await.map_err(|error| {
        let text = format!("failed to run server-side apply: {error}");
        pass.event(EventKind::Trace, "HelmChartSyncErr", &text);
        text
    })?;
    let action = if answer.created {
        Some(("Created", "HelmChartCreated"))
    } else if before.is_some_and(|before| before != marks(&answer.body)) {
        Some(("Configured", "HelmChartConfigured"))
    } else {
        None
    };
    if let Some((word, reason)) = action {
        let source = &object["spec"]["sourceRef"];
        let message = format!(
            "{word} HelmChart/{namespace}/{name} with SourceRef '{}/{namespace}/{}'",
            source["kind"].as_str().unwrap_or_default(),
            source["name"].as_str().unwrap_or_default()
        );
        pass.event(EventKind::Trace, reason, &message);
    }
    applied.remember(&id, text);
    pass.runtime.hub().written(&kind, answer.body);
    pass.object.status.get_or_insert_default().helm_chart = Some(id);
    Ok(())
}

/// Whether there is a HelmChart with the labels of this release.
async fn is_labelled(pass: &Pass<HelmRelease>, cluster: &Cluster, id: &str) -> Result<bool, String> {
    let Some((namespace, name)) = id.split_once('/') else { return Ok(false) };
    let reference = ObjectRef::new("source.toolkit.fluxcd.io/v1", HelmChart::KIND, namespace, name);
    let live = cluster.get(&reference).await;
    let live = live.map_err(|error| format!("failed to look for HelmChart '{id}': {error}"))?;
    let labels = owner_labels(&pass.object);
    Ok(live.is_some_and(|live| {
        labels.iter().all(|(key, value)| fl_apply::label(&live, key) == Some(value.as_str()))
    }))
}

fn holds(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => {
            wanted.iter().all(|(key, value)| live.get(key).is_some_and(|live| holds(live, value)))
        }
        (live, wanted) => live == wanted,
    }
}

async fn remove_chart(pass: &mut Pass<HelmRelease>, cluster: &Cluster, known: &str) -> Result<(), String> {
    let Some((namespace, name)) = known.split_once('/') else {
        pass.object.status.get_or_insert_default().helm_chart = None;
        return Ok(());
    };
    if pass.object.spec.suspend.unwrap_or(false) {
        return Ok(());
    }
    allowed(pass, HelmChart::KIND, namespace, name)?;
    let failed = |error: fl_apply::Error| format!("failed to delete HelmChart '{known}': {error}");
    let reference = ObjectRef::new("source.toolkit.fluxcd.io/v1", HelmChart::KIND, namespace, name);
    if let Some(live) = cluster.get(&reference).await.map_err(failed)? {
        // The status names it, and nobody but this controller writes there.
        if let Some(owned) = Owned::by_check(&live, |_| true).map_err(failed)? {
            cluster.delete(&owned, Delete::default()).await.map_err(failed)?;
        }
        pass.event(EventKind::Trace, "HelmChartDeleted", &format!("deleted HelmChart '{known}'"));
    }
    pass.object.status.get_or_insert_default().helm_chart = None;
    Ok(())
}

fn chart_object(object: &HelmRelease, namespace: &str, name: &str) -> Value {
    let Some(template) = &object.spec.chart else { return Value::Null };
    let spec = &template.spec;
    let interval = spec.interval.unwrap_or(object.spec.interval);
    let mut wanted = json!({
        "chart": spec.chart,
        "version": spec.version,
        "sourceRef": {"kind": spec.source_ref.kind, "name": spec.source_ref.name},
        "interval": interval.to_string(),
        "reconcileStrategy": spec.reconcile_strategy,
    });
    if let Some(files) = spec.values_files.as_ref().filter(|files| !files.is_empty()) {
        wanted["valuesFiles"] = json!(files);
    }
    if spec.ignore_missing_values_files.unwrap_or(false) {
        wanted["ignoreMissingValuesFiles"] = true.into();
    }
    if let Some(verify) = &spec.verify {
        wanted["verify"] = json!({"provider": verify.provider});
        if let Some(secret) = &verify.secret_ref {
            wanted["verify"]["secretRef"] = json!(secret);
        }
    }
    let metadata = template.metadata.as_ref();
    let mut labels: Map<String, Value> = texts(metadata.and_then(|metadata| metadata.labels.as_ref()));
    for (key, value) in owner_labels(object) {
        labels.insert(key, value.into());
    }
    let mut chart = json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1",
        "kind": HelmChart::KIND,
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": wanted,
    });
    let annotations = texts(metadata.and_then(|metadata| metadata.annotations.as_ref()));
    if !annotations.is_empty() {
        chart["metadata"]["annotations"] = annotations.into();
    }
    chart
}

fn texts(map: Option<&std::collections::BTreeMap<String, String>>) -> Map<String, Value> {
    map.into_iter().flatten().map(|(key, value)| (key.clone(), value.as_str().into())).collect()
}

/// Whether lock-down lets the release use something in a namespace.
fn allowed(pass: &Pass<HelmRelease>, kind: &str, namespace: &str, name: &str) -> Result<(), String> {
    let lockdown = pass.runtime.options().lockdown();
    // Flux has other words for releases than for Kustomizations.
    lockdown.check_reference(pass.object.own_namespace(), kind, namespace, name).map_err(|_| {
        format!("cross-namespace references are not allowed: cannot access {kind} {namespace}/{name}")
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

/// Finds the source.
pub(crate) async fn find(
    pass: &Pass<HelmRelease>,
    resolver: &Resolver,
) -> Result<ResolvedSource, SourceError> {
    let Some(reference) = reference(&pass.object) else {
        return Err(SourceError::Unavailable("invalid Chart reference".to_owned()));
    };
    let own = pass.object.own_namespace();
    let namespace = reference.namespace_or(own).to_owned();
    allowed(pass, &reference.kind, &namespace, &reference.name).map_err(SourceError::Denied)?;
    resolver.resolve(&reference, own).await.map_err(|error| match error {
        ResolveError::GateClosed(kind) => SourceError::Denied(format!(
            "can't access '{kind}/{namespace}/{}', ExternalArtifact feature gate is disabled",
            reference.name
        )),
        ResolveError::AccessDenied(_) => SourceError::Denied(error.to_string()),
        other => SourceError::Unavailable(other.to_string()),
    })
}

/// Ends when the source has another artifact than this one.
pub(crate) async fn moved(pass: &Pass<HelmRelease>, resolver: &Resolver, artifact: &Artifact) {
    match reference(&pass.object) {
        Some(reference) => resolver.moved(&reference, pass.object.own_namespace(), artifact).await,
        None => std::future::pending().await,
    }
}

/// Whether the source can be used now: its artifact, or why not.
pub(crate) fn usable(source: &ResolvedSource) -> Result<Artifact, String> {
    let (kind, name) = (source.key.kind(), format!("{}/{}", source.key.namespace(), source.key.name()));
    let refuse = |why: &str| Err(format!("{kind} '{name}' is not ready: {why}"));
    let own = matches!(kind, HelmChart::KIND | OCIRepository::KIND) && source.key.group() == HelmChart::GROUP;
    if own {
        let value = source.object.value();
        let status = &value["status"];
        if status["observedGeneration"].as_i64() != Some(source.object.generation()) {
            let failed = condition(status, "Ready").filter(|ready| ready["status"] == "False");
            let why = failed.and_then(|ready| ready["message"].as_str());
            return refuse(why.unwrap_or("latest generation of object has not been reconciled"));
        }
        if let Some(stalled) = condition(status, "Stalled").filter(|stalled| stalled["status"] == "True") {
            return refuse(stalled["message"].as_str().unwrap_or_default());
        }
    }
    match &source.artifact {
        Some(artifact) => Ok(artifact.clone()),
        None => refuse("does not have an artifact"),
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
