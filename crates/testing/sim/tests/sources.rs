//! Sources under trouble: lines A, E, J, K03, N01, N02 of the threats.

use std::sync::Arc;
use std::time::Duration;

use fl_api::source::GitRepository;
use fl_runtime::{Kind, Log, Options, Patch, Runtime, Shutdown, WatchSpec, Write};
use fl_sim::{Action, FakeGit, FakeOci, FaultSchedule, Rule, TestCluster, condition};
use fl_source::git::GitRepositories;
use serde_json::{Value, json};

const URL: &str = "https://git.example/app";

fn spec() -> Value {
    json!({"url": URL, "interval": "1h", "ref": {"branch": "main"}})
}

fn artifact(object: &Value) -> String {
    object["status"]["artifact"]["path"].as_str().expect("an artifact").to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_push_becomes_an_artifact_with_one_listing_when_nothing_changed() {
    let test_cluster = TestCluster::start(1).await;
    let commit = test_cluster.git.push(URL, "main", [("app.yaml", "a: 1\n")]);
    test_cluster.source("GitRepository", "app", spec()).await;
    let app = test_cluster.ready("GitRepository", "app").await;
    assert_eq!(app["status"]["artifact"]["revision"], format!("main@sha1:{commit}"));
    assert_eq!(test_cluster.git.counts(), (1, 1));
    test_cluster.request("GitRepository", "app", "t1").await;
    test_cluster.until("GitRepository", "app", |o| o["status"]["lastHandledReconcileAt"] == "t1").await;
    assert_eq!(test_cluster.git.counts(), (2, 1));
    assert!(
        test_cluster.events().await.iter().any(|e| e.starts_with("GitOperationSucceeded: no changes since"))
    );
}

#[tokio::test(start_paused = true)]
async fn one_reconcile_writes_once() {
    let test_cluster = TestCluster::start(2).await;
    test_cluster.git.push(URL, "main", [("app.yaml", "a: 1\n")]);
    test_cluster.source("GitRepository", "app", spec()).await;
    test_cluster.ready("GitRepository", "app").await;
    test_cluster.faults.take_requests();
    test_cluster.git.push(URL, "main", [("app.yaml", "a: 2\n")]);
    test_cluster.request("GitRepository", "app", "t1").await;
    test_cluster.until("GitRepository", "app", |o| o["status"]["lastHandledReconcileAt"] == "t1").await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let writes: Vec<String> = test_cluster
        .faults
        .take_requests()
        .into_iter()
        .filter(|r| !r.starts_with("GET") && !r.contains("/events"))
        .collect();
    assert_eq!(writes.len(), 1, "{writes:?}");
}

/// A09, L01: whatever fails, the last good artifact stays and is served.
#[tokio::test(start_paused = true)]
async fn the_old_artifact_stays_while_fetching_fails() {
    let test_cluster = TestCluster::start(3).await;
    test_cluster.git.push(URL, "main", [("app.yaml", "a: 1\n")]);
    test_cluster.source("GitRepository", "app", spec()).await;
    let before = artifact(&test_cluster.ready("GitRepository", "app").await);
    test_cluster.git.fail(Some("authentication required: no"));
    test_cluster.request("GitRepository", "app", "t1").await;
    let failed = test_cluster.failed("GitRepository", "app").await;
    assert_eq!(condition(&failed, "FetchFailed")["reason"], "GitOperationFailed");
    assert_eq!(artifact(&failed), before);
    assert!(test_cluster.store.file(&before).unwrap().exists());
    test_cluster.git.fail(None);
    test_cluster.ready("GitRepository", "app").await;
    assert!(
        test_cluster.events().await.iter().any(|e| e.starts_with("Succeeded: stored artifact for commit"))
    );
}

/// N02: a flipped bit is found and repaired in the same pass.
#[tokio::test(start_paused = true)]
async fn corrupt_file_is_built_again() {
    let test_cluster = TestCluster::start(4).await;
    test_cluster.git.push(URL, "main", [("app.yaml", "a: 1\n")]);
    test_cluster.source("GitRepository", "app", spec()).await;
    let before = test_cluster.ready("GitRepository", "app").await;
    let file = test_cluster.store.file(&artifact(&before)).unwrap();
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, &bytes).unwrap();
    test_cluster.request("GitRepository", "app", "t1").await;
    test_cluster.until("GitRepository", "app", |o| o["status"]["lastHandledReconcileAt"] == "t1").await;
    let after = test_cluster.ready("GitRepository", "app").await;
    assert_eq!(after["status"]["artifact"]["digest"], before["status"]["artifact"]["digest"]);
    let digest = after["status"]["artifact"]["digest"].as_str().unwrap().parse().unwrap();
    assert_eq!(
        test_cluster.store.check(&artifact(&after), &digest).unwrap(),
        fl_artifact_store::Check::Intact
    );
    assert!(test_cluster.events().await.iter().any(|e| e.starts_with("ArtifactVerificationFailed:")));
}

