//! The Kubernetes API as plain JSON: objects in, objects out, errors with the server's own words.

use futures::AsyncBufReadExt;
use http::{Method, Request, StatusCode};
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use crate::call::Call;
use crate::connect;
use crate::throttle::Throttle;

/// The name writes are recorded under, as flux's.
pub(crate) const FIELD_MANAGER: &str = "flux";

/// Where a kind of object lives in the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resource {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) namespaced: bool,
}

impl Resource {
    pub(crate) fn new(api_version: &str, kind: &str, plural: &str, namespaced: bool) -> Resource {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Resource {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
            namespaced,
        }
    }

    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// The path of the collection, or of one object of it.
    pub(crate) fn path(&self, namespace: Option<&str>, name: Option<&str>) -> String {
        let mut path = match self.group.as_str() {
            "" => format!("/api/{}", self.version),
            group => format!("/apis/{group}/{}", self.version),
        };
        if let (true, Some(namespace)) = (self.namespaced, namespace.filter(|ns| !ns.is_empty())) {
            path.push_str(&format!("/namespaces/{namespace}"));
        }
        path.push('/');
        path.push_str(&self.plural);
        if let Some(name) = name {
            path.push('/');
            path.push_str(name);
        }
        path
    }
}

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiError {
    /// The server refused, in its own words.
    #[error("{message}")]
    Refused { code: u16, message: String, details: Value },
    /// The server does not know this kind.
    #[error("no matches for kind {kind:?} in version {version:?}")]
    NoMatch { kind: String, version: String },
    /// The command's time is over.
    #[error("context deadline exceeded")]
    Deadline,
    /// The server cannot be reached or does not speak HTTP.
    #[error("Get \"{url}\": {cause}")]
    Unreachable { url: String, cause: String },
    /// The answer broke off.
    #[error("{0}")]
    Broken(String),
    /// The answer is not what the API promises.
    #[error("unexpected answer of the API server: {0}")]
    Answer(String),
}

impl ApiError {
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, ApiError::Refused { code: 404, .. })
    }

    pub(crate) fn is_no_match(&self) -> bool {
        matches!(self, ApiError::NoMatch { .. })
    }
}

/// What to list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Select {
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) labels: Option<String>,
    pub(crate) fields: Option<String>,
}

impl Select {
    pub(crate) fn in_namespace(namespace: &str) -> Select {
        Select { namespace: Some(namespace.to_owned()), ..Select::default() }
    }

    pub(crate) fn labelled(mut self, labels: &str) -> Select {
        self.labels = Some(labels.to_owned());
        self
    }

    fn query(&self) -> Vec<(&'static str, String)> {
        let mut query = Vec::new();
        let name = self.name.as_ref().map(|name| format!("metadata.name={name}"));
        if let Some(fields) = name.or_else(|| self.fields.clone()) {
            query.push(("fieldSelector", fields));
        }
        if let Some(labels) = &self.labels {
            query.push(("labelSelector", labels.clone()));
        }
        query
    }
}

/// A connection to a cluster that ends with the command's time.
#[derive(Clone)]
pub(crate) struct Cluster {
    client: kube::Client,
    /// The address of the server, as messages name it.
    address: String,
    pub(crate) deadline: Instant,
    /// How long to wait between two looks.
    poll_interval: std::time::Duration,
}

impl Cluster {
    /// Connects as the flags say.
    ///
    /// # Errors
    /// No usable configuration.
    pub(crate) async fn connect(call: &Call) -> anyhow::Result<Cluster> {
        let limit = call.duration("timeout").to_std().unwrap_or_default();
        let config = connect::config(call).await?;
        let address = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        let throttle = Throttle::new(call.decimal("kube-api-qps"), call.number("kube-api-burst"));
        let client = kube::client::ClientBuilder::try_from(config)?.with_layer(&throttle).build();
        let poll_interval = std::time::Duration::from_secs(2);
        Ok(Cluster { client, address, deadline: Instant::now() + limit, poll_interval })
    }

    /// The same connection with a time of its own, which begins now.
    pub(crate) fn within(&self, limit: std::time::Duration) -> Cluster {
        Cluster { deadline: Instant::now() + limit, ..self.clone() }
    }

    /// The same connection with another time between two looks.
    pub(crate) fn polling(mut self, every: std::time::Duration) -> Cluster {
        self.poll_interval = every.max(std::time::Duration::from_millis(100));
        self
    }

    /// The client underneath, for engines that bring requests of their own.
    pub(crate) fn client(&self) -> kube::Client {
        self.client.clone()
    }

