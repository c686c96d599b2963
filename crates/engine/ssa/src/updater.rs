//! Server-side apply and the tracking of managed fields for all other writes, as structured-merge-diff's
//! `Updater`.

mod conflict;
mod prune;
mod reapply;

use std::cell::OnceCell;

use fl_schema::Schema;
use serde_json::{Map, Value};
use thiserror::Error;

pub use conflict::{Conflict, ConflictError};

use crate::managed::{Entry, Identity, Managed, ManagedFieldsError, encoded_managed_fields};
use crate::set::Set;
use crate::typed::{Comparison, Ty, adapt_to_schema, check, compare, field_set, merge};

/// Limit on entries of updaters per version; older ones are merged into `ancient-changes`.
const MAX_UPDATERS: usize = 10;
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Conversion of an object to other versions of its resource, for managed fields entries of those versions.
pub trait Versions {
    /// The object and schema in `api_version`; `None` if the version no longer exists.
    fn convert(&self, object: &Value, api_version: &str) -> Option<(Value, std::sync::Arc<Schema>)>;

    /// Why conversion to `api_version` fails, if that fails the write instead of dropping the entries.
    fn conversion_error(&self, _object: &Value, _api_version: &str) -> Option<String> {
        None
    }
}

/// A resource with one version.
#[derive(Debug, Clone, Copy, Default)]
pub struct OneVersion;

impl Versions for OneVersion {
    fn convert(&self, _object: &Value, _api_version: &str) -> Option<(Value, std::sync::Arc<Schema>)> {
        None
    }
}

/// A write request.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// Schema of the served type, metadata included (see [`fl_schema::Schema::served`] for custom resources).
    pub schema: &'a Schema,
    /// For example `apps/v1`.
    pub api_version: &'a str,
    pub kind: &'a str,
    /// Empty for the main endpoint.
    pub subresource: &'a str,
    pub manager: &'a str,
    /// RFC 3339, seconds.
    pub now: &'a str,
    /// Fields a write through this endpoint resets: `status` on the main endpoint, `spec` on `status`.
    pub reset: &'a Set,
    pub versions: &'a dyn Versions,
}

impl std::fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Request({} {} by {:?} on {:?})",
            self.api_version, self.kind, self.manager, self.subresource
        )
    }
}

/// Why an apply fails.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ApplyError {
    /// The request is invalid (400).
    #[error("{0}")]
    BadRequest(String),
    /// Other managers own fields that would change (409).
    #[error("{0}")]
    Conflict(ConflictError),
    /// The managed fields of the live object are invalid (500).
    #[error("failed to decode managed fields: {0}")]
    ManagedFields(#[from] ManagedFieldsError),
    /// The configuration does not match the schema, or conversion failed (500).
    #[error("{0}")]
    Failed(String),
}

/// Merges an applied configuration into the live object (`null` or empty when there is none). Returns the new
/// object with its managed fields, before defaulting; equal to `live` if nothing changed.
pub fn apply(request: Request<'_>, live: &Value, config: &Value, force: bool) -> Result<Value, ApplyError> {
    let (version, kind) = (text(config, "apiVersion"), text(config, "kind"));
    if version != request.api_version || kind != request.kind {
        return Err(ApplyError::BadRequest(format!("invalid object type: {}", print_gvk(version, kind))));
    }
    if encoded_managed_fields(config).is_some_and(|m| !m.is_null()) {
        return Err(ApplyError::BadRequest("metadata.managedFields must be nil".to_owned()));
    }
    // For kubectl an annotation has to be updated as well.
    if request.manager != "kubectl"
        && let Some(object) = reapply::apply(request, live, config)
    {
        // Tests and fuzzing check that the fast path has the same result.
        debug_assert_eq!(apply_in_full(request, live, config, force).ok().as_ref(), Some(&object));
        return Ok(object);
    }
    apply_in_full(request, live, config, force)
}

