//! The embedded API server on a port of its own, and requests to it.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use fl_apiserver::store::Store;
use fl_apiserver::{ApiServer, Listener, Options, User};
use fl_http::{Client, Method, Request, Settings, StatusCode, header};
use serde_json::Value;

const TOKEN: &str = "tests";

pub(crate) struct Server {
    pub(crate) url: String,
    client: Client,
    /// API version -> its resources; asked for once they hold what is wanted.
    served: Mutex<HashMap<String, Value>>,
}

impl Server {
    pub(crate) async fn start() -> Server {
        let listener = Listener::bind(([127, 0, 0, 1], 0).into(), None).await.expect("a port");
        let url = listener.url();
        let tokens = [(TOKEN.to_owned(), User::superuser("tests"))].into();
        let options = Options { tokens, ..Options::default() };
        let server = ApiServer::new(Store::in_memory(), options).await.expect("a server");
        tokio::spawn(listener.serve(server));
        let client = Client::new(Settings::new(fl_http::Owner::engine())).expect("a client");
        Server { url, client, served: Mutex::default() }
    }

    async fn send(&self, method: Method, path: &str, content: &str, body: String) -> (StatusCode, Value) {
        let request = Request::new(method, &format!("{}{path}", self.url)).expect("an address");
        let request = request
            .header(header::AUTHORIZATION, &format!("Bearer {TOKEN}"))
            .and_then(|r| r.header(header::CONTENT_TYPE, content))
            .expect("headers");
        let answer = self.client.send(request.body(body)).await.expect("an answer");
        let status = answer.status();
        let bytes = answer.bytes(64 << 20).await.expect("a body");
        (status, serde_json::from_slice(&bytes).unwrap_or_default())
    }

    async fn resource(&self, base: &str, kind: &str) -> Option<(String, bool)> {
        let known = self.served.lock().expect("no panic").get(base).cloned();
        let find = |list: &Value| {
            let all = list["resources"].as_array()?;
            let fits = |r: &&Value| r["kind"] == kind && r["name"].as_str().is_some_and(|n| !n.contains('/'));
            let found = all.iter().find(fits)?;
            Some((found["name"].as_str()?.to_owned(), found["namespaced"] == true))
        };
        if let Some(found) = known.as_ref().and_then(find) {
            return Some(found);
        }
        let (_, list) = self.send(Method::GET, base, "application/json", String::new()).await;
        self.served.lock().expect("no panic").insert(base.to_owned(), list.clone());
        find(&list)
    }

    /// Applies an object with strict checks of its fields; panics with the server's words when it is refused.
    pub(crate) async fn take(&self, object: &Value) {
        let (api, kind) =
            (object["apiVersion"].as_str().expect("apiVersion"), object["kind"].as_str().expect("kind"));
        let base = if api.contains('/') { format!("/apis/{api}") } else { format!("/api/{api}") };
        let mut found = self.resource(&base, kind).await;
        // A definition that was just taken is served a moment later.
        for _ in 0..100 {
            if found.is_some() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
            found = self.resource(&base, kind).await;
        }
        let (plural, namespaced) = found.unwrap_or_else(|| panic!("{api} {kind} is not served"));
        let place = match object["metadata"]["namespace"].as_str() {
            Some(namespace) if namespaced => format!("{base}/namespaces/{namespace}"),
            None if namespaced => format!("{base}/namespaces/default"),
            _ => base,
        };
        let name = object["metadata"]["name"].as_str().expect("a name");
        let path = format!("{place}/{plural}/{name}?fieldManager=tests&force=true&fieldValidation=Strict");
        let (status, answer) =
            self.send(Method::PATCH, &path, "application/apply-patch+yaml", object.to_string()).await;
        assert!(status.is_success(), "{kind}/{name}: {status} {}", answer["message"]);
    }
}
