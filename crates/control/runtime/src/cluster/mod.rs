//! A cluster, reached as plain JSON over one client.
//!
//! Objects are untyped on the way through; typed where a field decides something. Reads go to the server: what may be
//! answered from a watch is asked of the [`crate::Hub`].

mod config_map;
mod connect;
mod error;
mod fence;
mod proxy;
mod throttle;

use std::sync::Arc;
use std::time::Duration;

use futures::AsyncBufReadExt;
use futures::io::AsyncBufRead;
use http::{Method, Request};
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use config_map::{RemoteAccounts, RemoteError};
pub use connect::{ConnectError, ConnectOptions, Connection, Identity, RemoteOptions};
pub use error::{ApiError, Known};
pub use fence::Fence;
pub use proxy::{ProxyError, client};

use crate::kind::Kind;
use crate::metrics::Metrics;
use throttle::Throttle;

/// How long a request may take; watches are not among them.
const ANSWER: Duration = Duration::from_secs(60);

/// How a patch is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patch {
    /// JSON merge patch.
    Merge,
    /// JSON patch.
    Json,
    /// Strategic merge patch.
    Strategic,
    /// Server-side apply.
    Apply,
}

impl Patch {
    fn content_type(self) -> &'static str {
        match self {
            Patch::Merge => "application/merge-patch+json",
            Patch::Json => "application/json-patch+json",
            Patch::Strategic => "application/strategic-merge-patch+json",
            Patch::Apply => "application/apply-patch+yaml",
        }
    }
}

/// Options of a write.
#[derive(Clone, Debug, Default)]
pub struct Write<'a> {
    pub field_manager: &'a str,
    /// Take over fields of other managers (server-side apply).
    pub force: bool,
    /// Only pretend.
    pub dry_run: bool,
    /// `status`, `token`, …; the object itself when empty.
    pub subresource: &'a str,
}

impl<'a> Write<'a> {
    /// A write under a manager's name.
    pub fn by(field_manager: &'a str) -> Self {
        Write { field_manager, ..Write::default() }
    }

    /// The same, to a subresource.
    #[must_use]
    pub fn to(self, subresource: &'a str) -> Self {
        Write { subresource, ..self }
    }

    fn query(&self) -> String {
        query(&[
            ("fieldManager", self.field_manager),
            ("force", if self.force { "true" } else { "" }),
            ("dryRun", if self.dry_run { "All" } else { "" }),
            // What we write has a type; a server that knows less drops the rest, and its warnings would reach nobody.
            ("fieldValidation", "Ignore"),
        ])
    }
}

/// What may be deleted: this object and no later one of the same name.
#[derive(Clone, Debug, Default)]
pub struct Delete<'a> {
    pub uid: Option<&'a str>,
    pub resource_version: Option<&'a str>,
    /// `Background`, `Foreground` or `Orphan`.
    pub propagation: &'a str,
    pub dry_run: bool,
}

/// A cluster and who we are there. Cheap to clone.
#[derive(Clone)]
pub struct Cluster {
    client: kube::Client,
    throttle: Option<Arc<Throttle>>,
    metrics: Option<Metrics>,
    fence: Option<Fence>,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").finish_non_exhaustive()
    }
}

impl Cluster {
    /// From any client: a real one, or one over an API server in this process.
    pub fn new(client: kube::Client) -> Self {
        Cluster { client, throttle: None, metrics: None, fence: None }
    }

    /// The client underneath.
    pub fn client(&self) -> &kube::Client {
        &self.client
    }

    /// Counts requests.
    #[must_use]
    pub fn with_metrics(mut self, metrics: Metrics) -> Self {
        self.metrics = Some(metrics);
        self
    }

    /// Refuses writes while a fence is closed.
    #[must_use]
    pub fn fenced(mut self, fence: &Fence) -> Self {
        self.client = fence.around(self.client);
        self.fence = Some(fence.clone());
        self
    }

    /// The fence that connections to other clusters have to respect too.
    pub fn fence(&self) -> Option<&Fence> {
        self.fence.as_ref()
    }

