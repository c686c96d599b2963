//! A CustomResourceDefinition with the names of a built-in kind is not served, and deleting it deletes no
//! objects of the built-in kind.

mod client;

use fl_apiserver::ApiServer;
use fl_apiserver::store::Store;
use serde_json::{Value, json};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";

async fn send(server: &ApiServer, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let response = client::send(server, method, path, "application/json", body).await;
    (response.status().as_u16(), serde_json::from_slice(response.body()).unwrap_or(Value::Null))
}

fn crd(group: &str, version: &str, plural: &str, kind: &str) -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}"),
            "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes/enhancements/pull/1111"}},
        "spec": {"group": group, "scope": "Cluster",
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List")},
            "versions": [{"name": version, "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}})
}

fn condition<'a>(crd: &'a Value, kind: &str) -> &'a Value {
    let conditions = crd["status"]["conditions"].as_array();
    conditions.into_iter().flatten().find(|c| c["type"] == kind).unwrap_or(&Value::Null)
}

/// Waits until the server has accepted or rejected the names of a CRD.
async fn wait_for_names(server: &ApiServer, name: &str) -> Value {
    for _ in 0..500 {
        let (_, crd) = send(server, "GET", &format!("{CRDS}/{name}"), &Value::Null).await;
        if !condition(&crd, "NamesAccepted").is_null() {
            return crd;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("nothing was decided about {name}");
}

async fn role_names(server: &ApiServer) -> Vec<String> {
    let (code, list) = send(server, "GET", ROLES, &Value::Null).await;
    assert_eq!(code, 200, "{list}");
    let items = list["items"].as_array().cloned().unwrap_or_default();
    items.iter().map(|role| role["metadata"]["name"].as_str().unwrap_or_default().to_owned()).collect()
}

#[tokio::test]
async fn crd_does_not_replace_a_built_in_kind() {
    let server = ApiServer::in_memory().await.expect("the server starts");
    let roles = role_names(&server).await;
    assert!(roles.len() > 10);
    let name = "clusterroles.rbac.authorization.k8s.io";
    // Another version does not help: all versions of a resource share their objects.
    for version in ["v1", "v2"] {
        let body = crd("rbac.authorization.k8s.io", version, "clusterroles", "ClusterRole");
        let (code, made) = send(&server, "POST", CRDS, &body).await;
        assert_eq!(code, 201, "{made}");
        let held = wait_for_names(&server, name).await;
        let accepted = condition(&held, "NamesAccepted");
        assert_eq!((&accepted["status"], &accepted["reason"]), (&json!("False"), &json!("ListKindConflict")));
        assert_eq!(condition(&held, "Established")["status"], "False");
        let path = format!("/apis/rbac.authorization.k8s.io/{version}/clusterroles");
        let junk = json!({"apiVersion": format!("rbac.authorization.k8s.io/{version}"), "kind": "ClusterRole",
            "metadata": {"name": "junk"}, "rules": "none"});
        assert!(send(&server, "POST", &path, &junk).await.0 >= 400, "the rules of the built-in kind hold");
        assert_eq!(role_names(&server).await, roles);

        let (code, _) = send(&server, "DELETE", &format!("{CRDS}/{name}"), &Value::Null).await;
        assert_eq!(code, 200);
        for _ in 0..500 {
            if send(&server, "GET", &format!("{CRDS}/{name}"), &Value::Null).await.0 == 404 {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        assert_eq!(send(&server, "GET", &format!("{CRDS}/{name}"), &Value::Null).await.0, 404);
        assert_eq!(role_names(&server).await, roles, "no role went with the definition");
    }
}

#[tokio::test]
async fn crd_with_the_kind_of_a_built_in_group_is_rejected() {
    let server = ApiServer::in_memory().await.expect("the server starts");
    let body = crd("apps", "v1alpha1", "deploys", "Deployment");
    // Groups without a dot may be refused by validation already.
    assert!(send(&server, "POST", CRDS, &body).await.0 >= 400 || !served(&server, "deploys.apps").await);
    let body = crd("networking.k8s.io", "v9", "ings", "Ingress");
    assert_eq!(send(&server, "POST", CRDS, &body).await.0, 201);
    assert!(!served(&server, "ings.networking.k8s.io").await);
    let body = crd("example.io", "v1", "deployments", "Deployment");
    assert_eq!(send(&server, "POST", CRDS, &body).await.0, 201);
    assert!(served(&server, "deployments.example.io").await, "other groups have their own names");
}

async fn served(server: &ApiServer, name: &str) -> bool {
    condition(&wait_for_names(server, name).await, "Established")["status"] == "True"
}

#[tokio::test]
async fn conflicting_crd_of_an_older_server_is_no_longer_served() {
    use fl_apiserver::store::{Change, Precondition};
    let store = Store::in_memory();
    let name = "clusterroles.rbac.authorization.k8s.io";
    let mut body = crd("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole");
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
            Precondition::Absent,
            Change::Put(body),
        )
        .await
        .expect("written");
    let server = ApiServer::new(store, fl_apiserver::Options::default()).await.expect("the server starts");
    assert!(role_names(&server).await.len() > 10);
    let junk = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "junk"}, "rules": "none"});
    assert!(send(&server, "POST", ROLES, &junk).await.0 >= 400, "the built-in kind answers");
    assert_eq!(send(&server, "DELETE", &format!("{CRDS}/{name}"), &Value::Null).await.0, 200);
    for _ in 0..100 {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert!(role_names(&server).await.len() > 10, "no role went with the definition");
}

/// Requests under the group version of a built-in group never reach the handler of custom resources.
#[tokio::test]
async fn crd_is_not_served_in_the_version_of_a_built_in_group() {
    let server = ApiServer::in_memory().await.expect("the server starts");
    let mut body = crd("networking.k8s.io", "v1", "foos", "Foo");
    body["spec"]["scope"] = json!("Namespaced");
    let mut alpha = body["spec"]["versions"][0].clone();
    (alpha["name"], alpha["storage"]) = (json!("v2alpha1"), json!(false));
    body["spec"]["versions"].as_array_mut().expect("versions").push(alpha);
    let (code, made) = send(&server, "POST", CRDS, &body).await;
    assert_eq!(code, 201, "{made}");
    assert!(served(&server, "foos.networking.k8s.io").await, "names are accepted and the CRD is established");

    let path = |version: &str| format!("/apis/networking.k8s.io/{version}/namespaces/default/foos");
    let foo = |version: &str, name: &str| json!({"apiVersion": format!("networking.k8s.io/{version}"), "kind": "Foo", "metadata": {"name": name}});
    for method in ["GET", "POST"] {
        let body = if method == "POST" { foo("v1", "a") } else { Value::Null };
        assert_eq!(send(&server, method, &path("v1"), &body).await.0, 404, "{method}");
    }
    assert_eq!(send(&server, "GET", &format!("{}/a", path("v1")), &Value::Null).await.0, 404);
    let (_, resources) = send(&server, "GET", "/apis/networking.k8s.io/v1", &Value::Null).await;
    let names: Vec<&Value> =
        resources["resources"].as_array().expect("resources").iter().map(|r| &r["name"]).collect();
    assert!(names.contains(&&json!("ingresses")) && !names.contains(&&json!("foos")), "{names:?}");

    // A version that the built-in group does not have is served.
    let (code, made) = send(&server, "POST", &path("v2alpha1"), &foo("v2alpha1", "a")).await;
    assert_eq!(code, 201, "{made}");
    assert_eq!(send(&server, "DELETE", &format!("{CRDS}/foos.networking.k8s.io"), &Value::Null).await.0, 200);
    for _ in 0..500 {
        if send(&server, "GET", &format!("{CRDS}/foos.networking.k8s.io"), &Value::Null).await.0 == 404 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(send(&server, "GET", &format!("{CRDS}/foos.networking.k8s.io"), &Value::Null).await.0, 404);
    assert_eq!(send(&server, "GET", "/apis/networking.k8s.io/v1/ingresses", &Value::Null).await.0, 200);
}
