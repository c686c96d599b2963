//! Multi-tenancy: the identity that writes, what messages reveal of objects that a tenant's service account may not read, and what is
//! left on disk.

mod fixture;

use std::path::{Path, PathBuf};
use std::time::Duration;

use fixture::{cluster, kustomization, map, run, test_cluster_with};
use fl_runtime::{Delete, Kind, Write};
use fl_sim::{NAMESPACE, TestCluster, condition};
use serde_json::{Value, json};

const CANARY: &str = "c4n4ry-of-another-tenant";

fn message(object: &Value, kind: &str) -> String {
    condition(object, kind)["message"].as_str().unwrap_or_default().to_owned()
}

/// A service account with all permissions in its own namespace and none elsewhere, and another tenant.
async fn tenants(cluster: &TestCluster) {
    let rbac = |kind: &str, plural: &str| Kind::new("rbac.authorization.k8s.io", "v1", kind, plural, true);
    let write = Write::by("admin");
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "all"},
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]});
    cluster.user.create(&rbac("Role", "roles"), Some(NAMESPACE), &role, &write).await.expect("a role");
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "all"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "all"},
        "subjects": [{"kind": "ServiceAccount", "name": "tenant", "namespace": NAMESPACE}]});
    cluster
        .user
        .create(&rbac("RoleBinding", "rolebindings"), Some(NAMESPACE), &binding, &write)
        .await
        .expect("a binding");
    cluster
        .apply(json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "tenant"}}))
        .await;
    cluster.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})).await;
    // A broken Deployment and a Secret of the other tenant.
    let deployments = Kind::new("apps", "v1", "Deployment", "deployments", true);
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "theirs", "namespace": "other"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": CANARY}]}}}});
    cluster.user.create(&deployments, Some("other"), &deployment, &write).await.expect("a deployment");
    let status = json!({"status": {"observedGeneration": 1, "conditions": [{"type": "Progressing", "status": "False",
        "reason": "ProgressDeadlineExceeded", "message": CANARY}]}});
    let to_status = Write::by("controller").to("status");
    let patch = fl_runtime::Patch::Merge;
    cluster
        .user
        .patch(&deployments, Some("other"), "theirs", patch, &status, &to_status)
        .await
        .expect("a status");
    cluster
        .apply(
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "theirs", "namespace": "other"},
            "stringData": {"password": CANARY}}),
        )
        .await;
}

fn spec(more: Value) -> Value {
    let mut spec = json!({"interval": "10m", "retryInterval": "10m", "prune": true, "timeout": "20s", "path": "own",
        "serviceAccountName": "tenant", "sourceRef": {"kind": "GitRepository", "name": "app"}});
    for (key, value) in more.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    spec
}

/// All that a Kustomization and its events say, with one name taken out.
async fn said(cluster: &TestCluster, name: &str, without: &str) -> String {
    let failed = cluster.failed("Kustomization", name).await;
    let events = cluster.events().await;
    let ours = events.iter().filter(|e| e.contains(without)).cloned().collect::<Vec<_>>().join("\n");
    let all = format!("{}\n{}\n{ours}", message(&failed, "Ready"), message(&failed, "Healthy"));
    assert!(!failed.to_string().contains(CANARY) && !all.contains(CANARY), "{name}: {all}");
    all.replace(without, "X").replace(name, "N")
}

/// Times are no information here: all of these run into the same limits.
fn timeless(text: &str) -> String {
    let mut out = String::new();
    for word in text.split(' ') {
        let number = word.starts_with(|c: char| c.is_ascii_digit());
        out.push_str(if number { "T" } else { word });
        out.push(' ');
    }
    out
}

