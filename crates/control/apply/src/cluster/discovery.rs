//! Which kinds an API server serves and where: asked once per group and version, again when a kind is unknown.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::Method;
use serde_json::Value;
use tokio::time::Instant;

use super::{Cluster, request};
use crate::Error;

/// How long an answer that lacked a kind is believed, so that a wrong kind in Git does not ask at every turn.
const BELIEVED: Duration = Duration::from_millis(500);

/// How long a group counts as changed after one of its definitions was applied.
const NEW: Duration = Duration::from_secs(15);

/// Where objects of a kind live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// The API group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind.
    pub kind: String,
    /// The plural, as in paths.
    pub plural: String,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

impl Resource {
    /// The path of all objects, or of those in one namespace.
    #[must_use]
    pub fn path(&self, namespace: &str) -> String {
        let mut path = if self.group.is_empty() { "/api/".to_owned() } else { "/apis/".to_owned() };
        if !self.group.is_empty() {
            request::push_segment(&mut path, &self.group);
            path.push('/');
        }
        request::push_segment(&mut path, &self.version);
        if self.namespaced && !namespace.is_empty() {
            path.push_str("/namespaces/");
            request::push_segment(&mut path, namespace);
        }
        path.push('/');
        request::push_segment(&mut path, &self.plural);
        path
    }
}

type Kinds = HashMap<String, Arc<Resource>>;
/// Group and version.
type GroupVersion = (String, String);

#[derive(Default)]
pub(super) struct Discovery {
    versions: Mutex<HashMap<GroupVersion, (Instant, Arc<Kinds>)>>,
    changed: Mutex<HashMap<String, Instant>>,
    /// Who asks for a group and version right now; others wait for that answer instead of asking too.
    asking: Mutex<HashMap<GroupVersion, Arc<tokio::sync::Mutex<()>>>>,
}

impl Discovery {
    pub(super) async fn find(
        &self,
        cluster: &Cluster,
        group: &str,
        version: &str,
        kind: &str,
    ) -> Result<Arc<Resource>, Error> {
        let key = (group.to_owned(), version.to_owned());
        if let Some(known) = self.known(&key, kind) {
            return known;
        }
        let turn = {
            let mut asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
            asking.entry(key.clone()).or_default().clone()
        };
        let _turn = turn.lock().await;
        if let Some(known) = self.known(&key, kind) {
            return known;
        }
        let kinds = Arc::new(ask(cluster, group, version).await?);
        let found = kinds.get(kind).cloned();
        let mut versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        versions.insert(key, (Instant::now(), kinds));
        found.ok_or_else(|| no_kind(group, version, kind))
    }

    /// What an earlier answer says about a kind, while it can be believed.
    fn known(&self, key: &GroupVersion, kind: &str) -> Option<Result<Arc<Resource>, Error>> {
        let versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        let (asked, kinds) = versions.get(key)?;
        match kinds.get(kind) {
            Some(resource) => Some(Ok(resource.clone())),
            None if asked.elapsed() < BELIEVED => Some(Err(no_kind(&key.0, &key.1, kind))),
            None => None,
        }
    }

    pub(super) async fn preferred(
        &self,
        cluster: &Cluster,
        group: &str,
        kind: &str,
    ) -> Result<String, Error> {
        if group.is_empty() {
            return Ok("v1".to_owned());
        }
        let mut path = "/apis/".to_owned();
        request::push_segment(&mut path, group);
        let answer = cluster.request(Method::GET, &path, &[], None, "").await;
        let body = match answer {
            Ok(answer) => answer.body,
            Err(error) if error.is_not_found() => return Err(no_kind(group, "*", kind)),
            Err(error) => return Err(error),
        };
        let preferred = body.pointer("/preferredVersion/version").and_then(Value::as_str);
        let others = body["versions"].as_array().into_iter().flatten().filter_map(|v| v["version"].as_str());
        for version in preferred.into_iter().chain(others) {
            if self.find(cluster, group, version, kind).await.is_ok() {
                return Ok(version.to_owned());
            }
        }
        Err(no_kind(group, "*", kind))
    }

    pub(super) fn forget(&self, group: &str) {
        let mut versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        versions.retain(|(known, _), _| known != group);
        let mut changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        changed.retain(|_, at| at.elapsed() < NEW);
        changed.insert(group.to_owned(), Instant::now());
    }

    pub(super) fn is_new(&self, group: &str) -> bool {
        let changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        changed.get(group).is_some_and(|at| at.elapsed() < NEW)
    }
}

fn no_kind(group: &str, version: &str, kind: &str) -> Error {
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    Error::NoKind { kind: kind.to_owned(), api_version }
}

async fn ask(cluster: &Cluster, group: &str, version: &str) -> Result<Kinds, Error> {
    let mut path = if group.is_empty() { "/api/".to_owned() } else { "/apis/".to_owned() };
    if !group.is_empty() {
        request::push_segment(&mut path, group);
        path.push('/');
    }
    request::push_segment(&mut path, version);
    // Discovery is open to every identity; under impersonation it would cost a round per tenant.
    let own = Cluster { user: None, ..cluster.clone() };
    let answer = match own.request(Method::GET, &path, &[], None, "").await {
        Ok(answer) => answer.body,
        Err(error) if error.is_not_found() => return Ok(Kinds::new()),
        Err(Error::Transport { cause, .. }) if cluster.address.is_empty() => {
            return Err(Error::Groups(cause));
        }
        Err(Error::Transport { cause, .. }) => {
            return Err(Error::Groups(format!("Get \"{}/api\": {cause}", cluster.address)));
        }
        Err(error) => return Err(error),
    };
    let mut kinds = Kinds::new();
    for entry in answer["resources"].as_array().into_iter().flatten() {
        let (Some(plural), Some(kind)) = (entry["name"].as_str(), entry["kind"].as_str()) else { continue };
        if plural.contains('/') {
            continue;
        }
        let resource = Resource {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
            namespaced: entry["namespaced"].as_bool().unwrap_or_default(),
        };
        kinds.entry(kind.to_owned()).or_insert_with(|| Arc::new(resource));
    }
    Ok(kinds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        let resource = |group: &str, plural: &str, namespaced| Resource {
            group: group.to_owned(),
            version: "v1".to_owned(),
            kind: String::new(),
            plural: plural.to_owned(),
            namespaced,
        };
        assert_eq!(resource("", "configmaps", true).path("ns"), "/api/v1/namespaces/ns/configmaps");
        assert_eq!(resource("", "namespaces", false).path("ignored"), "/api/v1/namespaces");
        assert_eq!(resource("apps", "deployments", true).path(""), "/apis/apps/v1/deployments");
    }
}
