//! Buckets in a simulation, and lines E09, F01, J, N01 of the threats.

#![allow(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

#[path = "../../../io/bucket/tests/server/mod.rs"]
mod server;

use std::time::Duration;

use fl_archive::{ReadError, ReadLimits, read_tar_gz};
use fl_runtime::{ArtifactFetcher, Delete, Options, Resolver};
use fl_sim::{NAMESPACE, TestCluster, condition};
use fl_source::helm::{HelmCharts, HelmLimits};
use serde_json::{Value, json};

fn spec() -> Value {
    json!({"bucketName": "apps", "endpoint": "s3.example", "interval": "1h"})
}

fn with(field: &str, value: Value) -> Value {
    let mut spec = spec();
    spec[field] = value;
    spec
}

fn revision(object: &Value) -> String {
    object["status"]["artifact"]["revision"].as_str().expect("an artifact").to_owned()
}

/// The names of an artifact, in order.
fn names(test_cluster: &TestCluster, object: &Value) -> Vec<String> {
    let path = object["status"]["artifact"]["path"].as_str().expect("an artifact");
    let file = std::fs::File::open(test_cluster.store.file(path).unwrap()).unwrap();
    let mut names = Vec::new();
    read_tar_gz(file, &ReadLimits::default(), |entry, _| {
        names.push(entry.name.clone());
        Ok::<_, ReadError>(())
    })
    .unwrap();
    names
}

async fn asked(test_cluster: &TestCluster, token: &str) -> Value {
    test_cluster.request("Bucket", "app", token).await;
    test_cluster.until("Bucket", "app", |o| o["status"]["lastHandledReconcileAt"] == token).await
}

#[tokio::test(start_paused = true)]
async fn objects_become_an_artifact_and_an_unchanged_bucket_costs_a_listing() {
    let test_cluster = TestCluster::start(1).await;
    for (key, content) in [("b/c.yaml", "c: 1\n"), ("a.yaml", "a: 1\n"), ("b-d.yaml", "d"), ("empty/", "")] {
        test_cluster.bucket.put("apps", key, content);
    }
    test_cluster.source("Bucket", "app", spec()).await;
    let app = test_cluster.ready("Bucket", "app").await;
    assert_eq!(names(&test_cluster, &app), ["", "a.yaml", "b", "b/c.yaml", "b-d.yaml"]);
    let revision = revision(&app);
    let ready = condition(&app, "Ready");
    assert_eq!(ready["reason"], "Succeeded");
    assert_eq!(ready["message"], format!("stored artifact: revision '{revision}'"));
    let hex = revision.strip_prefix("sha256:").unwrap();
    assert_eq!(app["status"]["artifact"]["path"], format!("bucket/{NAMESPACE}/app/{hex}.tar.gz"));
    assert_eq!(app["status"]["url"], format!("http://store.example/bucket/{NAMESPACE}/app/latest.tar.gz"));
    let fetched = test_cluster.bucket.counts();
    assert_eq!(fetched, (1, 4), "three objects and the question for an ignore file");
    asked(&test_cluster, "t1").await;
    assert_eq!(test_cluster.bucket.counts(), (2, 5));
    let events = test_cluster.events().await;
    let stored = "NewArtifact: stored artifact with 3 fetched files from 'apps' bucket";
    assert!(events.iter().any(|e| e == stored), "{events:?}");
    // Another etag with the same content: another revision, the same bytes.
    test_cluster.bucket.put("apps", "a.yaml", "a: 1\n");
    let again = asked(&test_cluster, "t2").await;
    assert_ne!(self::revision(&again), revision);
    assert_eq!(again["status"]["artifact"]["digest"], app["status"]["artifact"]["digest"]);
    assert_eq!(test_cluster.bucket.login(), "anonymous");
}

