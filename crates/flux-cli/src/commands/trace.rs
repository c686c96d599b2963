//! `trace`: from an object to what delivers it and where that comes from.

use anyhow::{Context, bail};
use serde_json::Value;

use crate::args::{Call, CommandResult, action};
use crate::cluster::{ApiError, Cluster, Resource, name_of, namespace_of, text_at};
use crate::command::Node;
use crate::discovery::Discovery;
use crate::flag::text;
use crate::format::go_time;
use crate::logger;
use crate::resource_kinds::{self, Kind};

pub(crate) fn node() -> Node {
    Node::leaf(
        "trace",
        "Show what delivers an object, from which source and revision",
        action(|call: Call| async move { run(&call).await }),
    )
    .takes("KIND NAME")
    .flags(&[
        text("kind", "Kind of the object, e.g. Deployment"),
        text("api-version", "API version of the object, e.g. apps/v1"),
    ])
    .example("A Deployment", "trace deployment web -n shop")
    .example("Several objects", "trace service/web configmap/settings -n shop")
    .example("A kind by its full name", "trace web --kind=Deployment --api-version=apps/v1 -n shop")
}

async fn run(call: &Call) -> CommandResult {
    let cluster = Cluster::connect(call).await?;
    let objects = if call.text("kind").is_empty() && call.text("api-version").is_empty() {
        named_objects(call, &cluster).await?
    } else {
        vec![one_object(call, &cluster).await?]
    };
    for (i, object) in objects.iter().enumerate() {
        match trace(&cluster, object).await {
            Ok(report) => logger::data(&report),
            Err(error) => logger::note(&format!(
                "failed to trace {}/{} in namespace {}: {error:#}",
                text_at(object, "/kind"),
                name_of(object),
                namespace_of(object)
            )),
        }
        if i + 1 < objects.len() {
            logger::data("---\n");
        }
    }
    Ok(())
}

async fn one_object(call: &Call, cluster: &Cluster) -> anyhow::Result<Value> {
    let Some(name) = call.args.first() else { bail!("object name is required") };
    if call.text("kind").is_empty() {
        bail!("object kind is required (--kind)");
    }
    let api_version = call.text("api-version");
    if api_version.is_empty() {
        bail!("object apiVersion is required (--api-version)");
    }
    if api_version.matches('/').count() > 1 {
        bail!("invaild apiVersion: unexpected GroupVersion string: {api_version}");
    }
    let found = async {
        let resource = Discovery::resource(cluster, api_version, call.text("kind")).await?;
        let mut object = cluster.get(&resource, call.namespace(), name).await?;
        object["kind"] = Value::from(call.text("kind"));
        Ok::<_, ApiError>(object)
    };
    match found.await {
        Err(error) if error.is_no_match() && !Discovery::serves(cluster, api_version).await => bail!(
            "failed to find object: unable to retrieve the complete list of server APIs: {api_version}: no matches for {api_version}, Resource="
        ),
        found => found.context("failed to find object"),
    }
}

async fn named_objects(call: &Call, cluster: &Cluster) -> anyhow::Result<Vec<Value>> {
    if call.args.is_empty() {
        bail!("either `<resource>/<name>` or `<resource> <name>` is required as an argument");
    }
    let discovery = Discovery::read(cluster).await?;
    let find = |word: &str| match discovery.find(word) {
        Some(resource) => Ok(resource.clone()),
        None => bail!("the server doesn't have a resource type {word:?}"),
    };
    let mut wanted: Vec<(Resource, &str)> = Vec::new();
    if call.args.iter().any(|a| a.contains('/')) {
        for arg in &call.args {
            let Some((kind, name)) = arg.split_once('/') else {
                bail!(
                    "there is no need to specify a resource type as a separate argument when passing arguments in resource/name form (e.g. '{} get resource/<resource_name>' instead of '{} get resource resource/<resource_name>'",
                    "flux",
                    "flux"
                );
            };
            if kind.is_empty() || name.is_empty() || name.contains('/') {
                bail!("arguments in resource/name form must have a single resource and name");
            }
            wanted.push((find(kind)?, name));
        }
    } else {
        let (types, names) = call.args.split_first().expect("checked above");
        if names.is_empty() {
            types.split(',').try_for_each(|kind| find(kind).map(drop))?;
            bail!("resource(s) were provided, but no name was specified");
        }
        for kind in types.split(',') {
            let resource = find(kind)?;
            wanted.extend(names.iter().map(|name| (resource.clone(), name.as_str())));
        }
    }
    let mut objects = Vec::new();
    let mut failures = Vec::new();
    for (resource, name) in wanted {
        match cluster.get(&resource, call.namespace(), name).await {
            Ok(object) => objects.push(object),
            Err(error) => failures.push(error.to_string()),
        }
    }
    match failures.as_slice() {
        [] => Ok(objects),
        [one] => bail!("x: {one}"),
        many => bail!("x: [{}]", many.join(", ")),
    }
}