    /// Limits requests to `qps` a second and `burst` at once, unless the server arranges fairness by itself.
    #[must_use]
    pub async fn throttled(mut self, qps: f32, burst: u32) -> Self {
        let probe = Request::head("/livez/ping").body(Vec::new().into());
        let fair = match probe {
            Ok(probe) => self
                .client
                .send(probe)
                .await
                .is_ok_and(|answer| answer.headers().contains_key("x-kubernetes-pf-flowschema-uid")),
            Err(_) => false,
        };
        self.throttle = (!fair && qps > 0.0).then(|| Arc::new(Throttle::new(qps, burst)));
        self
    }

    /// One object. `NotFound` is an error like any other: see [`Known`] for reads where absence is an answer.
    pub async fn get(&self, kind: &Kind, namespace: Option<&str>, name: &str) -> Result<Value, ApiError> {
        self.request(Method::GET, &kind.object_path(namespace, name), "", None).await
    }

    /// One object as a type.
    pub async fn get_as<T: DeserializeOwned>(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<T, ApiError> {
        let value = self.get(kind, namespace, name).await?;
        serde_json::from_value(value).map_err(|e| ApiError::unreadable(kind, name, &e))
    }

    /// Whether an object is there, when that could be found out.
    pub async fn look(&self, kind: &Kind, namespace: Option<&str>, name: &str) -> Known<Value> {
        match self.get(kind, namespace, name).await {
            Ok(object) => Known::Present(object),
            Err(error) if error.is_not_found() => Known::Absent,
            Err(error) => Known::Unknown(error),
        }
    }

    /// All objects that match, page by page.
    pub async fn list(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        label_selector: &str,
    ) -> Result<Vec<Value>, ApiError> {
        let mut all = Vec::new();
        let mut next = String::new();
        loop {
            let query = query(&[("limit", "500"), ("labelSelector", label_selector), ("continue", &next)]);
            let path = format!("{}?{query}", kind.collection_path(namespace));
            let mut page = self.request(Method::GET, &path, "", None).await?;
            if let Value::Array(items) = page["items"].take() {
                all.extend(items);
            }
            match page["metadata"]["continue"].as_str() {
                Some(more) if !more.is_empty() => more.clone_into(&mut next),
                _ => return Ok(all),
            }
        }
    }

    pub async fn create(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        object: &Value,
        write: &Write<'_>,
    ) -> Result<Value, ApiError> {
        let path = with_query(kind.collection_path(namespace), &write.query());
        self.request(Method::POST, &path, "application/json", Some(object)).await
    }

    /// Creates an object whose final form nobody wants to see.
    pub(crate) async fn create_unread(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        object: &Value,
        write: &Write<'_>,
    ) -> Result<(), ApiError> {
        let path = with_query(kind.collection_path(namespace), &write.query());
        self.request_text(Method::POST, &path, "application/json", Some(object)).await.map(drop)
    }

    /// Creates a subresource of an object, such as a token.
    pub async fn create_subresource(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        name: &str,
        subresource: &str,
        object: &Value,
    ) -> Result<Value, ApiError> {
        let path = format!("{}/{subresource}", kind.object_path(namespace, name));
        self.request(Method::POST, &path, "application/json", Some(object)).await
    }

    pub async fn replace(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        name: &str,
        object: &Value,
        write: &Write<'_>,
    ) -> Result<Value, ApiError> {
        let path = with_query(target(kind, namespace, name, write), &write.query());
        self.request(Method::PUT, &path, "application/json", Some(object)).await
    }

    pub async fn patch(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        name: &str,
        how: Patch,
        patch: &Value,
        write: &Write<'_>,
    ) -> Result<Value, ApiError> {
        let path = with_query(target(kind, namespace, name, write), &write.query());
        self.request(Method::PATCH, &path, how.content_type(), Some(patch)).await
    }

    pub async fn delete(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        name: &str,
        how: &Delete<'_>,
    ) -> Result<Value, ApiError> {
        let mut body = serde_json::json!({"apiVersion": "v1", "kind": "DeleteOptions"});
        if how.uid.is_some() || how.resource_version.is_some() {
            body["preconditions"] = serde_json::json!({});
            if let Some(uid) = how.uid {
                body["preconditions"]["uid"] = uid.into();
            }
            if let Some(version) = how.resource_version {
                body["preconditions"]["resourceVersion"] = version.into();
            }
        }
        if !how.propagation.is_empty() {
            body["propagationPolicy"] = how.propagation.into();
        }
        if how.dry_run {
            body["dryRun"] = serde_json::json!(["All"]);
        }
        self.request(Method::DELETE, &kind.object_path(namespace, name), "application/json", Some(&body))
            .await
    }

    /// Any request whose answer is JSON.
    pub async fn request(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: Option<&Value>,
    ) -> Result<Value, ApiError> {
        let text = self.request_text(method, path, content_type, body).await?;
        serde_json::from_str(&text)
            .map_err(|e| ApiError::Answer { path: path.to_owned(), problem: e.to_string() })
    }

    async fn request_text(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: Option<&Value>,
    ) -> Result<String, ApiError> {
        let mut request = Request::builder().method(method.clone()).uri(path);
        if body.is_some() {
            request = request.header(http::header::CONTENT_TYPE, content_type);
        }
        let bytes = body.map(|b| b.to_string().into_bytes()).unwrap_or_default();
        let request = request
            .header(http::header::ACCEPT, "application/json")
            .body(bytes)
            .map_err(|e| ApiError::Request { problem: e.to_string() })?;
        if let Some(throttle) = &self.throttle {
            throttle.wait().await;
        }
        let answer = self.answer(request).await;
        if let Some(metrics) = &self.metrics {
            let code = answer.as_ref().err().and_then(ApiError::code).unwrap_or(200);
            metrics.count_request(method.as_str(), code);
        }
        answer
    }

    /// An answer that never comes must not hold a worker for good.
    async fn answer(&self, request: Request<Vec<u8>>) -> Result<String, ApiError> {
        match tokio::time::timeout(ANSWER, self.client.request_text(request)).await {
            Ok(answer) => answer.map_err(ApiError::from),
            Err(_) => Err(ApiError::Unreachable { problem: format!("no answer within {ANSWER:?}") }),
        }
    }

    /// A request whose answer comes line by line, as of a watch.
    pub(crate) async fn lines(
        &self,
        path: &str,
        accept: &str,
    ) -> Result<impl futures::Stream<Item = std::io::Result<String>> + use<>, ApiError> {
        let request = Request::get(path)
            .header(http::header::ACCEPT, accept)
            .header(http::header::ACCEPT_ENCODING, "identity")
            .body(Vec::new())
            .map_err(|e| ApiError::Request { problem: e.to_string() })?;
        if let Some(throttle) = &self.throttle {
            throttle.wait().await;
        }
        let reader = self.client.request_stream(request).await.map_err(ApiError::from);
        if let Some(metrics) = &self.metrics {
            let code = reader.as_ref().err().and_then(ApiError::code).unwrap_or(200);
            metrics.count_request("GET", code);
        }
        Ok(read_lines(reader?))
    }

    /// A list or other JSON answer in a given form.
    pub(crate) async fn get_accepting(&self, path: &str, accept: &str) -> Result<Value, ApiError> {
        let request = Request::get(path)
            .header(http::header::ACCEPT, accept)
            .body(Vec::new())
            .map_err(|e| ApiError::Request { problem: e.to_string() })?;
        if let Some(throttle) = &self.throttle {
            throttle.wait().await;
        }
        let text = self.answer(request).await?;
        serde_json::from_str(&text)
            .map_err(|e| ApiError::Answer { path: path.to_owned(), problem: e.to_string() })
    }
}

fn read_lines<R: AsyncBufRead + Send>(reader: R) -> impl futures::Stream<Item = std::io::Result<String>> {
    reader.lines()
}

fn target(kind: &Kind, namespace: Option<&str>, name: &str, write: &Write<'_>) -> String {
    let path = kind.object_path(namespace, name);
    if write.subresource.is_empty() { path } else { format!("{path}/{}", write.subresource) }
}

/// Pairs of a query; those without a value are left out.
pub(crate) fn query(pairs: &[(&str, &str)]) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    for (name, value) in pairs.iter().filter(|(_, value)| !value.is_empty()) {
        query.append_pair(name, value);
    }
    query.finish()
}

fn with_query(path: String, query: &str) -> String {
    if query.is_empty() { path } else { format!("{path}?{query}") }
}
