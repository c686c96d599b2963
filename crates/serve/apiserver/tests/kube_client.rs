//! kube's client on the in-process service: no socket, no TLS, no credentials.

use fl_apiserver::{ApiServer, User};
use futures::TryStreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, ListParams, Patch, PatchParams, WatchEvent, WatchParams};
use serde_json::json;

fn client(server: &ApiServer, user: User) -> kube::Client {
    kube::Client::new(server.service(user), "default")
}

#[tokio::test]
async fn applies_lists_and_watches() {
    let server = ApiServer::in_memory().await.expect("the server starts");
    let client = client(&server, User::superuser("test"));
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let start = maps.list(&ListParams::default()).await.expect("a list").metadata.resource_version;

    let wanted =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}});
    let applied =
        maps.patch("a", &PatchParams::apply("test"), &Patch::Apply(&wanted)).await.expect("applied");
    assert_eq!(applied.metadata.managed_fields.expect("an owner")[0].manager.as_deref(), Some("test"));

    let events = maps.watch(&WatchParams::default(), &start.expect("a revision")).await.expect("a watch");
    let first = std::pin::pin!(events).try_next().await.expect("an event");
    assert!(matches!(first, Some(WatchEvent::Added(map)) if map.metadata.name.as_deref() == Some("a")));

    let version = client.apiserver_version().await.expect("a version");
    assert_eq!(version.major, "1");
}

#[tokio::test]
async fn users_are_authorized() {
    let server = ApiServer::in_memory().await.expect("the server starts");
    let nobody = client(&server, User { name: "nobody".into(), ..User::default() });
    let refused = Api::<Namespace>::all(nobody).list(&ListParams::default()).await;
    assert!(matches!(refused, Err(kube::Error::Api(status)) if status.code == 403));
}

/// A paused clock advances when every task sleeps, so that tests can control time.
#[tokio::test(start_paused = true)]
async fn paused_clock_drives_the_controllers() {
    let server = ApiServer::in_memory().await.expect("the server starts");
    let namespaces: Api<Namespace> = Api::all(client(&server, User::superuser("test")));
    let named = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gone"}});
    namespaces.patch("gone", &PatchParams::apply("test"), &Patch::Apply(&named)).await.expect("applied");
    namespaces.delete("gone", &kube::api::DeleteParams::default()).await.expect("deleted");
    for _ in 0..1000 {
        if namespaces.get_opt("gone").await.expect("an answer").is_none() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("the namespace stayed");
}
