//! One API server under one identity.

mod discovery;
mod request;

use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use kube::Client;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

pub use discovery::Resource;
pub use request::Answer;
pub(crate) use request::Events;

use crate::object::Brief;
use crate::wait::shared::Watches;
use crate::{ApiError, Error, ObjectRef, Owned, Sight};
use discovery::Discovery;
use request::{Ask, Raw};

/// Requests to one API server that may be under way at once, whoever asks.
const DEFAULT_BUDGET: usize = 32;

const APPLY: &str = "application/apply-patch+yaml";

/// An API server, reached as one identity. Clones share discovery and the budget of parallel requests.
#[derive(Clone)]
pub struct Cluster {
    client: Client,
    user: Option<Arc<str>>,
    /// Of the server, for errors; empty where it is our own.
    address: Arc<str>,
    shared: Arc<Shared>,
    observer: Option<Arc<dyn Observer>>,
}

/// Told what goes over the wire.
pub trait Observer: Send + Sync {
    /// A request was answered with this status; 0 when no answer came.
    fn answered(&self, _method: &str, _status: u16) {}

    /// An object was written, and is now this.
    fn wrote(&self, _object: &Value) {}
}

struct Shared {
    discovery: Discovery,
    budget: Semaphore,
    watches: Watches,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").field("user", &self.user).finish_non_exhaustive()
    }
}

/// How objects that depend on a deleted one are treated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Propagation {
    /// Deleted afterwards.
    #[default]
    Background,
    /// Deleted first.
    Foreground,
    /// Kept.
    Orphan,
}

impl Propagation {
    fn as_str(self) -> &'static str {
        match self {
            Propagation::Background => "Background",
            Propagation::Foreground => "Foreground",
            Propagation::Orphan => "Orphan",
        }
    }
}

/// How to delete.
#[derive(Clone, Copy, Debug, Default)]
pub struct Delete {
    /// What becomes of dependents.
    pub propagation: Propagation,
    /// Only pretend.
    pub dry_run: bool,
}

/// The format of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchKind {
    /// RFC 6902
    Json,
    /// RFC 7396
    Merge,
    /// Kubernetes' own, for built-in kinds.
    StrategicMerge,
}

/// Who writes, and how.
#[derive(Clone, Debug, Default)]
pub struct Write<'a> {
    /// The field manager; the server's guess when empty.
    pub manager: &'a str,
    /// Take fields from other managers (apply only).
    pub force: bool,
    /// Only pretend.
    pub dry_run: bool,
    /// `status`, `scale`; the object itself when empty.
    pub subresource: &'a str,
    /// `Strict`, `Warn`, `Ignore`; the server's default when empty.
    pub field_validation: &'a str,
}

impl Write<'_> {
    fn query(&self) -> Vec<(&'static str, String)> {
        let mut query = Vec::new();
        if !self.manager.is_empty() {
            query.push(("fieldManager", self.manager.to_owned()));
        }
        if self.force {
            query.push(("force", "true".to_owned()));
        }
        if self.dry_run {
            query.push(("dryRun", "All".to_owned()));
        }
        if !self.field_validation.is_empty() {
            query.push(("fieldValidation", self.field_validation.to_owned()));
        }
        query
    }
}

