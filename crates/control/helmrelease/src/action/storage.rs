//! Helm's storage driver: the revisions of one release as Secrets. Read once per reconcile, and kept up to date by writes.

use std::collections::HashMap;

use fl_apply::{Cluster, Delete, ObjectRef, Owned, Write};
use fl_helm_storage::{History, Release, SECRET_TYPE, Status, object_name, secret_object};
use jiff::Timestamp;
use serde_json::Value;

use super::error::ActionError;

/// The storage of one release.
#[derive(Debug)]
pub(crate) struct Storage {
    cluster: Cluster,
    namespace: String,
    name: String,
    history: Option<History>,
    /// When each revision was stored that only this engine wrote.
    own: HashMap<i64, Timestamp>,
    /// Every revision that was written or deleted, in order.
    pub(crate) observed: Vec<Release>,
}

impl Storage {
    pub(crate) fn new(cluster: Cluster, namespace: &str, name: &str) -> Self {
        Self {
            cluster,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            history: None,
            own: HashMap::new(),
            observed: Vec::new(),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// All revisions.
    pub(crate) async fn history(&mut self) -> Result<&History, ActionError> {
        if self.history.is_none() {
            let selector = format!("name={},owner=helm", self.name);
            let list = self
                .cluster
                .list("v1", "Secret", &self.namespace, &[("labelSelector", selector)])
                .await
                .map_err(|error| {
                    let text = format!("query: failed to query with labels: {error}");
                    match error.api() {
                        Some(api) if api.code == 403 => ActionError::Forbidden(text),
                        _ => ActionError::failed(text),
                    }
                })?;
            let items = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
            let storage =
                items.iter().filter(|item| item["type"].as_str().is_none_or(|kind| kind == SECRET_TYPE));
            // Items of a list have no kind.
            let storage: Vec<Value> = storage
                .map(|item| {
                    let mut item = item.clone();
                    item["kind"] = "Secret".into();
                    item
                })
                .collect();
            self.own = storage.iter().filter_map(own_record).collect();
            self.history = Some(History::read(&self.name, &storage));
        }
        self.history.as_ref().ok_or(ActionError::NotFound)
    }

    /// Whether only this engine wrote a revision, and not before `since`.
    pub(crate) fn is_own(&self, version: i64, since: Timestamp) -> bool {
        self.own.get(&version).is_some_and(|stored| *stored >= since)
    }

    /// Reads the storage again next time.
    pub(crate) fn invalidate(&mut self) {
        self.history = None;
    }

    /// The newest revision.
    pub(crate) async fn last(&mut self) -> Result<Release, ActionError> {
        self.history().await?.last().cloned().ok_or(ActionError::NotFound)
    }

    /// Stores a new revision, after deleting those beyond the history limit.
    pub(crate) async fn create(&mut self, release: &Release, max_history: usize) -> Result<(), ActionError> {
        for version in self.history().await?.excess_revisions(max_history) {
            self.delete(version).await?;
        }
        let object = self.object(release, "createdAt")?;
        match self.cluster.create(&object, &Write { manager: super::MANAGER, ..Write::default() }).await {
            Ok(_) => {}
            Err(error) if error.api().is_some_and(|e| e.code == 409) => {
                self.invalidate();
                return Err(ActionError::Exists);
            }
            Err(error) => return Err(ActionError::failed(format!("create: failed to create: {error}"))),
        }
        self.wrote(release);
        Ok(())
    }

    /// Updates a stored revision.
    pub(crate) async fn update(&mut self, release: &Release) -> Result<(), ActionError> {
        let object = self.object(release, "modifiedAt")?;
        let write = Write { manager: super::MANAGER, ..Write::default() };
        self.cluster
            .update(&object, &write)
            .await
            .map_err(|error| ActionError::failed(format!("update: failed to update: {error}")))?;
        self.wrote(release);
        Ok(())
    }

    /// Deletes a revision. A missing one is not an error.
    pub(crate) async fn delete(&mut self, version: i64) -> Result<(), ActionError> {
        let reference = ObjectRef::new("v1", "Secret", &self.namespace, &object_name(&self.name, version));
        let failed = |error: fl_apply::Error| ActionError::failed(error.to_string());
        if let Some(live) = self.cluster.get(&reference).await.map_err(failed)? {
            let ours = |live: &Value| live["type"].as_str() == Some(SECRET_TYPE);
            if let Some(owned) = Owned::by_check(&live, ours).map_err(failed)? {
                self.cluster.delete(&owned, Delete::default()).await.map_err(failed)?;
            }
        }
        if let Some(history) = &mut self.history {
            if let Some(at) = history.releases.iter().position(|release| release.version == version) {
                self.observed.push(history.releases.remove(at));
            }
            history.corrupt.retain(|corrupt| corrupt.version != version);
        }
        Ok(())
    }

    /// Marks all deployed revisions as superseded.
    pub(crate) async fn supersede_deployed(&mut self, except: i64) -> Result<(), ActionError> {
        let deployed: Vec<Release> = self
            .history()
            .await?
            .releases
            .iter()
            .filter(|release| release.info.status == Status::Deployed && release.version != except)
            .cloned()
            .collect();
        for mut release in deployed {
            release.info.status = Status::Superseded;
            self.update(&release).await?;
        }
        Ok(())
    }

    fn object(&self, release: &Release, stamp: &str) -> Result<Value, ActionError> {
        secret_object(release, &self.namespace, (stamp, Timestamp::now().as_second()))
            .map_err(|error| ActionError::failed(error.to_string()))
    }

    fn wrote(&mut self, release: &Release) {
        self.observed.push(release.clone());
        if let Some(history) = &mut self.history {
            match history.releases.iter_mut().find(|known| known.version == release.version) {
                Some(known) => *known = release.clone(),
                None => {
                    history.releases.push(release.clone());
                    history.releases.sort_by_key(|release| release.version);
                }
            }
        }
    }
}

/// The revision of a record and when it was stored, if this engine is its only field manager.
fn own_record(record: &Value) -> Option<(i64, Timestamp)> {
    let metadata = &record["metadata"];
    let writers = metadata["managedFields"].as_array()?;
    let ours = !writers.is_empty() && writers.iter().all(|writer| writer["manager"] == super::MANAGER);
    let version = metadata["labels"]["version"].as_str()?.parse().ok()?;
    ours.then_some((version, metadata["creationTimestamp"].as_str()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn records_of_other_field_managers_are_not_own() {
        let record = |managers: &[&str]| {
            let fields: Vec<Value> = managers.iter().map(|name| json!({"manager": name})).collect();
            json!({"metadata": {"labels": {"version": "3"}, "creationTimestamp": "2026-01-01T00:00:00Z",
                                "managedFields": fields}})
        };
        assert_eq!(own_record(&record(&["helm-controller"])).map(|(version, _)| version), Some(3));
        assert_eq!(own_record(&record(&["helm-controller", "helm"])), None);
        assert_eq!(own_record(&record(&["helm"])), None);
        assert_eq!(own_record(&record(&[])), None);
    }
}
