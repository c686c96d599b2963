//! Lines F02, G04 of the threats: in whose name is written, and what is left on disk.

mod lab;

use std::path::{Path, PathBuf};
use std::time::Duration;

use fl_runtime::{Delete, Kind};
use fl_sim::NAMESPACE;
use lab::{kustomization, map, run, world, world_with};
use serde_json::json;

/// F02: under lock-down a Kustomization that names no account works as the default one of its namespace: apply, drift, prune and
/// deletion; the engine's own identity writes none of its objects.
#[test]
fn without_an_account_the_default_one_writes() {
    run(async {
        let options =
            fl_runtime::Options { default_service_account: "default".to_owned(), ..Default::default() };
        let files = [("a.yaml", map("a", "1")), ("b.yaml", map("b", "1"))];
        let world = world_with(51, &files, fl_kustomization::Options::default(), options).await;
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
        world.user.create(&roles, None, &role, &write).await.expect("a role");
        let bound = binding("maps", "maps");
        world.user.create(&bindings, Some(NAMESPACE), &bound, &write).await.expect("a binding");
        // Without its account a Kustomization that goes leaves its objects, as with Flux.
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": NAMESPACE}});
        world.apply(account).await;
        world.faults.take_writers();
        kustomization(&world, "app", "").await;
        world.ready("Kustomization", "app").await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        // Drift is corrected in the same name.
        let edit = json!({"data": {"key": "edited"}});
        let (kind, how, write) =
            (Kind::config_map(), fl_runtime::Patch::Merge, fl_runtime::Write::by("else"));
        let edited = world.user.patch(&kind, Some(NAMESPACE), "a", how, &edit, &write);
        edited.await.expect("edited");
        world.until("ConfigMap", "a", |o| o["data"]["key"] == "1").await;
        lab::push(&world, &files[..1]);
        let wanted = lab::revision(&world, "t1").await;
        lab::applied(&world, "app", &wanted).await;
        world.gone("ConfigMap", "b").await;
        let own = Kind::of::<fl_api::kustomize::Kustomization>();
        world.user.delete(&own, Some(NAMESPACE), "app", &Delete::default()).await.expect("deleted");
        world.gone("Kustomization", "app").await;
        world.gone("ConfigMap", "a").await;

        let writes: Vec<_> = world
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

/// F02: an account without rights is refused; the engine's are not used in its place.
#[test]
fn the_rights_of_the_engine_are_not_lent() {
    run(async {
        let options =
            fl_runtime::Options { default_service_account: "default".to_owned(), ..Default::default() };
        let files = [("a.yaml", map("a", "1"))];
        let world = world_with(52, &files, fl_kustomization::Options::default(), options).await;
        kustomization(&world, "app", "").await;
        let failed = world.failed("Kustomization", "app").await;
        assert!(failed["status"].to_string().contains("forbidden"), "{:#}", failed["status"]);
        assert!(world.get("ConfigMap", "a").await.is_none());
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

/// G04: what decryption makes is never on disk: neither in the artifact store nor among temporary files, however often it is done.
/// `FLUORITE_DECRYPTIONS=10000` runs the long form.
#[test]
fn decrypted_bytes_never_reach_the_disk() {
    let times: u32 = std::env::var("FLUORITE_DECRYPTIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(100);
    run(async {
        let secret =
            golden("secret.yaml").replace(r#"{"name": "s"}"#, r#"{"name": "s", "namespace": "default"}"#);
        let world = world(53, &[("s.yaml", secret)]).await;
        let key = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys", "namespace": NAMESPACE},
            "stringData": {"me.agekey": golden("key.agekey")}});
        world.apply(key).await;
        let spec = json!({"interval": "10m", "prune": true, "sourceRef": {"kind": "GitRepository", "name": "app"},
            "decryption": {"provider": "sops", "secretRef": {"name": "keys"}}});
        world.source("Kustomization", "app", spec).await;
        world.ready("Kustomization", "app").await;
        let canaries = ["hunter2", "aHVudGVyMg", "AGE-SECRET-KEY"];
        let mut found = Vec::new();
        for i in 0..times {
            world.request("Kustomization", "app", &format!("t{i}")).await;
            let token = format!("t{i}");
            world
                .until("Kustomization", "app", |o| o["status"]["lastHandledReconcileAt"] == token.as_str())
                .await;
            if i % 25 == 0 {
                found.extend(hits(world.store.root(), &canaries));
            }
        }
        found.extend(hits(world.store.root(), &canaries));
        // Other programs have temporary files too; those of this process are in folders that it made.
        for entry in std::fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(".tmp") || name.starts_with("fluorite") {
                found.extend(hits(&entry.path(), &canaries));
            }
        }
        assert!(found.is_empty(), "{found:?}");
        let live = world.get("Secret", "s").await.expect("applied");
        assert_eq!(live["data"]["password"], "aHVudGVyMg==");
    });
}
