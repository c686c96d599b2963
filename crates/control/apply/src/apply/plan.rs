//! What has to be done for one object, found out without writing it.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::{Applier, Item};
use crate::ignore::{Resolution, resolve};
use crate::intact::is_intact;
use crate::managers::{migrate, take_over};
use crate::{
    Action, ApiError, Change, Delete, Error, Fingerprint, Force, Known, ObjectRef, Owned, Patch, Write,
    any_in_metadata, has_drifted,
};

/// A kind whose definition has just come may take a moment to be served.
const NEW_KIND_PATIENCE: Duration = Duration::from_secs(5);

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
pub(super) struct Planned {
    /// The object as the cluster names it: without the namespace a cluster-wide object was given in Git.
    pub(super) target: ObjectRef,
    pub(super) verdict: Verdict,
    pub(super) live: Option<Value>,
}

#[derive(Debug)]
pub(super) enum Verdict {
    Skip,
    Unchanged,
    /// Without a payload the object is written as it was prepared. `wanted` is what the server would make of it, where somebody
    /// wants to see that.
    Write {
        payload: Option<Value>,
        action: Action,
        wanted: Option<Value>,
    },
}

impl Planned {
    pub(super) fn into_diff(self) -> (Change, Option<Value>, Option<Value>) {
        let Planned { target, verdict, live } = self;
        let (action, wanted) = match verdict {
            Verdict::Skip => (Action::Skipped, None),
            Verdict::Unchanged => (Action::Unchanged, None),
            Verdict::Write { action, wanted, .. } => (action, wanted),
        };
        let live = live.filter(|_| wanted.is_some());
        (Change { object: target, action, fought_by: None }, live, wanted)
    }
}

