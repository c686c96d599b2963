//! Drift detection and correction: compares the objects of a release with the cluster, and restores them.

use std::collections::HashMap;

use fl_api::meta::drift::IgnoreRule;
use fl_apply::{
    Action, ChangeSet, Cluster, Error as ClusterError, FieldManager, IgnoreRules, ObjectRef,
    Operation as WriteResult, Patch, Write, any_in_metadata, compare, mask_secret, normalize, take_over,
};
use fl_helm_storage::Release;
use futures::StreamExt;
use serde_json::{Map, Value};

use crate::action::resources::{Resource, build, set_release_metadata};
use crate::action::{ActionError, MANAGER};
use crate::json_diff::{self, Op, Operation};

/// Objects compared concurrently.
const MAX_CONCURRENT_COMPARISONS: usize = 8;
const EXCLUDED: (&str, &str) = ("helm.toolkit.fluxcd.io/driftDetection", "disabled");

/// How an object differs.
#[derive(Debug, Clone)]
pub(crate) enum Drift {
    /// The object does not exist.
    Removed,
    /// The object is excluded from drift detection.
    Excluded,
    /// The object is as released.
    None,
    /// The object was changed; the operations restore it.
    Changed(Vec<Operation>),
}

/// An object and how it differs.
#[derive(Debug, Clone)]
pub(crate) struct Difference {
    pub(crate) target: Resource,
    pub(crate) drift: Drift,
}

/// All objects of a release and how they differ.
#[derive(Debug, Clone, Default)]
pub(crate) struct Differences(pub(crate) Vec<Difference>);

impl Differences {
    pub(crate) fn has_changes(&self) -> bool {
        self.0.iter().any(|d| matches!(d.drift, Drift::Removed | Drift::Changed(_)))
    }

    /// One line per object that differs or is excluded.
    pub(crate) fn summary(&self) -> String {
        let lines: Vec<String> = self
            .0
            .iter()
            .filter_map(|difference| {
                let name = difference.target.reference.to_string();
                match &difference.drift {
                    Drift::None => None,
                    Drift::Removed => Some(format!("{name} removed")),
                    Drift::Excluded => Some(format!("{name} excluded")),
                    Drift::Changed(patch) => {
                        let count = |op: Op| patch.iter().filter(|operation| operation.op == op).count();
                        Some(format!(
                            "{name} changed ({} additions, {} changes, {} removals)",
                            count(Op::Add),
                            count(Op::Replace),
                            count(Op::Remove)
                        ))
                    }
                }
            })
            .collect();
        lines.join("\n")
    }
}

/// Compares the objects of a release with the cluster.
pub(crate) async fn differences(
    cluster: &Cluster,
    release: &Release,
    ignore: &[IgnoreRule],
    override_managers: &[String],
) -> Result<Differences, ActionError> {
    let rules = IgnoreRules::compile(ignore).map_err(|error| ActionError::failed(error.to_string()))?;
    let mut targets = build(cluster, &release.manifest, &release.namespace)
        .await
        .map_err(|error| error.within("failed to read objects from release manifest"))?;
    for target in &mut targets {
        normalize(&mut target.object);
        set_release_metadata(&mut target.object, &release.name, &release.namespace);
        if !override_managers.is_empty() {
            take_over_fields(cluster, target, override_managers).await.map_err(|error| {
                ActionError::failed(format!("failed to clean-up disallowed field managers: {error}"))
            })?;
        }
    }
    let compared: Vec<_> = targets.into_iter().map(|target| compared(cluster, target, &rules)).collect();
    let compared: Vec<_> =
        futures::stream::iter(compared).buffered(MAX_CONCURRENT_COMPARISONS).collect().await;
    let mut found = Differences::default();
    let mut errors = Vec::new();
    for result in compared {
        match result {
            Ok(difference) => found.0.push(difference),
            Err(error) => errors.push(error.to_string()),
        }
    }
    // Drift is reported even if some objects could not be compared.
    if errors.is_empty() || found.has_changes() {
        return Ok(found);
    }
    let text = if errors.len() == 1 { errors.remove(0) } else { format!("[{}]", errors.join(", ")) };
    Err(ActionError::failed(text))
}

async fn compared(
    cluster: &Cluster,
    target: Resource,
    rules: &IgnoreRules,
) -> Result<Difference, ActionError> {
    let drift = drift_of(cluster, &target, rules).await?;
    Ok(Difference { target, drift })
}

async fn take_over_fields(
    cluster: &Cluster,
    target: &Resource,
    managers: &[String],
) -> Result<(), ClusterError> {
    let Some(live) = cluster.get(&target.reference).await? else { return Ok(()) };
    let managers: Vec<FieldManager> = managers
        .iter()
        .flat_map(|name| {
            [FieldManager::new(name, WriteResult::Apply), FieldManager::new(name, WriteResult::Update)]
        })
        .collect();
    let patch = take_over(&live, &managers, MANAGER, &[], &[])?;
    if !patch.is_empty() {
        let write = Write { manager: MANAGER, ..Write::default() };
        cluster.patch(&target.reference, Patch::Json, &Value::Array(patch), &write).await?;
    }
    Ok(())
}

fn excluded(object: &Value) -> bool {
    any_in_metadata(object, &[(EXCLUDED.0.to_owned(), EXCLUDED.1.to_owned())])
}

