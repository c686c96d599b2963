//! Lines A and J of the threats: artifacts that are not what they claim, labels and annotations that mean nothing.

mod fixture;

use std::time::Duration;

use fixture::{applied, cluster, kustomization, map, push, revision, run};
use fl_runtime::{Kind, Patch, Write};
use fl_sim::{NAMESPACE, TestCluster, condition};
use serde_json::{Value, json};

fn message(object: &Value) -> String {
    condition(object, "Ready")["message"].as_str().unwrap_or_default().to_owned()
}

/// A well-formed artifact that nobody published.
fn forged() -> Vec<u8> {
    let mut tar = tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
    let content = map("forged", "1");
    let mut header = tar::Header::new_ustar();
    header.set_size(content.len() as u64);
    header.set_mode(0o600);
    tar.append_data(&mut header, "forged.yaml", content.as_bytes()).expect("written");
    tar.into_inner().expect("written").finish().expect("written")
}

async fn file_of(cluster: &TestCluster) -> std::path::PathBuf {
    let source = cluster.ready("GitRepository", "app").await;
    let path = source["status"]["artifact"]["path"].as_str().expect("an artifact").to_owned();
    cluster.store.file(&path).expect("a path of the store")
}

/// Writes that are about what a Kustomization applies.
fn applies(cluster: &TestCluster) -> Vec<String> {
    let requests = cluster.faults.take_requests().into_iter();
    requests.filter(|r| !r.starts_with("GET") && r.contains("/configmaps")).collect()
}

/// A10: an artifact whose digest differs is never built, before the first apply and after it.
#[test]
fn artifact_with_a_wrong_digest_is_not_built() {
    run(async {
        let cluster = cluster(41, &[("a.yaml", map("a", "1"))]).await;
        let file = file_of(&cluster).await;
        let good = std::fs::read(&file).expect("read");
        std::fs::write(&file, forged()).expect("written");
        cluster.faults.take_requests();
        kustomization(&cluster, "app", "").await;
        let failed = cluster.failed("Kustomization", "app").await;
        assert_eq!(condition(&failed, "Ready")["reason"], "ArtifactFailed");
        assert!(message(&failed).contains("failed to verify archive"), "{}", message(&failed));
        // Flipped, cut short and empty ones too.
        let flipped: Vec<u8> =
            good.iter().enumerate().map(|(i, b)| if i == good.len() / 2 { b ^ 1 } else { *b }).collect();
        for damaged in [flipped, good[..good.len() / 2].to_vec(), Vec::new()] {
            std::fs::write(&file, damaged).expect("written");
            tokio::time::sleep(Duration::from_secs(120)).await;
        }
        assert_eq!(applies(&cluster), Vec::<String>::new(), "applies after the mismatch");
        std::fs::write(&file, &good).expect("written");
        cluster.ready("Kustomization", "app").await;
        assert!(cluster.get("ConfigMap", "a").await.is_some());
        assert!(cluster.get("ConfigMap", "forged").await.is_none());
        // The next revision is replaced by somebody before it is read; what is applied stays.
        applies(&cluster);
        push(&cluster, &[("b.yaml", map("b", "1"))]);
        cluster.faults.add(fl_sim::Rule::new(
            |method, path| *method != http::Method::GET && path.contains("/kustomizations/"),
            fl_sim::FaultSchedule::Always,
            fl_sim::Action::Delay(Duration::from_secs(30)),
        ));
        revision(&cluster, "t1").await;
        std::fs::write(file_of(&cluster).await, forged()).expect("written");
        tokio::time::sleep(Duration::from_secs(300)).await;
        assert!(cluster.get("ConfigMap", "forged").await.is_none());
        let left =
            cluster.get("ConfigMap", "a").await.is_some() || cluster.get("ConfigMap", "b").await.is_some();
        assert!(left, "what is there stays until something better is known");
    });
}

