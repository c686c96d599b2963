//! The plan for one object: what an apply has to do, found out without writing it.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::{Applier, Item};
use crate::field_managers::migrate;
use crate::ignore::{Resolution, resolve};
use crate::unchanged::managed_fields_match;
use crate::{
    Action, ApiError, Change, Delete, Error, Fingerprint, Force, Lookup, ObjectRef, Owned, any_in_metadata,
    has_drifted,
};

/// How long a kind whose CRD is new may take to be served.
const NEW_KIND_TIMEOUT: Duration = Duration::from_secs(5);

/// Whether cleaning up and recreating is allowed on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Apply,
    /// What an apply would change in the object.
    Diff,
    /// Whether an apply would write at all: taking fields over from earlier managers is a write too.
    Check,
}

/// What to do with one object.
#[derive(Debug)]
pub(super) struct PlannedObject {
    /// The object as the cluster names it: a cluster-scoped object has no namespace, also if the manifest has one.
    pub(super) target: ObjectRef,
    pub(super) change: PlannedChange,
    pub(super) live: Option<Value>,
}

#[derive(Debug)]
pub(super) enum PlannedChange {
    Skip,
    Unchanged,
    /// Without a payload the object is written as it was prepared. `wanted` is the result of the dry-run, as far as a diff needs
    /// it.
    Write {
        payload: Option<Value>,
        action: Action,
        wanted: Option<Value>,
    },
}

impl PlannedObject {
    pub(super) fn into_diff(self) -> (Change, Option<Value>, Option<Value>) {
        let PlannedObject { target, change, live } = self;
        let (action, wanted) = match change {
            PlannedChange::Skip => (Action::Skipped, None),
            PlannedChange::Unchanged => (Action::Unchanged, None),
            PlannedChange::Write { action, wanted, .. } => (action, wanted),
        };
        let live = live.filter(|_| wanted.is_some());
        (Change { object: target, action, fought_by: None }, live, wanted)
    }
}

impl Applier {
    pub(super) async fn plan(&self, item: &Item, mode: Mode) -> Result<PlannedObject, String> {
        let options = &self.options;
        let target = self.name_in_cluster(item).await.map_err(|e| dry_run_text(item, &e))?;
        let skip = |live| PlannedObject { target: target.clone(), change: PlannedChange::Skip, live };
        if any_in_metadata(&item.object, &options.exclude) {
            return Ok(skip(None));
        }
        if self.is_current(item, &target) {
            return Ok(PlannedObject { target, change: PlannedChange::Unchanged, live: None });
        }
        let only_once = any_in_metadata(&item.object, &options.if_not_present);
        let expected = self.before.contains(&target.id);
        // An expected object is read first: often nothing else is needed. A new one is validated first: often it does not exist.
        let mut live = if expected || only_once || mode != Mode::Apply {
            self.read(&target).await
        } else {
            Live::NotAsked
        };
        if let Some(done) = self.decided_by_live(&live, item, &target, only_once) {
            return Ok(done);
        }
        if let Some(there) = live.present().filter(|there| self.is_unchanged_by_itself(item, &target, there))
        {
            let live = Some(there.clone());
            return Ok(PlannedObject { target, change: PlannedChange::Unchanged, live });
        }
        let mut patched = false;
        if options.migrate_api_version && mode == Mode::Apply {
            live = self.ask(live, &target).await;
            patched |= self.migrate_managed_fields(&mut live, &target).await?;
        }
        let answer = match self.dry_run(item, mode).await {
            Ok(answer) => answer,
            Err(error) => {
                live = self.ask(live, &target).await;
                if let Some(done) = self.decided_by_live(&live, item, &target, only_once) {
                    return Ok(done);
                }
                let Some(there) = live.present().filter(|there| self.may_recreate(item, there, &error))
                else {
                    return Err(dry_run_text(item, &error));
                };
                if mode != Mode::Apply {
                    let change = write(Action::Created, Some(item.object.clone()));
                    return Ok(PlannedObject { target, change, live: None });
                }
                self.remove_to_recreate(item, &target, there).await?;
                live = Live::NotFound;
                self.dry_run(item, mode).await.map_err(|e| dry_run_text(item, &e))?
            }
        };
        let mut answer = match answer {
            DryRun::New(wanted) => {
                let change = write(Action::Created, wanted);
                return Ok(PlannedObject { target, change, live: None });
            }
            DryRun::Exists(answer) => answer,
        };
        live = self.ask(live, &target).await;
        if let Some(done) = self.decided_by_live(&live, item, &target, only_once) {
            return Ok(done);
        }
        let mut there = match live {
            Live::Found(there) => there,
            // An identity that may write but not read: the live object cannot be compared, so the object is written.
            Live::Unreadable => {
                let change = write(Action::Configured, Some(answer));
                return Ok(PlannedObject { target, change, live: None });
            }
            // Deleted between the two requests: the apply creates it.
            Live::NotFound | Live::NotAsked => {
                let change = write(Action::Created, Some(answer));
                return Ok(PlannedObject { target, change, live: None });
            }
        };
        if mode == Mode::Apply {
            patched |= self.clean_up(item, &target, &mut there).await?;
        }
        let owed = mode == Mode::Check && self.owes_clean_up(item, &there);
        if !patched && !owed && !has_drifted(&there, &answer, &options.ignore) {
            return Ok(PlannedObject { target, change: PlannedChange::Unchanged, live: Some(there) });
        }
        let resolutions: Vec<Resolution> =
            options.ignore.resolutions(&there, &answer, &self.owner.field_manager);
        let mut payload = item.object.clone();
        resolve(&mut payload, &resolutions).map_err(|e| Error::Ignore(e).to_string())?;
        options.ignore.strip(&answer.clone(), &mut answer);
        let change =
            PlannedChange::Write { payload: Some(payload), action: Action::Configured, wanted: Some(answer) };
        Ok(PlannedObject { target, change, live: Some(there) })
    }