#[tokio::test(start_paused = true)]
async fn prefixes_and_ignore_files() {
    let test_cluster = TestCluster::start(2).await;
    for key in ["prod/a.yaml", "prod/b.txt", "prod/keep.txt", "dev/a.yaml", ".git/config"] {
        test_cluster.bucket.put("apps", key, key);
    }
    test_cluster.source("Bucket", "app", spec()).await;
    let all = test_cluster.ready("Bucket", "app").await;
    // No default rules for buckets.
    assert!(names(&test_cluster, &all).contains(&".git/config".to_owned()));
    test_cluster.bucket.put("apps", ".sourceignore", "*.txt\n");
    let mut filtered = with("prefix", json!("prod/"));
    filtered["ignore"] = json!("!keep.txt\n");
    test_cluster.source("Bucket", "app", filtered).await;
    let some = test_cluster.until("Bucket", "app", |o| o["status"]["observedIgnore"] == "!keep.txt\n").await;
    assert_eq!(names(&test_cluster, &some), ["", ".sourceignore", "prod", "prod/a.yaml", "prod/keep.txt"]);
    let events = test_cluster.events().await;
    assert!(events.iter().any(|e| e.contains("with 2 fetched files")), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn failures_are_reported_and_the_old_artifact_stays() {
    let test_cluster = TestCluster::start(3).await;
    test_cluster.source("Bucket", "app", spec()).await;
    let failed = test_cluster.failed("Bucket", "app").await;
    let fetch = condition(&failed, "FetchFailed");
    assert_eq!(
        (&fetch["reason"], &fetch["message"]),
        (&json!("BucketOperationFailed"), &json!("bucket 'apps' not found"))
    );
    test_cluster.bucket.put("apps", "a.yaml", "a: 1\n");
    let before = test_cluster.ready("Bucket", "app").await;
    test_cluster.bucket.fail(Some((403, "AccessDenied", "Access Denied.")));
    test_cluster.request("Bucket", "app", "t1").await;
    let failed = test_cluster.failed("Bucket", "app").await;
    assert_eq!(
        condition(&failed, "Ready")["message"],
        "failed to confirm existence of 'apps' bucket: Access Denied."
    );
    assert_eq!(failed["status"]["artifact"], before["status"]["artifact"]);
    test_cluster.bucket.fail(None);
    test_cluster.ready("Bucket", "app").await;
    let events = test_cluster.events().await;
    let recovered = "Succeeded: stored artifact with 1 fetched files from 'apps' bucket";
    assert!(events.iter().any(|e| e == recovered), "{events:?}");
}

/// An object that goes between the listing and its turn is left out, and the revision is of what is there.
#[tokio::test(start_paused = true)]
async fn vanished_object_is_left_out() {
    let test_cluster = TestCluster::start(4).await;
    test_cluster.bucket.put("apps", "a.yaml", "a: 1\n");
    test_cluster.source("Bucket", "app", spec()).await;
    let alone = revision(&test_cluster.ready("Bucket", "app").await);
    test_cluster.bucket.put("apps", "gone/b.yaml", "b: 1\n");
    test_cluster.bucket.vanish("gone/b.yaml");
    let after = asked(&test_cluster, "t1").await;
    assert_eq!(revision(&after), alone);
    assert_eq!(names(&test_cluster, &after), ["", "a.yaml"]);
}

/// E09: keys that lead elsewhere are refused whole; nothing of the bucket is published.
#[tokio::test(start_paused = true)]
async fn keys_that_lead_out_are_refused() {
    let test_cluster = TestCluster::start(5).await;
    test_cluster.bucket.put("apps", "a.yaml", "a: 1\n");
    test_cluster.source("Bucket", "app", spec()).await;
    let before = test_cluster.ready("Bucket", "app").await;
    for (n, key) in
        ["../../etc/cron.d/x", "a/../../x", "..", "a.yaml/below", "/a.yaml"].into_iter().enumerate()
    {
        test_cluster.bucket.put("apps", key, "x");
        test_cluster.request("Bucket", "app", &format!("t{n}")).await;
        let failed = test_cluster.failed("Bucket", "app").await;
        let ready = condition(&failed, "Ready");
        assert_eq!(ready["reason"], "BucketOperationFailed", "{key}");
        let message = ready["message"].as_str().unwrap();
        assert!(message.starts_with("fetch from bucket 'apps' failed: failed to get '"), "{key}: {message}");
        assert_eq!(failed["status"]["artifact"], before["status"]["artifact"], "{key}");
        test_cluster.bucket.remove("apps", key);
        test_cluster.ready("Bucket", "app").await;
    }
    // Whoever cannot rename them leaves them out.
    test_cluster.bucket.put("apps", "../x", "x");
    test_cluster.source("Bucket", "app", with("ignore", json!("x\n"))).await;
    let healed = test_cluster
        .until("Bucket", "app", |o| {
            o["metadata"]["generation"] == 2 && condition(o, "Ready")["status"] == "True"
        })
        .await;
    assert_eq!(names(&test_cluster, &healed), ["", "a.yaml"]);
}

/// F01: Secrets of another namespace are not read; those of the own one are, by every field that names one.
#[tokio::test(start_paused = true)]
async fn credentials() {
    let test_cluster = TestCluster::start(6).await;
    test_cluster.bucket.put("apps", "a.yaml", "a: 1\n");
    test_cluster.source("Bucket", "app", with("secretRef", json!({"name": "keys"}))).await;
    let failed = test_cluster.failed("Bucket", "app").await;
    let message = |o: &Value| condition(o, "FetchFailed")["message"].as_str().unwrap_or_default().to_owned();
    assert_eq!(condition(&failed, "FetchFailed")["reason"], "AuthenticationFailed");
    assert_eq!(message(&failed), "failed to get secret 'default/keys': secrets \"keys\" not found");
    let secret = |data: Value| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, "stringData": data});
    test_cluster.apply(secret(json!({"accesskey": "me"}))).await;
    let told = "invalid 'keys' secret data: required fields 'accesskey' and 'secretkey'";
    test_cluster.until("Bucket", "app", |o| message(o) == told).await;
    test_cluster.apply(secret(json!({"accesskey": "me", "secretkey": "canary"}))).await;
    test_cluster.ready("Bucket", "app").await;
    assert_eq!(test_cluster.bucket.login(), "me");
    for (field, told) in [
        ("proxySecretRef", "failed to get proxy URL: secret 'default/none' not found"),
        ("certSecretRef", "failed to get TLS config: secret 'default/none' not found"),
    ] {
        test_cluster
            .source("Bucket", field.to_lowercase().as_str(), with(field, json!({"name": "none"})))
            .await;
        test_cluster.until("Bucket", &field.to_lowercase(), |o| message(o) == told).await;
    }
    let sts = json!({"provider": "ldap", "endpoint": "https://sts.example", "secretRef": {"name": "none"}});
    test_cluster.source("Bucket", "sts", with("sts", sts)).await;
    let told = "failed to get STS secret 'default/none': secrets \"none\" not found";
    test_cluster.until("Bucket", "sts", |o| message(o) == told).await;
    assert!(!test_cluster.events().await.iter().any(|e| e.contains("canary")));
}

