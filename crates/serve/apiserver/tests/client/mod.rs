//! A client of a server in the same process, with all rights.

use bytes::Bytes;
use fl_apiserver::{ApiServer, ConnectionInfo, User};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};

pub(crate) async fn send(
    server: &ApiServer,
    method: &str,
    path: &str,
    media: &str,
    body: String,
) -> Response<Bytes> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", "localhost")
        .header("content-type", media)
        .header("user-agent", "test/1")
        .body(Full::new(Bytes::from(body)))
        .expect("a request");
    let response = server.handle(request, ConnectionInfo { user: Some(User::superuser("test")) }).await;
    let (parts, body) = response.into_parts();
    Response::from_parts(parts, body.collect().await.expect("a body").to_bytes())
}
