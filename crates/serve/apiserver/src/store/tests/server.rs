//! What clients of the API server see when the disk fails.

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};

use super::*;
use crate::{ApiServer, ConnectionInfo, Options, User};

async fn start(disk: &Disk) -> ApiServer {
    let (mut store, writer, queue) =
        Store::prepare(Arc::new(disk.clone()), Sync::Always, Sizes::default(), Instant::now())
            .expect("opens");
    store.writer = Some(Arc::new(writer.start(queue).expect("a thread")));
    ApiServer::new(store, Options::default()).await.expect("the server starts")
}

async fn ask(server: &ApiServer, method: &str, path: &str, body: &Value) -> Response<Bytes> {
    let body = if method == "GET" { String::new() } else { body.to_string() };
    let request = Request::builder().method(method).uri(path).header("host", "localhost");
    let request = request.header("content-type", "application/json").body(Full::new(Bytes::from(body)));
    let peer = ConnectionInfo { user: Some(User::superuser("test")) };
    let (parts, body) = server.handle(request.expect("a request"), peer).await.into_parts();
    Response::from_parts(parts, body.collect().await.expect("a body").to_bytes())
}

fn text(response: &Response<Bytes>) -> String {
    String::from_utf8_lossy(response.body()).into_owned()
}

fn configmap(name: &str, data: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": data}})
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const ONE: &str = "/api/v1/namespaces/default/configmaps/one";

#[tokio::test(flavor = "multi_thread")]
async fn health_reports_a_full_disk_until_space_is_free() {
    let disk = Disk::new(1);
    let server = start(&disk).await;
    for page in ["/readyz", "/livez", "/healthz", "/readyz/etcd"] {
        assert_eq!(ask(&server, "GET", page, &Value::Null).await.status(), 200, "{page}");
    }
    disk.leave_room(0);
    let large = "x".repeat(900_000);
    let mut refused = None;
    for i in 0..8 {
        let answer = ask(&server, "POST", MAPS, &configmap(&format!("large{i}"), &large)).await;
        if answer.status() != 201 {
            refused = Some(answer);
            break;
        }
    }
    let refused = refused.expect("the disk is full");
    assert_eq!(refused.status(), 500);
    assert!(
        text(&refused).contains("no storage space") && text(&refused).contains("free space"),
        "{refused:?}"
    );
    let next = ask(&server, "POST", MAPS, &configmap("one", "small")).await;
    assert_eq!(next.status(), 503, "{}", text(&next));
    assert!(text(&next).contains("takes no writes"), "{}", text(&next));
    assert_eq!(ask(&server, "GET", MAPS, &Value::Null).await.status(), 200, "reads go on");
    for page in ["/readyz", "/livez", "/healthz", "/readyz/etcd", "/readyz?verbose"] {
        let answer = ask(&server, "GET", page, &Value::Null).await;
        assert_eq!(answer.status(), 500, "{page}");
        assert!(text(&answer).contains("no storage space"), "{page}: {}", text(&answer));
        assert!(!text(&answer).contains("/disk"), "{page} names no path: {}", text(&answer));
    }
    let listed = text(&ask(&server, "GET", "/readyz", &Value::Null).await);
    assert!(listed.contains("[+]ping ok\n") && listed.contains("[-]etcd failed: "), "{listed}");
    assert!(listed.ends_with("readyz check failed\n"), "{listed}");
    for page in ["/readyz/ping", "/readyz?exclude=etcd"] {
        assert_eq!(ask(&server, "GET", page, &Value::Null).await.status(), 200, "{page}");
    }
    disk.free();
    let begin = Instant::now();
    while ask(&server, "GET", "/readyz", &Value::Null).await.status() != 200 {
        assert!(begin.elapsed() < Duration::from_secs(20), "it recovers by itself");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(ask(&server, "POST", MAPS, &configmap("one", "small")).await.status(), 201);
}

/// Sends requests that write nothing, but whose response depends on a write that is not durable.
async fn check_responses_to_pending_writes(end_in_failure: bool) {
    let disk = Disk::new(2);
    let server = start(&disk).await;
    let created = ask(&server, "POST", MAPS, &configmap("one", "first")).await;
    assert_eq!(created.status(), 201);
    disk.block_syncs();
    let spawn = |method: &'static str, path: &'static str, body: Value| {
        let server = server.clone();
        tokio::spawn(async move { ask(&server, method, path, &body).await.status().as_u16() })
    };
    let change = spawn("PUT", ONE, configmap("one", "second"));
    let create = spawn("POST", MAPS, configmap("two", "new"));
    disk.wait_for_sync();
    tokio::time::sleep(Duration::from_millis(50)).await;
    let pending = [
        spawn("PUT", ONE, configmap("one", "second")),
        spawn("PUT", "/api/v1/namespaces/default/configmaps/one?dryRun=All", configmap("one", "third")),
        spawn("POST", MAPS, configmap("two", "again")),
    ];
    tokio::time::sleep(Duration::from_millis(150)).await;
    assert!(pending.iter().all(|answer| !answer.is_finished()), "not answered before it is durable");
    let read = text(&ask(&server, "GET", ONE, &Value::Null).await);
    assert!(read.contains("first"), "a read shows what is durable: {read}");
    if end_in_failure {
        disk.fail_syncs(1);
    }
    disk.release_syncs();
    let mut codes = Vec::new();
    for answer in [change, create].into_iter().chain(pending) {
        codes.push(answer.await.expect("no panic"));
    }
    let read = text(&ask(&server, "GET", ONE, &Value::Null).await);
    if end_in_failure {
        assert!(codes.iter().all(|&code| code == 500 || code == 503), "{codes:?}");
        assert!(read.contains("first"), "{read}");
    } else {
        assert_eq!(codes, [200, 201, 200, 200, 409]);
        assert!(read.contains("second"), "{read}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unchanged_write_is_answered_when_durable() {
    check_responses_to_pending_writes(false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unchanged_write_fails_when_the_pending_write_is_lost() {
    check_responses_to_pending_writes(true).await;
}