async fn trace(cluster: &Cluster, object: &Value) -> anyhow::Result<String> {
    if let Some(owner) = managed_by(cluster, object, resource_kinds::KUSTOMIZATION.group).await {
        return kustomization(cluster, object, &owner).await;
    }
    if let Some(owner) = managed_by(cluster, object, resource_kinds::HELM_RELEASE.group).await {
        return release(cluster, object, &owner).await;
    }
    bail!("object not managed by Flux")
}

/// Namespace and name in the labels of this object or of one that owns it.
async fn managed_by(cluster: &Cluster, object: &Value, group: &str) -> Option<(String, String)> {
    let label =
        |object: &Value, key: &str| text_at(object, &format!("/metadata/labels/{group}~1{key}")).to_owned();
    let mut current = object.clone();
    // Owners of owners: pods of replica sets of deployments. A loop of owners ends at the limit.
    for _ in 0..32 {
        let name = label(&current, "name");
        if !name.is_empty() {
            return Some((label(&current, "namespace"), name));
        }
        let mut next = None;
        for reference in
            current.pointer("/metadata/ownerReferences").and_then(Value::as_array).into_iter().flatten()
        {
            let resource =
                Discovery::resource(cluster, text_at(reference, "/apiVersion"), text_at(reference, "/kind"))
                    .await;
            let owner = cluster
                .get(&resource.ok()?, namespace_of(&current), text_at(reference, "/name"))
                .await
                .ok()?;
            let name = label(&owner, "name");
            if !name.is_empty() {
                return Some((label(&owner, "namespace"), name));
            }
            if owner.pointer("/metadata/ownerReferences").is_some() {
                next = Some(owner);
                break;
            }
        }
        current = next?;
    }
    None
}

/// Lines of a report, values from a column on.
struct Report {
    text: String,
    column: usize,
}

impl Report {
    fn new(column: usize, object: &Value) -> Report {
        let mut report = Report { text: "\n".to_owned(), column };
        report.line("Object", &format!("{}/{}", text_at(object, "/kind"), name_of(object)));
        report.optional("Namespace", namespace_of(object));
        report.line("Status", "Managed by Flux");
        report
    }

    fn line(&mut self, key: &str, value: &str) {
        let head = format!("{key}:");
        self.text.push_str(&format!("{head:<width$}{value}\n", width = self.column));
    }

    fn optional(&mut self, key: &str, value: &str) {
        if !value.is_empty() {
            self.line(key, value);
        }
    }

    fn block(&mut self, kind: &str, object: &Value) {
        self.text.push_str("---\n");
        self.line(kind, name_of(object));
        self.line("Namespace", namespace_of(object));
    }

    /// When it was reconciled, and its message; failures are shown as flux does.
    fn status(&mut self, object: &Value, tells_failure: bool) {
        let Some(ready) = resource_kinds::condition(object, "Ready") else {
            return self.line("Status", "Unknown");
        };
        let what = if tells_failure && ready["status"] == "False" {
            "Last reconciliation failed"
        } else {
            "Last reconciled"
        };
        self.line("Status", &format!("{what} at {}", go_time(text_at(ready, "/lastTransitionTime"))));
        self.line("Message", text_at(ready, "/message"));
    }

    fn revision(&mut self, object: &Value) {
        if object.pointer("/status/artifact").is_some() {
            self.line("Revision", text_at(object, "/status/artifact/revision"));
        }
    }

    /// A source of any kind, with what its artifact says about its origin.
    fn source(&mut self, kind: &str, source: &Value, with_origin: bool) {
        self.block(kind, source);
        let reference = |key: &str| text_at(source, &format!("/spec/ref/{key}")).to_owned();
        let first = |pairs: &[(&str, String)]| {
            pairs.iter().find(|(_, v)| !v.is_empty()).map(|(k, v)| ((*k).to_owned(), v.clone()))
        };
        match kind {
            "ExternalArtifact" => {
                let r = source.pointer("/spec/sourceRef").cloned().unwrap_or_default();
                let from = format!(
                    "{}/{}/{}",
                    text_at(&r, "/kind"),
                    text_at(&r, "/namespace"),
                    text_at(&r, "/name")
                );
                self.line("Source", &from);
            }
            _ => {
                self.line("URL", text_at(source, "/spec/url"));
                let last = if kind == "GitRepository" {
                    ("Branch", reference("branch"))
                } else {
                    ("Digest", reference("digest"))
                };
                if let Some((key, value)) =
                    first(&[("Tag", reference("tag")), ("Tag", reference("semver")), last])
                {
                    self.line(&key, &value);
                }
            }
        }
        self.revision(source);
        if with_origin && kind != "GitRepository" {
            for (key, annotation) in [
                ("Origin Revision", "org.opencontainers.image.revision"),
                ("Origin Source", "org.opencontainers.image.source"),
            ] {
                if let Some(metadata) = source.pointer("/status/artifact/metadata") {
                    match metadata[annotation].as_str().filter(|v| !v.is_empty()) {
                        Some(value) => self.line(key, value),
                        None => self.text.push('\n'),
                    }
                }
            }
        }
        self.status(source, true);
    }
}

