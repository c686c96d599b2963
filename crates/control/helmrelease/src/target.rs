//! Which cluster a release goes to, and in whose name.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fl_api::helm::HelmRelease;
use fl_apply::{Cluster, Observer};
use fl_runtime::{
    ClientError, ConnectError, Connection, Identity, Kind, Options, RemoteAccounts, RemoteOptions, Runtime,
};
use serde_json::Value;

/// A cluster and how it is told apart from others.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) cluster: Cluster,
    pub(crate) key: String,
}

/// Why a release has no cluster to go to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TargetError {
    /// The Secret or ConfigMap does not exist.
    #[error("{0}")]
    Missing(String),
    /// It cannot be read or used.
    #[error("{0}")]
    Unusable(String),
}

/// Connections to clusters, made once.
#[derive(Debug)]
pub(crate) struct Targets {
    own: Cluster,
    policy: RemoteOptions,
    /// For remote clusters whose ConfigMap names no account.
    default_account: String,
    remote: Mutex<HashMap<String, Cluster>>,
}

/// Connections kept.
const KEPT: usize = 256;

impl Targets {
    pub(crate) fn new(
        runtime: &Runtime,
        observer: Arc<dyn Observer>,
        policy: RemoteOptions,
        default_account: String,
    ) -> Self {
        let own = Cluster::new(runtime.cluster().clone()).observed_by(observer);
        Self { own, policy, default_account, remote: Mutex::default() }
    }

    /// The engine's own cluster in its own name.
    pub(crate) fn own(&self) -> &Cluster {
        &self.own
    }

    /// The cluster of a release.
    pub(crate) async fn of(&self, runtime: &Runtime, object: &HelmRelease) -> Result<Target, TargetError> {
        let (cluster, key) = match &object.spec.kube_config {
            None => (self.own.clone(), String::new()),
            Some(config) => {
                let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
                match (&config.secret_ref, &config.config_map_ref) {
                    (Some(secret), None) => {
                        self.read_secret(runtime, namespace, &secret.name, secret.key.as_deref()).await?
                    }
                    (None, Some(map)) => self.read_config_map(runtime, namespace, &map.name).await?,
                    _ => {
                        return Err(TargetError::Unusable(
                            "exactly one of .spec.kubeConfig.configMapRef or spec.kubeConfig.secretRef must be set"
                                .to_owned(),
                        ));
                    }
                }
            }
        };
        Ok(match identity(runtime.options(), object).user() {
            Some(user) => Target { cluster: cluster.impersonating(&user), key },
            None => Target { cluster, key },
        })
    }

    async fn read_secret(
        &self,
        runtime: &Runtime,
        namespace: &str,
        name: &str,
        key: Option<&str>,
    ) -> Result<(Cluster, String), TargetError> {
        let full = format!("{namespace}/{name}");
        let secret = runtime.cluster().get(&Kind::secret(), Some(namespace), name).await;
        let secret = secret.map_err(|error| {
            unreadable(&error, format!("could not get KubeConfig secret '{full}': {error}"))
        })?;
        let data = |key: &str| secret["data"].get(key).and_then(Value::as_str);
        let text = match key.filter(|key| !key.is_empty()) {
            Some(key) => data(key).ok_or_else(|| {
                TargetError::Unusable(format!(
                    "KubeConfig secret '{full}' does not contain a '{key}' key with data"
                ))
            })?,
            None => data("value").or_else(|| data("value.yaml")).ok_or_else(|| {
                TargetError::Unusable(format!(
                    "KubeConfig secret '{full}' does not contain a 'value' or 'value.yaml' key with data"
                ))
            })?,
        };
        let version = secret["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        let id = format!("secret {full} {} {version}", key.unwrap_or_default());
        if let Some(known) = self.known(&id) {
            return Ok((known, id));
        }
        let failed = |why: String| {
            TargetError::Unusable(format!("failed to load KubeConfig from secret '{full}': {why}"))
        };
        let bytes = STANDARD.decode(text).map_err(|_| failed("the value is not base64".to_owned()))?;
        let text = String::from_utf8(bytes).map_err(|_| failed("it is not text".to_owned()))?;
        let connection = Connection::from_text(&text, self.policy).await;
        let cluster =
            connection.and_then(|c| connected(runtime, &c)).map_err(|error| failed(error.to_string()))?;
        self.keep(&id, &cluster);
        Ok((cluster, id))
    }

    async fn read_config_map(
        &self,
        runtime: &Runtime,
        namespace: &str,
        name: &str,
    ) -> Result<(Cluster, String), TargetError> {
        let accounts = RemoteAccounts {
            default: &self.default_account,
            engine_allowed: runtime.options().lockdown().engine_credentials_allowed(),
            per_object: runtime.options().gates.enabled("ObjectLevelWorkloadIdentity"),
        };
        let connection = Connection::from_config_map(runtime.cluster(), namespace, name, accounts)
            .await
            .map_err(|error| match error.is_missing() {
                true => TargetError::Missing(error.to_string()),
                false => TargetError::Unusable(error.to_string()),
            })?;
        let cluster = connected(runtime, &connection).map_err(|e| TargetError::Unusable(e.to_string()))?;
        Ok((cluster, format!("configmap {namespace}/{name} {}", connection.address())))
    }

    fn known(&self, id: &str) -> Option<Cluster> {
        self.remote.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    fn keep(&self, id: &str, cluster: &Cluster) {
        let mut remote = self.remote.lock().unwrap_or_else(PoisonError::into_inner);
        if remote.len() >= KEPT {
            remote.clear();
        }
        remote.insert(id.to_owned(), cluster.clone());
    }
}

fn connected(runtime: &Runtime, connection: &Connection) -> Result<Cluster, ConnectError> {
    let client = connection.client(&Identity::Engine, &runtime.remote_settings())?;
    Ok(Cluster::new(client.at(&connection.address())))
}

fn unreadable(error: &ClientError, text: String) -> TargetError {
    if error.is_not_found() { TargetError::Missing(text) } else { TargetError::Unusable(text) }
}

/// The identity a release acts with.
pub(crate) fn identity(options: &Options, object: &HelmRelease) -> Identity {
    let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
    options.lockdown().identity(namespace, object.spec.service_account_name.as_deref())
}
