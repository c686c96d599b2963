//! Creates, updates and deletes the objects of a release, with server-side apply or client-side patches.

use fl_apply::{
    Cluster, Delete, Error as ClusterError, FieldManager, Operation, Owned, Patch, Propagation, Write,
    annotation, take_over,
};
use futures::StreamExt;
use serde_json::Value;

use super::MANAGER;
use super::error::ActionError;
use super::log::ActionLog;
use super::ownership::{Existing, belongs_to_another};
use super::resources::{Resource, difference};
use super::three_way_merge::{PatchOf, client_side_patch};

/// Objects of one kind that are written concurrently.
const MAX_CONCURRENT_WRITES: usize = 8;
const RESOURCE_POLICY: &str = "helm.sh/resource-policy";

/// How objects are updated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    /// Server-side apply; with or without force.
    Apply { force: bool },
    /// Client-side patch; with or without a three-way merge for custom resources.
    Patch { three_way: bool },
    /// The whole object is replaced.
    Replace,
}

impl Method {
    pub(crate) fn is_server_side(self) -> bool {
        matches!(self, Self::Apply { .. })
    }
}

/// What an update wrote.
#[derive(Debug, Default)]
pub(crate) struct WriteResult {
    /// New objects.
    pub(crate) created: Vec<Resource>,
    /// The objects as the API server returned them.
    pub(crate) live: Vec<Value>,
}

/// Writes objects on behalf of a release.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Writer<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) log: &'a ActionLog,
    pub(crate) release: &'a str,
    pub(crate) namespace: &'a str,
}

fn strict(force: bool) -> Write<'static> {
    Write { manager: MANAGER, force, field_validation: "Strict", ..Write::default() }
}

