//! Writes status and metadata of an object: only what changed, never over another writer's change.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::conditions;
use fl_client::Kind;
use fl_client::KnownSecrets;
use fl_client::{Client, Error as ClientError, Patch, Write};

const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(100);

/// The JSON merge patch that turns `before` into `after`; `None` when they are equal.
pub fn merge_patch(before: &Value, after: &Value) -> Option<Value> {
    match (before, after) {
        (a, b) if a == b => None,
        (Value::Object(a), Value::Object(b)) => {
            let mut patch = Map::new();
            for (key, value) in b {
                match a.get(key) {
                    Some(old) => {
                        if let Some(change) = merge_patch(old, value) {
                            patch.insert(key.clone(), change);
                        }
                    }
                    None => {
                        patch.insert(key.clone(), value.clone());
                    }
                }
            }
            for key in a.keys().filter(|k| !b.contains_key(*k)) {
                patch.insert(key.clone(), Value::Null);
            }
            (!patch.is_empty()).then_some(Value::Object(patch))
        }
        (_, b) => Some(b.clone()),
    }
}

/// Tracks the last written or read state and sends the difference. Changes of other writers are kept.
#[derive(Debug)]
pub(crate) struct Writer {
    kind: Kind,
    field_manager: &'static str,
    /// Condition types of this controller; others are kept.
    owned: &'static [&'static str],
    /// Values that are masked in conditions.
    secrets: KnownSecrets,
    /// The last state this writer knows.
    before: Value,
    /// Conditions and finalizers as the server last returned them: they are lists and written as a whole.
    conditions: Value,
    finalizers: Vec<String>,
    resource_version: Value,
    /// The whole object while it has no status. Its first status is written with a PUT, which costs the API
    /// server a sixth less than a merge patch.
    fresh: Option<Value>,
}

/// The parts of `metadata` that are written, besides finalizers.
const MAPS: [&str; 2] = ["annotations", "labels"];