/// [`apply`] without the fast path.
fn apply_in_full(
    request: Request<'_>,
    live: &Value,
    config: &Value,
    force: bool,
) -> Result<Value, ApplyError> {
    let mut managed = Managed::decode(live)?;
    let ty = Ty::root(request.schema);
    if let Some(mismatch) = check(config, ty) {
        let meta = |key: &str| {
            config.pointer(&format!("/metadata/{key}")).and_then(Value::as_str).unwrap_or_default()
        };
        let gvk = print_gvk(request.api_version, request.kind);
        let object = format!("{}/{}; {gvk}", meta("namespace"), meta("name"));
        return Err(ApplyError::Failed(format!(
            "failed to create typed patch object ({object}): {mismatch}"
        )));
    }
    let nothing = Value::Object(Map::new());
    let live = if live.is_null() { &nothing } else { live };
    if managed.entries.is_empty() {
        let first = Request { manager: "before-first-apply", ..request };
        managed = track(first, &nothing, live, managed);
    }
    let reapply = (request.manager == "kubectl").then(|| managed.clone());
    let attempt = match (run(request, live, config, managed, force), reapply) {
        // kubectl may take over the fields that it applied client-side before.
        (Err(ApplyError::Conflict(conflicts)), Some(managed)) => {
            match allowed_by_last_applied(request, live) {
                Some(allowed) => {
                    let left = conflicts.without(&allowed);
                    if left.is_empty() {
                        run(request, live, config, managed, true)
                    } else {
                        Err(ApplyError::Conflict(left))
                    }
                }
                None => Err(ApplyError::Conflict(conflicts)),
            }
        }
        (other, _) => other,
    };
    let mut object = attempt?;
    if request.manager == "kubectl" {
        refresh_last_applied(&mut object, config);
    }
    Ok(object)
}

fn run(
    request: Request<'_>,
    live: &Value,
    config: &Value,
    mut managed: Managed,
    force: bool,
) -> Result<Value, ApplyError> {
    let ty = Ty::root(request.schema);
    if let Some(why) = failed_conversion(request, live, &managed, None) {
        return Err(ApplyError::Failed(why));
    }
    adapt_all_to_schema(request, &mut managed);
    let identity = Identity::new(request.manager, true, request.api_version, request.subresource);
    let set = field_set(config, ty).recursive_difference(request.reset);
    let merged = merge(live, config, ty);
    let time = managed.get(&identity).and_then(|e| e.time.clone());
    let last = managed.put(Entry::new(identity.clone(), request.api_version, set, time));
    if let Some(entry) = last.as_ref().filter(|e| e.version != request.api_version)
        && let Some(why) = request.versions.conversion_error(&merged, &entry.version)
    {
        let why = format!("failed to convert merged object to last applied version: {why}");
        return Err(ApplyError::Failed(why));
    }
    let new = prune::prune(request, merged, &managed, &identity, last.as_ref());
    if let Some(why) = failed_conversion(request, &new, &managed, Some(&identity)) {
        return Err(ApplyError::Failed(format!("failed to convert new object: {why}")));
    }
    let changes = Changes::new(request, live, &new);
    let mut managed =
        update_other_managers(request, &changes, managed, &identity, force).map_err(ApplyError::Conflict)?;
    let changed = !equal_except_managed_fields(live, &new);
    strip(&mut managed, &identity, last);
    if changed && let Some(entry) = managed.entries.iter_mut().find(|e| e.identity == identity) {
        entry.time = Some(request.now.to_owned());
    }
    let mut object = new;
    managed.store(&mut object);
    Ok(object)
}

