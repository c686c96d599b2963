//! The cluster a Kustomization applies to, and as whom.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use fl_api::kustomize::Kustomization;
use fl_apply::Cluster;
use fl_runtime::{Connection, Identity, Reconciled as _, RemoteAccounts, RemoteOptions, Runtime};

use crate::Options;
use crate::dereference::secret_data;

/// Connections to remote clusters that are kept: each holds what its API server serves.
const KEPT: usize = 64;

/// Makes and keeps clusters.
pub(crate) struct Targets {
    runtime: Runtime,
    local: Cluster,
    remote: Mutex<HashMap<[u8; 32], Cluster>>,
}

/// A cluster, and whether it is the one the engine runs on.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) cluster: Cluster,
    pub(crate) local: bool,
}

impl Targets {
    pub(crate) fn new(runtime: &Runtime) -> Self {
        let local = Cluster::new(runtime.cluster().clone());
        Targets { runtime: runtime.clone(), local, remote: Mutex::default() }
    }

    /// The identity objects are applied with.
    pub(crate) fn identity(&self, object: &Kustomization) -> Identity {
        let named = object.spec.service_account_name.as_deref();
        self.runtime.options().lockdown().identity(object.namespace(), named)
    }

    /// The cluster for an object.
    ///
    /// # Errors
    /// The text of Flux for a kubeconfig that cannot be read.
    pub(crate) async fn of(&self, object: &Kustomization, options: &Options) -> Result<Target, String> {
        let identity = self.identity(object);
        let namespace = object.namespace();
        let Some(reference) = &object.spec.kube_config else {
            let cluster = match identity.user() {
                Some(user) => self.local.impersonating(&user),
                None => self.local.clone(),
            };
            return Ok(Target { cluster, local: true });
        };
        if let Some(secret) = &reference.secret_ref {
            let text = self.kubeconfig(namespace, &secret.name, secret.key.as_deref()).await?;
            let remote = RemoteOptions {
                allow_exec: options.insecure_kubeconfig_exec,
                allow_insecure_tls: options.insecure_kubeconfig_tls,
            };
            let id = fingerprint(&[text.as_bytes(), format!("{identity:?}").as_bytes()]);
            if let Some(cluster) = self.kept(&id) {
                return Ok(Target { cluster, local: false });
            }
            let connection = Connection::from_text(&text, remote).await.map_err(|e| e.to_string())?;
            return self.keep(id, &connection, &identity);
        }
        if let Some(map) = &reference.config_map_ref {
            let accounts = RemoteAccounts {
                default: &options.default_kubeconfig_service_account,
                engine_allowed: self.runtime.options().lockdown().engine_credentials_allowed(),
                per_object: self.runtime.options().gates.enabled("ObjectLevelWorkloadIdentity"),
            };
            let own = self.runtime.cluster();
            let connection = Connection::from_config_map(own, namespace, &map.name, accounts)
                .await
                .map_err(|e| e.to_string())?;
            // A token lives for an hour at most, so these are not kept.
            return Ok(Target { cluster: self.connect(&connection, &identity)?, local: false });
        }
        Err("invalid .spec.kubeConfig, neither .spec.kubeConfig.provider nor .spec.kubeConfig.secretRef is set".to_owned())
    }

    fn connect(&self, connection: &Connection, identity: &Identity) -> Result<Cluster, String> {
        let settings = self.runtime.remote_settings();
        let client = connection.client(identity, &settings).map_err(|e| e.to_string())?;
        Ok(Cluster::new(client.at(&connection.address())))
    }

    fn kept(&self, id: &[u8; 32]) -> Option<Cluster> {
        self.remote.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    fn keep(&self, id: [u8; 32], connection: &Connection, identity: &Identity) -> Result<Target, String> {
        let cluster = self.connect(connection, identity)?;
        let mut remote = self.remote.lock().unwrap_or_else(PoisonError::into_inner);
        if remote.len() >= KEPT {
            remote.clear();
        }
        remote.insert(id, cluster.clone());
        Ok(Target { cluster, local: false })
    }

    async fn kubeconfig(&self, namespace: &str, name: &str, key: Option<&str>) -> Result<String, String> {
        let id = format!("{namespace}/{name}");
        let mut data = secret_data(&self.runtime, namespace, name)
            .await
            .map_err(|e| format!("unable to read KubeConfig secret '{id}' error: {e}"))?;
        let bytes = match key.filter(|k| !k.is_empty()) {
            Some(key) => data.remove(key).ok_or_else(|| {
                format!("KubeConfig secret '{id}' does not contain a '{key}' key with a kubeconfig")
            })?,
            None => data.remove("value").or_else(|| data.remove("value.yaml")).ok_or_else(|| {
                format!("KubeConfig secret '{id}' does not contain a 'value' key with a kubeconfig")
            })?,
        };
        String::from_utf8(bytes.into_exposed()).map_err(|_| format!("KubeConfig secret '{id}' is not text"))
    }
}

fn fingerprint(parts: &[&[u8]]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    *hasher.finalize().as_bytes()
}