impl Writer<'_> {
    /// Creates objects, kind by kind; an error of one does not stop the others.
    pub(crate) async fn create(
        &self,
        targets: &[Resource],
        method: Method,
    ) -> Result<Vec<Value>, ActionError> {
        self.log.note("creating resource(s)", &[("resources", &targets.len())]);
        let mut live = Vec::with_capacity(targets.len());
        let mut errors = Vec::new();
        for kind in targets.chunk_by(|a, b| a.reference.id.kind == b.reference.id.kind) {
            let writes: Vec<_> = kind.iter().map(|target| self.create_one(target, method)).collect();
            let answers: Vec<_> =
                futures::stream::iter(writes).buffered(MAX_CONCURRENT_WRITES).collect().await;
            for answer in answers {
                match answer {
                    Ok(object) => live.push(object),
                    Err(error) => errors.push(error.to_string()),
                }
            }
        }
        if errors.is_empty() { Ok(live) } else { Err(ActionError::failed(errors.join("\n"))) }
    }

    async fn create_one(&self, target: &Resource, method: Method) -> Result<Value, ActionError> {
        match method {
            Method::Apply { force } => self.apply(target, force).await,
            Method::Patch { .. } | Method::Replace => {
                let write = Write { manager: MANAGER, ..Write::default() };
                let answer = self.cluster.create(&target.object, &write).await?;
                Ok(answer.body)
            }
        }
    }

    /// Server-side apply, with Helm's error messages.
    pub(crate) async fn apply(&self, target: &Resource, force: bool) -> Result<Value, ActionError> {
        self.applied(target, force).await.map(|(answer, _)| answer)
    }

    /// The same, and whether the object is new.
    async fn applied(&self, target: &Resource, force: bool) -> Result<(Value, bool), ActionError> {
        let named = !target.reference.id.name.is_empty();
        if !named {
            // With `generateName` it can only be created.
            let write = Write { manager: MANAGER, field_validation: "Strict", ..Write::default() };
            return Ok((self.cluster.create(&target.object, &write).await?.body, true));
        }
        let about = target.shown();
        match self.cluster.apply(&target.object, &strict(force)).await {
            Ok(answer) => {
                self.log.note(
                    if answer.created { "Created resource via patch" } else { "Patched resource" },
                    &[("name", &target.reference.id.name), ("gvk", &target.go_kind())],
                );
                Ok((answer.body, answer.created))
            }
            Err(error) => {
                let error = mask(target, error);
                self.log.note(
                    "Error patching resource",
                    &[("name", &target.reference.id.name), ("error", &error)],
                );
                let conflict =
                    matches!(&error, ClusterError::Client(fl_client::Error::Api(api)) if api.is_conflict());
                let message = if conflict {
                    "conflict occurred while applying object"
                } else {
                    "server-side apply failed for object"
                };
                Err(ActionError::failed(format!("{message} {about}: {error}")))
            }
        }
    }

    /// Updates the objects of one revision to those of another: creates, updates, and deletes the ones that were removed.
    ///
    /// `known` are objects that have been read already; `migrate_managed_fields` hands fields of client-side writes to
    /// server-side apply.
    pub(crate) async fn update(
        &self,
        originals: &[Resource],
        targets: &[Resource],
        method: Method,
        migrate_managed_fields: bool,
        known: &Existing,
    ) -> (WriteResult, Result<(), ActionError>) {
        let mut written = WriteResult::default();
        let mut errors = Vec::new();
        self.log.note("checking resources for changes", &[("resources", &targets.len())]);
        for target in targets {
            match self
                .update_one(originals, target, method, migrate_managed_fields, known, &mut written)
                .await
            {
                Ok(()) => {}
                Err(UpdateError::Fatal(error)) => return (written, Err(error)),
                Err(UpdateError::Deferred(error)) => errors.push(error.to_string()),
            }
        }
        if !errors.is_empty() {
            return (written, Err(ActionError::failed(errors.join(" && "))));
        }
        for gone in difference(originals, targets) {
            if let Err(error) = self.remove(gone).await {
                errors.push(format!(
                    "failed to delete resource namespace={}, name={}, kind={}: {error}",
                    gone.reference.id.namespace, gone.reference.id.name, gone.reference.id.kind
                ));
            }
        }
        let result = if errors.is_empty() { Ok(()) } else { Err(ActionError::failed(errors.join(" && "))) };
        (written, result)
    }

    async fn update_one(
        &self,
        originals: &[Resource],
        target: &Resource,
        method: Method,
        migrate_managed_fields: bool,
        known: &Existing,
        written: &mut WriteResult,
    ) -> Result<(), UpdateError> {
        let unreadable = |error: ClusterError| {
            UpdateError::Fatal(ActionError::failed(format!(
                "could not get information about the resource: {error}"
            )))
        };
        let without_read = method.is_server_side() && !migrate_managed_fields;
        let live = match known.get(&target.reference.id) {
            Some(live) => Some(live.clone()),
            // The response of apply says whether the object is new; no read is needed.
            None if without_read => None,
            None => self.cluster.get(&target.reference).await.map_err(unreadable)?,
        };
        let Some(live) = live else {
            return self.create_or_apply(target, method, without_read, written).await;
        };
        let answer = match method {
            Method::Apply { force } => {
                if migrate_managed_fields {
                    self.migrate_managed_fields(target, &live).await.map_err(UpdateError::Deferred)?;
                }
                self.apply(target, force).await.map_err(UpdateError::Deferred)?
            }
            Method::Replace => {
                let mut object = target.object.clone();
                object["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"].clone();
                let answer = self.cluster.update(&object, &strict(false)).await;
                answer
                    .map_err(|error| {
                        let error = mask(target, error);
                        UpdateError::Deferred(ActionError::failed(format!(
                            "failed to replace object: {error}"
                        )))
                    })?
                    .body
            }
            Method::Patch { three_way } => {
                let original = originals.iter().find(|original| original.is(target));
                let original = original.map_or(&live, |original| &original.object);
                self.patch(original, target, live.clone(), three_way).await.map_err(UpdateError::Deferred)?
            }
        };
        written.live.push(answer);
        Ok(())
    }

    async fn create_or_apply(
        &self,
        target: &Resource,
        method: Method,
        without_read: bool,
        written: &mut WriteResult,
    ) -> Result<(), UpdateError> {
        let failed_to_create =
            |error: ActionError| UpdateError::Fatal(error.within("failed to create resource"));
        if !without_read {
            let answer = self.create_one(target, method).await;
            written.created.push(target.clone());
            written.live.push(answer.map_err(failed_to_create)?);
            return Ok(());
        }
        let force = matches!(method, Method::Apply { force: true });
        match self.applied(target, force).await {
            Ok((answer, created)) => {
                if created {
                    written.created.push(target.clone());
                }
                written.live.push(answer);
                Ok(())
            }
            Err(error) => match self.cluster.get(&target.reference).await {
                Ok(None) => {
                    written.created.push(target.clone());
                    Err(failed_to_create(error))
                }
                _ => Err(UpdateError::Deferred(error)),
            },
        }
    }

    /// Moves fields that Helm wrote with client-side patches to its server-side apply manager, so that apply removes them when
    /// they leave the manifest.
    async fn migrate_managed_fields(&self, target: &Resource, live: &Value) -> Result<(), ActionError> {
        let managers = [FieldManager::new(MANAGER, Operation::Update)];
        let failed = |error: ClusterError| {
            ActionError::failed(format!(
                "failed to upgrade managed fields for object {}: {error}",
                target.shown()
            ))
        };
        let patch = take_over(live, &managers, MANAGER, &[], &[]).map_err(failed)?;
        if patch.is_empty() {
            return Ok(());
        }
        let write = Write { manager: MANAGER, ..Write::default() };
        match self.cluster.patch(&target.reference, Patch::Json, &Value::Array(patch), &write).await {
            Ok(_) => Ok(()),
            // Changed meanwhile: apply takes the fields by force.
            Err(ClusterError::Client(fl_client::Error::Api(error)))
                if error.is_conflict() || error.is_invalid() || error.is_not_found() =>
            {
                Ok(())
            }
            Err(error) => Err(failed(error)),
        }
    }

    async fn patch(
        &self,
        original: &Value,
        target: &Resource,
        live: Value,
        three_way: bool,
    ) -> Result<Value, ActionError> {
        let PatchOf { kind, patch } = client_side_patch(original, target, &live, three_way);
        let id = &target.reference.id;
        if patch.as_object().is_none_or(serde_json::Map::is_empty) {
            self.log.note("no changes detected", &[("kind", &id.kind), ("name", &id.name)]);
            return Ok(live);
        }
        self.log.note("patching resource", &[("kind", &id.kind), ("name", &id.name)]);
        let write = Write { manager: MANAGER, ..Write::default() };
        let answer = self.cluster.patch(&target.reference, kind, &patch, &write).await.map_err(|error| {
            let error = mask(target, error);
            ActionError::failed(format!("cannot patch {:?} with kind {}: {error}", id.name, id.kind))
        })?;
        Ok(answer.body)
    }

    /// Deletes an object that is no longer part of the release, unless its resource policy is `keep`.
    async fn remove(&self, target: &Resource) -> Result<(), ClusterError> {
        let Some(live) = self.cluster.get(&target.reference).await.ok().flatten() else { return Ok(()) };
        if annotation(&live, RESOURCE_POLICY) == Some("keep") {
            self.log.note("skipping delete due to annotation", &[("name", &target.reference.id.name)]);
            return Ok(());
        }
        self.delete_live(&live, Propagation::Background).await
    }

    async fn delete_live(&self, live: &Value, propagation: Propagation) -> Result<(), ClusterError> {
        let ours = |live: &Value| !belongs_to_another(live, self.release, self.namespace);
        match Owned::by_check(live, ours)? {
            Some(owned) => {
                self.cluster.delete(&owned, Delete { propagation, ..Delete::default() }).await?;
            }
            None => self.log.note("skipping delete: the object belongs to another release", &[]),
        }
        Ok(())
    }

    async fn delete_one(&self, target: &Resource, propagation: Propagation) -> Result<(), ClusterError> {
        let id = &target.reference.id;
        self.log.note("starting delete resource", &[("name", &id.name), ("kind", &id.kind)]);
        match self.cluster.get(&target.reference).await {
            Ok(Some(live)) => self.delete_live(&live, propagation).await,
            Ok(None) | Err(ClusterError::Client(fl_client::Error::NoKind { .. })) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Deletes objects, kind by kind. Missing ones are not an error.
    pub(crate) async fn delete(
        &self,
        targets: &[Resource],
        propagation: Propagation,
    ) -> Result<(), Vec<String>> {
        let mut errors = Vec::new();
        for kind in targets.chunk_by(|a, b| a.reference.id.kind == b.reference.id.kind) {
            let deletes: Vec<_> = kind.iter().map(|target| self.delete_one(target, propagation)).collect();
            let answers: Vec<_> =
                futures::stream::iter(deletes).buffered(MAX_CONCURRENT_WRITES).collect().await;
            errors
                .extend(answers.into_iter().filter_map(|answer| answer.err().map(|error| error.to_string())));
        }
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }
}

/// An error of one object of an update.
enum UpdateError {
    /// The update ends here.
    Fatal(ActionError),
    /// Reported after the other objects were written.
    Deferred(ActionError),
}

/// Masks values of a Secret in an error message.
fn mask(target: &Resource, error: ClusterError) -> ClusterError {
    match error {
        ClusterError::Client(fl_client::Error::Api(mut api)) => {
            api.message = fl_apply::mask_secret(&target.object, &api.message).to_string();
            ClusterError::Client(api.into())
        }
        other => other,
    }
}