/// Whether two objects are equal except for their managed fields.
fn equal_except_managed_fields(a: &Value, b: &Value) -> bool {
    let (Some(a), Some(b)) = (a.as_object(), b.as_object()) else { return crate::path::same(a, b) };
    let counts = |(name, _): &(&String, &Value)| *name != "managedFields";
    let same_metadata = |a: &Value, b: &Value| match (a.as_object(), b.as_object()) {
        (Some(a), Some(b)) => {
            a.iter().filter(counts).count() == b.iter().filter(counts).count()
                && a.iter().filter(counts).all(|(k, l)| b.get(k).is_some_and(|r| crate::path::same(l, r)))
        }
        _ => crate::path::same(a, b),
    };
    a.len() == b.len()
        && a.iter().all(|(k, l)| {
            b.get(k)
                .is_some_and(|r| if k == "metadata" { same_metadata(l, r) } else { crate::path::same(l, r) })
        })
}

/// Sets the managed fields of `new` after a create (`live` is null or empty), update or non-apply patch.
pub fn update(request: Request<'_>, live: &Value, new: &mut Value) {
    let nothing = Value::Object(Map::new());
    let live = if live.is_null() { &nothing } else { live };
    let managed = match live_or_new(request, live, new) {
        ManagerOperation::Reset => {
            Managed::default().store(new);
            Managed::default()
        }
        ManagerOperation::Keep(managed) => managed,
    };
    // An object without managed fields is not tracked until it is applied; only creation starts tracking.
    let created = live.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default().is_empty();
    if managed.entries.is_empty() && !created {
        managed.store(new);
        return;
    }
    let managed = track(request, live, new, managed);
    cap(managed).store(new);
}

enum ManagerOperation {
    Reset,
    Keep(Managed),
}

/// Managed fields sent by the client are used if they decode; an empty list resets them.
fn live_or_new(request: Request<'_>, live: &Value, new: &Value) -> ManagerOperation {
    let from_live = || ManagerOperation::Keep(Managed::decode(live).unwrap_or_default());
    if !request.subresource.is_empty() {
        return from_live();
    }
    match encoded_managed_fields(new) {
        Some(Value::Array(list)) if list.is_empty() => return ManagerOperation::Reset,
        Some(Value::Array(list)) if list.len() == 1 && list[0].as_object().is_some_and(Map::is_empty) => {
            return ManagerOperation::Reset;
        }
        _ => {}
    }
    match Managed::decode(new) {
        Ok(managed) if !managed.entries.is_empty() => ManagerOperation::Keep(managed),
        _ => from_live(),
    }
}

/// Adds the changes between `live` and `new` to the fields of the manager.
fn track(request: Request<'_>, live: &Value, new: &Value, mut managed: Managed) -> Managed {
    let me = Identity::new(request.manager, false, request.api_version, request.subresource);
    let operation = Identity::new("current-operation", false, "", "");
    adapt_all_to_schema(request, &mut managed);
    if [live, new].iter().any(|object| failed_conversion(request, object, &managed, None).is_some()) {
        // Without conversion the owners are unknown; they are dropped and the write proceeds.
        return Managed::default();
    }
    let changes = Changes::new(request, live, new);
    let Ok(mut managed) = update_other_managers(request, &changes, managed, &operation, true) else {
        return Managed::default();
    };
    let seen = changes.seen();
    let taken = seen.modified.union(&seen.added).recursive_difference(request.reset).difference(strip_set());
    if taken.is_empty() {
        return managed;
    }
    let set = match managed.remove(&me) {
        Some(previous) => taken.union(previous.set()),
        None => taken,
    };
    managed.put(Entry::new(me, request.api_version, set, Some(request.now.to_owned())));
    managed
}

/// Two states of an object and their difference, which is computed on demand.
struct Changes<'a> {
    request: Request<'a>,
    live: &'a Value,
    new: &'a Value,
    seen: OnceCell<Comparison>,
}

impl<'a> Changes<'a> {
    fn new(request: Request<'a>, live: &'a Value, new: &'a Value) -> Self {
        Self { request, live, new, seen: OnceCell::new() }
    }

    /// The difference in the version of the request.
    fn seen(&self) -> &Comparison {
        self.seen.get_or_init(|| {
            let mut changes = compare(self.live, self.new, Ty::root(self.request.schema));
            changes.exclude(self.request.reset);
            changes
        })
    }

