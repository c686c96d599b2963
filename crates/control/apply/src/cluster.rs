//! Objects of any kind on one API server, under one identity: [`fl_client`] with objects named by [`ObjectRef`], deletion by proof
//! of ownership, and the watches that those who wait share.

use std::sync::Arc;

use bytes::Bytes;
use fl_client::{Answer, Client, Events, Kind, Patch, Raw, Request, Write};
use http::Method;
use serde_json::Value;

use crate::object_ref::PartialObject;
use crate::wait::shared_watch::Watches;
use crate::{ApiError, Error, LiveObject, ObjectRef, Owned};

/// An API server, reached under one identity. Clones share discovery, watches and the limit on parallel requests.
#[derive(Clone)]
pub struct Cluster {
    client: Client,
    watches: Arc<Watches>,
    observer: Option<Arc<dyn Observer>>,
}

/// Gets to know what was written.
pub trait Observer: Send + Sync {
    /// An object was written, and is now this.
    fn wrote(&self, object: &Value);
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").field("client", &self.client).finish_non_exhaustive()
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

impl Cluster {
    /// The objects of an API server.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Cluster { client, watches: Arc::default(), observer: None }
    }

    /// Tells an observer what is written, also by clones made later.
    #[must_use]
    pub fn observed_by(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// The same API server as another user.
    #[must_use]
    pub fn impersonating(&self, user: &str) -> Self {
        Cluster { client: self.client.impersonating(user), ..self.clone() }
    }

    /// The client underneath, under the same identity.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Where objects of a kind live. Unknown kinds are looked up again: a CRD may just have come.
    ///
    /// # Errors
    /// When the server does not serve the kind, or does not answer.
    pub async fn resource(&self, object: &ObjectRef) -> Result<Kind, Error> {
        Ok(self.client.kind(&object.id.group, &object.version, &object.id.kind).await?)
    }

    /// The version of a kind that the server prefers.
    ///
    /// # Errors
    /// When the server does not serve the kind, or does not answer.
    pub async fn preferred_version(&self, group: &str, kind: &str) -> Result<String, Error> {
        Ok(self.client.preferred_version(group, kind).await?)
    }

    /// The watches that those who wait on this server share.
    pub(crate) fn watches(&self) -> &Watches {
        &self.watches
    }

    /// An object; none when it does not exist. Every other failure is an error: it says nothing about the object.
    ///
    /// # Errors
    /// When the server refuses or does not answer.
    pub async fn get(&self, object: &ObjectRef) -> Result<Option<Value>, Error> {
        let path = self.path(object, "").await?;
        match self.read(&path, &[]).await {
            Ok(object) => Ok(Some(object)),
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
        // As discovery, this is not secret.
        let own = Cluster { client: self.client.as_itself(), ..self.clone() };
        let name = self.resource(object).await?.resource_name();
        let definition = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
        match own.read(&definition, &[]).await {
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
            Ok(_) => return Ok(false),
        }
        let mut served = "/apis/".to_owned();
        fl_client::push_segment(&mut served, group);
        let versions = match own.read(&served, &[]).await {
            Ok(served) => served["versions"].as_array().cloned().unwrap_or_default(),
            Err(error) if error.is_not_found() => return Ok(true),
            Err(error) => return Err(error),
        };
        for version in versions.iter().filter_map(|v| v["version"].as_str()).filter(|v| *v != object.version)
        {
            if self.client.kind(group, version, kind).await.is_ok() {
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
    ) -> Result<(LiveObject, bool), Error> {
        let raw = self.send_apply(target, object, write).await?;
        let live = raw.read_as(|body| LiveObject::read(body.clone()))?;
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
        let PartialObject { metadata } = raw.read()?;
        if metadata.resource_version.is_empty() { Ok(None) } else { Ok(raw.read().map(Some)?) }
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
        let request = Request::new(Method::POST, &path, &query).body("application/json", object);
        Ok(self.client.execute(&request).await.map(drop)?)
    }

    async fn send_apply(&self, target: &ObjectRef, object: Bytes, write: &Write<'_>) -> Result<Raw, Error> {
        let path = self.path(target, write.subresource).await?;
        let query = write.query();
        let request = Request::new(Method::PATCH, &path, &query).body(Patch::Apply.content_type(), object);
        Ok(self.client.execute(&request).await?)
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
            self.watches.wrote(self, target, version);
        }
    }

    /// Creates an object.
    ///
    /// # Errors
    /// When the server refuses or does not answer.
    pub async fn create(&self, object: &Value, write: &Write<'_>) -> Result<Answer, Error> {
        let path = self.collection_path(&ObjectRef::of(object)?).await?;
        self.write(&Request::new(Method::POST, &path, &write.query()).json(object), write).await
    }

    /// Replaces an object.
    ///
    /// # Errors
    /// When the server refuses or does not answer.
    pub async fn update(&self, object: &Value, write: &Write<'_>) -> Result<Answer, Error> {
        let path = self.path(&ObjectRef::of(object)?, write.subresource).await?;
        self.write(&Request::new(Method::PUT, &path, &write.query()).json(object), write).await
    }

    /// Patches an object.
    ///
    /// # Errors
    /// When the server refuses or does not answer.
    pub async fn patch(
        &self,
        object: &ObjectRef,
        format: Patch,
        patch: &Value,
        write: &Write<'_>,
    ) -> Result<Answer, Error> {
        let path = self.path(object, write.subresource).await?;
        let body = Bytes::from(patch.to_string());
        let query = write.query();
        self.write(&Request::new(Method::PATCH, &path, &query).body(format.content_type(), body), write).await
    }

    async fn write(&self, request: &Request<'_>, write: &Write<'_>) -> Result<Answer, Error> {
        let answer = self.client.json(request).await?;
        if let Some(observer) = self.observer.as_ref().filter(|_| !write.dry_run) {
            observer.wrote(&answer.body);
        }
        Ok(answer)
    }

    async fn read(&self, path: &str, query: &[(&str, String)]) -> Result<Value, Error> {
        Ok(self.client.json(&Request::new(Method::GET, path, query)).await?.body)
    }

    /// Deletes an object that is proven to be ours. False when it was gone, or is another one under the name by now.
    ///
    /// # Errors
    /// When the server refuses or does not answer.
    pub async fn delete(&self, owned: &Owned<ObjectRef>, options: Delete) -> Result<bool, Error> {
        let path = self.path(owned.object(), "").await?;
        let options = fl_client::Delete {
            uid: Some(owned.uid()),
            propagation: options.propagation.as_str(),
            dry_run: options.dry_run,
            ..fl_client::Delete::default()
        };
        match self.client.json(&Request::new(Method::DELETE, &path, &[]).json(&options.body())).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(false),
            Err(error) => Err(error.into()),
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
        self.read(&path, query).await
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
        Ok(self.client.events(&Request::new(Method::GET, &path, &query)).await?)
    }

    async fn path(&self, object: &ObjectRef, subresource: &str) -> Result<String, Error> {
        let kind = self.resource(object).await?;
        if kind.namespaced() && object.id.namespace.is_empty() {
            // What a server says to a path that leaves the namespace out; asking would only cost a request.
            return Err(ApiError::not_found("the server could not find the requested resource").into());
        }
        let mut path = kind.object_path(Some(&object.id.namespace), &object.id.name);
        if !subresource.is_empty() {
            path.push('/');
            fl_client::push_segment(&mut path, subresource);
        }
        Ok(path)
    }

    async fn collection_path(&self, object: &ObjectRef) -> Result<String, Error> {
        let namespace = Some(object.id.namespace.as_str()).filter(|namespace| !namespace.is_empty());
        Ok(self.resource(object).await?.collection_path(namespace))
    }
}