impl Writer {
    pub(crate) fn new(
        kind: Kind,
        field_manager: &'static str,
        owned: &'static [&'static str],
        secrets: KnownSecrets,
        object: Value,
        whole: impl FnOnce() -> Value,
    ) -> Self {
        Writer {
            kind,
            field_manager,
            owned,
            secrets,
            conditions: object["status"]["conditions"].clone(),
            finalizers: finalizers(&object["metadata"]),
            resource_version: object["metadata"]["resourceVersion"].clone(),
            fresh: has_no_status(&object).then(whole).filter(Value::is_object),
            before: object,
        }
    }

    fn place(&self) -> (Option<String>, String) {
        let meta = &self.before["metadata"];
        (meta["namespace"].as_str().map(str::to_owned), meta["name"].as_str().unwrap_or_default().to_owned())
    }

    fn seen(&mut self, object: &Value) {
        self.conditions = object["status"]["conditions"].clone();
        self.finalizers = finalizers(&object["metadata"]);
        self.resource_version = object["metadata"]["resourceVersion"].clone();
    }

    async fn look_again(&mut self, cluster: &Client) -> Result<(), ClientError> {
        let (namespace, name) = self.place();
        let fresh = cluster.get(&self.kind, namespace.as_deref(), &name).await?;
        // The object was deleted and another one was created with its name.
        if fresh["metadata"]["uid"] != self.before["metadata"]["uid"] {
            return Err(ClientError::not_found(&self.kind, &name));
        }
        self.seen(&fresh);
        Ok(())
    }

    /// Writes changes of labels, annotations and finalizers, with retries on conflict. Returns the resulting
    /// object.
    pub(crate) async fn metadata(
        &mut self,
        cluster: &Client,
        after: &Value,
    ) -> Result<Option<Value>, ClientError> {
        let (namespace, name) = self.place();
        let nothing = json!({});
        let before = &self.before["metadata"];
        let mut maps = Map::new();
        for field in MAPS {
            let [old, new] = [before, after].map(|meta| meta.get(field).unwrap_or(&nothing));
            let change = merge_patch(old, new);
            maps.extend(change.map(|c| (field.to_owned(), c)));
        }
        let (known, wanted) = (finalizers(before), finalizers(after));
        if maps.is_empty() && known == wanted {
            return Ok(None);
        }
        if let Some(object) = self.put_metadata(cluster, after).await? {
            return Ok(Some(object));
        }
        let mut pause = PAUSE;
        for left in (0..TRIES).rev() {
            let mut patch = maps.clone();
            if known != wanted {
                // Our additions and removals, applied to the current list.
                let mut list = self.finalizers.clone();
                list.retain(|f| wanted.contains(f) || !known.contains(f));
                list.extend(
                    wanted.iter().filter(|f| !known.contains(f) && !self.finalizers.contains(f)).cloned(),
                );
                patch.insert("finalizers".to_owned(), json!(list));
                patch.insert("resourceVersion".to_owned(), self.resource_version.clone());
            }
            let patch = json!({"metadata": patch});
            let write = Write::by(self.field_manager);
            match cluster.patch(&self.kind, namespace.as_deref(), &name, Patch::Merge, &patch, &write).await {
                Ok(object) => {
                    self.wrote_metadata(after, &object);
                    return Ok(Some(object));
                }
                Err(error) if error.is_conflict() && left > 0 => {
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                    self.look_again(cluster).await?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// The same with a PUT for an object without status. `None` if it has one by now, or PUT is forbidden.
    async fn put_metadata(&mut self, cluster: &Client, after: &Value) -> Result<Option<Value>, ClientError> {
        let Some(mut object) = self.fresh.take() else { return Ok(None) };
        for field in MAPS.into_iter().chain(["finalizers"]) {
            let Some(metadata) = object["metadata"].as_object_mut() else { return Ok(None) };
            match after.get(field) {
                Some(value) => metadata.insert(field.to_owned(), value.clone()),
                None => metadata.remove(field),
            };
        }
        let object = self.put(cluster, &object, "").await?;
        if let Some(object) = &object {
            self.wrote_metadata(after, object);
        }
        Ok(object)
    }

    fn wrote_metadata(&mut self, after: &Value, object: &Value) {
        self.before["metadata"] = after.clone();
        self.seen(object);
        self.fresh = has_no_status(object).then(|| object.clone());
    }

    /// Sends the PUT; `None` on conflict, or if only `patch` is allowed.
    async fn put(
        &self,
        cluster: &Client,
        object: &Value,
        subresource: &str,
    ) -> Result<Option<Value>, ClientError> {
        let (namespace, name) = self.place();
        let write = Write::by(self.field_manager).to(subresource);
        match cluster.replace(&self.kind, namespace.as_deref(), &name, object, &write).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_conflict() || error.is_forbidden() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes changes of the status in one request, with retries on conflict. Returns the resulting object.
    pub(crate) async fn status(
        &mut self,
        cluster: &Client,
        mut ours: Value,
    ) -> Result<Option<Value>, ClientError> {
        let (namespace, name) = self.place();
        let nothing = json!({});
        self.secrets.mask_status(&mut ours);
        keep_times(&mut ours, &self.before["status"]);
        let Some(change) = merge_patch(self.before.get("status").unwrap_or(&nothing), &ours) else {
            return Ok(None);
        };
        if let Some(mut object) = self.fresh.take() {
            object["status"] = ours.clone();
            if let Some(object) = self.put(cluster, &object, "status").await? {
                self.before["status"] = ours;
                self.seen(&object);
                return Ok(Some(object));
            }
        }
        let mut pause = PAUSE;
        for left in (0..TRIES).rev() {
            let mut patch = json!({"status": change});
            if change.get("conditions").is_some() {
                patch["status"]["conditions"] = rebase(&self.conditions, &ours["conditions"], self.owned);
                patch["metadata"] = json!({"resourceVersion": self.resource_version});
            }
            let write = Write::by(self.field_manager).to("status");
            match cluster.patch(&self.kind, namespace.as_deref(), &name, Patch::Merge, &patch, &write).await {
                Ok(object) => {
                    self.before["status"] = ours;
                    self.seen(&object);
                    return Ok(Some(object));
                }
                Err(error) if error.is_conflict() && left > 0 => {
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                    self.look_again(cluster).await?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}

/// Restores the transition time of conditions that changed within the reconcile and ended as they were: a
/// lasting failure is not written again and again.
fn keep_times(ours: &mut Value, before: &Value) {
    let known = before["conditions"].as_array();
    for condition in ours.get_mut("conditions").and_then(Value::as_array_mut).into_iter().flatten() {
        let same =
            |c: &&Value| ["type", "status", "reason", "message"].iter().all(|f| c[*f] == condition[*f]);
        if let Some(old) = known.into_iter().flatten().find(same) {
            condition["lastTransitionTime"] = old["lastTransitionTime"].clone();
        }
    }
}

/// Whether the status is still empty; CRDs may default `observedGeneration` to -1.
fn has_no_status(object: &Value) -> bool {
    let status = object["status"].as_object();
    status.is_none_or(|status| status.keys().all(|key| key == "observedGeneration"))
}

fn finalizers(meta: &Value) -> Vec<String> {
    let list = meta["finalizers"].as_array();
    list.into_iter().flatten().filter_map(|f| f.as_str().map(str::to_owned)).collect()
}

/// Conditions of owned types from this writer, all others from the server.
fn rebase(theirs: &Value, ours: &Value, owned: &[&str]) -> Value {
    let list = |v: &Value, keep: bool| -> Vec<fl_api::meta::condition::Condition> {
        let items = v.as_array().into_iter().flatten();
        items
            .filter(|c| c["type"].as_str().is_some_and(|t| owned.contains(&t)) == keep)
            .filter_map(|c| serde_json::from_value(c.clone()).ok())
            .collect()
    };
    let mut all = list(theirs, false);
    all.extend(list(ours, true));
    conditions::sort(&mut all);
    serde_json::to_value(all).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patches_hold_only_what_differs() {
        let before = json!({"a": 1, "b": {"c": 2, "d": 3}, "e": [1]});
        let after = json!({"a": 1, "b": {"c": 4}, "e": [1, 2], "f": {}});
        assert_eq!(
            merge_patch(&before, &after),
            Some(json!({"b": {"c": 4, "d": null}, "e": [1, 2], "f": {}}))
        );
        assert_eq!(merge_patch(&after, &after), None);
    }

    #[test]
    fn unchanged_condition_keeps_its_transition_time() {
        let c = |m: &str, at: &str| json!({"type": "Ready", "status": "False", "reason": "R", "message": m, "lastTransitionTime": at});
        let mut ours = json!({"conditions": [c("same", "2")]});
        keep_times(&mut ours, &json!({"conditions": [c("same", "1")]}));
        assert_eq!(ours["conditions"][0]["lastTransitionTime"], "1");
        keep_times(&mut ours, &json!({"conditions": [c("other", "0")]}));
        assert_eq!(ours["conditions"][0]["lastTransitionTime"], "1");
    }

    #[test]
    fn only_an_unwritten_status_is_empty() {
        for none in [json!({}), json!({"status": {}}), json!({"status": {"observedGeneration": -1}})] {
            assert!(has_no_status(&none), "{none}");
        }
        assert!(!has_no_status(&json!({"status": {"observedGeneration": -1, "theirs": 1}})));
    }

    #[test]
    fn conditions_of_other_controllers_are_kept() {
        let c = |t: &str, m: &str| {
            json!({"type": t, "status": "True", "reason": "R", "message": m,
                   "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1})
        };
        let merged = rebase(
            &json!([c("Ready", "old"), c("Theirs", "x"), c("Stalled", "old")]),
            &json!([c("Ready", "new"), c("Theirs", "stale")]),
            &["Ready", "Stalled"],
        );
        let short: Vec<(&str, &str)> = merged
            .as_array()
            .unwrap()
            .iter()
            .map(|c| (c["type"].as_str().unwrap(), c["message"].as_str().unwrap()))
            .collect();
        assert_eq!(short, [("Ready", "new"), ("Theirs", "x")]);
    }
}