async fn drift_of(cluster: &Cluster, target: &Resource, rules: &IgnoreRules) -> Result<Drift, ActionError> {
    let ignored: Vec<String> = rules.paths(&target.object).map(str::to_owned).collect();
    if excluded(&target.object) || ignored.iter().any(String::is_empty) {
        return Ok(Drift::Excluded);
    }
    let Some(live) = cluster.get(&target.reference).await? else { return Ok(Drift::Removed) };
    if excluded(&live) {
        return Ok(Drift::Excluded);
    }
    let write = Write { manager: MANAGER, force: true, dry_run: true, ..Write::default() };
    let answer = cluster.apply(&target.object, &write).await.map_err(|error| {
        let text = mask_secret(&target.object, &error.to_string());
        ActionError::failed(format!("{} dry-run failed: {text}", target.reference))
    })?;
    if answer.resource_version().is_empty() {
        return Ok(Drift::Removed);
    }
    let mut wanted = answer.body;
    let mut filtered = live;
    for path in &ignored {
        remove_pointer(&mut wanted, path);
        remove_pointer(&mut filtered, path);
    }
    let mut patch: Vec<Operation> = json_diff::compare(&metadata_of(&filtered), &metadata_of(&wanted));
    // Labels and annotations of other field managers are not drift.
    patch.retain(|operation| operation.op != Op::Remove);
    patch.extend(json_diff::compare(&content_of(&filtered), &content_of(&wanted)));
    Ok(if patch.is_empty() { Drift::None } else { Drift::Changed(patch) })
}

fn metadata_of(object: &Value) -> Value {
    let mut metadata = Map::new();
    for key in ["name", "annotations", "labels"] {
        if let Some(value) = object["metadata"].get(key) {
            metadata.insert(key.to_owned(), value.clone());
        }
    }
    serde_json::json!({"metadata": metadata})
}

fn content_of(object: &Value) -> Value {
    let mut content = object.clone();
    if let Some(map) = content.as_object_mut() {
        map.remove("metadata");
        map.remove("status");
    }
    content
}

fn remove_pointer(object: &mut Value, pointer: &str) {
    let Some((parent, key)) = pointer.rsplit_once('/') else { return };
    let key = key.replace("~1", "/").replace("~0", "~");
    match object.pointer_mut(parent) {
        Some(Value::Object(map)) => {
            map.remove(&key);
        }
        Some(Value::Array(items)) => {
            let length = items.len();
            let at = match key.parse::<i64>() {
                Ok(at) if at < 0 => {
                    usize::try_from(at.unsigned_abs()).ok().and_then(|back| length.checked_sub(back))
                }
                Ok(at) => usize::try_from(at).ok(),
                Err(_) => None,
            };
            if let Some(at) = at.filter(|at| *at < length) {
                items.remove(at);
            }
        }
        _ => {}
    }
}

/// Restores objects: creates missing ones, patches changed ones.
pub(crate) async fn correct(cluster: &Cluster, differences: &Differences) -> (ChangeSet, Vec<String>) {
    let mut changes = ChangeSet::default();
    let mut errors = Vec::new();
    let mut ordered: Vec<&Difference> = differences.0.iter().collect();
    ordered.sort_by(|a, b| compare(&a.target.reference.id, &b.target.reference.id));
    let write = Write { manager: MANAGER, ..Write::default() };
    for difference in &ordered {
        if let Drift::Removed = difference.drift {
            let reference: &ObjectRef = &difference.target.reference;
            match cluster.create(&difference.target.object, &write).await {
                Ok(_) => changes.add(reference.clone(), Action::Created),
                Err(error) => {
                    let text = mask_secret(&difference.target.object, &error.to_string());
                    errors.push(format!("{reference} creation failure: {text}"));
                }
            }
        }
    }
    for difference in &ordered {
        if let Drift::Changed(patch) = &difference.drift {
            let reference: &ObjectRef = &difference.target.reference;
            let patch: Vec<Value> = patch.iter().map(Operation::to_json).collect();
            match cluster.patch(reference, Patch::Json, &Value::Array(patch), &write).await {
                Ok(_) => changes.add(reference.clone(), Action::Configured),
                Err(error) => {
                    let text = mask_secret(&difference.target.object, &error.to_string());
                    errors.push(format!("{reference} patch failure: {text}"));
                }
            }
        }
    }
    (changes, errors)
}

/// The counts of the log line about drift.
pub(crate) fn brief(differences: &Differences) -> String {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for difference in &differences.0 {
        let kind = match difference.drift {
            Drift::Removed => "removed",
            Drift::Changed(_) => "changed",
            Drift::Excluded => "excluded",
            Drift::None => continue,
        };
        *counts.entry(kind).or_default() += 1;
    }
    let of = |kind: &str| counts.get(kind).copied().unwrap_or(0);
    format!("removed: {}, changed: {}, excluded: {}", of("removed"), of("changed"), of("excluded"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn pointers_are_removed() {
        let mut object = json!({"spec": {"a/b": 1, "l": [1, 2, 3], "keep": 1}});
        for pointer in ["/spec/a~1b", "/spec/l/-1", "/spec/l/0", "/nothing/here", "/spec/l/9"] {
            remove_pointer(&mut object, pointer);
        }
        assert_eq!(object, json!({"spec": {"l": [2], "keep": 1}}));
    }

    #[test]
    fn only_additions_and_changes_of_metadata_count() {
        let live = json!({"metadata": {"name": "a", "labels": {"ours": "1", "theirs": "x"}}, "status": {"x": 1}, "data": {"a": "1"}});
        let wanted =
            json!({"metadata": {"name": "a", "labels": {"ours": "2", "theirs": "x"}}, "data": {"a": "1"}});
        let patch = json_diff::compare(&metadata_of(&live), &metadata_of(&wanted));
        assert_eq!(patch.len(), 1);
        assert!(json_diff::compare(&content_of(&live), &content_of(&wanted)).is_empty());
    }
}
