//! `Impersonate-*` and other headers that decide the user of a request: an unreadable header rejects the
//! request.

use bytes::Bytes;
use fl_apiserver::{ApiServer, ConnectionInfo, User};
use http::{HeaderValue, Request};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};

const WHO_AM_I: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

/// Returns the user as which the server runs the request.
async fn who(server: &ApiServer, headers: &[(&'static str, &[u8])]) -> (u16, Value) {
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let mut request = Request::builder()
        .method("POST")
        .uri(WHO_AM_I)
        .header("host", "localhost")
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body.to_string())))
        .expect("a request");
    for (name, value) in headers {
        request.headers_mut().append(*name, HeaderValue::from_bytes(value).expect("a header value"));
    }
    let response = server.handle(request, ConnectionInfo { user: Some(User::superuser("admin")) }).await;
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.expect("a body").to_bytes();
    (code, serde_json::from_slice(&body).unwrap_or(Value::Null))
}

#[tokio::test]
async fn non_ascii_user_name_is_rejected() {
    let server = ApiServer::in_memory().await.expect("the server starts");
    let (code, body) = who(&server, &[("impersonate-user", b"jane")]).await;
    assert_eq!((code, &body["status"]["userInfo"]["username"]), (201, &json!("jane")), "{body}");
    for name in ["jürgen".as_bytes(), b"j\xfcrgen", b"\xff", b""] {
        let (code, body) = who(&server, &[("impersonate-user", name)]).await;
        assert_eq!(code, 400, "{name:?}: {body}");
    }
}

#[tokio::test]
async fn unreadable_headers_are_400() {
    let server = ApiServer::in_memory().await.expect("the server starts");
    for name in ["impersonate-uid", "impersonate-group", "impersonate-extra-scopes"] {
        let (code, body) = who(&server, &[("impersonate-user", b"jane"), (name, b"\xfc")]).await;
        assert_eq!(code, 400, "{name}: {body}");
    }
    for name in ["authorization", "accept", "origin", "sec-fetch-site", "user-agent", "if-none-match"] {
        let (code, body) = who(&server, &[(name, b"\xfc")]).await;
        assert_eq!(code, 400, "{name}: {body}");
    }
    let (code, _) = who(&server, &[("x-request-note", b"\xfc")]).await;
    assert_eq!(code, 201, "a header without meaning is not read");
}

#[tokio::test]
async fn two_impersonated_users_are_rejected() {
    let server = ApiServer::in_memory().await.expect("the server starts");
    for names in [[&b"jane"[..], b"john"], [b"jane", b"jane"], [b"", b"jane"]] {
        let headers = names.map(|name| ("impersonate-user", name));
        assert_eq!(who(&server, &headers).await.0, 400, "{names:?}");
    }
}

#[tokio::test]
async fn groups_extra_and_uid_need_a_user() {
    let server = ApiServer::in_memory().await.expect("the server starts");
    for header in ["impersonate-group", "impersonate-extra-scopes", "impersonate-uid"] {
        // kube-apiserver's code.
        assert_eq!(who(&server, &[(header, b"x")]).await.0, 500, "{header}");
    }
    assert!(who(&server, &[("impersonate-group", b"")]).await.0 >= 400);
}