/// What cannot be done is refused, and it is said what to do instead.
#[tokio::test(start_paused = true)]
async fn identities_of_clouds_are_refused() {
    let test_cluster = TestCluster::start(7).await;
    for provider in ["aws", "gcp", "azure"] {
        test_cluster.source("Bucket", provider, with("provider", json!(provider))).await;
        let failed = test_cluster.failed("Bucket", provider).await;
        let fetch = condition(&failed, "FetchFailed");
        assert_eq!(fetch["reason"], "AuthenticationFailed");
        assert!(fetch["message"].as_str().unwrap().contains("name it in spec.secretRef"), "{fetch}");
    }
    let mut account = with("provider", json!("aws"));
    account["serviceAccountName"] = json!("robot");
    test_cluster.source("Bucket", "account", account).await;
    let stalled =
        test_cluster.until("Bucket", "account", |o| condition(o, "Stalled")["status"] == "True").await;
    assert_eq!(condition(&stalled, "Stalled")["reason"], "FeatureGateDisabled");
    assert_eq!(condition(&stalled, "FetchFailed")["reason"], "FeatureGateDisabled");
    for (name, provider, data, told) in [
        ("g", "gcp", json!({"x": "y"}), "invalid 'g' secret data: required fields 'serviceaccount'"),
        ("h", "gcp", json!({"serviceaccount": "{}"}), "failed to create Google credentials from secret: "),
        (
            "z",
            "azure",
            json!({"tenantId": "y"}),
            "invalid 'z' secret data: requires a 'clientId' or 'accountKey' field",
        ),
        (
            "y",
            "azure",
            json!({"accountKey": "eA=="}),
            "failed to create shared credential from 'y' Secret data: failed to extract account name from endpoint: ",
        ),
    ] {
        test_cluster
            .apply(
                json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data}),
            )
            .await;
        let mut spec = with("provider", json!(provider));
        spec["secretRef"] = json!({"name": name});
        test_cluster.source("Bucket", name, spec).await;
        let failed = test_cluster.failed("Bucket", name).await;
        let message = condition(&failed, "FetchFailed")["message"].as_str().unwrap().to_owned();
        assert!(message.starts_with(told), "{message}");
    }
}

