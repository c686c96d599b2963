//! Discovery: which kinds an API server serves. Asked once per group and version, again when a kind is unknown.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::Method;
use serde_json::Value;
use tokio::time::Instant;

use crate::{Client, Error, Kind, Request, path};

/// How long a negative answer is cached, so that an unknown kind in Git does not cause a request for each object.
const NEGATIVE_TTL: Duration = Duration::from_millis(500);

/// How long a group counts as changed after one of its CRDs was applied.
const NEW: Duration = Duration::from_secs(15);

type Kinds = HashMap<String, Kind>;
/// Group and version.
type GroupVersion = (String, String);

#[derive(Default)]
pub(crate) struct Discovery {
    versions: Mutex<HashMap<GroupVersion, (Instant, Arc<Kinds>)>>,
    changed: Mutex<HashMap<String, Instant>>,
    /// Requests under way; others wait for that answer instead of sending the same request.
    pending: Mutex<HashMap<GroupVersion, Arc<tokio::sync::Mutex<()>>>>,
}

impl Discovery {
    pub(crate) async fn find(
        &self,
        client: &Client,
        group: &str,
        version: &str,
        kind: &str,
    ) -> Result<Kind, Error> {
        let key = (group.to_owned(), version.to_owned());
        if let Some(cached) = self.cached(&key, kind) {
            return cached;
        }
        let turn = {
            let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
            pending.entry(key.clone()).or_default().clone()
        };
        let _turn = turn.lock().await;
        if let Some(cached) = self.cached(&key, kind) {
            return cached;
        }
        let kinds = Arc::new(fetch(client, group, version).await?);
        let found = kinds.get(kind).cloned();
        let mut versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        versions.insert(key, (Instant::now(), kinds));
        found.ok_or_else(|| no_kind(group, version, kind))
    }

    /// What an earlier answer says about a kind.
    fn cached(&self, key: &GroupVersion, kind: &str) -> Option<Result<Kind, Error>> {
        let versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        let (asked, kinds) = versions.get(key)?;
        match kinds.get(kind) {
            Some(kind) => Some(Ok(kind.clone())),
            None if asked.elapsed() < NEGATIVE_TTL => Some(Err(no_kind(&key.0, &key.1, kind))),
            None => None,
        }
    }

    pub(crate) async fn preferred(&self, client: &Client, group: &str, kind: &str) -> Result<String, Error> {
        if group.is_empty() {
            return Ok("v1".to_owned());
        }
        let path = path::root(group, "");
        let body = match client.json(&Request::new(Method::GET, &path, &[])).await {
            Ok(answer) => answer.body,
            Err(error) if error.is_not_found() => return Err(no_kind(group, "*", kind)),
            Err(error) => return Err(error),
        };
        let preferred = body.pointer("/preferredVersion/version").and_then(Value::as_str);
        let others = body["versions"].as_array().into_iter().flatten().filter_map(|v| v["version"].as_str());
        for version in preferred.into_iter().chain(others) {
            if self.find(client, group, version, kind).await.is_ok() {
                return Ok(version.to_owned());
            }
        }
        Err(no_kind(group, "*", kind))
    }

    pub(crate) fn invalidate(&self, group: &str) {
        let mut versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        versions.retain(|(known, _), _| known != group);
        let mut changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        changed.retain(|_, at| at.elapsed() < NEW);
        changed.insert(group.to_owned(), Instant::now());
    }

    pub(crate) fn has_new_kinds(&self, group: &str) -> bool {
        let changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        changed.get(group).is_some_and(|at| at.elapsed() < NEW)
    }
}

fn no_kind(group: &str, version: &str, kind: &str) -> Error {
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    Error::NoKind { kind: kind.to_owned(), api_version }
}

async fn fetch(client: &Client, group: &str, version: &str) -> Result<Kinds, Error> {
    let path = path::root(group, version);
    // Discovery is open to every identity; under impersonation it would cost a request per tenant.
    let answer = match client.as_itself().json(&Request::new(Method::GET, &path, &[])).await {
        Ok(answer) => answer.body,
        Err(error) if error.is_not_found() => return Ok(Kinds::new()),
        Err(Error::Transport { cause, .. }) if client.address().is_empty() => {
            return Err(Error::Groups(cause));
        }
        Err(Error::Transport { cause, .. }) => {
            return Err(Error::Groups(format!("Get \"{}/api\": {cause}", client.address())));
        }
        Err(error) => return Err(error),
    };
    let mut kinds = Kinds::new();
    for entry in answer["resources"].as_array().into_iter().flatten() {
        let (Some(plural), Some(kind)) = (entry["name"].as_str(), entry["kind"].as_str()) else { continue };
        if plural.contains('/') {
            continue;
        }
        let namespaced = entry["namespaced"].as_bool().unwrap_or_default();
        kinds.entry(kind.to_owned()).or_insert_with(|| Kind::new(group, version, kind, plural, namespaced));
    }
    Ok(kinds)
}