/// F06: the message of a health check is the same whether an unreadable object exists, is broken, or does not exist.
#[test]
fn health_checks_reveal_no_unreadable_objects() {
    run(async {
        let cluster = cluster(51, &[("own/a.yaml", map("a", "1"))]).await;
        tenants(&cluster).await;
        let mut all = Vec::new();
        for (name, object) in [("first", "theirs"), ("second", "absent")] {
            let check = json!({"healthChecks": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": object, "namespace": "other"}]});
            cluster.source("Kustomization", name, spec(check)).await;
            all.push(timeless(&said(&cluster, name, object).await));
            assert!(cluster.get("ConfigMap", "a").await.is_some(), "its own objects are applied");
        }
        assert_eq!(all[0], all[1]);
    });
}

/// F06: an object of another tenant among the files is rejected by the API server with the same message whether it exists or not.
#[test]
fn apply_errors_reveal_no_unreadable_objects() {
    run(async {
        let secret = |name: &str| {
            format!(
                "apiVersion: v1\nkind: Secret\nmetadata:\n  name: {name}\n  namespace: other\nstringData: {{password: guess}}\n"
            )
        };
        let files = [("theirs/s.yaml", secret("theirs")), ("absent/s.yaml", secret("absent"))];
        let cluster = cluster(52, &files).await;
        tenants(&cluster).await;
        let mut all = Vec::new();
        for (name, path) in [("first", "theirs"), ("second", "absent")] {
            cluster.source("Kustomization", name, spec(json!({"path": path}))).await;
            let text = said(&cluster, name, path).await;
            assert!(text.contains("forbidden"), "{text}");
            all.push(timeless(&text));
        }
        assert_eq!(all[0], all[1]);
        let kind = Kind::secret();
        let theirs = cluster.user.get(&kind, Some("other"), "theirs").await.expect("still there");
        assert!(theirs["metadata"]["labels"].is_null(), "{theirs}");
        assert!(cluster.user.get(&kind, Some("other"), "absent").await.is_err());
    });
}

/// F06: messages about a dependency reveal whether it is ready, as documented, and nothing of its content.
#[test]
fn dependency_messages_reveal_only_readiness() {
    run(async {
        let cluster = cluster(53, &[("own/a.yaml", map("a", "1"))]).await;
        tenants(&cluster).await;
        let kind = Kind::of::<fl_api::kustomize::Kustomization>();
        let theirs = json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": {"name": "theirs", "namespace": "other"}, "spec": {"interval": "1h", "prune": true, "path": CANARY,
                "suspend": true, "sourceRef": {"kind": "GitRepository", "name": "app"}}});
        cluster.user.create(&kind, Some("other"), &theirs, &Write::by("admin")).await.expect("theirs");
        for (name, expression) in [
            ("plain", ""),
            ("convert", "int(dep.spec.path) == 1"),
            ("missing", "dep.spec[dep.spec.path] == 'x'"),
            ("types", "dep.spec.path + 1 == 2"),
            ("not-bool", "dep.spec.path"),
            ("matches", "'x'.matches(dep.spec.path + '(')"),
            ("time", "timestamp(dep.spec.path) == timestamp(dep.spec.path)"),
            ("duration", "duration(dep.spec.path) == duration('1s')"),
            ("quantity", "quantity(dep.spec.path).isInteger()"),
            ("url", "url(dep.spec.path + ' :').getHost() == ''"),
        ] {
            let mut on = json!({"name": "theirs", "namespace": "other"});
            if !expression.is_empty() {
                on["readyExpr"] = expression.into();
            }
            cluster.source("Kustomization", name, spec(json!({"dependsOn": [on]}))).await;
            said(&cluster, name, name).await;
        }
        let all = cluster.events().await.join("\n");
        assert!(!all.contains(CANARY), "{all}");
    });
}

