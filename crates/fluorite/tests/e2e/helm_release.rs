//! HelmReleases: install, upgrade, rollback, suspend and uninstall.

use serde_json::{Value, json};

use crate::Source;
use crate::cluster::{Tenant, condition};

const CHART: &str = "apiVersion: v2\nname: app\nversion: 1.0.0\n";
const VALUES: &str = "text: default\nbroken: false\n";
/// The second document is one that every API server rejects, so that an upgrade fails after its first write.
const TEMPLATE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\n\
    data:\n  text: {{ .Values.text | quote }}\n  revision: {{ .Release.Revision | quote }}\n\
    {{- if .Values.broken }}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: Not_A_Name\n{{- end }}\n";

const FILES: [(&str, &str); 3] =
    [("chart/Chart.yaml", CHART), ("chart/values.yaml", VALUES), ("chart/templates/app.yaml", TEMPLATE)];

fn spec(values: Value) -> Value {
    json!({
        "interval": "1h", "releaseName": "app", "values": values,
        "chart": {"spec": {"chart": "./chart", "sourceRef": {"kind": "GitRepository", "name": "source"}}},
        "upgrade": {"remediation": {"retries": 0, "remediateLastFailure": true, "strategy": "rollback"}},
    })
}

fn says<'a>(text: &'a str, revision: &'a str) -> impl Fn(&Value) -> bool + 'a {
    move |object| object["data"]["text"] == text && object["data"]["revision"] == revision
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_is_installed_upgraded_rolled_back_and_uninstalled() {
    let tenant = Tenant::new("e2e-helm").await;
    let _source = Source::create(&tenant, &FILES).await;
    tenant.apply("helmreleases/app", spec(json!({"text": "one"}))).await;
    let ready = tenant.until_condition("helmreleases/app", "Ready", "True", "InstallSucceeded").await;
    assert_eq!(ready["status"]["history"][0]["version"], 1);
    assert!(says("one", "1")(&tenant.get("configmaps/app").await.expect("an installed object")));

    tenant.apply("helmreleases/app", spec(json!({"text": "two"}))).await;
    let ready = tenant.until_condition("helmreleases/app", "Ready", "True", "UpgradeSucceeded").await;
    assert_eq!(ready["status"]["history"][0]["version"], 2);
    assert!(says("two", "2")(&tenant.get("configmaps/app").await.expect("an upgraded object")));

    tenant.apply("helmreleases/app", spec(json!({"text": "three", "broken": true}))).await;
    let failed = tenant.until_condition("helmreleases/app", "Remediated", "True", "RollbackSucceeded").await;
    assert_eq!(condition(&failed, "Ready").map(|c| &c["status"]), Some(&json!("False")));
    // The rollback to revision 2 is revision 4; the manifest it restores was rendered as revision 2.
    assert_eq!(failed["status"]["history"][0]["version"], 4);
    assert!(says("two", "2")(&tenant.get("configmaps/app").await.expect("a restored object")));

    tenant.delete("helmreleases/app").await;
    tenant.until_gone("helmreleases/app").await;
    assert!(tenant.get("configmaps/app").await.is_none(), "uninstalled");
    for revision in 1..=4 {
        let name = format!("secrets/sh.helm.release.v1.app.v{revision}");
        assert!(tenant.get(&name).await.is_none(), "{name} is removed with the release");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspended_release_is_upgraded_when_it_is_resumed() {
    let tenant = Tenant::new("e2e-helm-suspend").await;
    let _source = Source::create(&tenant, &FILES).await;
    tenant.apply("helmreleases/app", spec(json!({"text": "one"}))).await;
    tenant.until_condition("helmreleases/app", "Ready", "True", "InstallSucceeded").await;
    tenant.fluorite(&["suspend", "helmrelease", "app"]).await;
    tenant.apply("helmreleases/app", spec(json!({"text": "two"}))).await;
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    assert!(says("one", "1")(&tenant.get("configmaps/app").await.expect("the installed object")));
    tenant.fluorite(&["resume", "helmrelease", "app"]).await;
    tenant.until("configmaps/app", "upgraded", says("two", "2")).await;
}
