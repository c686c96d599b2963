//! A test cluster with the HelmRelease controller, and one chart for it.

use fl_helm_storage::{History, Status};
use fl_helmrelease::{HelmReleaseController, Settings};
use fl_runtime::{ArtifactFetcher, Kind, Options, Resolver};
use fl_sim::{NAMESPACE, TestCluster, condition};
use serde_json::{Map, Value, json};

/// A chart with objects, a hook for several events, and a value that makes it fail.
const CHART: &[(&str, &str)] = &[
    ("app/Chart.yaml", "apiVersion: v2\nname: app\nversion: 1.0.0\nappVersion: \"7\"\n"),
    ("app/values.yaml", "color: red\nextra: true\nbad: false\n"),
    (
        "app/templates/cm.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-cfg\ndata:\n  color: {{ .Values.color | quote }}\n",
    ),
    (
        "app/templates/extra.yaml",
        "{{- if .Values.extra }}\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-extra\n{{- end }}\n",
    ),
    (
        "app/templates/bad.yaml",
        "{{- if .Values.bad }}\napiVersion: v1\nkind: Service\nmetadata: {name: {{ .Release.Name }}-bad}\nspec: {ports: [{port: 99999}]}\n{{- end }}\n",
    ),
    (
        "app/templates/hook.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-hook\n  annotations:\n    helm.sh/hook: pre-install,post-upgrade,post-rollback,pre-delete\n    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded\n",
    ),
];

/// Adds the HelmRelease controller to a test cluster.
pub(crate) fn helm(test_cluster: &TestCluster) {
    let fetcher = ArtifactFetcher::new(Some(test_cluster.store.clone()), 0, None).unwrap();
    let resolver = Resolver::new(&test_cluster.runtime);
    let controller =
        HelmReleaseController::new(&test_cluster.runtime, resolver, fetcher, Settings::default());
    test_cluster.runtime.add(controller, 40);
}

/// A test cluster with the chart ready to be used.
pub(crate) async fn test_cluster(seed: u64) -> TestCluster {
    with_chart(TestCluster::with(seed, Options::default(), helm).await).await
}

/// Pushes the chart, and waits until its source is ready.
pub(crate) async fn with_chart(test_cluster: TestCluster) -> TestCluster {
    test_cluster.oci.push("registry.example/app", "1.0.0", CHART.iter().copied());
    let spec = json!({"url": "oci://registry.example/app", "interval": "1h", "ref": {"tag": "1.0.0"},
                      "layerSelector": {"operation": "copy"}});
    test_cluster.source("OCIRepository", "app", spec).await;
    test_cluster.ready("OCIRepository", "app").await;
    test_cluster
}

/// The same cluster, store and sources with a new process.
pub(crate) async fn restart(test_cluster: &TestCluster, seed: u64) -> TestCluster {
    let (server, root) = (test_cluster.server.clone(), test_cluster.store.root().to_owned());
    TestCluster::on(
        server,
        seed,
        Options::default(),
        &root,
        test_cluster.git.clone(),
        test_cluster.oci.clone(),
        helm,
    )
    .await
}

/// A HelmRelease of the chart with more fields in its spec.
pub(crate) fn release(name: &str, more: Value) -> Value {
    let mut spec = json!({"interval": "1h", "chartRef": {"kind": "OCIRepository", "name": "app"}});
    for (key, value) in more.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    json!({"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
           "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec})
}

/// Whether a release is ready at a version.
pub(crate) fn ready_at_least(object: &Value, version: i64) -> bool {
    condition(object, "Ready")["status"] == "True"
        && object["status"]["observedGeneration"] == object["metadata"]["generation"]
        && object["status"]["history"][0]["version"].as_i64() >= Some(version)
}

/// All ConfigMaps, without what differs from run to run.
pub(crate) async fn config_maps(test_cluster: &TestCluster) -> Value {
    let all = test_cluster.user.list(&Kind::config_map(), Some(NAMESPACE), "").await.unwrap();
    let mut found = Map::new();
    for map in all {
        let name = map["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        if name == "kube-root-ca.crt" {
            continue;
        }
        let about = json!({"data": map["data"], "labels": map["metadata"]["labels"],
                           "annotations": map["metadata"]["annotations"]});
        found.insert(name, about);
    }
    Value::Object(found)
}

/// Helm's records of a release.
pub(crate) async fn history(test_cluster: &TestCluster, name: &str) -> History {
    let mut records = test_cluster.user.list(&Kind::secret(), Some(NAMESPACE), "owner=helm").await.unwrap();
    for record in &mut records {
        record["kind"] = "Secret".into();
    }
    History::read(name, &records)
}

/// The states of all records, oldest first.
pub(crate) fn states(history: &History) -> Vec<Status> {
    history.releases.iter().map(|release| release.info.status.clone()).collect()
}

/// Requests of the engine since the last call.
pub(crate) fn helm_requests(test_cluster: &TestCluster, counts: impl Fn(&str) -> bool) -> Vec<String> {
    test_cluster.faults.take_requests().into_iter().filter(|request| counts(request)).collect()
}
