//! Kustomizations: apply, prune, drift, dependencies, failures, suspend and deletion.

use std::time::Duration;

use serde_json::{Value, json};

use crate::cluster::{Tenant, condition};
use crate::{Source, config_map};

fn spec(tenant: &Tenant, path: &str) -> Value {
    json!({
        "interval": "1h", "retryInterval": "1h", "path": path, "prune": true, "targetNamespace": tenant.namespace,
        "sourceRef": {"kind": "GitRepository", "name": "source"},
    })
}

fn holds<'a>(value: &'a str) -> impl Fn(&Value) -> bool + 'a {
    move |object| object["data"]["key"] == value
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_is_applied_pruned_and_drift_is_corrected() {
    let tenant = Tenant::new("e2e-apply").await;
    let files = [("deploy/a.yaml", config_map("a", "one")), ("deploy/b.yaml", config_map("b", "one"))];
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let (source, revision) = Source::create(&tenant, &files).await;
    tenant.apply("kustomizations/app", spec(&tenant, "./deploy")).await;
    let ready =
        tenant.until_condition("kustomizations/app", "Ready", "True", "ReconciliationSucceeded").await;
    assert_eq!(ready["status"]["lastAppliedRevision"], revision.as_str());
    assert_eq!(ready["status"]["inventory"]["entries"].as_array().map(Vec::len), Some(2));
    for name in ["configmaps/a", "configmaps/b"] {
        let applied = tenant.get(name).await.expect("an applied object");
        assert_eq!(applied["data"]["key"], "one");
        assert_eq!(applied["metadata"]["labels"]["kustomize.toolkit.fluxcd.io/name"], "app");
    }

    let revision =
        source.commit(&tenant, &[("deploy/a.yaml", &config_map("a", "two"))], &["deploy/b.yaml"]).await;
    tenant.until("configmaps/a", "updated", holds("two")).await;
    tenant.until_gone("configmaps/b").await;
    let at = |object: &Value| object["status"]["lastAppliedRevision"] == revision.as_str();
    let ready = tenant.until("kustomizations/app", "at the new revision", at).await;
    assert_eq!(ready["status"]["inventory"]["entries"].as_array().map(Vec::len), Some(1));

    tenant.patch("configmaps/a", &json!({"data": {"key": "changed by another"}})).await;
    tenant.until("configmaps/a", "corrected", holds("two")).await;
    tenant.delete("configmaps/a").await;
    tenant.until("configmaps/a", "created again", holds("two")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_build_keeps_what_was_applied() {
    let tenant = Tenant::new("e2e-failure").await;
    let (source, first) = Source::create(&tenant, &[("deploy/a.yaml", &config_map("a", "one"))]).await;
    tenant.apply("kustomizations/app", spec(&tenant, "./deploy")).await;
    tenant.until_condition("kustomizations/app", "Ready", "True", "ReconciliationSucceeded").await;

    source.commit(&tenant, &[("deploy/b.yaml", "kind: ConfigMap\nmetadata: [\n")], &["deploy/a.yaml"]).await;
    let failed = tenant.until_condition("kustomizations/app", "Ready", "False", "BuildFailed").await;
    let message = condition(&failed, "Ready").and_then(|c| c["message"].as_str()).unwrap_or_default();
    assert!(message.contains("b.yaml"), "the message names the file: {message}");
    assert_eq!(failed["status"]["lastAppliedRevision"], first.as_str());
    assert!(tenant.get("configmaps/a").await.is_some(), "nothing is pruned after a failed build");

    source.commit(&tenant, &[("deploy/b.yaml", &config_map("b", "one"))], &[]).await;
    tenant.until("configmaps/b", "applied", holds("one")).await;
    tenant.until_gone("configmaps/a").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dependency_is_applied_first() {
    let tenant = Tenant::new("e2e-depends").await;
    let files = [("a/a.yaml", config_map("a", "one")), ("b/b.yaml", config_map("b", "one"))];
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let _source = Source::create(&tenant, &files).await;
    let mut second = spec(&tenant, "./b");
    second["dependsOn"] = json!([{"name": "first"}]);
    tenant.apply("kustomizations/second", second).await;
    tenant.until_condition("kustomizations/second", "Ready", "False", "DependencyNotReady").await;
    assert!(tenant.get("configmaps/b").await.is_none(), "not applied before its dependency");
    tenant.apply("kustomizations/first", spec(&tenant, "./a")).await;
    tenant.until_condition("kustomizations/second", "Ready", "True", "ReconciliationSucceeded").await;
    assert!(tenant.get("configmaps/a").await.is_some() && tenant.get("configmaps/b").await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspended_kustomization_ignores_revisions_until_it_is_resumed() {
    let tenant = Tenant::new("e2e-suspend").await;
    let (source, _) = Source::create(&tenant, &[("deploy/a.yaml", &config_map("a", "one"))]).await;
    tenant.apply("kustomizations/app", spec(&tenant, "./deploy")).await;
    tenant.until("configmaps/a", "applied", holds("one")).await;
    tenant.until_condition("kustomizations/app", "Ready", "True", "ReconciliationSucceeded").await;

    tenant.fluorite(&["suspend", "kustomization", "app"]).await;
    source.commit(&tenant, &[("deploy/a.yaml", &config_map("a", "two"))], &[]).await;
    tenant.patch("configmaps/a", &json!({"data": {"key": "by hand"}})).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let left = tenant.get("configmaps/a").await.expect("the object");
    assert_eq!(left["data"]["key"], "by hand", "neither the revision nor the drift is acted upon");

    tenant.fluorite(&["resume", "kustomization", "app"]).await;
    tenant.until("configmaps/a", "updated", holds("two")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deletion_prunes_unless_the_policy_is_orphan() {
    let tenant = Tenant::new("e2e-delete").await;
    let files = [("a/a.yaml", config_map("a", "one")), ("b/b.yaml", config_map("b", "one"))];
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let _source = Source::create(&tenant, &files).await;
    let mut orphan = spec(&tenant, "./b");
    orphan["deletionPolicy"] = json!("Orphan");
    tenant.apply("kustomizations/pruned", spec(&tenant, "./a")).await;
    tenant.apply("kustomizations/orphaned", orphan).await;
    for name in ["kustomizations/pruned", "kustomizations/orphaned"] {
        tenant.until_condition(name, "Ready", "True", "ReconciliationSucceeded").await;
    }
    for name in ["kustomizations/pruned", "kustomizations/orphaned"] {
        tenant.delete(name).await;
        tenant.until_gone(name).await;
    }
    assert!(tenant.get("configmaps/a").await.is_none(), "pruned with its Kustomization");
    assert!(tenant.get("configmaps/b").await.is_some(), "left in place");
}