/// F06: under `--no-cross-namespace-refs` an expression about an object of another namespace is rejected without reading that
/// object: its result would reveal one bit per attempt. Waiting for it to be ready stays possible, as in Flux.
#[test]
fn expressions_about_other_namespaces_are_rejected_under_lock_down() {
    run(async {
        let options = fl_runtime::Options { no_cross_namespace_refs: true, ..Default::default() };
        let files = [("own/a.yaml", map("a", "1"))];
        let cluster = test_cluster_with(54, &files, fl_kustomization::Options::default(), options).await;
        tenants(&cluster).await;
        let kind = Kind::of::<fl_api::kustomize::Kustomization>();
        let theirs = json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": {"name": "theirs", "namespace": "other"}, "spec": {"interval": "1h", "prune": true, "path": CANARY,
                "suspend": true, "sourceRef": {"kind": "GitRepository", "name": "app"}}});
        cluster.user.create(&kind, Some("other"), &theirs, &Write::by("admin")).await.expect("theirs");
        let guess = |first: char| format!("dep.spec.path.startsWith('{first}')");
        let mut said = Vec::new();
        for (name, on) in [
            ("right", json!({"name": "theirs", "namespace": "other", "readyExpr": guess('c')})),
            ("wrong", json!({"name": "theirs", "namespace": "other", "readyExpr": guess('x')})),
        ] {
            cluster.source("Kustomization", name, spec(json!({"dependsOn": [on]}))).await;
            let failed = cluster.failed("Kustomization", name).await;
            assert_eq!(condition(&failed, "Ready")["reason"], "AccessDenied", "{name}");
            assert_eq!(condition(&failed, "Stalled")["status"], "True", "{name}");
            said.push(message(&failed, "Ready"));
        }
        let want = "can't access 'Kustomization/other/theirs', cross-namespace references have been blocked";
        assert_eq!(said, [want, want]);
        let absent = json!({"name": "absent", "namespace": "other", "readyExpr": "true"});
        cluster.source("Kustomization", "absent", spec(json!({"dependsOn": [absent]}))).await;
        let failed = cluster.failed("Kustomization", "absent").await;
        assert_eq!(message(&failed, "Ready"), want.replace("theirs", "absent"));
        let own = json!({"name": "wrong", "readyExpr": "dep.metadata.name == 'wrong'"});
        cluster.source("Kustomization", "own", spec(json!({"dependsOn": [own]}))).await;
        cluster.ready("Kustomization", "own").await;
        let plain = json!({"name": "theirs", "namespace": "other"});
        cluster.source("Kustomization", "plain", spec(json!({"dependsOn": [plain]}))).await;
        let failed = cluster.failed("Kustomization", "plain").await;
        assert_eq!(condition(&failed, "Ready")["reason"], "DependencyNotReady");
    });
}

/// F02: under lock-down a Kustomization that names no account works as the default one of its namespace: apply, drift, prune and
/// deletion; the engine's own identity writes none of its objects.
#[test]
fn default_service_account_is_impersonated() {
    run(async {
        let options =
            fl_runtime::Options { default_service_account: "default".to_owned(), ..Default::default() };
        let files = [("a.yaml", map("a", "1")), ("b.yaml", map("b", "1"))];
        let cluster = test_cluster_with(51, &files, fl_kustomization::Options::default(), options).await;
        let binding = |name: &str, role: &str| {
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
                "metadata": {"name": name, "namespace": NAMESPACE},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
                "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": NAMESPACE}]})
        };
        let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "maps"}, "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}]});
        let kind = |kind: &str, plural: &str, namespaced| {
            Kind::new("rbac.authorization.k8s.io", "v1", kind, plural, namespaced)
        };
        let write = fl_runtime::Write::by("user");
        let (roles, bindings) =
            (kind("ClusterRole", "clusterroles", false), kind("RoleBinding", "rolebindings", true));
        cluster.user.create(&roles, None, &role, &write).await.expect("a role");
        let bound = binding("maps", "maps");
        cluster.user.create(&bindings, Some(NAMESPACE), &bound, &write).await.expect("a binding");
        // Without its account a Kustomization that goes leaves its objects, as with Flux.
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": NAMESPACE}});
        cluster.apply(account).await;
        cluster.faults.take_writers();
        kustomization(&cluster, "app", "").await;
        cluster.ready("Kustomization", "app").await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        // Drift is corrected in the same name.
        let edit = json!({"data": {"key": "edited"}});
        let (kind, how, write) =
            (Kind::config_map(), fl_runtime::Patch::Merge, fl_runtime::Write::by("else"));
        let edited = cluster.user.patch(&kind, Some(NAMESPACE), "a", how, &edit, &write);
        edited.await.expect("edited");
        cluster.until("ConfigMap", "a", |o| o["data"]["key"] == "1").await;
        fixture::push(&cluster, &files[..1]);
        let wanted = fixture::revision(&cluster, "t1").await;
        fixture::applied(&cluster, "app", &wanted).await;
        cluster.gone("ConfigMap", "b").await;
        let own = Kind::of::<fl_api::kustomize::Kustomization>();
        cluster.user.delete(&own, Some(NAMESPACE), "app", &Delete::default()).await.expect("deleted");
        cluster.gone("Kustomization", "app").await;
        cluster.gone("ConfigMap", "a").await;

        let writes: Vec<_> = cluster
            .faults
            .take_writers()
            .into_iter()
            .filter(|(what, _)| what.contains("/configmaps"))
            .collect();
        let account = format!("system:serviceaccount:{NAMESPACE}:default");
        let own_writes = writes.iter().filter(|(_, user)| user.as_ref() != Some(&account)).count();
        assert!(writes.len() >= 6, "{writes:#?}");
        assert_eq!(own_writes, 0, "{writes:#?}");
    });
}