    /// A request and its answer, whatever its code.
    async fn send(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, String)],
        body: Option<(&str, Vec<u8>)>,
    ) -> Result<http::Response<Body>, ApiError> {
        let mut uri = path.to_owned();
        if !query.is_empty() {
            let mut form = url::form_urlencoded::Serializer::new(String::new());
            for (key, value) in query {
                form.append_pair(key, value);
            }
            uri.push('?');
            uri.push_str(&form.finish());
        }
        let mut request = Request::builder().method(method).uri(uri).header("Accept", "application/json");
        let bytes = match body {
            Some((kind, bytes)) => {
                request = request.header("Content-Type", kind);
                bytes
            }
            None => Vec::new(),
        };
        let request = request.body(Body::from(bytes)).map_err(|e| ApiError::Answer(e.to_string()))?;
        match timeout_at(self.deadline, self.client.send(request)).await {
            Err(_) => Err(ApiError::Deadline),
            Ok(Err(error)) => Err(ApiError::Unreachable {
                url: format!("{}{path}", self.address),
                cause: self.cause(&error),
            }),
            Ok(Ok(answer)) => Ok(answer),
        }
    }

    async fn read(&self, answer: http::Response<Body>) -> Result<(StatusCode, Vec<u8>), ApiError> {
        let status = answer.status();
        match timeout_at(self.deadline, answer.into_body().collect()).await {
            Err(_) => Err(ApiError::Deadline),
            Ok(Err(error)) => Err(ApiError::Broken(error.to_string())),
            Ok(Ok(body)) => Ok((status, body.to_bytes().to_vec())),
        }
    }

    /// A request for a path, answered in JSON.
    pub(crate) async fn json(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, String)],
        body: Option<(&str, Vec<u8>)>,
    ) -> Result<Value, ApiError> {
        let answer = self.send(method, path, query, body).await?;
        let (status, bytes) = self.read(answer).await?;
        if status.is_success() {
            return serde_json::from_slice(&bytes).map_err(|e| ApiError::Answer(e.to_string()));
        }
        Err(refusal(status, &bytes))
    }

    /// As [`Cluster::json`], for the objects of a resource: an unknown path means an unknown kind.
    async fn ask(
        &self,
        method: Method,
        resource: &Resource,
        path: &str,
        query: &[(&str, String)],
        body: Option<(&str, Vec<u8>)>,
    ) -> Result<Value, ApiError> {
        self.json(method, path, query, body).await.map_err(|error| match error {
            ApiError::Refused { code: 404, message, details, .. }
                if details.get("name").is_none() && details.get("kind").is_none()
                    || message.starts_with("404 page not found")
                    || message == "the server could not find the requested resource" =>
            {
                ApiError::NoMatch { kind: resource.kind.clone(), version: resource.api_version() }
            }
            // flux learns what a server has before it asks for anything, so that is what fails there.
            ApiError::Unreachable { cause, .. } => ApiError::Broken(format!(
                "failed to get server groups: Get \"{}/api\": {cause}",
                self.address
            )),
            other => other,
        })
    }

    /// Why there is no connection, in the words that people know from kubectl and flux.
    fn cause(&self, error: &(dyn std::error::Error + 'static)) -> String {
        let mut next = Some(error);
        while let Some(cause) = next {
            let refused = cause
                .downcast_ref::<std::io::Error>()
                .is_some_and(|e| e.kind() == std::io::ErrorKind::ConnectionRefused);
            if refused {
                let host = self.address.split_once("://").map_or(self.address.as_str(), |(_, rest)| rest);
                let host = host.split('/').next().unwrap_or_default();
                return format!("dial tcp {host}: connect: connection refused");
            }
            next = cause.source();
        }
        chain(error)
    }

    pub(crate) async fn get(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
    ) -> Result<Value, ApiError> {
        self.ask(Method::GET, resource, &resource.path(Some(namespace), Some(name)), &[], None).await
    }

    /// The object, or `None` when it does not exist.
    pub(crate) async fn find(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, ApiError> {
        match self.get(resource, namespace, name).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The items, each with its kind and API version, which lists leave out.
    pub(crate) async fn list(&self, resource: &Resource, select: &Select) -> Result<Vec<Value>, ApiError> {
        let path = resource.path(select.namespace.as_deref(), None);
        let mut query = select.query();
        query.push(("limit", "500".to_owned()));
        let mut items = Vec::new();
        loop {
            let page = self.ask(Method::GET, resource, &path, &query, None).await?;
            for mut item in page["items"].as_array().cloned().unwrap_or_default() {
                item["apiVersion"] = json!(resource.api_version());
                item["kind"] = json!(resource.kind);
                items.push(item);
            }
            query.retain(|(key, _)| *key != "continue");
            match page.pointer("/metadata/continue").and_then(Value::as_str) {
                Some(more) if !more.is_empty() => query.push(("continue", more.to_owned())),
                _ => return Ok(items),
            }
        }
    }

    pub(crate) async fn create(
        &self,
        resource: &Resource,
        namespace: &str,
        object: &Value,
    ) -> Result<Value, ApiError> {
        let query = [("fieldManager", FIELD_MANAGER.to_owned())];
        self.ask(
            Method::POST,
            resource,
            &resource.path(Some(namespace), None),
            &query,
            Some(("application/json", bytes(object))),
        )
        .await
    }

    pub(crate) async fn update(&self, resource: &Resource, object: &Value) -> Result<Value, ApiError> {
        let query = [("fieldManager", FIELD_MANAGER.to_owned())];
        let (namespace, name) = (namespace_of(object), name_of(object));
        let path = resource.path(Some(namespace), Some(name));
        self.ask(Method::PUT, resource, &path, &query, Some(("application/json", bytes(object)))).await
    }

    pub(crate) async fn merge_patch(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<Value, ApiError> {
        let query = [("fieldManager", FIELD_MANAGER.to_owned())];
        let path = resource.path(Some(namespace), Some(name));
        self.ask(Method::PATCH, resource, &path, &query, Some(("application/merge-patch+json", bytes(patch))))
            .await
    }

    /// Server-side apply; a dry run when asked.
    pub(crate) async fn apply(
        &self,
        resource: &Resource,
        object: &Value,
        manager: &str,
        dry_run: bool,
    ) -> Result<Value, ApiError> {
        let mut query = vec![("fieldManager", manager.to_owned()), ("force", "true".to_owned())];
        if dry_run {
            query.push(("dryRun", "All".to_owned()));
        }
        let path = resource.path(Some(namespace_of(object)), Some(name_of(object)));
        let body = Some(("application/apply-patch+yaml", bytes(object)));
        self.ask(Method::PATCH, resource, &path, &query, body).await
    }

    pub(crate) async fn delete(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
        propagation: &str,
        dry_run: bool,
    ) -> Result<Value, ApiError> {
        let mut options =
            json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation});
        if dry_run {
            options["dryRun"] = json!(["All"]);
        }
        let path = resource.path(Some(namespace), Some(name));
        self.ask(Method::DELETE, resource, &path, &[], Some(("application/json", bytes(&options)))).await
    }

    /// Plain text, as logs are; `lines` gets each line as it comes.
    pub(crate) async fn lines(
        &self,
        path: &str,
        query: &[(&str, String)],
        mut lines: impl FnMut(&str),
    ) -> Result<(), ApiError> {
        let answer = self.send(Method::GET, path, query, None).await?;
        if !answer.status().is_success() {
            let (status, bytes) = self.read(answer).await?;
            return Err(refusal(status, &bytes));
        }
        let stream =
            futures::TryStreamExt::map_err(answer.into_body().into_data_stream(), std::io::Error::other);
        let mut reader = futures::TryStreamExt::into_async_read(stream);
        let mut line = String::new();
        loop {
            line.clear();
            match timeout_at(self.deadline, reader.read_line(&mut line)).await {
                Err(_) => return Err(ApiError::Deadline),
                Ok(Err(error)) => return Err(ApiError::Broken(error.to_string())),
                Ok(Ok(0)) => return Ok(()),
                Ok(Ok(_)) => lines(line.trim_end_matches(['\n', '\r'])),
            }
        }
    }

    /// Changes of objects as they come, those that exist first, until the time is over.
    pub(crate) async fn watch(
        &self,
        resource: &Resource,
        select: &Select,
        mut seen: impl FnMut(&str, Value) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let mut query = select.query();
        query.push(("watch", "true".to_owned()));
        let mut result = Ok(());
        self.lines(&resource.path(select.namespace.as_deref(), None), &query, |line| {
            if result.is_ok()
                && let Ok(mut event) = serde_json::from_str::<Value>(line)
            {
                let object = event["object"].take();
                result = seen(event["type"].as_str().unwrap_or_default(), object);
            }
        })
        .await?;
        result
    }

    /// Calls `check` at once and then every two seconds until it says `Some`, or the time is over.
    pub(crate) async fn poll<T, F>(&self, mut check: impl FnMut() -> F) -> anyhow::Result<T>
    where
        F: Future<Output = anyhow::Result<Option<T>>>,
    {
        loop {
            if let Some(done) = check().await? {
                return Ok(done);
            }
            let next = Instant::now() + self.poll_interval;
            tokio::time::sleep_until(next.min(self.deadline)).await;
            if Instant::now() >= self.deadline {
                return Err(ApiError::Deadline.into());
            }
        }
    }

    /// The API server's version, as `gitVersion` says it.
    pub(crate) async fn server_version(&self) -> Result<String, ApiError> {
        let info = self.json(Method::GET, "/version", &[], None).await?;
        Ok(info["gitVersion"].as_str().unwrap_or_default().to_owned())
    }
}

fn bytes(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

fn refusal(status: StatusCode, bytes: &[u8]) -> ApiError {
    let code = status.as_u16();
    match serde_json::from_slice::<Value>(bytes) {
        Ok(body) if body["kind"] == "Status" => ApiError::Refused {
            code,
            message: body["message"].as_str().unwrap_or_default().to_owned(),
            details: body["details"].clone(),
        },
        _ => ApiError::Refused {
            code,
            message: match String::from_utf8_lossy(bytes).trim() {
                "" => status.to_string(),
                text => text.to_owned(),
            },
            details: Value::Null,
        },
    }
}

/// An error with its causes, each once.
fn chain(error: &dyn std::error::Error) -> String {
    let (mut text, mut next) = (error.to_string(), error.source());
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        next = cause.source();
    }
    text
}

pub(crate) fn name_of(object: &Value) -> &str {
    object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn namespace_of(object: &Value) -> &str {
    object.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or_default()
}

/// The text at a JSON pointer; empty when there is none.
pub(crate) fn text_at<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