/// Suspended buckets rest; deleted ones take their files along.
#[tokio::test(start_paused = true)]
async fn suspended_and_deleted() {
    let test_cluster = TestCluster::start(8).await;
    test_cluster.bucket.put("apps", "a.yaml", "a: 1\n");
    test_cluster.source("Bucket", "app", spec()).await;
    let app = test_cluster.ready("Bucket", "app").await;
    assert_eq!(app["metadata"]["finalizers"], json!(["finalizers.fluxcd.io"]));
    test_cluster.source("Bucket", "app", with("suspend", json!(true))).await;
    test_cluster.bucket.put("apps", "a.yaml", "a: 2\n");
    let before = test_cluster.bucket.counts();
    test_cluster.request("Bucket", "app", "t1").await;
    tokio::time::sleep(Duration::from_secs(2 * 3600)).await;
    assert_eq!(test_cluster.bucket.counts(), before);
    let file = test_cluster.store.file(app["status"]["artifact"]["path"].as_str().unwrap()).unwrap();
    assert!(file.exists());
    let kind = fl_runtime::Kind::of::<fl_api::source::Bucket>();
    test_cluster.user.delete(&kind, Some(NAMESPACE), "app", &Delete::default()).await.unwrap();
    test_cluster.gone("Bucket", "app").await;
    assert!(!file.exists());
}

/// N01: no room for the new artifact; the old one is served.
#[tokio::test(start_paused = true)]
async fn a_disk_that_refuses_costs_nothing_but_the_new_artifact() {
    let test_cluster = TestCluster::start(9).await;
    test_cluster.bucket.put("apps", "a.yaml", "a: 1\n");
    test_cluster.source("Bucket", "app", spec()).await;
    let before = test_cluster.ready("Bucket", "app").await;
    // Learn the next revision, and put a directory where its file would go.
    test_cluster.bucket.put("apps", "b.yaml", "b: 1\n");
    test_cluster.source("Bucket", "probe", spec()).await;
    let next = revision(&test_cluster.ready("Bucket", "probe").await);
    let place = test_cluster.store.file(before["status"]["artifact"]["path"].as_str().unwrap()).unwrap();
    let blocked = place.with_file_name(format!("{}.tar.gz", next.strip_prefix("sha256:").unwrap()));
    std::fs::create_dir(&blocked).unwrap();
    test_cluster.request("Bucket", "app", "t1").await;
    let failed = test_cluster.failed("Bucket", "app").await;
    assert_eq!(condition(&failed, "StorageOperationFailed")["reason"], "ArchiveOperationFailed");
    assert_eq!(condition(&failed, "ArtifactOutdated")["message"], format!("new upstream revision '{next}'"));
    assert_eq!(failed["status"]["artifact"], before["status"]["artifact"]);
    assert!(place.exists());
    std::fs::remove_dir(&blocked).unwrap();
    test_cluster.until("Bucket", "app", |o| o["status"]["artifact"]["revision"] == next.as_str()).await;
}

/// Who depends on a bucket hears of its new revisions at once.
#[tokio::test(start_paused = true)]
async fn a_chart_in_a_bucket_follows_it() {
    let test_cluster = TestCluster::with(11, Options::default(), |test_cluster: &TestCluster| {
        let artifacts = ArtifactFetcher::new(Some(test_cluster.store.clone()), 0, None).unwrap();
        let resolver = Resolver::new(&test_cluster.runtime);
        let charts = HelmCharts::new(test_cluster.store.clone(), resolver, artifacts, HelmLimits::default());
        test_cluster.runtime.add(charts, 4);
    })
    .await;
    test_cluster.bucket.put("apps", "charts/web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.2.3\n");
    test_cluster.bucket.put("apps", "charts/web/values.yaml", "a: 1\n");
    test_cluster.source("Bucket", "app", spec()).await;
    let chart = json!({"chart": "charts/web", "interval": "1h", "reconcileStrategy": "Revision", "sourceRef": {"kind": "Bucket", "name": "app"}});
    test_cluster.source("HelmChart", "web", chart).await;
    let version = |bucket: &Value| format!("1.2.3+{}", &revision(bucket)["sha256:".len()..][..12]);
    let (bucket, chart) =
        (test_cluster.ready("Bucket", "app").await, test_cluster.ready("HelmChart", "web").await);
    assert_eq!(chart["status"]["artifact"]["revision"], version(&bucket));
    test_cluster.bucket.put("apps", "charts/web/values.yaml", "a: 2\n");
    let next = version(&asked(&test_cluster, "t1").await);
    let start = tokio::time::Instant::now();
    test_cluster.until("HelmChart", "web", |o| o["status"]["artifact"]["revision"] == next.as_str()).await;
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}