/// F02: a service account without permissions is rejected; the engine's identity is not used instead.
#[test]
fn engine_identity_is_not_used_for_tenants() {
    run(async {
        let options =
            fl_runtime::Options { default_service_account: "default".to_owned(), ..Default::default() };
        let files = [("a.yaml", map("a", "1"))];
        let cluster = test_cluster_with(52, &files, fl_kustomization::Options::default(), options).await;
        kustomization(&cluster, "app", "").await;
        let failed = cluster.failed("Kustomization", "app").await;
        assert!(failed["status"].to_string().contains("forbidden"), "{:#}", failed["status"]);
        assert!(cluster.get("ConfigMap", "a").await.is_none());
    });
}

fn golden(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../engine/sops/tests/golden");
    std::fs::read_to_string(folder.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// Files below a folder that hold a text.
fn hits(folder: &Path, texts: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(hits(&path, texts));
        } else if let Ok(bytes) = std::fs::read(&path) {
            let holds = |text: &&str| bytes.windows(text.len()).any(|w| w == text.as_bytes());
            if texts.iter().any(holds) {
                found.push(path);
            }
        }
    }
    found
}

/// G04: decrypted bytes are never written to disk: neither in the artifact store nor among temporary files.
/// `FLUORITE_DECRYPTIONS=10000` runs the long form.
#[test]
fn decrypted_bytes_are_never_written_to_disk() {
    let times: u32 = std::env::var("FLUORITE_DECRYPTIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(100);
    run(async {
        let secret =
            golden("secret.yaml").replace(r#"{"name": "s"}"#, r#"{"name": "s", "namespace": "default"}"#);
        let cluster = cluster(53, &[("s.yaml", secret)]).await;
        let key = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys", "namespace": NAMESPACE},
            "stringData": {"me.agekey": golden("key.agekey")}});
        cluster.apply(key).await;
        let spec = json!({"interval": "10m", "prune": true, "sourceRef": {"kind": "GitRepository", "name": "app"},
            "decryption": {"provider": "sops", "secretRef": {"name": "keys"}}});
        cluster.source("Kustomization", "app", spec).await;
        cluster.ready("Kustomization", "app").await;
        let canaries = ["hunter2", "aHVudGVyMg", "AGE-SECRET-KEY"];
        let mut found = Vec::new();
        for i in 0..times {
            cluster.request("Kustomization", "app", &format!("t{i}")).await;
            let token = format!("t{i}");
            cluster
                .until("Kustomization", "app", |o| o["status"]["lastHandledReconcileAt"] == token.as_str())
                .await;
            if i % 25 == 0 {
                found.extend(hits(cluster.store.root(), &canaries));
            }
        }
        found.extend(hits(cluster.store.root(), &canaries));
        // Other programs have temporary files too; those of this process are in folders that it made.
        for entry in std::fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(".tmp") || name.starts_with("fluorite") {
                found.extend(hits(&entry.path(), &canaries));
            }
        }
        assert!(found.is_empty(), "{found:?}");
        let live = cluster.get("Secret", "s").await.expect("applied");
        assert_eq!(live["data"]["password"], "aHVudGVyMg==");
    });
}
