//! Writing objects: created, updated, deleted, by the server's apply or by patches made here.

use fl_apply::{
    Cluster, Delete, Error as ClusterError, FieldManager, Operation, Owned, Patch, Propagation, Write,
    annotation, take_over,
};
use futures::StreamExt;
use serde_json::Value;

use super::MANAGER;
use super::error::ActionError;
use super::log::ActionLog;
use super::objects::{Target, difference};
use super::ownership::{Existing, belongs_to_another};
use super::strategic::{PatchOf, client_side_patch};

/// Objects of one kind that are written at once.
const PARALLEL: usize = 8;
const POLICY: &str = "helm.sh/resource-policy";

/// How objects are updated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    /// The server applies; whether other managers lose.
    Apply { force: bool },
    /// Patches made here; whether custom resources are merged three ways.
    Patch { three_way: bool },
    /// The whole object is replaced.
    Replace,
}

impl Method {
    pub(crate) fn is_server_side(self) -> bool {
        matches!(self, Self::Apply { .. })
    }
}

/// What an update did.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// New objects.
    pub(crate) created: Vec<Target>,
    /// The objects as the server answered.
    pub(crate) live: Vec<Value>,
}

/// The one who writes for a release.
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
    /// Creates objects, kind after kind; one that fails does not stop the others.
    pub(crate) async fn create(&self, targets: &[Target], method: Method) -> Result<Vec<Value>, ActionError> {
        self.log.note("creating resource(s)", &[("resources", &targets.len())]);
        let mut live = Vec::with_capacity(targets.len());
        let mut errors = Vec::new();
        for kind in targets.chunk_by(|a, b| a.reference.id.kind == b.reference.id.kind) {
            let writes: Vec<_> = kind.iter().map(|target| self.create_one(target, method)).collect();
            let answers: Vec<_> = futures::stream::iter(writes).buffered(PARALLEL).collect().await;
            for answer in answers {
                match answer {
                    Ok(object) => live.push(object),
                    Err(error) => errors.push(error.to_string()),
                }
            }
        }
        if errors.is_empty() { Ok(live) } else { Err(ActionError::failed(errors.join("\n"))) }
    }

    async fn create_one(&self, target: &Target, method: Method) -> Result<Value, ActionError> {
        match method {
            Method::Apply { force } => self.apply(target, force).await,
            Method::Patch { .. } | Method::Replace => {
                let write = Write { manager: MANAGER, ..Write::default() };
                let answer = self.cluster.create(&target.object, &write).await?;
                Ok(answer.body)
            }
        }
    }

    /// Server-side apply with Helm's words for what goes wrong.
    pub(crate) async fn apply(&self, target: &Target, force: bool) -> Result<Value, ActionError> {
        self.applied(target, force).await.map(|(answer, _)| answer)
    }

    /// The same, and whether the object is new.
    async fn applied(&self, target: &Target, force: bool) -> Result<(Value, bool), ActionError> {
        let named = !target.reference.id.name.is_empty();
        if !named {
            // Only a name made by the server: it can only be created.
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
                let words = if conflict {
                    "conflict occurred while applying object"
                } else {
                    "server-side apply failed for object"
                };
                Err(ActionError::failed(format!("{words} {about}: {error}")))
            }
        }
    }

    /// Brings the objects of one revision to another: creates, updates, deletes what is no longer there.
    ///
    /// `known` are objects that were read a moment ago; `hand_over` gives fields of earlier client-side writes to apply.
    pub(crate) async fn update(
        &self,
        originals: &[Target],
        targets: &[Target],
        method: Method,
        hand_over: bool,
        known: &Existing,
    ) -> (Written, Result<(), ActionError>) {
        let mut written = Written::default();
        let mut errors = Vec::new();
        self.log.note("checking resources for changes", &[("resources", &targets.len())]);
        for target in targets {
            match self.update_one(originals, target, method, hand_over, known, &mut written).await {
                Ok(()) => {}
                Err(Stop::AtOnce(error)) => return (written, Err(error)),
                Err(Stop::Later(error)) => errors.push(error.to_string()),
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
        originals: &[Target],
        target: &Target,
        method: Method,
        hand_over: bool,
        known: &Existing,
        written: &mut Written,
    ) -> Result<(), Stop> {
        let unreadable = |error: ClusterError| {
            Stop::AtOnce(ActionError::failed(format!(
                "could not get information about the resource: {error}"
            )))
        };
        let apply_blindly = method.is_server_side() && !hand_over;
        let live = match known.get(&target.reference.id) {
            Some(live) => Some(live.clone()),
            // Apply tells by itself whether the object is new; asking first would only cost a request.
            None if apply_blindly => None,
            None => self.cluster.get(&target.reference).await.map_err(unreadable)?,
        };
        let Some(live) = live else {
            return self.create_or_apply(target, method, apply_blindly, written).await;
        };
        let answer = match method {
            Method::Apply { force } => {
                if hand_over {
                    self.hand_over(target, &live).await.map_err(Stop::Later)?;
                }
                self.apply(target, force).await.map_err(Stop::Later)?
            }
            Method::Replace => {
                let mut object = target.object.clone();
                object["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"].clone();
                let answer = self.cluster.update(&object, &strict(false)).await;
                answer
                    .map_err(|error| {
                        let error = mask(target, error);
                        Stop::Later(ActionError::failed(format!("failed to replace object: {error}")))
                    })?
                    .body
            }
            Method::Patch { three_way } => {
                let original = originals.iter().find(|original| original.is(target));
                let original = original.map_or(&live, |original| &original.object);
                self.patch(original, target, live.clone(), three_way).await.map_err(Stop::Later)?
            }
        };
        written.live.push(answer);
        Ok(())
    }

    async fn create_or_apply(
        &self,
        target: &Target,
        method: Method,
        blindly: bool,
        written: &mut Written,
    ) -> Result<(), Stop> {
        let failed_to_create = |error: ActionError| Stop::AtOnce(error.within("failed to create resource"));
        if !blindly {
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
                _ => Err(Stop::Later(error)),
            },
        }
    }

    /// Makes fields that Helm wrote by patches its own by apply, so that leaving them out later removes them.
    async fn hand_over(&self, target: &Target, live: &Value) -> Result<(), ActionError> {
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
            // Changed in between: apply forces its way.
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
        target: &Target,
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

    /// Deletes an object that is no longer part of the release, unless it says that it stays.
    async fn remove(&self, target: &Target) -> Result<(), ClusterError> {
        let Some(live) = self.cluster.get(&target.reference).await.ok().flatten() else { return Ok(()) };
        if annotation(&live, POLICY) == Some("keep") {
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

    async fn delete_one(&self, target: &Target, propagation: Propagation) -> Result<(), ClusterError> {
        let id = &target.reference.id;
        self.log.note("starting delete resource", &[("name", &id.name), ("kind", &id.kind)]);
        match self.cluster.get(&target.reference).await {
            Ok(Some(live)) => self.delete_live(&live, propagation).await,
            Ok(None) | Err(ClusterError::Client(fl_client::Error::NoKind { .. })) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Deletes objects, kind after kind. What is gone already is fine.
    pub(crate) async fn delete(
        &self,
        targets: &[Target],
        propagation: Propagation,
    ) -> Result<(), Vec<String>> {
        let mut errors = Vec::new();
        for kind in targets.chunk_by(|a, b| a.reference.id.kind == b.reference.id.kind) {
            let deletes: Vec<_> = kind.iter().map(|target| self.delete_one(target, propagation)).collect();
            let answers: Vec<_> = futures::stream::iter(deletes).buffered(PARALLEL).collect().await;
            errors
                .extend(answers.into_iter().filter_map(|answer| answer.err().map(|error| error.to_string())));
        }
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }
}

/// Whether the other objects still get their turn.
enum Stop {
    AtOnce(ActionError),
    Later(ActionError),
}

/// An error about a Secret may quote its values.
fn mask(target: &Target, error: ClusterError) -> ClusterError {
    match error {
        ClusterError::Client(fl_client::Error::Api(mut api)) => {
            api.message = fl_apply::mask_secret(&target.object, &api.message).to_string();
            ClusterError::Client(api.into())
        }
        other => other,
    }
}