    /// The name of the first object of a stage, when it is expected to be new. All others pass a dry-run before the first write;
    /// this one is written first, so it needs none.
    pub(super) async fn new_target(&self, item: &Item) -> Option<ObjectRef> {
        let target = self.name_in_cluster(item).await.ok()?;
        let options = &self.options;
        let told = [&options.exclude, &options.if_not_present];
        let known =
            self.before.contains(&target.id) || told.iter().any(|pairs| any_in_metadata(&item.object, pairs));
        (!known).then_some(target)
    }

    /// Whether the managed fields of the live object show that an apply would change nothing.
    fn is_unchanged_by_itself(&self, item: &Item, target: &ObjectRef, live: &Value) -> bool {
        let options = &self.options;
        options.ignore.is_empty()
            && managed_fields_match(live, &item.object, &self.owner.field_manager)
            && !self.owes_clean_up(item, live)
            && !(options.migrate_api_version && migrate(live, &target.api_version()).is_some())
    }

    /// The object as the cluster and the inventory name it: cluster-scoped objects have no namespace, also if the manifest has
    /// one.
    async fn name_in_cluster(&self, item: &Item) -> Result<ObjectRef, Error> {
        let mut target = item.target.clone();
        if !target.id.namespace.is_empty() {
            let resource = self.until_served(|| self.cluster.resource(&item.target)).await?;
            if !resource.namespaced() {
                target.id.namespace.clear();
            }
        }
        Ok(target)
    }

    /// Whether the live object is known to be as wanted, without a request.
    fn is_current(&self, item: &Item, target: &ObjectRef) -> bool {
        let (Some(last_applied), Some(versions)) = (&self.last_applied, &self.versions) else { return false };
        let Lookup::Found(live) = versions.version(target) else { return false };
        last_applied.is_current(&target.id, item.text(), &live)
    }

    async fn read(&self, target: &ObjectRef) -> Live {
        match self.cluster.get(target).await {
            Ok(Some(live)) => Live::Found(live),
            Ok(None) => Live::NotFound,
            Err(_) => Live::Unreadable,
        }
    }

    async fn ask(&self, live: Live, target: &ObjectRef) -> Live {
        match live {
            Live::NotAsked => self.read(target).await,
            asked => asked,
        }
    }

    /// Whether the live object alone decides.
    fn decided_by_live(
        &self,
        live: &Live,
        item: &Item,
        target: &ObjectRef,
        only_once: bool,
    ) -> Option<PlannedObject> {
        let there = live.present()?;
        if only_once || any_in_metadata(there, &self.options.exclude) {
            return Some(PlannedObject { target: target.clone(), change: PlannedChange::Skip, live: None });
        }
        let current =
            self.last_applied.as_ref()?.is_current(&target.id, item.text(), &Fingerprint::of(there)?);
        current.then(|| PlannedObject {
            target: target.clone(),
            change: PlannedChange::Unchanged,
            live: Some(there.clone()),
        })
    }

