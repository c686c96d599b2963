//! Connections: from a kubeconfig file, in-cluster, or from the kubeconfig of a Secret.

use std::path::PathBuf;
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig as File};

mod config_map;
mod kubeconfig;
mod proxy;

pub use config_map::{RemoteAccounts, RemoteError};
pub use kubeconfig::{ConfigOverrides, Kubeconfig, KubeconfigError};

use crate::{Client, Identity, Settings};

/// Why a connection cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    #[error("the kubeconfig {path} cannot be used: {problem}")]
    File { path: PathBuf, problem: String },
    #[error("no cluster to connect to: {0}")]
    Infer(String),
    #[error("the kubeconfig cannot be used: {0}")]
    Kubeconfig(String),
    /// A kubeconfig that is not YAML, with Go's error message.
    #[error("{0}")]
    Unreadable(String),
    #[error("the connection cannot be set up: {0}")]
    Client(String),
}

/// Which cluster to connect to.
#[derive(Clone, Debug, Default)]
pub struct ConnectOptions {
    /// Absent: `KUBECONFIG` or the usual file, else the Pod's own account.
    pub kubeconfig: Option<PathBuf>,
    pub context: Option<String>,
}

/// What a kubeconfig from a Secret may contain.
#[derive(Clone, Copy, Debug, Default)]
pub struct RemoteOptions {
    /// `--insecure-kubeconfig-exec`: programs of the kubeconfig may be run. This engine starts no programs, so it is refused.
    pub allow_exec: bool,
    /// `--insecure-kubeconfig-tls`
    pub allow_insecure_tls: bool,
}

const CONNECT: Duration = Duration::from_secs(30);

pub(super) fn crypto() {
    // Only the first call has an effect.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// How an API server is reached; clients with different identities are made from it.
#[derive(Clone, Debug)]
pub struct Connection {
    config: kube::Config,
}

impl Connection {
    /// From files or from inside a Pod.
    pub async fn open(options: &ConnectOptions) -> Result<Self, ConnectError> {
        let chosen = KubeConfigOptions { context: options.context.clone(), cluster: None, user: None };
        let config = match &options.kubeconfig {
            Some(path) => {
                let bad = |problem: String| ConnectError::File { path: path.clone(), problem };
                let file = File::read_from(path).map_err(|e| bad(e.to_string()))?;
                kube::Config::from_custom_kubeconfig(file, &chosen).await.map_err(|e| bad(e.to_string()))?
            }
            None if options.context.is_some() => kube::Config::from_kubeconfig(&chosen)
                .await
                .map_err(|e| ConnectError::Infer(e.to_string()))?,
            None => kube::Config::infer().await.map_err(|e| ConnectError::Infer(e.to_string()))?,
        };
        Ok(Connection { config: tuned(config) })
    }

    /// From the text of a kubeconfig in a Secret.
    ///
    /// Programs are never run: such a user is dropped, as Flux does by default. File references of the text cannot be
    /// used either; they would name files of this process.
    pub async fn from_text(text: &str, options: RemoteOptions) -> Result<Self, ConnectError> {
        let bad = |e: String| ConnectError::Kubeconfig(e);
        fl_yaml::parse_first(text.as_bytes(), &fl_yaml::Options::sigs())
            .map_err(|e| ConnectError::Unreadable(e.go_text(fl_yaml::Dialect::Sigs)))?;
        let mut file = File::from_yaml(text).map_err(|e| bad(e.to_string()))?;
        if options.allow_exec
            && file.auth_infos.iter().any(|u| u.auth_info.as_ref().is_some_and(|a| a.exec.is_some()))
        {
            return Err(bad(
                "it names a program to run for its credentials, which this engine never does".to_owned()
            ));
        }
        for user in file.auth_infos.iter_mut().filter_map(|u| u.auth_info.as_mut()) {
            user.exec = None;
            user.auth_provider = None;
            user.token_file = None;
            user.client_certificate = None;
            user.client_key = None;
        }
        for cluster in file.clusters.iter_mut().filter_map(|c| c.cluster.as_mut()) {
            cluster.certificate_authority = None;
            if !options.allow_insecure_tls {
                cluster.insecure_skip_tls_verify = None;
            }
        }
        let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
            .await
            .map_err(|e| bad(e.to_string()))?;
        Ok(Connection { config: tuned(config) })
    }

    /// From parts, as `spec.kubeConfig.configMapRef` gives them.
    pub fn from_parts(address: &str, ca: Option<&[u8]>, token: &str) -> Result<Self, ConnectError> {
        let bad = |e: String| ConnectError::Kubeconfig(e);
        let mut config =
            kube::Config::new(address.parse().map_err(|e: http::uri::InvalidUri| bad(e.to_string()))?);
        if let Some(ca) = ca {
            let pem = rustls::pki_types::pem::PemObject::pem_slice_iter(ca)
                .collect::<Result<Vec<rustls::pki_types::CertificateDer<'_>>, _>>()
                .map_err(|e| bad(format!("ca.crt: {e}")))?;
            config.root_cert = Some(pem.into_iter().map(|c| c.to_vec()).collect());
        }
        config.auth_info.token = Some(token.to_owned().into());
        Ok(Connection { config: tuned(config) })
    }

    /// The namespace of the context or the Pod.
    pub fn default_namespace(&self) -> &str {
        &self.config.default_namespace
    }

    pub fn address(&self) -> String {
        self.config.cluster_url.to_string()
    }

    /// A client under an identity. No groups are impersonated.
    pub fn client(&self, identity: &Identity, settings: &Settings) -> Result<Client, ConnectError> {
        crypto();
        let mut config = self.config.clone();
        if let Some(user) = identity.user() {
            config.auth_info.impersonate = Some(user);
            config.auth_info.impersonate_groups = None;
        }
        Ok(Client::with(connect(config)?, settings))
    }
}

/// Connects, through a proxy if the configuration or the environment names one.
pub(crate) fn connect(config: kube::Config) -> Result<kube::Client, ConnectError> {
    proxy::client(config).map_err(|e| ConnectError::Client(e.to_string()))
}

fn tuned(mut config: kube::Config) -> kube::Config {
    config.connect_timeout = Some(CONNECT);
    // Deadlines are set per request by the bounds layer; a watch may be silent for longer than any read
    // timeout.
    config.read_timeout = None;
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn remote_kubeconfig_cannot_run_programs_or_read_files() {
        let text = r#"{"apiVersion":"v1","kind":"Config","current-context":"c",
            "clusters":[{"name":"c","cluster":{"server":"https://127.0.0.1:1","certificate-authority":"/etc/passwd","insecure-skip-tls-verify":true}}],
            "users":[{"name":"u","user":{"exec":{"apiVersion":"client.authentication.k8s.io/v1","command":"touch"},"tokenFile":"/etc/passwd"}}],
            "contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}]}"#;
        let connection = Connection::from_text(text, RemoteOptions::default()).await.unwrap();
        assert!(!connection.config.accept_invalid_certs);
        assert!(connection.config.auth_info.exec.is_none());
        assert!(connection.config.auth_info.token_file.is_none());
        let refused =
            Connection::from_text(text, RemoteOptions { allow_exec: true, ..Default::default() }).await;
        assert!(refused.unwrap_err().to_string().contains("never does"));
        let unreadable = Connection::from_text("{{{", RemoteOptions::default()).await.unwrap_err();
        assert_eq!(unreadable.to_string(), "yaml: line 1: did not find expected node content");
    }
}