/// N01: no room for the new artifact; the old one is served, no half file is left.
#[tokio::test(start_paused = true)]
async fn a_disk_that_refuses_costs_nothing_but_the_new_artifact() {
    let test_cluster = TestCluster::start(5).await;
    test_cluster.oci.push("oci.example/app", "v1", [("a.yaml", "a: 1\n")]);
    test_cluster
        .source(
            "OCIRepository",
            "app",
            json!({"url": "oci://oci.example/app", "interval": "1h", "ref": {"tag": "v1"}}),
        )
        .await;
    let before = artifact(&test_cluster.ready("OCIRepository", "app").await);
    let digest = test_cluster.oci.push("oci.example/app", "v1", [("a.yaml", "a: 2\n")]);
    // A directory where the file should go: no file can be put there.
    let place = test_cluster.store.file(&before).unwrap();
    let blocked = place.with_file_name(format!("{digest}.tar.gz"));
    std::fs::create_dir(&blocked).unwrap();
    test_cluster.request("OCIRepository", "app", "t1").await;
    let failed = test_cluster.failed("OCIRepository", "app").await;
    assert_eq!(condition(&failed, "StorageOperationFailed")["reason"], "ArchiveOperationFailed");
    assert_eq!(artifact(&failed), before);
    let names: Vec<String> = std::fs::read_dir(place.parent().unwrap())
        .unwrap()
        .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    assert!(!names.iter().any(|n| n.starts_with(".unfinished")), "{names:?}");
    std::fs::remove_dir(&blocked).unwrap();
    test_cluster.until("OCIRepository", "app", |o| o["status"]["artifact"]["path"] != before.as_str()).await;
}

/// E08: a demanded signature that is not there; never fail open.
#[tokio::test(start_paused = true)]
async fn unsigned_commit_produces_no_artifact() {
    let test_cluster = TestCluster::start(6).await;
    test_cluster.git.push(URL, "main", [("app.yaml", "a: 1\n")]);
    test_cluster.apply(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, "stringData": {"a.asc": "x"}})).await;
    let mut wanted = spec();
    wanted["verify"] = json!({"mode": "HEAD", "secretRef": {"name": "keys"}});
    test_cluster.source("GitRepository", "app", wanted).await;
    let failed = test_cluster.failed("GitRepository", "app").await;
    assert_eq!(condition(&failed, "SourceVerified")["reason"], "InvalidCommitSignature");
    assert!(failed["status"]["artifact"].is_null());
    test_cluster.oci.push("oci.example/app", "v1", [("a.yaml", "a: 1\n")]);
    let spec = json!({"url": "oci://oci.example/app", "interval": "1h", "ref": {"tag": "v1"}, "verify": {"provider": "cosign"}});
    test_cluster.source("OCIRepository", "app", spec).await;
    let failed = test_cluster.failed("OCIRepository", "app").await;
    assert_eq!(condition(&failed, "Ready")["reason"], "VerificationError");
    assert!(failed["status"]["artifact"].is_null());
}