    async fn dry_run(&self, item: &Item, mode: Mode) -> Result<DryRun, Error> {
        let write = self.as_owner(true);
        if mode == Mode::Diff {
            let answer = self.until_served(|| self.cluster.apply(&item.object, &write)).await?;
            let new = answer.resource_version().is_empty();
            return Ok(if new { DryRun::New(Some(answer.body)) } else { DryRun::Exists(answer.body) });
        }
        if mode == Mode::Apply && self.dry_run_as_create(item).await {
            return Ok(DryRun::New(None));
        }
        let answer =
            self.until_served(|| self.cluster.try_apply(&item.target, item.text().clone(), &write)).await?;
        Ok(answer.map_or(DryRun::New(None), DryRun::Exists))
    }

    /// Repeats a request while a new kind is not served yet.
    async fn until_served<T, F: Future<Output = Result<T, Error>>>(
        &self,
        request: impl Fn() -> F,
    ) -> Result<T, Error> {
        let start = Instant::now();
        loop {
            match request().await {
                Err(Error::Client(fl_client::Error::NoKind { kind, api_version })) => {
                    let defined = self.cluster.client().has_new_kinds(fl_types::api_group(&api_version));
                    if !defined || start.elapsed() > NEW_KIND_TIMEOUT {
                        return Err(fl_client::Error::NoKind { kind, api_version }.into());
                    }
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
                result => return result,
            }
        }
    }

    fn may_recreate(&self, item: &Item, live: &Value, error: &Error) -> bool {
        let asked = || {
            any_in_metadata(&item.object, &self.options.force_selector)
                || any_in_metadata(live, &self.options.force_selector)
        };
        error.api().is_some_and(ApiError::is_immutable) && (self.options.force == Force::Always || asked())
    }

    async fn remove_to_recreate(&self, item: &Item, target: &ObjectRef, live: &Value) -> Result<(), String> {
        let failed = |what: &str, error: &Error| {
            format!("{} immutable field detected, failed to {what}: {error}", item.target)
        };
        let owned = Owned::to_recreate(live).map_err(|e| failed("delete object", &e))?;
        self.cluster.delete(&owned, Delete::default()).await.map_err(|e| failed("delete object", &e))?;
        let deadline = Instant::now() + self.options.recreate_timeout;
        let mut pause = Duration::from_millis(50);
        loop {
            match self.cluster.get(target).await {
                Ok(None) => return Ok(()),
                Ok(Some(there)) if text(&there, "/metadata/uid").as_deref() != Some(owned.uid()) => {
                    return Ok(());
                }
                Ok(Some(_)) if Instant::now() < deadline => {}
                Ok(Some(_)) => {
                    let error = Error::Timeout("its finalizers did not run in time".to_owned());
                    return Err(failed("wait for object to be deleted", &error));
                }
                Err(error) => return Err(failed("wait for object to be deleted", &error)),
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_secs(2));
        }
    }
}

/// The result of a dry-run.
enum DryRun {
    /// It would be created, as this; read only for a diff.
    New(Option<Value>),
    /// It would become this.
    Exists(Value),
}

/// The live object as far as it was read.
#[derive(Debug)]
pub(super) enum Live {
    NotAsked,
    /// The read failed: neither presence nor absence follows.
    Unreadable,
    NotFound,
    Found(Value),
}

impl Live {
    fn present(&self) -> Option<&Value> {
        match self {
            Live::Found(live) => Some(live),
            _ => None,
        }
    }
}

fn write(action: Action, wanted: Option<Value>) -> PlannedChange {
    PlannedChange::Write { payload: None, action, wanted }
}

pub(super) fn text(object: &Value, pointer: &str) -> Option<String> {
    object.pointer(pointer).and_then(Value::as_str).filter(|t| !t.is_empty()).map(str::to_owned)
}

/// Flux's error message for a dry-run that failed.
fn dry_run_text(item: &Item, error: &Error) -> String {
    let subject = &item.target;
    let Some(api) = error.api() else { return format!("{subject} dry-run failed: {error}") };
    if api.is_not_found() {
        let what = if subject.id.namespace.is_empty() { "namespace not specified" } else { "not found" };
        return format!("{subject} {what}: {api}");
    }
    let conflict = api.causes.iter().find(|c| *c == "FieldManagerConflict");
    match conflict.unwrap_or(&api.reason).as_str() {
        "" => format!("{subject} dry-run failed: {api}"),
        reason => format!("{subject} dry-run failed ({reason}): {api}"),
    }
}