/// A source that packs a revision anew replaces the file before its status names the new digest: that is no failure.
#[test]
fn repacked_revision_is_waited_for() {
    run(async {
        let cluster = cluster(47, &[("a.yaml", map("a", "1")), ("b.yaml", map("b", "1"))]).await;
        let file = file_of(&cluster).await;
        let old = std::fs::read(&file).expect("read");
        cluster.faults.add(fl_sim::Rule::new(
            |method, path| *method != http::Method::GET && path.ends_with("/gitrepositories/app/status"),
            fl_sim::FaultSchedule::Always,
            fl_sim::Action::Delay(Duration::from_secs(2)),
        ));
        let spec =
            json!({"url": fixture::URL, "interval": "1h", "ref": {"branch": "main"}, "ignore": "b.yaml"});
        cluster.source("GitRepository", "app", spec).await;
        while std::fs::read(&file).expect("read") == old {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        kustomization(&cluster, "app", "").await;
        cluster.ready("Kustomization", "app").await;
        assert!(cluster.get("ConfigMap", "a").await.is_some());
        assert!(cluster.get("ConfigMap", "b").await.is_none());
        let told = cluster.events().await;
        assert!(!told.iter().any(|event| event.contains("failed to verify archive")), "{told:?}");
    });
}

/// J02: values that mean nothing are ignored, and one event says so.
#[test]
fn invalid_annotation_values_are_ignored_with_one_event() {
    run(async {
        let odd = |name: &str, key: &str, value: &str| {
            let line = format!("  annotations: {{kustomize.toolkit.fluxcd.io/{key}: {value}}}\n");
            map(name, "1").replace("\ndata:\n", &format!("\n{line}data:\n"))
        };
        let files = [
            ("a.yaml", odd("a", "reconcile", "disabledd")),
            ("b.yaml", odd("b", "ssa", "'1'")),
            ("c.yaml", odd("c", "prune", "'\u{1F4A3} \\n'")),
            ("d.yaml", odd("d", "force", "'true'")),
            ("e.yaml", odd("e", "ssa", "Merge")),
        ];
        let cluster = cluster(42, &files).await;
        kustomization(&cluster, "app", "").await;
        cluster.ready("Kustomization", "app").await;
        for name in ["a", "b", "c", "d", "e"] {
            assert!(cluster.get("ConfigMap", name).await.is_some(), "{name} was not applied");
        }
        for round in 0..3 {
            cluster.request("Kustomization", "app", &format!("t{round}")).await;
            tokio::time::sleep(Duration::from_secs(20)).await;
        }
        let events = cluster.events().await;
        let told: Vec<_> = events.iter().filter(|e| e.starts_with("AnnotationIgnored: ")).collect();
        assert_eq!(told.len(), 1, "{events:#?}");
        for name in ["a", "b", "c", "d"] {
            assert!(told[0].contains(&format!("ConfigMap/{NAMESPACE}/{name}: ")), "{}", told[0]);
        }
        assert!(!told[0].contains("/e: "), "{}", told[0]);
        // No value of `prune` but `disabled` keeps an object.
        push(&cluster, &files[..1]);
        let wanted = revision(&cluster, "r1").await;
        applied(&cluster, "app", &wanted).await;
        cluster.gone("ConfigMap", "c").await;
    });
}

/// A label whose value is no string: Flux reads the whole map as absent and applies the object without it. So do we, and one
/// Warning event names the object.
#[test]
fn labels_that_are_not_strings_are_dropped_with_one_event() {
    run(async {
        let with =
            |name: &str, line: &str| map(name, "1").replace("\ndata:\n", &format!("\n  {line}\ndata:\n"));
        let files = [
            ("a.yaml", with("a", "labels: {l: 1, m: x}")),
            ("b.yaml", with("b", "labels: {l: \"1\"}")),
            ("c.yaml", with("c", "labels: {l: \"${number}\", m: x}")),
            ("d.yaml", with("d", "annotations: {n: \"${number}\"}")),
        ];
        let cluster = cluster(48, &files).await;
        let spec = json!({"interval": "10m", "prune": true, "postBuild": {"substitute": {"number": "7"}},
            "sourceRef": {"kind": "GitRepository", "name": "app"}});
        cluster.source("Kustomization", "app", spec).await;
        cluster.ready("Kustomization", "app").await;
        let get =
            async |name: &str| cluster.get("ConfigMap", name).await.expect("applied")["metadata"].clone();
        for name in ["a", "c"] {
            let labels = get(name).await["labels"].clone();
            assert!(labels["l"].is_null() && labels["m"].is_null(), "{labels}");
            assert_eq!(labels["kustomize.toolkit.fluxcd.io/name"], "app", "{labels}");
        }
        assert_eq!(get("b").await["labels"]["l"], "1");
        assert!(get("d").await["annotations"]["n"].is_null());
        cluster.request("Kustomization", "app", "again").await;
        tokio::time::sleep(Duration::from_secs(20)).await;
        let events = cluster.events().await;
        let told: Vec<_> = events.iter().filter(|e| e.starts_with("MetadataDropped: ")).collect();
        assert_eq!(told.len(), 1, "{events:#?}");
        for (name, field) in [("a", "labels"), ("c", "labels"), ("d", "annotations")] {
            let line = format!("ConfigMap/{NAMESPACE}/{name}: metadata.{field}");
            assert!(told[0].contains(&line), "{}", told[0]);
        }
        assert!(!told[0].contains("/b: "), "{}", told[0]);
    });
}

/// J02: requests for a pass are any text; whatever it is, it is handled once and nothing breaks.
#[test]
fn reconcile_request_may_be_any_text() {
    run(async {
        let cluster = cluster(43, &[("a.yaml", map("a", "1"))]).await;
        kustomization(&cluster, "app", "").await;
        cluster.ready("Kustomization", "app").await;
        let texts = [
            "",
            " ",
            "not a time",
            "-1",
            "0000-00-00T99:99:99Z",
            "\u{0}\n\u{202e}\u{1F4A3}",
            &"9".repeat(30_000),
        ];
        for text in texts {
            for (kind, resource) in [
                ("GitRepository", Kind::of::<fl_api::source::GitRepository>()),
                ("Kustomization", Kind::of::<fl_api::kustomize::Kustomization>()),
            ] {
                let patch = json!({"metadata": {"annotations": {fl_runtime::REQUESTED_AT: text,
                    "reconcile.fluxcd.io/forceAt": text, "reconcile.fluxcd.io/resetAt": "x",
                    "kustomize.fluorite.dev/approve-deletions": text,
                    "kustomize.toolkit.fluxcd.io/reconcile": text}}});
                let write = Write::by("user");
                let patched =
                    cluster.user.patch(&resource, Some(NAMESPACE), "app", Patch::Merge, &patch, &write).await;
                patched.expect("any text is an annotation");
                if !text.is_empty() {
                    cluster.until(kind, "app", |o| o["status"]["lastHandledReconcileAt"] == text).await;
                }
                tokio::time::sleep(Duration::from_secs(5)).await;
                cluster.ready(kind, "app").await;
            }
        }
        let events = cluster.events().await;
        assert!(!events.iter().any(|e| e.contains("bug") || e.contains("panic")), "{events:#?}");
    });
}

/// A health check of an object in no namespace, where its kind lives in one, fails at once; recorded from Flux.
#[test]
fn health_check_without_a_namespace_fails_at_once() {
    run(async {
        let cluster = cluster(44, &[("a.yaml", map("a", "1"))]).await;
        let spec = json!({"interval": "10m", "prune": true, "sourceRef": {"kind": "GitRepository", "name": "app"},
            "healthChecks": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "a"}]});
        cluster.source("Kustomization", "app", spec).await;
        let failed = cluster.failed("Kustomization", "app").await;
        let problem = "resource ConfigMap a is namespace scoped, but namespace is not set";
        assert_eq!(condition(&failed, "Healthy")["message"], problem);
        assert!(message(&failed).ends_with(problem), "{}", message(&failed));
        assert!(message(&failed).starts_with("health check failed after "), "{}", message(&failed));
    });
}