    fn in_version(&self, version: &str) -> Option<Comparison> {
        let (old, schema) = self.request.versions.convert(self.live, version)?;
        let (new, _) = self.request.versions.convert(self.new, version)?;
        let mut changes = compare(&old, &new, Ty::root(&schema));
        changes.exclude(self.request.reset);
        Some(changes)
    }
}

/// Removes changed and deleted fields from all other managers. Without `force` a change of a field they own
/// is a conflict.
fn update_other_managers(
    request: Request<'_>,
    changes: &Changes<'_>,
    mut managed: Managed,
    me: &Identity,
    force: bool,
) -> Result<Managed, ConflictError> {
    let mut conflicts = Vec::new();
    let mut others: Vec<(String, Option<Comparison>)> = Vec::new();
    let mut gone = Vec::new();
    for entry in &mut managed.entries {
        if entry.identity == *me {
            continue;
        }
        let seen = if entry.version == request.api_version {
            changes.seen()
        } else {
            if !others.iter().any(|(v, _)| *v == entry.version) {
                others.push((entry.version.clone(), changes.in_version(&entry.version)));
            }
            match others.iter().find(|(v, _)| *v == entry.version).and_then(|(_, c)| c.as_ref()) {
                Some(found) => found,
                None => {
                    gone.push(entry.identity.clone());
                    continue;
                }
            }
        };
        if seen.is_empty() {
            continue;
        }
        let lost = entry.set().intersection(&seen.modified.union(&seen.added));
        if !lost.is_empty() && !force {
            conflicts.push((entry.identity.clone(), lost));
            continue;
        }
        let kept = entry.set().difference(&lost).difference(&seen.removed);
        if kept != *entry.set() {
            entry.replace(kept);
        }
    }
    if !conflicts.is_empty() {
        return Err(ConflictError::new(conflicts));
    }
    managed.entries.retain(|e| !gone.contains(&e.identity) && (e.identity == *me || !is_emptied(e)));
    managed.entries.retain(|e| e.identity != *me || !e.set().is_empty());
    Ok(managed)
}

/// Why an object cannot be converted to the version of an entry of another manager than `me`.
fn failed_conversion(
    request: Request<'_>,
    object: &Value,
    managed: &Managed,
    me: Option<&Identity>,
) -> Option<String> {
    let others = managed.entries.iter().filter(|e| Some(&e.identity) != me);
    others
        .filter(|e| e.version != request.api_version)
        .find_map(|entry| request.versions.conversion_error(object, &entry.version))
}

fn is_emptied(entry: &Entry) -> bool {
    entry.set().is_empty()
}

fn adapt_all_to_schema(request: Request<'_>, managed: &mut Managed) {
    for entry in &mut managed.entries {
        if entry.version == request.api_version
            && let Some(set) = adapt_to_schema(entry.set(), Ty::root(request.schema))
        {
            entry.replace(set);
        }
    }
}

/// Top-level fields that are not tracked.
const UNTRACKED: [&str; 2] = ["apiVersion", "kind"];
/// Fields of `metadata` that are not tracked.
const UNTRACKED_METADATA: [&str; 9] = [
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
];

/// All fields that are not tracked.
fn strip_set() -> &'static Set {
    static STRIP: std::sync::OnceLock<Set> = std::sync::OnceLock::new();
    STRIP.get_or_init(|| {
        let metadata = UNTRACKED_METADATA.map(|name| ["metadata", name]);
        let paths: Vec<&[&str]> = UNTRACKED
            .iter()
            .chain(&["metadata"])
            .map(std::slice::from_ref)
            .chain(metadata.iter().map(<[&str; 2]>::as_slice))
            .collect();
        Set::of_fields(&paths)
    })
}