impl Cluster {
    /// An API server behind a client, as the client's own identity.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self::with_budget(client, DEFAULT_BUDGET)
    }

    /// [`Cluster::new`] with at most so many requests under way at once.
    #[must_use]
    pub fn with_budget(client: Client, requests: usize) -> Self {
        let shared = Shared {
            discovery: Discovery::default(),
            budget: Semaphore::new(requests.max(1)),
            watches: Watches::default(),
        };
        Cluster { client, user: None, address: "".into(), shared: Arc::new(shared), observer: None }
    }

    /// The same, with the address that errors of its connection name.
    #[must_use]
    pub fn at(self, address: &str) -> Self {
        Cluster { address: address.trim_end_matches('/').into(), ..self }
    }

    /// Tells an observer of all requests, also of clones made later.
    #[must_use]
    pub fn observed_by(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// The same API server as another user. Discovery stays with the client's own identity: it is not secret.
    #[must_use]
    pub fn impersonating(&self, user: &str) -> Self {
        Cluster { user: Some(Arc::from(user)), ..self.clone() }
    }

    /// The user impersonated.
    #[must_use]
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// The client underneath, which does not impersonate.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Where objects of a kind live. Unknown kinds are looked up again: a CRD may just have come.
    ///
    /// # Errors
    /// When the server does not serve the kind, or does not answer.
    pub async fn resource(&self, object: &ObjectRef) -> Result<Arc<Resource>, Error> {
        self.shared.discovery.find(self, &object.id.group, &object.version, &object.id.kind).await
    }

    /// The version of a kind that the server prefers.
    ///
    /// # Errors
    /// When the server does not serve the kind, or does not answer.
    pub async fn preferred_version(&self, group: &str, kind: &str) -> Result<String, Error> {
        self.shared.discovery.preferred(self, group, kind).await
    }

    /// Forgets what the server serves, after a CRD changed.
    pub fn forget_kinds(&self, group: &str) {
        self.shared.discovery.forget(group);
    }

    /// Whether kinds of a group came a moment ago and may not be served yet.
    pub(crate) fn has_new_kinds(&self, group: &str) -> bool {
        self.shared.discovery.is_new(group)
    }

    /// The watches that those who wait on this server share.
    pub(crate) fn watches(&self) -> &Watches {
        &self.shared.watches
    }

    /// An object; none when it does not exist. Every other failure is an error: it says nothing about the object.
    ///
    /// # Errors
    /// When the server refuses or does not answer.
    pub async fn get(&self, object: &ObjectRef) -> Result<Option<Value>, Error> {
        let path = self.path(object, "").await?;
        match self.request(Method::GET, &path, &[], None, "").await {
            Ok(answer) => Ok(Some(answer.body)),
            Err(error) if error.api().is_some_and(ApiError::is_unserved) => {
                if self.lost_its_kind(object).await? { Ok(None) } else { Err(error) }
            }
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether an object of a kind that is not served is gone with it: its definition was deleted, and no version of it is left.
    /// Everything else may come back, and its objects with it.
    async fn lost_its_kind(&self, object: &ObjectRef) -> Result<bool, Error> {
        let (group, kind) = (&object.id.group, &object.id.kind);
        if group.is_empty() {
            return Ok(false);
        }
        // As discovery, this is nobody's secret.
        let own = Cluster { user: None, ..self.clone() };
        let plural = &self.resource(object).await?.plural;
        let definition = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{plural}.{group}");
        match own.request(Method::GET, &definition, &[], None, "").await {
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
            Ok(_) => return Ok(false),
        }
        let mut served = "/apis/".to_owned();
        request::push_segment(&mut served, group);
        let versions = match own.request(Method::GET, &served, &[], None, "").await {
            Ok(answer) => answer.body["versions"].as_array().cloned().unwrap_or_default(),
            Err(error) if error.is_not_found() => return Ok(true),
            Err(error) => return Err(error),
        };
        for version in versions.iter().filter_map(|v| v["version"].as_str()).filter(|v| *v != object.version)
        {
            if self.shared.discovery.find(self, group, version, kind).await.is_ok() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Server-side apply.
    ///
    /// # Errors
    /// When the server refuses or does not answer.
    pub async fn apply(&self, object: &Value, write: &Write<'_>) -> Result<Answer, Error> {
        let target = ObjectRef::of(object)?;
        let raw = self.send_apply(&target, Bytes::from(object.to_string()), write).await?;
        let answer = Answer { body: raw.read()?, created: raw.created };
        self.note_applied(&target, write, &answer.body);
        Ok(answer)
    }

    /// [`Cluster::apply`] of an object that is written out already; with whether it is new.
    pub(crate) async fn apply_text(
        &self,
        target: &ObjectRef,
        object: Bytes,
        write: &Write<'_>,
    ) -> Result<(Sight, bool), Error> {
        let raw = self.send_apply(target, object, write).await?;
        let live = raw.read_as(|body| Sight::read(body.clone()))?;
        self.note_applied(target, write, live.object());
        Ok((live, raw.created))
    }

    /// What an apply would make of an object; none when it would create it, whose answer says nothing new.
    ///
    /// # Errors
    /// When the server refuses or does not answer.
    pub(crate) async fn try_apply(
        &self,
        target: &ObjectRef,
        object: Bytes,
        write: &Write<'_>,
    ) -> Result<Option<Value>, Error> {
        let write = Write { dry_run: true, ..write.clone() };
        let raw = self.send_apply(target, object, &write).await?;
        let Brief { metadata } = raw.read()?;
        if metadata.resource_version.is_empty() { Ok(None) } else { raw.read().map(Some) }
    }

    /// Whether an object could be created.
    ///
    /// # Errors
    /// When the server refuses or does not answer, also because it exists.
    pub(crate) async fn try_create(
        &self,
        target: &ObjectRef,
        object: Bytes,
        write: &Write<'_>,
    ) -> Result<(), Error> {
        let path = self.collection_path(target).await?;
        let query = Write { dry_run: true, ..write.clone() }.query();
        let (body, content_type) = (Some(object), "application/json");
        self.raw(&Ask { method: Method::POST, path: &path, query: &query, body, content_type })
            .await
            .map(drop)
    }

    async fn send_apply(&self, target: &ObjectRef, object: Bytes, write: &Write<'_>) -> Result<Raw, Error> {
        let path = self.path(target, write.subresource).await?;
        let query = write.query();
        let body = Some(object);
        self.raw(&Ask { method: Method::PATCH, path: &path, query: &query, body, content_type: APPLY }).await
    }

    fn note_applied(&self, target: &ObjectRef, write: &Write<'_>, live: &Value) {
        if write.dry_run {
            return;
        }
        if let Some(observer) = &self.observer {
            observer.wrote(live);
        }
        let version = live.pointer("/metadata/resourceVersion").and_then(Value::as_str);
        if let Some(version) = version.and_then(|v| v.parse().ok()) {
            self.shared.watches.wrote(self, target, version);
        }
    }

    /// Creates an object.
    ///
    /// # Errors
    /// When the server refuses or does not answer.
    pub async fn create(&self, object: &Value, write: &Write<'_>) -> Result<Answer, Error> {
        let path = self.collection_path(&ObjectRef::of(object)?).await?;
        let body = Bytes::from(object.to_string());
        self.request(Method::POST, &path, &write.query(), Some(body), "application/json").await
    }

    /// Replaces an object.
    ///
    /// # Errors
    /// When the server refuses or does not answer.
    pub async fn update(&self, object: &Value, write: &Write<'_>) -> Result<Answer, Error> {
        let path = self.path(&ObjectRef::of(object)?, write.subresource).await?;
        let body = Bytes::from(object.to_string());
        self.request(Method::PUT, &path, &write.query(), Some(body), "application/json").await
    }

    /// Patches an object.
    ///
    /// # Errors
    /// When the server refuses or does not answer.
    pub async fn patch(
        &self,
        object: &ObjectRef,
        kind: PatchKind,
        patch: &Value,
        write: &Write<'_>,
    ) -> Result<Answer, Error> {
        let path = self.path(object, write.subresource).await?;
        let content_type = match kind {
            PatchKind::Json => request::JSON_PATCH,
            PatchKind::Merge => "application/merge-patch+json",
            PatchKind::StrategicMerge => "application/strategic-merge-patch+json",
        };
        let body = Bytes::from(patch.to_string());
        self.request(Method::PATCH, &path, &write.query(), Some(body), content_type).await
    }

    /// Deletes an object that is proven to be ours. False when it was gone, or is another one under the name by now.
    ///
    /// # Errors
    /// When the server refuses or does not answer.
    pub async fn delete(&self, owned: &Owned<ObjectRef>, options: Delete) -> Result<bool, Error> {
        let path = self.path(owned.object(), "").await?;
        let mut body = json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": options.propagation.as_str(),
            "preconditions": {"uid": owned.uid()},
        });
        if options.dry_run {
            body["dryRun"] = json!(["All"]);
        }
        let body = Bytes::from(body.to_string());
        match self.request(Method::DELETE, &path, &[], Some(body), "application/json").await {
            Ok(_) => Ok(true),
            Err(Error::Api(error)) if error.is_not_found() || error.is_conflict() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The objects of a kind, in one namespace or (empty) in all; the list as the server sends it.
    ///
    /// # Errors
    /// When the server refuses or does not answer.
    pub async fn list(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        query: &[(&'static str, String)],
    ) -> Result<Value, Error> {
        let path = self.collection_path(&ObjectRef::new(api_version, kind, namespace, "")).await?;
        Ok(self.request(Method::GET, &path, query, None, "").await?.body)
    }

    /// Changes of the objects of a kind after a version, as they happen. Not counted in the budget: a watch is mostly idle.
    pub(crate) async fn watch(
        &self,
        object: &ObjectRef,
        mut query: Vec<(&'static str, String)>,
    ) -> Result<Events, Error> {
        let path = self.collection_path(object).await?;
        query.push(("watch", "true".to_owned()));
        query.push(("allowWatchBookmarks", "true".to_owned()));
        self.events(&path, &query).await
    }

    async fn path(&self, object: &ObjectRef, subresource: &str) -> Result<String, Error> {
        let resource = self.resource(object).await?;
        if resource.namespaced && object.id.namespace.is_empty() {
            // What a server says to a path that leaves the namespace out; asking would only cost a request.
            return Err(crate::ApiError::not_found("the server could not find the requested resource").into());
        }
        let mut path = resource.path(&object.id.namespace);
        path.push('/');
        request::push_segment(&mut path, &object.id.name);
        if !subresource.is_empty() {
            path.push('/');
            request::push_segment(&mut path, subresource);
        }
        Ok(path)
    }

    async fn collection_path(&self, object: &ObjectRef) -> Result<String, Error> {
        Ok(self.resource(object).await?.path(&object.id.namespace))
    }
}