/// A reference that the schema lets through but nobody can resolve becomes a condition that says what is wrong with it.
#[tokio::test(start_paused = true)]
async fn references_that_cannot_be_are_explained() {
    let test_cluster = TestCluster::start(14).await;
    test_cluster.oci.push("oci.example/app", "v1", [("a.yaml", "a: 1\n")]);
    for (name, reference, words) in [
        ("digest", json!({"digest": "sha256:abc"}), "wrong number of hex digits for sha256: abc"),
        ("range", json!({"semver": "not a range"}), "improper constraint: \"not a range\""),
    ] {
        let spec = json!({"url": "oci://oci.example/app", "interval": "1h", "ref": reference});
        test_cluster.source("OCIRepository", name, spec).await;
        let failed = test_cluster.failed("OCIRepository", name).await;
        let message = condition(&failed, "Ready")["message"].as_str().unwrap_or_default().to_owned();
        assert!(message.contains(words), "{name}: {message}");
        assert!(failed["status"]["artifact"].is_null());
    }
    // A slash at the end is no other repository, and none at all without a path.
    let at = |url: &str| json!({"url": url, "interval": "1h", "ref": {"tag": "v1"}});
    test_cluster.source("OCIRepository", "slash", at("oci://oci.example/app/")).await;
    test_cluster.ready("OCIRepository", "slash").await;
    test_cluster.source("OCIRepository", "host", at("oci://oci.example/")).await;
    assert_eq!(
        condition(&test_cluster.failed("OCIRepository", "host").await, "Stalled")["reason"],
        "URLInvalid"
    );
}

/// J01: odd intervals are refused or bounded, never a hot loop.
#[tokio::test(start_paused = true)]
async fn odd_intervals_make_no_hot_loop() {
    let test_cluster = TestCluster::start(7).await;
    test_cluster.git.push(URL, "main", [("app.yaml", "a: 1\n")]);
    for (i, interval) in ["0s", "1ms", "0.000001s", "1000000h"].iter().enumerate() {
        let mut wanted = spec();
        wanted["interval"] = (*interval).into();
        test_cluster.source("GitRepository", &format!("app{i}"), wanted).await;
        test_cluster.ready("GitRepository", &format!("app{i}")).await;
    }
    for interval in ["-1s", "1d", "", "nonsense", "1e9h"] {
        let object = json!({"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
            "metadata": {"name": "bad"}, "spec": {"url": URL, "interval": interval}});
        assert!(test_cluster.try_apply(object).await.is_err(), "{interval}");
    }
    let (before, _) = test_cluster.git.counts();
    tokio::time::sleep(Duration::from_secs(10)).await;
    let (after, _) = test_cluster.git.counts();
    // Three of them as often as possible: ten times a second each.
    assert!(after - before <= 330, "{}", after - before);
}

