//! `create kustomization` and `create helmrelease`.

use anyhow::{Context, bail};
use serde_json::{Map, Value, json};

use super::checks::{
    chart_source, crds_policy, decryption_provider, kind_name, kustomization_source, reference, safe_path,
    spelled, spelled_reference,
};
use super::{Fields, depends_on, generating, labels, leaf, object, print, upsert};
use crate::args::{Call, CommandResult, action};
use crate::command::Node;
use crate::flag::{checked, duration, list, switch, text};
use crate::format as view;
use crate::resource_kinds;

pub(super) fn kustomization_node() -> Node {
    leaf!("kustomization", "Create or update a Kustomization", kustomization)
        .alias(&["ks"])
        .flags(&[
            checked(
                "source",
                kustomization_source,
                "What to deliver: [kind/]name[.namespace] of a GitRepository, OCIRepository or Bucket",
            ),
            checked("path", safe_path, "Folder in the source").or("./"),
            switch("prune", "Delete what is no longer in the source"),
            switch("wait", "Wait until everything that was applied is healthy"),
            list("health-check", "Workloads to wait for, kind/name.namespace"),
            duration("health-check-timeout", "2m0s", "How long to wait for health"),
            text("validation", "Not used any more")
                .deprecated(
                    "this arg is no longer used, all resources are validated using server-side apply dry-run",
                )
                .constant("flux only prints the notice"),
            list("depends-on", "Kustomizations that must be ready before, name or namespace/name"),
            text("service-account", "Service account to act as"),
            checked("decryption-provider", decryption_provider, "How secrets are encrypted: sops"),
            text("decryption-secret", "Secret with the keys"),
            text("target-namespace", "Namespace for everything that is applied"),
            text("kubeconfig-secret-ref", "Secret with the kubeconfig of another cluster"),
            duration("retry-interval", "0s", "How soon to try again after a failure"),
        ])
        .example(
            "Deliver a folder of a repository and clean up behind it",
            "create kustomization apps --source=GitRepository/fleet --path=./apps --prune --interval=10m",
        )
        .example(
            "As a file for the repository",
            "create ks apps --source=fleet --path=./apps --prune --export > apps.yaml",
        )
}

async fn kustomization(call: &Call) -> CommandResult {
    let path = call.text("path");
    if path.is_empty() {
        bail!("path is required");
    }
    let source = spelled_reference(call.text("source"));
    if source.name.is_empty() {
        bail!("source is required");
    }
    generating(call, "Kustomization");
    let labels = labels(call)?;
    let mut spec = Fields::default()
        .put("interval", call.text("interval"))
        .text("path", path)
        .put("prune", call.on("prune"))
        .put(
            "sourceRef",
            Fields::default()
                .text("kind", source.kind)
                .text("name", source.name)
                .text("namespace", source.namespace)
                .build(),
        )
        .text("targetNamespace", call.text("target-namespace"))
        .maybe("dependsOn", depends_on(call.list("depends-on")))
        .text("serviceAccountName", call.text("service-account"))
        .time("retryInterval", call, "retry-interval")
        .maybe("kubeConfig", kube_config(call));
    if !call.list("health-check").is_empty() && !call.on("wait") {
        spec = spec
            .put("healthChecks", health_checks(call.list("health-check"))?)
            .put("timeout", call.text("health-check-timeout"));
    }
    if call.on("wait") {
        spec = spec.put("wait", true).put("timeout", call.text("health-check-timeout"));
    }
    if !call.text("decryption-provider").is_empty() {
        let decryption = Fields::default()
            .text("provider", call.text("decryption-provider"))
            .name_of("secretRef", call.text("decryption-secret"));
        spec = spec.put("decryption", decryption.build());
    }
    let object = object(call, &resource_kinds::KUSTOMIZATION, &labels, spec);
    if call.on("export") {
        return print(&object);
    }
    upsert::ready(call, &resource_kinds::KUSTOMIZATION, &object, |kind, done| Some(kind.success(done))).await
}

fn kube_config(call: &Call) -> Option<Value> {
    let secret = call.text("kubeconfig-secret-ref");
    (!secret.is_empty()).then(|| json!({"secretRef": {"name": secret}}))
}

