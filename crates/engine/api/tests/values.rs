//! Deserialization: invalid values are rejected with their path, valid objects survive a round trip.

use fl_api::flagger::{Canary, MetricTemplate};
use fl_api::helm::HelmRelease;
use fl_api::image::{ImagePolicy, ImageRepository};
use fl_api::kustomize::Kustomization;
use fl_api::notification::{Alert, Receiver};
use fl_api::openflux::Artifact;
use fl_api::openmcp::ServiceProvider;
use fl_api::operator::{FluxInstance, ResourceSet};
use fl_api::source::{Bucket, GitRepository, HelmRepository};
use fl_api::{ObjectMeta, Resource};
use fl_types::{FieldError, from_value};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

fn object<R: Resource>(spec: &Value) -> Value {
    json!({"apiVersion": R::api_version(), "kind": R::KIND, "metadata": {"name": "a"}, "spec": spec})
}

fn rejected<R: Resource + DeserializeOwned>(spec: &Value) -> FieldError {
    match from_value::<R>(object::<R>(spec)) {
        Ok(_) => panic!("{} accepted {spec}", R::KIND),
        Err(error) => error,
    }
}

#[test]
fn invalid_values_are_rejected_with_their_path() {
    let git = |more: Value| {
        let mut spec = json!({"url": "https://git.example", "interval": "1m"});
        spec.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
        rejected::<GitRepository>(&spec)
    };
    let instance = |version: &str| json!({"distribution": {"version": version, "registry": "r"}});
    let sources = json!([{"kind": "Bucket", "name": 7}]);
    let table = [
        // durations
        (git(json!({"interval": "5 minutes"})), "spec.interval", "time: unknown unit \" minutes\""),
        (git(json!({"timeout": 60})), "spec.timeout", "expected a Go duration"),
        (
            rejected::<Bucket>(&json!({"bucketName": "b", "endpoint": "e", "interval": "-"})),
            "spec.interval",
            "time: invalid",
        ),
        (
            rejected::<ResourceSet>(&json!({"steps": [{"name": "a", "timeout": "1d"}]})),
            "spec.steps[0].timeout",
            "time: unknown unit \"d\"",
        ),
        // semver ranges
        (rejected::<FluxInstance>(&instance("2..x")), "spec.distribution.version", "improper constraint"),
        (
            rejected::<ImagePolicy>(
                &json!({"imageRepositoryRef": {"name": "a"}, "policy": {"semver": {"range": "^^1"}}}),
            ),
            "spec.policy.semver.range",
            "improper constraint",
        ),
        // digests
        (
            rejected::<Artifact>(
                &json!({"url": "u", "revision": "r", "lastUpdateTime": "2026-01-01T00:00:00Z", "digest": "x"}),
            ),
            "spec.digest",
            "expected <algorithm>:<hex>",
        ),
        // times
        (
            rejected::<Artifact>(&json!({"url": "u", "revision": "r", "lastUpdateTime": "yesterday"})),
            "spec.lastUpdateTime",
            "failed to parse",
        ),
        // enums
        (git(json!({"provider": "nimbus"})), "spec.provider", "unknown variant `nimbus`"),
        (
            rejected::<Kustomization>(&json!({"interval": "1m", "prune": true, "deletionPolicy": "Keep",
                "sourceRef": {"kind": "Bucket", "name": "a"}})),
            "spec.deletionPolicy",
            "unknown variant `Keep`",
        ),
        // references
        (git(json!({"secretRef": {}})), "spec.secretRef", "missing field `name`"),
        (
            git(json!({"include": [{"repository": {"name": []}}]})),
            "spec.include[0].repository.name",
            "invalid type",
        ),
        (
            rejected::<Alert>(&json!({"providerRef": {"name": "a"}, "eventSources": sources})),
            "spec.eventSources[0].name",
            "expected a string",
        ),
        (
            rejected::<Receiver>(&json!({"type": "github", "resources": [{"name": "a"}]})),
            "spec.resources[0]",
            "missing field `kind`",
        ),
        // selectors, quantities, ports
        (
            rejected::<ResourceSet>(
                &json!({"inputsFrom": [{"selector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}}]}),
            ),
            "spec.inputsFrom[0].selector.matchExpressions[0].operator",
            "unknown variant `Like`",
        ),
        (
            rejected::<ServiceProvider>(
                &json!({"image": "i", "extraVolumes": [{"name": "v", "emptyDir": {"sizeLimit": "lots"}}]}),
            ),
            "spec.extraVolumes[0].emptyDir.sizeLimit",
            "quantities must match",
        ),
        (
            rejected::<Canary>(
                &json!({"targetRef": {"kind": "Deployment", "name": "a"}, "service": {"port": 80, "targetPort": {}}}),
            ),
            "spec.service.targetPort",
            "expected an integer or a string",
        ),
        // plain types
        (git(json!({"suspend": "yes"})), "spec.suspend", "expected a boolean"),
        (rejected::<ImageRepository>(&json!({"interval": "1m"})), "spec", "missing field `image`"),
        (
            rejected::<MetricTemplate>(&json!({"provider": {"type": "oracle"}})),
            "spec.provider.type",
            "unknown variant",
        ),
    ];
    for (error, path, message) in table {
        assert_eq!(error.path, path, "{error}");
        assert!(error.message.contains(message), "{path}: {} does not say {message:?}", error.message);
    }
}

fn comes_back<R: DeserializeOwned + Serialize>(object: &Value) {
    let read = match from_value::<R>(object.clone()) {
        Ok(read) => read,
        Err(error) => panic!("{error} in {object}"),
    };
    assert_eq!(&serde_json::to_value(&read).expect("JSON"), object);
}

#[test]
fn objects_of_all_versions_round_trip() {
    comes_back::<HelmRepository>(&json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1beta2", "kind": "HelmRepository",
        "metadata": {"name": "charts", "namespace": "apps", "generation": 3, "creationTimestamp": "2024-05-06T07:08:09Z"},
        "spec": {"type": "oci", "url": "oci://registry.example/charts", "interval": "15m0s",
            "provider": "generic", "secretRef": {"name": "pull"}},
    }));
    comes_back::<Kustomization>(&json!({
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1beta1", "kind": "Kustomization", "metadata": {"name": "apps"},
        "spec": {"interval": "5m0s", "prune": true, "force": false, "validation": "server",
            "sourceRef": {"apiVersion": "openfluxcd.ocm.software/v1alpha1", "kind": "Artifact", "name": "a"},
            "patchesStrategicMerge": [{"kind": "ConfigMap"}]},
    }));
    comes_back::<HelmRelease>(&json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": {"name": "web"},
        "spec": {"interval": "1h0m0s", "chartRef": {"kind": "Feed", "apiVersion": "example.com/v1", "name": "web"},
            "values": {"deep": [1, null, {"a": 1.5}]}, "install": {"crds": "CreateReplace", "disableOpenAPIValidation": true}},
        "status": {"observedGeneration": -1, "history": []},
    }));
    comes_back::<FluxInstance>(&json!({
        "apiVersion": "fluxcd.controlplane.io/v1alpha1", "kind": "FluxInstance", "metadata": {"name": "flux"},
        "spec": {"distribution": {"version": "2.2.x", "registry": "registry.example/flux", "pullSecret": "auth"},
            "cluster": {"type": "gke", "multitenant": true, "multitenantWorkloadIdentity": false,
                "domain": "cluster.local", "networkPolicy": true},
            "shards": ["a", "b"], "storage": {"class": "standard", "size": "10Gi"},
            "migrateResources": true, "wait": true},
        "status": {"latestVersion": "2.3.0", "lastAppliedVersion": "2.2.3",
            "lastAppliedImages": [{"name": "registry.example/flux/source-controller:v1.2.4", "digest": "sha256:5d"}]},
    }));
}

#[test]
fn defaults_match_the_schema() {
    let spec = json!({"url": "https://git.example", "interval": "1m"});
    let repository = from_value::<GitRepository>(object::<GitRepository>(&spec)).expect("valid");
    assert_eq!(repository.spec.timeout.to_string(), "1m0s");
    let built = GitRepository::new(
        ObjectMeta { name: "a".to_owned(), ..Default::default() },
        repository.spec.clone(),
    );
    assert_eq!(
        (built.api_version.as_str(), built.kind.as_str()),
        ("source.toolkit.fluxcd.io/v1", "GitRepository")
    );
}