async fn source_of(
    cluster: &Cluster,
    owner: &Value,
    reference: &Value,
) -> anyhow::Result<Option<(&'static Kind, Value)>> {
    let wanted = text_at(reference, "/kind");
    let Some(kind) = resource_kinds::by_name(wanted).filter(|k| k.group == resource_kinds::GIT.group) else {
        return Ok(None);
    };
    let namespace = match text_at(reference, "/namespace") {
        "" => namespace_of(owner),
        written => written,
    };
    let source = cluster
        .get(&kind.resource(), namespace, text_at(reference, "/name"))
        .await
        .map_err(|e| anyhow::Error::from(e).context(format!("failed to find {wanted}")))?;
    if wanted == "ExternalArtifact" && source.pointer("/spec/sourceRef").is_none() {
        bail!("ExternalArtifact {}/{} is missing spec.sourceRef", namespace_of(&source), name_of(&source));
    }
    Ok(Some((kind, source)))
}

async fn kustomization(
    cluster: &Cluster,
    object: &Value,
    owner: &(String, String),
) -> anyhow::Result<String> {
    let ks = cluster
        .get(&resource_kinds::KUSTOMIZATION.resource(), &owner.0, &owner.1)
        .await
        .map_err(|e| anyhow::Error::from(e).context("failed to find kustomization"))?;
    let reference = ks.pointer("/spec/sourceRef").cloned().unwrap_or_default();
    let source = match text_at(&reference, "/kind") {
        "GitRepository" | "OCIRepository" | "ExternalArtifact" => source_of(cluster, &ks, &reference).await?,
        _ => None,
    };
    let mut report = Report::new(17, object);
    report.block("Kustomization", &ks);
    report.optional("Target", text_at(&ks, "/spec/targetNamespace"));
    report.line("Path", text_at(&ks, "/spec/path"));
    report.line("Revision", text_at(&ks, "/status/lastAppliedRevision"));
    report.status(&ks, false);
    if let Some((kind, source)) = source {
        report.source(kind.kind, &source, true);
    }
    Ok(report.text)
}

async fn release(cluster: &Cluster, object: &Value, owner: &(String, String)) -> anyhow::Result<String> {
    let hr = cluster
        .get(&resource_kinds::HELM_RELEASE.resource(), &owner.0, &owner.1)
        .await
        .map_err(|e| anyhow::Error::from(e).context("failed to find HelmRelease"))?;
    let chart = match text_at(&hr, "/status/helmChart") {
        "" => None,
        path => {
            let (namespace, name) = path.split_once('/').unwrap_or(("", path));
            let chart = cluster.get(&resource_kinds::CHART.resource(), namespace, name).await;
            Some(chart.map_err(|e| anyhow::Error::from(e).context("failed to find HelmChart"))?)
        }
    };
    let reference = match hr.pointer("/spec/chart") {
        Some(chart) => (
            chart.pointer("/spec/sourceRef").cloned().unwrap_or_default(),
            ["GitRepository", "HelmRepository"],
        ),
        None => {
            (hr.pointer("/spec/chartRef").cloned().unwrap_or_default(), ["OCIRepository", "ExternalArtifact"])
        }
    };
    let source = match reference.1.contains(&text_at(&reference.0, "/kind")) {
        true => source_of(cluster, &hr, &reference.0).await?,
        false => None,
    };
    let mut report = Report::new(16, object);
    report.block("HelmRelease", &hr);
    report.optional("Target", text_at(&hr, "/spec/targetNamespace"));
    report.line("Revision", text_at(&hr, "/status/lastAttemptedRevision"));
    report.status(&hr, false);
    if let Some(chart) = chart {
        report.block("HelmChart", &chart);
        report.line("Chart", text_at(&chart, "/spec/chart"));
        report.line("Version", text_at(&chart, "/spec/version"));
        report.revision(&chart);
        report.status(&chart, false);
    }
    match source {
        Some((kind, source)) if kind.kind == "HelmRepository" => {
            report.block("HelmRepository", &source);
            report.line("URL", text_at(&source, "/spec/url"));
            report.revision(&source);
            report.status(&source, false);
        }
        Some((kind, source)) => {
            report.column = if kind.kind == "GitRepository" { 15 } else { 17 };
            report.source(kind.kind, &source, false);
        }
        None => {}
    }
    Ok(report.text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_start_at_one_column() {
        let object = json!({"kind": "Service", "metadata": {"name": "web"}});
        let mut report = Report::new(17, &object);
        let source = json!({"metadata": {"name": "app", "namespace": "a"}, "spec": {"url": "oci://r/app", "ref": {"digest": "d"}},
            "status": {"artifact": {"revision": "1@x", "metadata": {"org.opencontainers.image.source": "https://git"}}}});
        report.source("OCIRepository", &source, true);
        assert_eq!(
            report.text,
            "\nObject:          Service/web\nStatus:          Managed by Flux\n---\nOCIRepository:   app\nNamespace:       a\n\
             URL:             oci://r/app\nDigest:          d\nRevision:        1@x\n\nOrigin Source:   https://git\nStatus:          Unknown\n"
        );
    }
}