/// Removes untracked fields from a manager, whose entry was `last` before.
fn strip(managed: &mut Managed, identity: &Identity, last: Option<Entry>) {
    let Some(entry) = managed.entries.iter_mut().find(|e| e.identity == *identity) else { return };
    let kept = entry.set().difference(strip_set());
    match last {
        _ if kept.is_empty() => {
            managed.remove(identity);
        }
        Some(last) if last.version == entry.version && *last.set() == kept => entry.reuse(last),
        _ => entry.replace(kept),
    }
}

/// Merges the oldest updaters of a version until at most [`MAX_UPDATERS`] are left.
fn cap(mut managed: Managed) -> Managed {
    let mut updaters: Vec<(String, Identity)> = managed
        .entries
        .iter()
        .filter(|e| !e.identity.applied)
        .map(|e| (e.time.clone().unwrap_or_default(), e.identity.clone()))
        .collect();
    if updaters.len() <= MAX_UPDATERS {
        return managed;
    }
    updaters.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| a.1.sort_key().cmp(&b.1.sort_key())));
    let mut count = updaters.len();
    let mut first_of: Vec<(String, Identity)> = Vec::new();
    for (_, identity) in updaters {
        if count <= MAX_UPDATERS {
            break;
        }
        let Some(entry) = managed.get(&identity).cloned() else { continue };
        let bucket = Identity::new("ancient-changes", false, &entry.version, "");
        let Some((_, first)) = first_of.iter().find(|(v, _)| *v == entry.version).cloned() else {
            first_of.push((entry.version.clone(), identity));
            continue;
        };
        if managed.get(&bucket).is_none()
            && let Some(seed) = managed.remove(&first)
        {
            managed.put(Entry::new(bucket.clone(), &seed.version, seed.set().clone(), seed.time.clone()));
        }
        let merged = managed.get(&bucket).map_or_else(Set::new, |b| entry.set().union(b.set()));
        managed.remove(&identity);
        managed.put(Entry::new(bucket, &entry.version, merged, entry.time.clone()));
        count -= 1;
    }
    managed
}

/// Fields that kubectl applied client-side and that still have that value.
fn allowed_by_last_applied(request: Request<'_>, live: &Value) -> Option<Set> {
    let annotation = live.pointer("/metadata/annotations")?.get(LAST_APPLIED)?.as_str()?;
    let applied: Value = serde_json::from_str(annotation).ok()?;
    if text(&applied, "apiVersion") != request.api_version
        || check(&applied, Ty::root(request.schema)).is_some()
    {
        return None;
    }
    let ty = Ty::root(request.schema);
    let changes = compare(&applied, live, ty);
    Some(
        field_set(&applied, ty)
            .difference(&changes.modified)
            .difference(&changes.added)
            .difference(&changes.removed),
    )
}

/// Updates the annotation of client-side apply when kubectl applies server-side.
fn refresh_last_applied(object: &mut Value, config: &Value) {
    const LIMIT: usize = 256 * 1024;
    let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) else {
        return;
    };
    if annotations.get(LAST_APPLIED).and_then(Value::as_str).is_none_or(str::is_empty) {
        return;
    }
    let mut applied = config.clone();
    if let Some(map) = applied.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        map.remove(LAST_APPLIED);
    }
    let value = format!("{applied}\n");
    let total: usize = annotations
        .iter()
        .filter(|(k, _)| *k != LAST_APPLIED)
        .map(|(k, v)| k.len() + v.as_str().map_or(0, str::len))
        .sum();
    if total + LAST_APPLIED.len() + value.len() > LIMIT {
        annotations.remove(LAST_APPLIED);
    } else {
        annotations.insert(LAST_APPLIED.to_owned(), Value::from(value));
    }
}

fn text<'v>(object: &'v Value, key: &str) -> &'v str {
    object.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Go's format of a group, version and kind: `apps/v1, Kind=Deployment`, `/v1, Kind=Secret`.
fn print_gvk(api_version: &str, kind: &str) -> String {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    format!("{group}/{version}, Kind={kind}")
}

#[cfg(test)]
mod tests;
