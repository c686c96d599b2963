//! The source and the Kustomization that `up` creates.

use fl_api::kustomize::Kustomization;
use fl_api::source::GitRepository;
use fl_runtime::{Client, ClientError, Kind, Patch, Write};
use serde_json::{Value, json};

/// Namespace and name as `flux bootstrap` uses them, so that the Kustomizations of a repository find their source.
pub(super) const NAMESPACE: &str = "flux-system";
pub(super) const NAME: &str = "flux-system";
/// Label of the objects that `up` created.
pub(super) const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
pub(super) const MANAGER: &str = fl_install::UP_MANAGER;

/// Fields of the objects that depend on the source.
#[derive(Clone, Debug)]
pub(super) struct SourceSpec {
    pub(super) url: String,
    pub(super) reference: Value,
    pub(super) path: String,
    pub(super) interval: String,
}

pub(super) fn git_repository() -> Kind {
    Kind::of::<GitRepository>()
}

pub(super) fn kustomization() -> Kind {
    Kind::of::<Kustomization>()
}

fn meta() -> Value {
    // A repository may contain this source itself; removing it there must not prune it.
    let kept = json!({"kustomize.toolkit.fluxcd.io/prune": "disabled"});
    json!({"name": NAME, "namespace": NAMESPACE, "labels": {MANAGED_BY: MANAGER}, "annotations": kept})
}

fn source(delivered: &SourceSpec) -> Value {
    json!({
        "apiVersion": git_repository().api_version(), "kind": "GitRepository", "metadata": meta(),
        "spec": {
            "interval": delivered.interval, "url": delivered.url, "ref": delivered.reference, "timeout": "60s",
        },
    })
}

fn root(delivered: &SourceSpec) -> Value {
    // A bootstrapped repository contains this source with the URL and Secret of a cluster; it is patched to the
    // directory that is served here.
    let mut reference = delivered.reference.clone();
    reference["$patch"] = "replace".into();
    let patch = json!({
        "apiVersion": git_repository().api_version(), "kind": "GitRepository",
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "spec": {"url": delivered.url, "ref": reference, "secretRef": null, "verify": null, "provider": null},
    });
    json!({
        "apiVersion": kustomization().api_version(), "kind": "Kustomization", "metadata": meta(),
        "spec": {
            "interval": "10m", "retryInterval": "30s", "timeout": "3m", "prune": true,
            "path": format!("./{}", delivered.path),
            "sourceRef": {"kind": "GitRepository", "name": NAME},
            "patches": [{
                "target": {
                    "group": git_repository().group(), "kind": "GitRepository", "name": NAME,
                    "namespace": NAMESPACE,
                },
                "patch": patch.to_string(),
            }],
        },
    })
}

async fn apply(cluster: &Client, kind: &Kind, object: &Value) -> Result<Value, ClientError> {
    let write = Write { manager: MANAGER, force: true, ..Write::default() };
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let namespace = object["metadata"]["namespace"].as_str();
    cluster.patch(kind, namespace, name, Patch::Apply, object, &write).await
}

/// Creates the namespace of the objects and of the leases.
pub(super) async fn create_namespace(cluster: &Client) -> Result<(), ClientError> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    apply(cluster, &Kind::namespace(), &namespace).await.map(|_| ())
}

/// Applies the source and the Kustomization.
pub(super) async fn deliver(cluster: &Client, delivered: &SourceSpec) -> Result<(), ClientError> {
    apply(cluster, &git_repository(), &source(delivered)).await?;
    apply(cluster, &kustomization(), &root(delivered)).await?;
    Ok(())
}

/// The kind of an object with our name that `up` did not create, if there is one.
pub(super) async fn find_conflict(cluster: &Client) -> Result<Option<&'static str>, ClientError> {
    for (kind, name) in [(git_repository(), "GitRepository"), (kustomization(), "Kustomization")] {
        match cluster.get(&kind, Some(NAMESPACE), NAME).await {
            Ok(found) if found["metadata"]["labels"][MANAGED_BY] != MANAGER => return Ok(Some(name)),
            Ok(_) => {}
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_of_a_bootstrapped_repository_is_patched() {
        let delivered = SourceSpec {
            url: "http://up.localhost/srv/fleet".to_owned(),
            reference: json!({"branch": "main"}),
            path: "clusters/staging".to_owned(),
            interval: "1m".to_owned(),
        };
        let object = root(&delivered);
        assert_eq!(object["spec"]["path"], "./clusters/staging");
        let patch: Value =
            serde_json::from_str(object["spec"]["patches"][0]["patch"].as_str().unwrap()).unwrap();
        assert_eq!(patch["spec"]["url"], "http://up.localhost/srv/fleet");
        assert_eq!(patch["spec"]["ref"], json!({"$patch": "replace", "branch": "main"}));
        assert!(patch["spec"]["secretRef"].is_null());
    }
}