fn health_checks(checks: &[String]) -> anyhow::Result<Value> {
    let mut out = Vec::new();
    for check in checks {
        let parts: Vec<&str> = check.split('/').collect();
        let [kind, object] = parts[..] else {
            bail!(
                "invalid health check '{check}' must be in the format 'kind/name.namespace' [{}]",
                parts.join(" ")
            );
        };
        if !["Deployment", "DaemonSet", "StatefulSet", "HelmRelease"].contains(&kind) {
            bail!(
                "invalid health check kind '{kind}' can be HelmRelease, Deployment, DaemonSet or StatefulSet"
            );
        }
        let names: Vec<&str> = object.split('.').collect();
        let [name, namespace] = names[..] else {
            bail!("invalid health check '{check}' must be in the format 'kind/name.namespace'");
        };
        let version =
            if kind == "HelmRelease" { resource_kinds::HELM_RELEASE.api_version() } else { String::new() };
        out.push(
            Fields::default()
                .text("apiVersion", &version)
                .text("kind", kind)
                .text("name", name)
                .text("namespace", namespace)
                .build(),
        );
    }
    Ok(Value::Array(out))
}

pub(super) fn release_node() -> Node {
    leaf!("helmrelease", "Create or update a HelmRelease", release)
        .alias(&["hr"])
        .flags(&[
            text("release-name", "Name of the Helm release; by default made of namespace and name"),
            checked("source", chart_source, "Where the chart is: kind/name[.namespace] of a HelmRepository, GitRepository or Bucket"),
            text("chart", "Name of the chart, or its path in the source"),
            text("chart-version", "Version or range of the chart"),
            text("chart-ref", "OCIRepository/name[.namespace] or HelmChart/name[.namespace] instead of source and chart"),
            list("depends-on", "HelmReleases that must be ready before, name or namespace/name"),
            text("target-namespace", "Namespace of the release"),
            text("storage-namespace", "Namespace of Helm's records"),
            switch("create-target-namespace", "Create the target namespace"),
            text("service-account", "Service account to act as"),
            text("reconcile-strategy", "When the chart is new: ChartVersion or Revision").or("ChartVersion"),
            duration("chart-interval", "0s", "How often to look for new versions of the chart"),
            list("values", "Files with values"),
            list("values-from", "Secret/name or ConfigMap/name with values"),
            checked("crds", crds_policy, "What an upgrade does with CRDs: Skip, Create or CreateReplace"),
            text("kubeconfig-secret-ref", "Secret with the kubeconfig of another cluster"),
        ])
        .example(
            "A chart of a repository with values of your own",
            "create helmrelease web --source=HelmRepository/charts --chart=web --chart-version='>=1.0.0' --values=./web.yaml",
        )
        .example("A chart in a registry", "create hr web --chart-ref=OCIRepository/web.infra --interval=10m --export")
}

async fn release(call: &Call) -> CommandResult {
    let (chart, chart_ref) = (call.text("chart"), call.text("chart-ref"));
    if chart.is_empty() && chart_ref.is_empty() {
        bail!("chart or chart-ref is required");
    }
    if !chart.is_empty() && !chart_ref.is_empty() {
        bail!("cannot use --chart in combination with --chart-ref");
    }
    let labels = labels(call)?;
    generating(call, "HelmRelease");
    let strategy = call.text("reconcile-strategy");
    if !["Revision", "ChartVersion"].contains(&strategy) {
        bail!("'{strategy}' is an invalid reconcile strategy(valid: Revision, ChartVersion)");
    }
    let storage = match call.text("storage-namespace") {
        "" => call.text("target-namespace"),
        given => given,
    };
    let mut spec = Fields::default()
        .text("releaseName", call.text("release-name"))
        .put("interval", call.text("interval"))
        .text("targetNamespace", call.text("target-namespace"))
        .text("storageNamespace", storage)
        .maybe("dependsOn", depends_on(call.list("depends-on")))
        .maybe("kubeConfig", kube_config(call))
        .text("serviceAccountName", call.text("service-account"));
    spec = if chart.is_empty() {
        spec.put("chartRef", chart_reference(chart_ref)?)
    } else {
        spec.put("chart", chart_template(call))
    };
    let mut install = Fields::default().flag("createNamespace", call.on("create-target-namespace"));
    if !call.text("crds").is_empty() {
        install = install.put("crds", "Create");
        spec = spec.put("upgrade", json!({"crds": call.text("crds")}));
    }
    if !install.0.is_empty() {
        spec = spec.put("install", install.build());
    }
    if !call.list("values").is_empty() {
        spec = spec.put("values", values(call.list("values"))?);
    }
    if !call.list("values-from").is_empty() {
        spec = spec.put("valuesFrom", values_from(call.list("values-from"))?);
    }
    let object = object(call, &resource_kinds::HELM_RELEASE, &labels, spec);
    if call.on("export") {
        return print(&object);
    }
    upsert::ready(call, &resource_kinds::HELM_RELEASE, &object, |kind, done| Some(kind.success(done))).await
}

