//! A CustomResourceDefinition with the names of a built-in kind is not served, and deleting it deletes none of its objects.

mod client;

use fl_apiserver::ApiServer;
use fl_apiserver::store::Store;
use serde_json::{Value, json};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";

async fn ask(server: &ApiServer, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let response = client::send(server, method, path, "application/json", body).await;
    (response.status().as_u16(), serde_json::from_slice(response.body()).unwrap_or(Value::Null))
}

fn definition(group: &str, version: &str, plural: &str, kind: &str) -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}"),
            "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes/enhancements/pull/1111"}},
        "spec": {"group": group, "scope": "Cluster",
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List")},
            "versions": [{"name": version, "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}})
}

fn condition<'a>(definition: &'a Value, kind: &str) -> &'a Value {
    let conditions = definition["status"]["conditions"].as_array();
    conditions.into_iter().flatten().find(|c| c["type"] == kind).unwrap_or(&Value::Null)
}

/// The definition once the server has decided about its names.
async fn decided(server: &ApiServer, name: &str) -> Value {
    for _ in 0..500 {
        let (_, definition) = ask(server, "GET", &format!("{DEFINITIONS}/{name}"), &Value::Null).await;
        if !condition(&definition, "NamesAccepted").is_null() {
            return definition;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("nothing was decided about {name}");
}

async fn role_names(server: &ApiServer) -> Vec<String> {
    let (code, list) = ask(server, "GET", ROLES, &Value::Null).await;
    assert_eq!(code, 200, "{list}");
    let items = list["items"].as_array().cloned().unwrap_or_default();
    items.iter().map(|role| role["metadata"]["name"].as_str().unwrap_or_default().to_owned()).collect()
}

#[tokio::test]
async fn a_definition_does_not_take_the_place_of_a_built_in_kind() {
    let server = ApiServer::in_memory().await.expect("the server starts");
    let roles = role_names(&server).await;
    assert!(roles.len() > 10);
    let name = "clusterroles.rbac.authorization.k8s.io";
    // A version of its own is no way around either: all versions of a resource share their objects.
    for version in ["v1", "v2"] {
        let body = definition("rbac.authorization.k8s.io", version, "clusterroles", "ClusterRole");
        let (code, made) = ask(&server, "POST", DEFINITIONS, &body).await;
        assert_eq!(code, 201, "{made}");
        let held = decided(&server, name).await;
        let accepted = condition(&held, "NamesAccepted");
        assert_eq!((&accepted["status"], &accepted["reason"]), (&json!("False"), &json!("ListKindConflict")));
        assert_eq!(condition(&held, "Established")["status"], "False");
        let path = format!("/apis/rbac.authorization.k8s.io/{version}/clusterroles");
        let junk = json!({"apiVersion": format!("rbac.authorization.k8s.io/{version}"), "kind": "ClusterRole",
            "metadata": {"name": "junk"}, "rules": "none"});
        assert!(ask(&server, "POST", &path, &junk).await.0 >= 400, "the rules of the built-in kind hold");
        assert_eq!(role_names(&server).await, roles);

        let (code, _) = ask(&server, "DELETE", &format!("{DEFINITIONS}/{name}"), &Value::Null).await;
        assert_eq!(code, 200);
        for _ in 0..500 {
            if ask(&server, "GET", &format!("{DEFINITIONS}/{name}"), &Value::Null).await.0 == 404 {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        assert_eq!(ask(&server, "GET", &format!("{DEFINITIONS}/{name}"), &Value::Null).await.0, 404);
        assert_eq!(role_names(&server).await, roles, "no role went with the definition");
    }
}

#[tokio::test]
async fn the_kind_of_a_built_in_group_is_taken_too() {
    let server = ApiServer::in_memory().await.expect("the server starts");
    let body = definition("apps", "v1alpha1", "deploys", "Deployment");
    // Groups without a dot may be refused by validation already.
    assert!(
        ask(&server, "POST", DEFINITIONS, &body).await.0 >= 400 || !served(&server, "deploys.apps").await
    );
    let body = definition("networking.k8s.io", "v9", "ings", "Ingress");
    assert_eq!(ask(&server, "POST", DEFINITIONS, &body).await.0, 201);
    assert!(!served(&server, "ings.networking.k8s.io").await);
    let body = definition("example.io", "v1", "deployments", "Deployment");
    assert_eq!(ask(&server, "POST", DEFINITIONS, &body).await.0, 201);
    assert!(served(&server, "deployments.example.io").await, "other groups have their own names");
}

async fn served(server: &ApiServer, name: &str) -> bool {
    condition(&decided(server, name).await, "Established")["status"] == "True"
}

#[tokio::test]
async fn a_definition_established_by_an_older_server_stops_being_served() {
    use fl_apiserver::store::{Change, Expect};
    let store = Store::in_memory();
    let name = "clusterroles.rbac.authorization.k8s.io";
    let mut body = definition("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole");
    body["metadata"]["uid"] = json!("u");
    body["metadata"]["generation"] = json!(1);
    let condition_of = |kind: &str| {
        json!({"type": kind, "status": "True", "reason": "R", "message": "m",
        "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    body["status"] = json!({"acceptedNames": body["spec"]["names"], "storedVersions": ["v1"],
        "conditions": [condition_of("NamesAccepted"), condition_of("Established")]});
    store
        .commit(
            "apiextensions.k8s.io/customresourcedefinitions",
            &format!("/{name}"),
            Expect::Absent,
            Change::Put(body),
        )
        .await
        .expect("written");
    let server = ApiServer::new(store, fl_apiserver::Options::default()).await.expect("the server starts");
    assert!(role_names(&server).await.len() > 10);
    let junk = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "junk"}, "rules": "none"});
    assert!(ask(&server, "POST", ROLES, &junk).await.0 >= 400, "the built-in kind answers");
    assert_eq!(ask(&server, "DELETE", &format!("{DEFINITIONS}/{name}"), &Value::Null).await.0, 200);
    for _ in 0..100 {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert!(role_names(&server).await.len() > 10, "no role went with the definition");
}
