//! The HelmChart object of a release that has a chart template (`spec.chart`).

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use fl_api::Resource;
use fl_api::helm::HelmRelease;
use fl_api::source::HelmChart;
use fl_apply::{Cluster, Delete, Error as ClusterError, ObjectRef, Owned, Write};
use fl_runtime::{Context, EventKind, Kind, WatchSpec};
use serde_json::{Map, Value, json};

use crate::action::MANAGER;
use crate::action::post_render::owner_labels;
use crate::source::{self, CrossNamespaceDenied};
use crate::spec::ReleaseSpec;

/// Why the HelmChart of a release could not be brought in line with its template.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChartTemplateError {
    #[error(transparent)]
    Denied(#[from] CrossNamespaceDenied),
    #[error("failed to look for HelmChart '{chart}': {error}")]
    Read { chart: String, error: ClusterError },
    #[error("failed to run server-side apply: {0}")]
    Apply(ClusterError),
    #[error("failed to delete HelmChart '{chart}': {error}")]
    Delete { chart: String, error: ClusterError },
}

/// HelmCharts as they were applied last, so that an unchanged one is not written again.
#[derive(Debug, Default)]
pub(crate) struct AppliedCharts(Mutex<HashMap<String, String>>);

impl AppliedCharts {
    fn same(&self, id: &str, wanted: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(id).is_some_and(|known| known == wanted)
    }

    fn insert(&self, id: &str, wanted: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id.to_owned(), wanted);
    }

    fn remove(&self, id: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }
}

/// Creates, updates or deletes the HelmChart that `spec.chart` describes.
pub(crate) async fn reconcile(
    cx: &mut Context<HelmRelease>,
    cluster: &Cluster,
    applied: &AppliedCharts,
) -> Result<(), ChartTemplateError> {
    let deleting = cx.object.metadata.deletion_timestamp.is_some();
    let wanted = cx.object.spec.chart.as_ref().map(|template| {
        let namespace =
            template.spec.source_ref.namespace.as_deref().filter(|namespace| !namespace.is_empty());
        let namespace = namespace.unwrap_or_else(|| cx.object.own_namespace());
        (namespace.to_owned(), cx.object.chart_object_name())
    });
    let id = wanted.as_ref().map(|(namespace, name)| format!("{namespace}/{name}"));
    let known = cx
        .object
        .status
        .as_ref()
        .and_then(|status| status.helm_chart.clone())
        .filter(|chart| !chart.is_empty());
    // An interrupted reconcile may have created it without recording it in the status.
    let known = match &id {
        Some(id) if known.is_none() && deleting && is_labelled(cx, cluster, id).await? => Some(id.clone()),
        _ => known,
    };
    if let Some(known) = known
        && (deleting || id.as_deref() != Some(known.as_str()))
    {
        remove_chart(cx, cluster, &known).await?;
        applied.remove(&known);
    }
    let (Some((namespace, name)), Some(id)) = (wanted, id) else { return Ok(()) };
    if deleting {
        return Ok(());
    }
    source::check_access(cx, HelmChart::KIND, &namespace, &name)?;
    let object = chart_object(&cx.object, &namespace, &name);
    let text = object.to_string();
    let kind = Kind::of::<HelmChart>();
    let live = cx.runtime.informers().watch(WatchSpec::full(kind.clone())).get(&namespace, &name);
    if applied.same(&id, &text) && live.as_ref().is_some_and(|live| holds(&live.value(), &object)) {
        cx.object.status.get_or_insert_default().helm_chart = Some(id);
        return Ok(());
    }
    // A change of its status is not a change of the template.
    let marks = |o: &Value| (o["metadata"]["generation"].clone(), o["metadata"]["labels"].clone());
    let noted = cx.object.status.as_ref().and_then(|status| status.helm_chart.as_ref()) == Some(&id);
    let before = match &live {
        Some(live) => Some(marks(&live.value())),
        // Created before this process started, and not in the cache yet.
        None if noted => {
            let reference = ObjectRef::new("source.toolkit.fluxcd.io/v1", HelmChart::KIND, &namespace, &name);
            cluster.get(&reference).await.ok().flatten().as_ref().map(marks)
        }
        None => None,
    };
    let write = Write { manager: MANAGER, force: true, ..Write::default() };
    let answer = cluster.apply(&object, &write).await.map_err(|error| {
        let error = ChartTemplateError::Apply(error);
        cx.event(EventKind::Trace, "HelmChartSyncErr", &error.to_string());
        error
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
        cx.event(EventKind::Trace, reason, &message);
    }
    applied.insert(&id, text);
    cx.runtime.informers().written(&kind, answer.body);
    cx.object.status.get_or_insert_default().helm_chart = Some(id);
    Ok(())
}

/// Whether there is a HelmChart with the labels of this release.
async fn is_labelled(
    cx: &Context<HelmRelease>,
    cluster: &Cluster,
    id: &str,
) -> Result<bool, ChartTemplateError> {
    let Some((namespace, name)) = id.split_once('/') else { return Ok(false) };
    let reference = ObjectRef::new("source.toolkit.fluxcd.io/v1", HelmChart::KIND, namespace, name);
    let live = cluster.get(&reference).await;
    let live = live.map_err(|error| ChartTemplateError::Read { chart: id.to_owned(), error })?;
    let labels = owner_labels(&cx.object);
    Ok(live.is_some_and(|live| {
        labels.iter().all(|(key, value)| fl_apply::label(&live, key) == Some(value.as_str()))
    }))
}

/// Whether the live object has every field of the wanted one, with the same value.
fn holds(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => {
            wanted.iter().all(|(key, value)| live.get(key).is_some_and(|live| holds(live, value)))
        }
        (live, wanted) => live == wanted,
    }
}

async fn remove_chart(
    cx: &mut Context<HelmRelease>,
    cluster: &Cluster,
    known: &str,
) -> Result<(), ChartTemplateError> {
    let Some((namespace, name)) = known.split_once('/') else {
        cx.object.status.get_or_insert_default().helm_chart = None;
        return Ok(());
    };
    if cx.object.spec.suspend.unwrap_or(false) {
        return Ok(());
    }
    source::check_access(cx, HelmChart::KIND, namespace, name)?;
    let failed = |error| ChartTemplateError::Delete { chart: known.to_owned(), error };
    let reference = ObjectRef::new("source.toolkit.fluxcd.io/v1", HelmChart::KIND, namespace, name);
    if let Some(live) = cluster.get(&reference).await.map_err(failed)? {
        // The status names it, and only this controller writes the status.
        if let Some(owned) = Owned::by_check(&live, |_| true).map_err(failed)? {
            cluster.delete(&owned, Delete::default()).await.map_err(failed)?;
        }
        cx.event(EventKind::Trace, "HelmChartDeleted", &format!("deleted HelmChart '{known}'"));
    }
    cx.object.status.get_or_insert_default().helm_chart = None;
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