fn chart_reference(text: &str) -> anyhow::Result<Value> {
    let found = reference(text);
    if !["OCIRepository", "HelmChart"].contains(&found.kind) {
        bail!(
            "chart reference kind '{}' is not supported, must be one of: OCIRepository, HelmChart",
            found.kind
        );
    }
    Ok(Fields::default()
        .text("kind", found.kind)
        .text("name", found.name)
        .text("namespace", found.namespace)
        .build())
}

fn chart_template(call: &Call) -> Value {
    let source = reference(call.text("source"));
    let source_ref = Fields::default()
        .text("kind", source.kind)
        .put("name", source.name)
        .text("namespace", source.namespace);
    let spec = Fields::default()
        .put("chart", call.text("chart"))
        .text("version", call.text("chart-version"))
        .put("sourceRef", source_ref.build())
        .text("reconcileStrategy", call.text("reconcile-strategy"))
        .time("interval", call, "chart-interval");
    json!({"spec": spec.build()})
}

/// The files merged, later ones winning, with numbers as Go's JSON holds them.
fn values(files: &[String]) -> anyhow::Result<Value> {
    let mut merged = Map::new();
    for file in files {
        let text = std::fs::read(file).map_err(|e| {
            anyhow::anyhow!(
                "reading values from {file} failed: {}",
                crate::format::go_io_error("open", file, &e)
            )
        })?;
        let mut documents = view::documents(&text)
            .with_context(|| format!("converting values to JSON from {file} failed"))?;
        let first = if documents.is_empty() { Value::Null } else { documents.swap_remove(0) };
        match first {
            Value::Object(map) => merge(&mut merged, map),
            Value::Null => {}
            other => bail!(
                "unmarshaling values from {file} failed: json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                view::go_kind(&other)
            ),
        }
    }
    let mut value = Value::Object(merged);
    view::go_numbers(&mut value);
    Ok(value)
}

/// Maps merge key by key; everything else is replaced.
pub(crate) fn merge(into: &mut Map<String, Value>, from: Map<String, Value>) {
    for (key, value) in from {
        match (into.get_mut(&key), value) {
            (Some(Value::Object(old)), Value::Object(new)) => merge(old, new),
            (_, value) => {
                into.insert(key, value);
            }
        }
    }
}

fn values_from(references: &[String]) -> anyhow::Result<Value> {
    let known = ["Secret", "ConfigMap"];
    let mut out = Vec::new();
    for text in references {
        let (kind, name) = kind_name(text);
        if kind.is_empty() {
            bail!("invalid Kubernetes object reference '{text}', must be in format <kind>/<name>");
        }
        let Some(kind) = spelled(&known, kind) else {
            bail!("reference kind '{kind}' is not supported, must be one of: {}", known.join(", "));
        };
        out.push(json!({"kind": kind, "name": name}));
    }
    Ok(Value::Array(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn health_checks_name_kind_and_object() {
        let text = |t: &str| health_checks(&[t.to_owned()]);
        assert_eq!(text("HelmRelease/a.b").unwrap()[0]["apiVersion"], "helm.toolkit.fluxcd.io/v2");
        assert_eq!(
            text("Deployment").unwrap_err().to_string(),
            "invalid health check 'Deployment' must be in the format 'kind/name.namespace' [Deployment]"
        );
    }

    #[test]
    fn values_of_later_files_win() {
        let map = |v: Value| v.as_object().cloned().unwrap();
        let mut merged = map(json!({"a": 1, "b": {"c": [1], "d": 2}}));
        merge(&mut merged, map(json!({"b": {"c": [3], "e": null}})));
        assert_eq!(Value::Object(merged), json!({"a": 1, "b": {"c": [3], "d": 2, "e": null}}));
    }
}
