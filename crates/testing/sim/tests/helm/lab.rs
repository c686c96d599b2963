//! A world with the HelmRelease controller, and one chart for it.

use fl_helmrelease::{HelmReleaseController, Settings};
use fl_release::{History, Status};
use fl_runtime::{ArtifactFetcher, Kind, Options, Resolver};
use fl_sim::{NAMESPACE, World, condition};
use serde_json::{Map, Value, json};

/// Something to install, a hook of every moment, and a way to break.
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

/// Puts the HelmRelease controller on a world.
pub(crate) fn helm(world: &World) {
    let fetcher = ArtifactFetcher::new(Some(world.store.clone()), 0, None).unwrap();
    let resolver = Resolver::new(&world.runtime);
    let controller = HelmReleaseController::new(&world.runtime, resolver, fetcher, Settings::default());
    world.runtime.add(controller, 40);
}

/// A world with the chart ready to be used.
pub(crate) async fn world(seed: u64) -> World {
    let world = World::with(seed, Options::default(), helm).await;
    world.oci.push("registry.example/app", "1.0.0", CHART.iter().copied());
    let spec = json!({"url": "oci://registry.example/app", "interval": "1h", "ref": {"tag": "1.0.0"},
                      "layerSelector": {"operation": "copy"}});
    world.source("OCIRepository", "app", spec).await;
    world.ready("OCIRepository", "app").await;
    world
}

/// The same cluster, disk and outside world with a new process.
pub(crate) async fn restart(world: &World, seed: u64) -> World {
    let (server, root) = (world.server.clone(), world.store.root().to_owned());
    World::on(server, seed, Options::default(), &root, world.git.clone(), world.oci.clone(), helm).await
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

/// The ConfigMaps of a world, without what differs from run to run.
pub(crate) async fn config_maps(world: &World) -> Value {
    let all = world.user.list(&Kind::config_map(), Some(NAMESPACE), "").await.unwrap();
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
pub(crate) async fn history(world: &World, name: &str) -> History {
    let mut records = world.user.list(&Kind::secret(), Some(NAMESPACE), "owner=helm").await.unwrap();
    for record in &mut records {
        record["kind"] = "Secret".into();
    }
    History::read(name, &records)
}

/// The states of all records, oldest first.
pub(crate) fn states(history: &History) -> Vec<Status> {
    history.releases.iter().map(|release| release.info.status.clone()).collect()
}

/// What the engine asked the server since the last look.
pub(crate) fn helm_requests(world: &World, counts: impl Fn(&str) -> bool) -> Vec<String> {
    world.faults.take_requests().into_iter().filter(|request| counts(request)).collect()
}