impl Applier {
    pub(super) async fn plan(&self, item: &Item, mode: Mode) -> Result<Planned, String> {
        let options = &self.options;
        let target = self.named_by_cluster(item).await.map_err(|e| dry_run_text(item, &e))?;
        let skip = |live| Planned { target: target.clone(), verdict: Verdict::Skip, live };
        if any_in_metadata(&item.object, &options.exclude) {
            return Ok(skip(None));
        }
        if self.is_current(item, &target) {
            return Ok(Planned { target, verdict: Verdict::Unchanged, live: None });
        }
        let only_once = any_in_metadata(&item.object, &options.if_not_present);
        let expected = self.before.contains(&target.id);
        // An object that is expected is read first: often nothing else is needed. A new one is tried first: often it does not exist.
        let mut live = if expected || only_once || mode != Mode::Apply {
            self.read(&target).await
        } else {
            Live::NotAsked
        };
        if let Some(done) = self.settled_by(&live, item, &target, only_once) {
            return Ok(done);
        }
        if let Some(there) = live.present().filter(|there| self.needs_nothing(item, &target, there)) {
            let live = Some(there.clone());
            return Ok(Planned { target, verdict: Verdict::Unchanged, live });
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
                if let Some(done) = self.settled_by(&live, item, &target, only_once) {
                    return Ok(done);
                }
                let Some(there) = live.present().filter(|there| self.may_recreate(item, there, &error))
                else {
                    return Err(dry_run_text(item, &error));
                };
                if mode != Mode::Apply {
                    let verdict = write(Action::Created, Some(item.object.clone()));
                    return Ok(Planned { target, verdict, live: None });
                }
                self.remove_to_recreate(item, &target, there).await?;
                live = Live::Absent;
                self.dry_run(item, mode).await.map_err(|e| dry_run_text(item, &e))?
            }
        };
        let mut answer = match answer {
            Tried::New(wanted) => {
                let verdict = write(Action::Created, wanted);
                return Ok(Planned { target, verdict, live: None });
            }
            Tried::Exists(answer) => answer,
        };
        live = self.ask(live, &target).await;
        if let Some(done) = self.settled_by(&live, item, &target, only_once) {
            return Ok(done);
        }
        let mut there = match live {
            Live::Present(there) => there,
            // An identity that may write but not read: what is there cannot be compared, so it is written.
            Live::Unreadable => {
                let verdict = write(Action::Configured, Some(answer));
                return Ok(Planned { target, verdict, live: None });
            }
            // Deleted between the two requests: the apply creates it.
            Live::Absent | Live::NotAsked => {
                let verdict = write(Action::Created, Some(answer));
                return Ok(Planned { target, verdict, live: None });
            }
        };
        if mode == Mode::Apply {
            patched |= self.clean_up(item, &target, &mut there).await?;
        }
        let owed = mode == Mode::Check && self.owes_clean_up(item, &there);
        if !patched && !owed && !has_drifted(&there, &answer, &options.ignore) {
            return Ok(Planned { target, verdict: Verdict::Unchanged, live: Some(there) });
        }
        let resolutions: Vec<Resolution> =
            options.ignore.resolutions(&there, &answer, &self.owner.field_manager);
        let mut payload = item.object.clone();
        resolve(&mut payload, &resolutions).map_err(|e| Error::Ignore(e).to_string())?;
        options.ignore.strip(&answer.clone(), &mut answer);
        let verdict =
            Verdict::Write { payload: Some(payload), action: Action::Configured, wanted: Some(answer) };
        Ok(Planned { target, verdict, live: Some(there) })
    }

    /// The name of the first object of a stage, when it is expected to be new. All others pass a dry-run before anything is written;
    /// this one is written first, so it needs none.
    pub(super) async fn new_target(&self, item: &Item) -> Option<ObjectRef> {
        let target = self.named_by_cluster(item).await.ok()?;
        let options = &self.options;
        let told = [&options.exclude, &options.if_not_present];
        let known =
            self.before.contains(&target.id) || told.iter().any(|pairs| any_in_metadata(&item.object, pairs));
        (!known).then_some(target)
    }

    /// Whether the live object shows by itself that an apply would change nothing.
    fn needs_nothing(&self, item: &Item, target: &ObjectRef, live: &Value) -> bool {
        let options = &self.options;
        options.ignore.is_empty()
            && is_intact(live, &item.object, &self.owner.field_manager)
            && !self.owes_clean_up(item, live)
            && !(options.migrate_api_version && migrate(live, &target.api_version()).is_some())
    }

    /// Whether fields or marks of earlier managers are still on a live object that is not to be merged with them.
    fn owes_clean_up(&self, item: &Item, live: &Value) -> bool {
        let merge = &self.options.merge;
        !any_in_metadata(&item.object, merge)
            && !any_in_metadata(live, merge)
            && !self.left_behind(live).is_ok_and(|patch| patch.is_empty())
    }

    /// The objects as the inventory will name them, as far as their kinds are served already.
    pub async fn inventory_names(&self, prepared: &super::Prepared) -> Vec<ObjectRef> {
        let mut names = Vec::with_capacity(prepared.objects.len());
        for item in &prepared.objects {
            let mut name = item.target.clone();
            if self.cluster.resource(&name).await.is_ok_and(|kind| !kind.namespaced()) {
                name.id.namespace.clear();
            }
            names.push(name);
        }
        names
    }

    /// Cluster-wide objects have no namespace, whatever a kustomization gave them.
    async fn named_by_cluster(&self, item: &Item) -> Result<ObjectRef, Error> {
        let mut target = item.target.clone();
        if !target.id.namespace.is_empty() {
            let resource = self.patiently(|| self.cluster.resource(&item.target)).await?;
            if !resource.namespaced() {
                target.id.namespace.clear();
            }
        }
        Ok(target)
    }

    /// Whether the live object is known to be what is wanted, without asking.
    fn is_current(&self, item: &Item, target: &ObjectRef) -> bool {
        let (Some(remembered), Some(versions)) = (&self.remembered, &self.versions) else { return false };
        let Known::Present(live) = versions.version(target) else { return false };
        remembered.is_current(&target.id, item.text(), &live)
    }

    async fn read(&self, target: &ObjectRef) -> Live {
        match self.cluster.get(target).await {
            Ok(Some(live)) => Live::Present(live),
            Ok(None) => Live::Absent,
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
    fn settled_by(&self, live: &Live, item: &Item, target: &ObjectRef, only_once: bool) -> Option<Planned> {
        let there = live.present()?;
        if only_once || any_in_metadata(there, &self.options.exclude) {
            return Some(Planned { target: target.clone(), verdict: Verdict::Skip, live: None });
        }
        let current = self.remembered.as_ref()?.is_current(&target.id, item.text(), &Fingerprint::of(there)?);
        current.then(|| Planned {
            target: target.clone(),
            verdict: Verdict::Unchanged,
            live: Some(there.clone()),
        })
    }

    async fn dry_run(&self, item: &Item, mode: Mode) -> Result<Tried, Error> {
        let write = self.as_owner(true);
        if mode == Mode::Diff {
            let answer = self.patiently(|| self.cluster.apply(&item.object, &write)).await?;
            let new = answer.resource_version().is_empty();
            return Ok(if new { Tried::New(Some(answer.body)) } else { Tried::Exists(answer.body) });
        }
        if mode == Mode::Apply && self.would_create(item).await {
            return Ok(Tried::New(None));
        }
        let answer =
            self.patiently(|| self.cluster.try_apply(&item.target, item.text().clone(), &write)).await?;
        Ok(answer.map_or(Tried::New(None), Tried::Exists))
    }

    /// Tries again for a moment when the kind is not served (yet).
    async fn patiently<T, F: Future<Output = Result<T, Error>>>(
        &self,
        request: impl Fn() -> F,
    ) -> Result<T, Error> {
        let start = Instant::now();
        loop {
            match request().await {
                Err(Error::Client(fl_client::Error::NoKind { kind, api_version })) => {
                    let defined = self.cluster.client().has_new_kinds(fl_types::api_group(&api_version));
                    if !defined || start.elapsed() > NEW_KIND_PATIENCE {
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

    async fn migrate_managed_fields(&self, live: &mut Live, target: &ObjectRef) -> Result<bool, String> {
        let Live::Present(there) = live else { return Ok(false) };
        let Some(operation) = migrate(there, &target.api_version()) else { return Ok(false) };
        let write = Write { manager: &self.owner.field_manager, ..Write::default() };
        match self.cluster.patch(target, Patch::Json, &Value::Array(vec![operation]), &write).await {
            Ok(answer) => {
                *there = answer.body;
                Ok(true)
            }
            Err(error) => Err(format!("{target} failed to migrate API version: {error}")),
        }
    }

    /// Takes fields over from earlier managers, so that the apply removes what Git does not have.
    async fn clean_up(&self, item: &Item, target: &ObjectRef, live: &mut Value) -> Result<bool, String> {
        let options = &self.options;
        if any_in_metadata(&item.object, &options.merge) || any_in_metadata(live, &options.merge) {
            return Ok(false);
        }
        let failed = |error: &Error| format!("{target} metadata.managedFields cleanup failed: {error}");
        for attempt in 0..3 {
            match self.clean_up_once(target, live).await {
                Ok(patched) => return Ok(patched),
                // Somebody wrote in between: read again.
                Err(error)
                    if attempt < 2 && error.api().is_some_and(|e| e.is_invalid() || e.is_conflict()) =>
                {
                    match self.cluster.get(target).await {
                        Ok(Some(again)) => *live = again,
                        Ok(None) => return Ok(true),
                        Err(error) => return Err(failed(&error)),
                    }
                }
                Err(error) => return Err(failed(&error)),
            }
        }
        Ok(false)
    }

    /// The patch that takes over what earlier managers left behind; empty when there is nothing.
    fn left_behind(&self, live: &Value) -> Result<Vec<Value>, Error> {
        let options = &self.options;
        let annotations: Vec<&str> = options.drop_annotations.iter().map(String::as_str).collect();
        let labels: Vec<&str> = options.drop_labels.iter().map(String::as_str).collect();
        take_over(live, &options.take_over, &self.owner.field_manager, &annotations, &labels)
    }

    async fn clean_up_once(&self, target: &ObjectRef, live: &mut Value) -> Result<bool, Error> {
        let mut patch = self.left_behind(live)?;
        let manager = &self.owner.field_manager;
        if patch.is_empty() {
            return Ok(false);
        }
        // The patch speaks of the entries that were read; another writer in between must not lose its own.
        if let Some(version) = text(live, "/metadata/resourceVersion") {
            patch.insert(
                0,
                serde_json::json!({"op": "test", "path": "/metadata/resourceVersion", "value": version}),
            );
        }
        let write = Write { manager, ..Write::default() };
        *live = self.cluster.patch(target, Patch::Json, &Value::Array(patch), &write).await?.body;
        Ok(true)
    }
}

/// What a dry-run says.
enum Tried {
    /// It would be created, as this; read only where somebody wants to see it.
    New(Option<Value>),
    /// It would become this.
    Exists(Value),
}

/// What is known of the live object.
#[derive(Debug)]
enum Live {
    NotAsked,
    /// The read failed: neither presence nor absence follows.
    Unreadable,
    Absent,
    Present(Value),
}

impl Live {
    fn present(&self) -> Option<&Value> {
        match self {
            Live::Present(live) => Some(live),
            _ => None,
        }
    }
}

fn write(action: Action, wanted: Option<Value>) -> Verdict {
    Verdict::Write { payload: None, action, wanted }
}

fn text(object: &Value, pointer: &str) -> Option<String> {
    object.pointer(pointer).and_then(Value::as_str).filter(|t| !t.is_empty()).map(str::to_owned)
}

/// The words of Flux for a dry-run that failed.
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
