//! Connections to target clusters, by kubeConfig reference and identity.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fl_api::meta::kube_config::KubeConfigReference;
use fl_apply::{Cluster, Observer};
use fl_runtime::{
    ClientError, ConnectError, Connection, Identity, Kind, RemoteAccounts, RemoteError, RemoteOptions,
    Runtime,
};
use fl_types::Secret;
use serde_json::Value;

/// Connections to remote clusters that are kept open. Each holds its discovery cache and a few idle sockets; the least
/// recently used one is closed first.
pub const MAX_CONNECTIONS: usize = 128;

/// Settings that the operator of the engine chooses for remote clusters.
#[derive(Clone, Debug, Default)]
pub struct TargetOptions {
    /// What kubeconfigs of Secrets may contain.
    pub kubeconfig: RemoteOptions,
    /// `--default-kubeconfig-service-account`: for ConfigMap kubeconfigs that name no account.
    pub default_service_account: String,
}

/// A cluster to apply to, reached under the identity of one object.
#[derive(Clone, Debug)]
pub struct Target {
    pub cluster: Cluster,
    /// Identifies the remote cluster in caches; empty for the engine's own.
    pub key: String,
}

impl Target {
    /// Whether this is the cluster the engine runs on.
    pub fn is_local(&self) -> bool {
        self.key.is_empty()
    }
}

/// Why there is no cluster to apply to. Controllers word it as their Flux counterpart does.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    #[error("the kubeconfig secret '{secret}' cannot be read: {source}")]
    Secret { secret: String, source: ClientError },
    /// `key` is that of the reference; none means the default keys `value` and `value.yaml`.
    #[error("the kubeconfig secret '{secret}' has no kubeconfig")]
    NoKubeconfig { secret: String, key: Option<String> },
    #[error("the kubeconfig secret '{secret}' is not text")]
    NotText { secret: String },
    #[error("the kubeconfig of secret '{secret}' cannot be used: {source}")]
    Kubeconfig { secret: String, source: ConnectError },
    #[error(transparent)]
    ConfigMap(RemoteError),
    #[error(transparent)]
    Connect(ConnectError),
    #[error("spec.kubeConfig must have exactly one of secretRef and configMapRef")]
    InvalidReference,
}

impl TargetError {
    /// Whether the Secret or ConfigMap does not exist, so that the cluster cannot be reached ever again by it.
    pub fn is_missing(&self) -> bool {
        match self {
            TargetError::Secret { source, .. } => source.is_not_found(),
            TargetError::ConfigMap(error) => error.is_missing(),
            _ => false,
        }
    }
}

/// Which Secret a connection was made from. Part of it is the namespace: connections are never shared by tenants.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct SecretKey {
    namespace: String,
    name: String,
    key: Option<String>,
}

struct OpenConnection {
    /// Hash of the kubeconfig; a changed one replaces the connection.
    kubeconfig: [u8; 32],
    cluster: Cluster,
    /// Value of the use counter when it was used last.
    used: u64,
}

#[derive(Default)]
struct Open {
    connections: HashMap<SecretKey, OpenConnection>,
    uses: u64,
}

/// The clusters a controller applies to.
pub struct Targets {
    runtime: Runtime,
    local: Cluster,
    options: TargetOptions,
    open: Mutex<Open>,
}

impl std::fmt::Debug for Targets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Targets").field("open", &self.open_connections()).finish_non_exhaustive()
    }
}

impl Targets {
    #[must_use]
    pub fn new(runtime: &Runtime, options: TargetOptions) -> Self {
        let local = Cluster::new(runtime.cluster().clone());
        Targets { runtime: runtime.clone(), local, options, open: Mutex::default() }
    }

    /// Reports writes to the local cluster to an observer.
    #[must_use]
    pub fn observed_by(mut self, observer: Arc<dyn Observer>) -> Self {
        self.local = self.local.observed_by(observer);
        self
    }

    /// The cluster the engine runs on, under the engine's own identity.
    pub fn local(&self) -> &Cluster {
        &self.local
    }

    /// How many connections to remote clusters are open.
    pub fn open_connections(&self) -> usize {
        self.open().connections.len()
    }

    /// The identity of an object in `namespace` that names a service account or none.
    pub fn identity(&self, namespace: &str, service_account: Option<&str>) -> Identity {
        self.runtime.options().lockdown().identity(namespace, service_account)
    }