/// What a server answers that has 300 objects, one of them large, on pages of 100.
fn store(asked: &server::Asked) -> server::Answer {
    let keys: Vec<String> = (0..300).map(|n| format!("apps/{:03}/{n}.yaml", n % 7)).collect();
    let content =
        |key: &str| if key == "apps/003/3.yaml" { "x".repeat(300_000) } else { format!("key: {key}\n") };
    if !asked.headers.get("authorization").is_some_and(|a| a.contains("Credential=me/")) {
        return server::refusal(403, "AccessDenied", "Access Denied.");
    }
    if asked.query("location").is_some() {
        return server::xml(200, "<LocationConstraint/>");
    }
    if asked.query("list-type").is_some() {
        let from: usize = asked.query("continuation-token").map_or(0, |t| t.parse().unwrap());
        let objects: String = keys[from..(from + 100).min(300)]
            .iter()
            .map(|k| format!("<Contents><Key>{k}</Key><ETag>&quot;1&quot;</ETag></Contents>"))
            .collect();
        let next = if from + 100 < 300 {
            format!(
                "<IsTruncated>true</IsTruncated><NextContinuationToken>{}</NextContinuationToken>",
                from + 100
            )
        } else {
            String::new()
        };
        return server::xml(200, format!("<ListBucketResult>{next}{objects}</ListBucketResult>"));
    }
    match asked.path().strip_prefix("/apps/").unwrap() {
        "" => server::xml(200, ""),
        key if keys.iter().any(|k| k == key) => {
            (200, vec![("etag", "\"1\"".to_owned())], content(key).into_bytes())
        }
        _ => server::refusal(404, "NoSuchKey", "none"),
    }
}

/// The whole way, with a server on loopback: signed requests, pages, many objects at once.
#[tokio::test(flavor = "multi_thread")]
async fn over_the_network() {
    let test_cluster = TestCluster::start(10).await;
    test_cluster.bucket.reach_out();
    let peer = server::start(true, store).await;
    test_cluster.apply(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, "stringData": {"accesskey": "me", "secretkey": "canary"}})).await;
    let spec = json!({"bucketName": "apps", "endpoint": peer.host, "insecure": true, "interval": "1h", "secretRef": {"name": "keys"}});
    test_cluster.source("Bucket", "app", spec).await;
    let app = test_cluster.ready("Bucket", "app").await;
    let path = app["status"]["artifact"]["path"].as_str().unwrap();
    let file = std::fs::File::open(test_cluster.store.file(path).unwrap()).unwrap();
    let (mut files, mut directories, mut last) = (0, 0, String::new());
    read_tar_gz(file, &ReadLimits::default(), |entry, content| {
        let mut text = String::new();
        content.read_to_string(&mut text).map_err(ReadError::from)?;
        if entry.name.ends_with(".yaml") {
            let want = if entry.name == "apps/003/3.yaml" {
                300_000
            } else {
                format!("key: {}\n", entry.name).len()
            };
            assert_eq!(text.len(), want, "{}", entry.name);
            assert!(last.split('/').lt(entry.name.split('/')), "{last} {}", entry.name);
            last.clone_from(&entry.name);
            files += 1;
        } else {
            directories += 1;
        }
        Ok::<_, ReadError>(())
    })
    .unwrap();
    assert_eq!((files, directories), (300, 9));
    // Where it is, whether it is, the ignore file, three pages, and every object once.
    assert_eq!(peer.requests().len(), 306);
    asked(&test_cluster, "t1").await;
    assert_eq!(peer.requests().len(), 306 + 6, "an unchanged bucket costs a listing");
}
