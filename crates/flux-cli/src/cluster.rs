//! The Kubernetes API as plain JSON, with the error messages of the API server.

use fl_client::{Client, Identity, Kind, Request, Settings};
use futures::StreamExt as _;
use http::Method;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use crate::args::Call;
use crate::kubeconfig;

/// Field manager of flux.
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
        let kind = Kind::new(&self.group, &self.version, &self.kind, &self.plural, self.namespaced);
        let namespace = namespace.filter(|namespace| !namespace.is_empty());
        match name {
            Some(name) => kind.object_path(namespace, name),
            None => kind.collection_path(namespace),
        }
    }
}

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiError {
    /// The API server returned an error.
    #[error("{message}")]
    Refused {
        code: u16,
        message: String,
        /// Whether the server names an object or a kind; a path that it does not serve has neither.
        names_object: bool,
    },
    /// The server does not know this kind.
    #[error("no matches for kind {kind:?} in version {version:?}")]
    NoMatch { kind: String, version: String },
    /// The timeout of the command has passed.
    #[error("context deadline exceeded")]
    Deadline,
    /// The server cannot be reached or does not speak HTTP.
    #[error("Get \"{url}\": {cause}")]
    Unreachable { url: String, cause: String },
    /// The response was interrupted.
    #[error("{0}")]
    Broken(String),
    /// The response is not valid.
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

/// A connection to a cluster with the deadline of the command.
#[derive(Clone)]
pub(crate) struct Cluster {
    client: Client,
    pub(crate) deadline: Instant,
    /// Interval of polling.
    poll_interval: std::time::Duration,
}

impl Cluster {
    /// Connects as the flags say.
    ///
    /// # Errors
    /// No usable configuration.
    pub(crate) async fn connect(call: &Call) -> anyhow::Result<Cluster> {
        let limit = call.duration("timeout").to_std().unwrap_or_default();
        let connection = kubeconfig::connection(call).await?;
        let client = connection.client(&Identity::Engine, &settings(call))?.at(&connection.address());
        Ok(Cluster {
            client,
            deadline: Instant::now() + limit,
            poll_interval: std::time::Duration::from_secs(2),
        })
    }

    /// The same connection with a new deadline.
    pub(crate) fn within(&self, limit: std::time::Duration) -> Cluster {
        Cluster { deadline: Instant::now() + limit, ..self.clone() }
    }

    /// The same connection with another poll interval.
    pub(crate) fn polling(mut self, every: std::time::Duration) -> Cluster {
        self.poll_interval = every.max(std::time::Duration::from_millis(100));
        self
    }

    /// The client underneath, for engines that bring requests of their own.
    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    /// A request for a path, answered in JSON.
    pub(crate) async fn json(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, String)],
        body: Option<(&str, Vec<u8>)>,
    ) -> Result<Value, ApiError> {
        let mut request = Request::new(method, path, query);
        if let Some((content_type, bytes)) = body {
            request = request.body(content_type, bytes.into());
        }
        let answer = fl_client::within(self.deadline, self.client.json(&request)).await;
        answer.map(|answer| answer.body).map_err(|error| self.failure(path, error))
    }

    /// The error as `flux` words it.
    fn failure(&self, path: &str, error: fl_client::Error) -> ApiError {
        match error {
            fl_client::Error::Api(error) => ApiError::Refused {
                code: error.code,
                message: error.message,
                names_object: error.names_object,
            },
            fl_client::Error::Deadline { .. } => ApiError::Deadline,
            fl_client::Error::Transport { cause, .. } => {
                ApiError::Unreachable { url: format!("{}{path}", self.client.address()), cause }
            }
            fl_client::Error::Decode { cause, .. } => ApiError::Answer(cause),
            other => ApiError::Broken(other.to_string()),
        }
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
            ApiError::Refused { code: 404, message, names_object }
                if !names_object
                    || message.starts_with("404 page not found")
                    || message == "the server could not find the requested resource" =>
            {
                ApiError::NoMatch { kind: resource.kind.clone(), version: resource.api_version() }
            }
            // flux learns what a server has before it asks for anything, so that is what fails there.
            ApiError::Unreachable { cause, .. } => ApiError::Broken(format!(
                "failed to get server groups: Get \"{}/api\": {cause}",
                self.client.address()
            )),
            other => other,
        })
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
        let request = Request::new(Method::GET, path, query);
        let mut stream = fl_client::within(self.deadline, self.client.lines(&request))
            .await
            .map_err(|error| self.failure(path, error))?;
        loop {
            match timeout_at(self.deadline, stream.next()).await {
                Err(_) => return Err(ApiError::Deadline),
                Ok(Some(Err(error))) => return Err(self.failure(path, error)),
                Ok(None) => return Ok(()),
                Ok(Some(Ok(line))) => lines(String::from_utf8_lossy(&line).trim_end_matches('\r')),
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

/// How requests are treated: `--kube-api-qps` and `--kube-api-burst` limit them.
fn settings(call: &Call) -> Settings {
    let burst = u32::try_from(call.number("kube-api-burst")).unwrap_or_default();
    Settings { rate: Some((call.decimal("kube-api-qps") as f32, burst)), ..Settings::default() }
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
