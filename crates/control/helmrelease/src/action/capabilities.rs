//! `.Capabilities` of a cluster, cached for a few seconds: CRDs come and go.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use fl_apply::Cluster;
use fl_client::Request;
use fl_helm::{Capabilities, KubeVersion};
use http::Method;
use serde_json::Value;
use tokio::time::Instant;

use super::error::ActionError;

/// How long discovery is cached.
const BELIEVED: Duration = Duration::from_secs(5);

/// Capabilities by cluster.
#[derive(Debug, Default)]
pub(crate) struct KnownCapabilities(Mutex<HashMap<String, (Instant, Capabilities)>>);

impl KnownCapabilities {
    /// The capabilities of a cluster; `key` identifies it in the cache.
    pub(crate) async fn of(&self, key: &str, cluster: &Cluster) -> Result<Capabilities, ActionError> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned();
        if let Some((asked, capabilities)) = known
            && asked.elapsed() < BELIEVED
        {
            return Ok(capabilities);
        }
        let capabilities = ask(cluster).await?;
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, (asked, _)| asked.elapsed() < BELIEVED * 10);
        all.insert(key.to_owned(), (Instant::now(), capabilities.clone()));
        Ok(capabilities)
    }

    /// Removes the cached capabilities after a CRD was written.
    pub(crate) fn forget(&self, key: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

/// Aggregated discovery.
const AGGREGATED: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

async fn get(cluster: &Cluster, path: &str, accept: &str) -> Result<Value, String> {
    let request = Request::new(Method::GET, path, &[]).accept(accept);
    cluster.client().json(&request).await.map(|answer| answer.body).map_err(|error| error.to_string())
}

async fn ask(cluster: &Cluster) -> Result<Capabilities, ActionError> {
    let version = get(cluster, "/version", "application/json").await.map_err(|error| {
        ActionError::failed(format!("could not get server version from Kubernetes: {error}"))
    })?;
    let text = |key: &str| version[key].as_str().unwrap_or_default().to_owned();
    let kube_version =
        KubeVersion { version: text("gitVersion"), major: text("major"), minor: text("minor") };
    let failed =
        |error: String| ActionError::failed(format!("could not get apiVersions from Kubernetes: {error}"));
    let mut api_versions = BTreeSet::new();
    for root in ["/api", "/apis"] {
        let list = get(cluster, root, AGGREGATED).await.map_err(failed)?;
        if list["kind"].as_str() == Some("APIGroupDiscoveryList") {
            aggregated(&list, &mut api_versions);
        } else {
            plain(cluster, root, &list, &mut api_versions).await.map_err(failed)?;
        }
    }
    Ok(Capabilities { kube_version, api_versions: api_versions.into_iter().collect() })
}

fn aggregated(list: &Value, versions: &mut BTreeSet<String>) {
    for group in list["items"].as_array().into_iter().flatten() {
        let name = group["metadata"]["name"].as_str().unwrap_or_default();
        for version in group["versions"].as_array().into_iter().flatten() {
            let version_name = version["version"].as_str().unwrap_or_default();
            let id = if name.is_empty() { version_name.to_owned() } else { format!("{name}/{version_name}") };
            for resource in version["resources"].as_array().into_iter().flatten() {
                for kind in kinds_of(resource) {
                    versions.insert(format!("{id}/{kind}"));
                }
            }
            versions.insert(id);
        }
    }
}

fn kinds_of(resource: &Value) -> impl Iterator<Item = &str> {
    let own = resource["responseKind"]["kind"].as_str();
    let below = resource["subresources"].as_array().into_iter().flatten();
    own.into_iter().chain(below.filter_map(|sub| sub["responseKind"]["kind"].as_str()))
}

/// Discovery group by group, for API servers before 1.30.
async fn plain(
    cluster: &Cluster,
    root: &str,
    list: &Value,
    versions: &mut BTreeSet<String>,
) -> Result<(), String> {
    let mut ids: Vec<String> = Vec::new();
    ids.extend(
        list["versions"].as_array().into_iter().flatten().filter_map(|v| v.as_str().map(str::to_owned)),
    );
    for group in list["groups"].as_array().into_iter().flatten() {
        let of = group["versions"].as_array().into_iter().flatten();
        ids.extend(of.filter_map(|version| version["groupVersion"].as_str().map(str::to_owned)));
    }
    for id in ids {
        // An API whose server is unavailable is left out, as Helm does.
        if let Ok(resources) = get(cluster, &format!("{root}/{id}"), "application/json").await {
            for resource in resources["resources"].as_array().into_iter().flatten() {
                if let Some(kind) = resource["kind"].as_str() {
                    versions.insert(format!("{id}/{kind}"));
                }
            }
        }
        versions.insert(id);
    }
    Ok(())
}