/// J03: what others put into the status stays.
#[tokio::test(start_paused = true)]
async fn conditions_and_labels_of_others_stay() {
    let test_cluster = TestCluster::start(8).await;
    test_cluster.git.push(URL, "main", [("app.yaml", "a: 1\n")]);
    test_cluster.source("GitRepository", "app", spec()).await;
    test_cluster.ready("GitRepository", "app").await;
    let kind = fl_runtime::Kind::of::<fl_api::source::GitRepository>();
    let mut live = test_cluster.get("GitRepository", "app").await.unwrap();
    let theirs = json!({"type": "Theirs", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    live["status"]["conditions"].as_array_mut().unwrap().push(theirs);
    let patch = json!({"status": {"conditions": live["status"]["conditions"]}});
    test_cluster
        .user
        .patch(&kind, Some("default"), "app", Patch::Merge, &patch, &Write::by("other").to("status"))
        .await
        .unwrap();
    let patch = json!({"metadata": {"labels": {"team": "a"}, "finalizers": ["finalizers.fluxcd.io", "other.example/f"]}});
    test_cluster
        .user
        .patch(&kind, Some("default"), "app", Patch::Merge, &patch, &Write::by("other"))
        .await
        .unwrap();
    test_cluster.git.push(URL, "main", [("app.yaml", "a: 2\n")]);
    test_cluster.request("GitRepository", "app", "t1").await;
    let after =
        test_cluster.until("GitRepository", "app", |o| o["status"]["lastHandledReconcileAt"] == "t1").await;
    assert_eq!(condition(&after, "Theirs")["message"], "m");
    assert_eq!(after["metadata"]["labels"]["team"], "a");
    assert_eq!(after["metadata"]["finalizers"].as_array().unwrap().len(), 2);
}

/// K03, K05: watches that break, repeat or are too old, and writes that fail or whose answers are lost.
#[tokio::test(start_paused = true)]
async fn converges_with_faults_for_many_seeds() {
    for seed in 0..12 {
        let test_cluster = TestCluster::start(seed).await;
        test_cluster.faults.add(Rule::watches(FaultSchedule::Chance(0.3), Action::CutAfter(3)));
        test_cluster.faults.add(Rule::watches(FaultSchedule::Chance(0.3), Action::Duplicate));
        test_cluster.faults.add(Rule::watches(FaultSchedule::Chance(0.2), Action::Fail(410, "Expired")));
        test_cluster.faults.add(Rule::writes(FaultSchedule::Chance(0.2), Action::Fail(500, "InternalError")));
        test_cluster.faults.add(Rule::writes(FaultSchedule::Chance(0.1), Action::LoseAnswer));
        test_cluster.faults.add(Rule::new(
            |_, _| true,
            FaultSchedule::Chance(0.2),
            Action::Delay(Duration::from_millis(40)),
        ));
        let mut last = String::new();
        for round in 0..4 {
            last = test_cluster.git.push(URL, "main", [("app.yaml", format!("a: {round}\n"))]);
            test_cluster.source("GitRepository", "app", spec()).await;
            test_cluster.request("GitRepository", "app", &format!("t{round}")).await;
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        let revision = format!("main@sha1:{last}");
        test_cluster
            .until("GitRepository", "app", |o| {
                o["status"]["artifact"]["revision"] == revision.as_str()
                    && condition(o, "Ready")["status"] == "True"
            })
            .await;
        test_cluster.faults.clear();
        let kind = fl_runtime::Kind::of::<fl_api::source::GitRepository>();
        test_cluster.user.delete(&kind, Some("default"), "app", &Default::default()).await.unwrap();
        test_cluster.gone("GitRepository", "app").await;
    }
}

/// A restart on the same store finds everything in place and fetches nothing.
#[tokio::test(start_paused = true)]
async fn a_restart_fetches_nothing() {
    let test_cluster = TestCluster::start(9).await;
    test_cluster.git.push(URL, "main", [("app.yaml", "a: 1\n")]);
    test_cluster.source("GitRepository", "app", spec()).await;
    test_cluster.ready("GitRepository", "app").await;
    test_cluster.stop();
    let (git, root) = (test_cluster.git.clone(), test_cluster.store.root().to_owned());
    let again = TestCluster::on(
        test_cluster.server.clone(),
        9,
        Options::default(),
        &root,
        git,
        FakeOci::default(),
        |_| {},
    )
    .await;
    again.request("GitRepository", "app", "t1").await;
    again.until("GitRepository", "app", |o| o["status"]["lastHandledReconcileAt"] == "t1").await;
    assert_eq!(again.git.counts().1, 1, "fetched again");
    let empty = tempfile::tempdir().unwrap();
    again.stop();
    // Another disk: what is gone is built again.
    let server = again.server.clone();
    let moved = TestCluster::on(
        server,
        9,
        Options::default(),
        empty.path(),
        again.git.clone(),
        FakeOci::default(),
        |_| {},
    )
    .await;
    moved.request("GitRepository", "app", "t2").await;
    let object = moved.until("GitRepository", "app", |o| o["status"]["lastHandledReconcileAt"] == "t2").await;
    assert!(moved.store.file(&artifact(&object)).unwrap().exists());
}

/// The same seed gives the same requests.
/// A reference may open the watch of a kind before its controller is there. What that watch has told nobody by then, here a
/// source whose artifact stayed with another engine, is looked at all the same.
#[tokio::test(start_paused = true)]
async fn objects_of_an_earlier_watch_are_reconciled() {
    let test_cluster = TestCluster::start(11).await;
    test_cluster.git.push(URL, "main", [("app.yaml", "a: 1\n")]);
    test_cluster.source("GitRepository", "app", spec()).await;
    let file = test_cluster.store.file(&artifact(&test_cluster.ready("GitRepository", "app").await)).unwrap();
    test_cluster.stop();
    std::fs::remove_file(&file).unwrap();

    let stop = Shutdown::default();
    let runtime =
        Runtime::new(test_cluster.user.clone(), None, Options::default(), stop.clone(), Log::default());
    runtime.informers().watch(WatchSpec::full(Kind::of::<GitRepository>())).wait_synced().await;
    runtime.add(GitRepositories::new(test_cluster.store.clone(), Arc::new(test_cluster.git.clone())), 1);
    let work = runtime.clone();
    tokio::spawn(async move { work.run().await });
    test_cluster.until("GitRepository", "app", |_| file.exists()).await;
    stop.now();
}

#[tokio::test(start_paused = true)]
async fn simulation_replays_from_its_seed() {
    async fn trace(seed: u64) -> Vec<String> {
        let test_cluster = TestCluster::start(seed).await;
        test_cluster.faults.add(Rule::writes(FaultSchedule::Chance(0.3), Action::Fail(500, "InternalError")));
        test_cluster.git.push(URL, "main", [("app.yaml", "a: 1\n")]);
        test_cluster.source("GitRepository", "app", spec()).await;
        test_cluster.ready("GitRepository", "app").await;
        let all = test_cluster.faults.take_requests();
        all.into_iter().filter(|r| !r.starts_with("GET") && !r.contains("/events")).collect()
    }
    assert_eq!(trace(42).await, trace(42).await);
}

/// Suspended objects are left alone, keep their artifact, and go when they are deleted.
#[tokio::test(start_paused = true)]
async fn suspension_and_deletion() {
    let test_cluster = TestCluster::start(10).await;
    test_cluster.git.push(URL, "main", [("app.yaml", "a: 1\n")]);
    test_cluster.source("GitRepository", "app", spec()).await;
    let path = artifact(&test_cluster.ready("GitRepository", "app").await);
    let mut wanted = spec();
    wanted["suspend"] = true.into();
    test_cluster.source("GitRepository", "app", wanted).await;
    test_cluster.git.push(URL, "main", [("app.yaml", "a: 2\n")]);
    test_cluster.request("GitRepository", "app", "t1").await;
    let after =
        test_cluster.until("GitRepository", "app", |o| o["status"]["lastHandledReconcileAt"] == "t1").await;
    assert_eq!(artifact(&after), path);
    let kind = fl_runtime::Kind::of::<fl_api::source::GitRepository>();
    test_cluster.user.delete(&kind, Some("default"), "app", &Default::default()).await.unwrap();
    test_cluster.gone("GitRepository", "app").await;
    assert!(!test_cluster.store.file(&path).unwrap().exists());
    assert!(test_cluster.events().await.iter().any(|e| e.starts_with("GarbageCollectionSucceeded:")));
    let _ = FakeGit::default();
}
