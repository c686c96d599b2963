//! An API server, reached under one identity, with objects as plain JSON.
//!
//! Objects are untyped on the way through; typed where a field decides something.

use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::discovery::Discovery;
use crate::layer::{Settings, Stack, stack};
use crate::path::{push_segment, query};
use crate::{Delete, Error, Fence, Kind, KnownSecrets, Lookup, Patch, Request, Write};

/// Concurrent requests to one API server.
const PARALLEL: usize = 32;
const PAGE: &str = "500";

/// An API server, reached under one identity. Cheap to clone; clones share discovery and the limit on parallel requests.
#[derive(Clone)]
pub struct Client {
    pub(crate) stack: Stack,
    user: Option<Arc<str>>,
    /// Address of the server, for errors; empty for the engine's own.
    address: Arc<str>,
    base: Arc<Base>,
    pub(crate) shared: Arc<Shared>,
}

/// The inputs of the layers.
struct Base {
    connection: kube::Client,
    settings: Settings,
}

pub(crate) struct Shared {
    discovery: Discovery,
    pub(crate) parallel: Semaphore,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("address", &self.address)
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// A client with default settings over any connection: a real one, or an API server in this process.
    #[must_use]
    pub fn new(connection: kube::Client) -> Self {
        Client::with(connection, &Settings::default())
    }

    /// A client over a connection.
    #[must_use]
    pub fn with(connection: kube::Client, settings: &Settings) -> Self {
        let shared = Shared { discovery: Discovery::default(), parallel: Semaphore::new(PARALLEL) };
        Client {
            stack: stack(connection.clone(), settings),
            user: None,
            address: "".into(),
            base: Arc::new(Base { connection, settings: settings.clone() }),
            shared: Arc::new(shared),
        }
    }

    /// A client over an API server in this process, which needs no socket.
    pub fn over<S, B>(service: S, settings: &Settings) -> Self
    where
        S: tower::Service<http::Request<kube::client::Body>, Response = http::Response<B>> + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Into<tower::BoxError>,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<tower::BoxError>,
    {
        Client::with(kube::Client::new(service, "default"), settings)
    }

    /// The same connection with other settings.
    #[must_use]
    pub fn reconfigured(&self, change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = self.base.settings.clone();
        change(&mut settings);
        let connection = self.base.connection.clone();
        let stack = stack(connection.clone(), &settings);
        Client { stack, base: Arc::new(Base { connection, settings }), ..self.clone() }
    }