    /// The cluster of an object in `namespace`.
    ///
    /// # Errors
    /// When the kubeconfig cannot be read or used.
    pub async fn resolve(
        &self,
        namespace: &str,
        reference: Option<&KubeConfigReference>,
        identity: &Identity,
    ) -> Result<Target, TargetError> {
        let (cluster, key) = match reference {
            None => (self.local.clone(), String::new()),
            Some(reference) => match (&reference.secret_ref, &reference.config_map_ref) {
                (Some(secret), None) => {
                    let key = secret.key.clone().filter(|key| !key.is_empty());
                    self.of_secret(SecretKey {
                        namespace: namespace.to_owned(),
                        name: secret.name.clone(),
                        key,
                    })
                    .await?
                }
                (None, Some(map)) => self.of_config_map(namespace, &map.name).await?,
                _ => return Err(TargetError::InvalidReference),
            },
        };
        Ok(match identity.user() {
            Some(user) => Target { cluster: cluster.impersonating(&user), key },
            None => Target { cluster, key },
        })
    }

    async fn of_secret(&self, reference: SecretKey) -> Result<(Cluster, String), TargetError> {
        let text = self.kubeconfig(&reference).await?;
        let hash = *blake3::hash(text.expose().as_bytes()).as_bytes();
        let id = format!("secret {}/{} {}", reference.namespace, reference.name, hex(&hash));
        if let Some(cluster) = self.reuse(&reference, &hash) {
            return Ok((cluster, id));
        }
        let secret = format!("{}/{}", reference.namespace, reference.name);
        let connection = Connection::from_text(text.expose(), self.options.kubeconfig).await;
        let cluster = connection
            .and_then(|connection| self.connect(&connection))
            .map_err(|source| TargetError::Kubeconfig { secret, source })?;
        self.keep(reference, hash, &cluster);
        Ok((cluster, id))
    }

    async fn kubeconfig(&self, reference: &SecretKey) -> Result<Secret<String>, TargetError> {
        let secret = format!("{}/{}", reference.namespace, reference.name);
        let found =
            self.runtime.cluster().get(&Kind::secret(), Some(&reference.namespace), &reference.name).await;
        let found = match found {
            Ok(found) => found,
            Err(source) => {
                if source.is_not_found() {
                    self.open().connections.remove(reference);
                }
                return Err(TargetError::Secret { secret, source });
            }
        };
        let data = |key: &str| found["data"].get(key).and_then(Value::as_str);
        let encoded = match &reference.key {
            Some(key) => data(key),
            None => data("value").or_else(|| data("value.yaml")),
        };
        let Some(encoded) = encoded else {
            return Err(TargetError::NoKubeconfig { secret, key: reference.key.clone() });
        };
        let bytes = STANDARD.decode(encoded).ok();
        let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        text.map(Secret::new).ok_or(TargetError::NotText { secret })
    }

    /// Connections of ConfigMaps are not kept: their token lives for an hour at most.
    async fn of_config_map(&self, namespace: &str, name: &str) -> Result<(Cluster, String), TargetError> {
        let accounts = RemoteAccounts {
            default: &self.options.default_service_account,
            engine_allowed: self.runtime.options().lockdown().engine_credentials_allowed(),
            per_object: self.runtime.options().gates.enabled("ObjectLevelWorkloadIdentity"),
        };
        let connection = Connection::from_config_map(self.runtime.cluster(), namespace, name, accounts)
            .await
            .map_err(TargetError::ConfigMap)?;
        let cluster = self.connect(&connection).map_err(TargetError::Connect)?;
        Ok((cluster, format!("configmap {namespace}/{name} {}", connection.address())))
    }

    fn connect(&self, connection: &Connection) -> Result<Cluster, ConnectError> {
        let client = connection.client(&Identity::Engine, &self.runtime.remote_settings())?;
        Ok(Cluster::new(client.at(&connection.address())))
    }

    fn open(&self) -> std::sync::MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reuse(&self, reference: &SecretKey, kubeconfig: &[u8; 32]) -> Option<Cluster> {
        let mut open = self.open();
        open.uses += 1;
        let uses = open.uses;
        let connection = open.connections.get_mut(reference).filter(|open| open.kubeconfig == *kubeconfig)?;
        connection.used = uses;
        Some(connection.cluster.clone())
    }

    fn keep(&self, reference: SecretKey, kubeconfig: [u8; 32], cluster: &Cluster) {
        let mut open = self.open();
        let used = open.uses;
        if open.connections.len() >= MAX_CONNECTIONS && !open.connections.contains_key(&reference) {
            let oldest = open.connections.iter().min_by_key(|(_, c)| c.used).map(|(key, _)| key.clone());
            if let Some(oldest) = oldest {
                open.connections.remove(&oldest);
            }
        }
        open.connections.insert(reference, OpenConnection { kubeconfig, cluster: cluster.clone(), used });
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