    /// The settings of this client; clients of other API servers start from them.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.base.settings
    }

    /// The same, with the address that errors of its connection name.
    #[must_use]
    pub fn at(self, address: &str) -> Self {
        Client { address: address.trim_end_matches('/').into(), ..self }
    }

    /// The same API server as another user. Discovery stays with the connection's own identity: it is not secret.
    #[must_use]
    pub fn impersonating(&self, user: &str) -> Self {
        Client { user: Some(Arc::from(user)), ..self.clone() }
    }

    /// The same API server under the connection's own identity.
    #[must_use]
    pub fn as_itself(&self) -> Self {
        Client { user: None, ..self.clone() }
    }

    /// The user impersonated.
    #[must_use]
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// The address of the server; empty for the engine's own.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The fence that this client respects.
    #[must_use]
    pub fn fence(&self) -> Option<&Fence> {
        self.base.settings.fence.as_ref()
    }

    /// Whether the server has API priority and fairness, so that no client-side rate limit is needed.
    pub async fn has_priority_and_fairness(&self) -> bool {
        let request = Request::new(Method::GET, "/livez/ping", &[]);
        let answer = crate::layer::send(&self.stack, {
            let built = http::Request::head(request.path).body(kube::client::Body::empty());
            let Ok(built) = built else { return false };
            built
        });
        answer.await.is_ok_and(|answer| answer.headers().contains_key("x-kubernetes-pf-flowschema-uid"))
    }

    /// The API resource of a kind. Unknown kinds are looked up again: a CRD may have been created.
    ///
    /// # Errors
    /// When the server does not serve the kind, or does not answer.
    pub async fn kind(&self, group: &str, version: &str, kind: &str) -> Result<Kind, Error> {
        self.shared.discovery.find(self, group, version, kind).await
    }

    /// The version of a kind that the server prefers.
    ///
    /// # Errors
    /// When the server does not serve the kind, or does not answer.
    pub async fn preferred_version(&self, group: &str, kind: &str) -> Result<String, Error> {
        self.shared.discovery.preferred(self, group, kind).await
    }

    /// Drops what is cached about a group, after one of its CRDs changed.
    pub fn invalidate_discovery(&self, group: &str) {
        self.shared.discovery.invalidate(group);
    }

    /// Whether a CRD of a group changed a moment ago, so that its kinds may not be served yet.
    #[must_use]
    pub fn has_new_kinds(&self, group: &str) -> bool {
        self.shared.discovery.has_new_kinds(group)
    }

    /// One object. `NotFound` is an error; see [`Client::find`] for reads where absence is an answer. Values
    /// of a Secret are registered for masking in the current reconcile.
    pub async fn get(&self, kind: &Kind, namespace: Option<&str>, name: &str) -> Result<Value, Error> {
        let path = kind.object_path(namespace, name);
        let object = self.json(&Request::new(Method::GET, &path, &[])).await?.body;
        if *kind == Kind::secret() {
            KnownSecrets::current().learn_secret(&object);
        }
        Ok(object)
    }

    /// One object as a type.
    pub async fn get_as<T: DeserializeOwned>(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<T, Error> {
        let value = self.get(kind, namespace, name).await?;
        serde_json::from_value(value).map_err(|e| Error::unreadable(kind, name, &e))
    }

    /// Looks up an object.
    pub async fn find(&self, kind: &Kind, namespace: Option<&str>, name: &str) -> Lookup<Value> {
        self.get(kind, namespace, name).await.into()
    }

    /// All objects that match, page by page.
    pub async fn list(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        label_selector: &str,
    ) -> Result<Vec<Value>, Error> {
        let mut all = Vec::new();
        let path = kind.collection_path(namespace);
        let mut next = String::new();
        loop {
            let query = query(&[("limit", PAGE), ("labelSelector", label_selector), ("continue", &next)]);
            let mut page = self.json(&Request::new(Method::GET, &path, &query)).await?.body;
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
    ) -> Result<Value, Error> {
        let (path, query) = (kind.collection_path(namespace), write.query());
        Ok(self.json(&Request::new(Method::POST, &path, &query).json(object)).await?.body)
    }

    /// Creates an object; the answer is not parsed.
    pub async fn create_only(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        object: &Value,
        write: &Write<'_>,
    ) -> Result<(), Error> {
        let (path, query) = (kind.collection_path(namespace), write.query());
        self.execute(&Request::new(Method::POST, &path, &query).json(object)).await.map(drop)
    }

    /// Creates a subresource of an object, such as a token.
    pub async fn create_subresource(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        name: &str,
        subresource: &str,
        object: &Value,
    ) -> Result<Value, Error> {
        let path = subresource_path(kind.object_path(namespace, name), subresource);
        Ok(self.json(&Request::new(Method::POST, &path, &[]).json(object)).await?.body)
    }

    pub async fn replace(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        name: &str,
        object: &Value,
        write: &Write<'_>,
    ) -> Result<Value, Error> {
        let path = subresource_path(kind.object_path(namespace, name), write.subresource);
        Ok(self.json(&Request::new(Method::PUT, &path, &write.query()).json(object)).await?.body)
    }

    pub async fn patch(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        name: &str,
        format: Patch,
        patch: &Value,
        write: &Write<'_>,
    ) -> Result<Value, Error> {
        let path = subresource_path(kind.object_path(namespace, name), write.subresource);
        let body = Bytes::from(patch.to_string());
        let query = write.query();
        let request = Request::new(Method::PATCH, &path, &query).body(format.content_type(), body);
        Ok(self.json(&request).await?.body)
    }

    pub async fn delete(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        name: &str,
        options: &Delete<'_>,
    ) -> Result<Value, Error> {
        let path = kind.object_path(namespace, name);
        Ok(self.json(&Request::new(Method::DELETE, &path, &[]).json(&options.body())).await?.body)
    }
}

/// The path of a subresource; that of the object when it is empty.
fn subresource_path(mut path: String, subresource: &str) -> String {
    if !subresource.is_empty() {
        path.push('/');
        push_segment(&mut path, subresource);
    }
    path
}
