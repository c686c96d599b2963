//! The kubeconfig of a command line: found by flag or environment, with the overrides that kubectl's and flux's flags allow.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig as File};

use super::{Connection, tuned};

/// Why a kubeconfig and its overrides lead to no cluster.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KubeconfigError {
    #[error("kubeconfig {}", path.display())]
    Read { path: PathBuf, source: kube::config::KubeconfigError },
    #[error(transparent)]
    Invalid(#[from] kube::config::KubeconfigError),
    #[error("{what} {name:?} does not exist")]
    Missing { what: &'static str, name: String },
    /// Neither a file nor `server` names a cluster, and the process runs in none.
    #[error("no cluster is configured")]
    NotConfigured,
    #[error("--server")]
    Server(#[source] http::uri::InvalidUri),
    #[error(transparent)]
    Address(http::uri::InvalidUri),
    #[error("unable to read certificate-authority {}", path.display())]
    ReadCa { path: PathBuf, source: std::io::Error },
    #[error("certificate-authority is no PEM file")]
    ParseCa(#[source] rustls::pki_types::pem::Error),
}

/// A kubeconfig, merged from its files.
#[derive(Clone, Debug, Default)]
pub struct Kubeconfig(File);

impl Kubeconfig {
    /// Reads `path`; without it the files of `KUBECONFIG`, else `~/.kube/config`. Empty if there are none.
    pub fn load(path: Option<&Path>) -> Result<Self, KubeconfigError> {
        let read = |path: &Path| {
            File::read_from(path).map_err(|source| KubeconfigError::Read { path: path.to_owned(), source })
        };
        if let Some(path) = path {
            return Ok(Kubeconfig(read(path)?));
        }
        if let Some(paths) = std::env::var_os("KUBECONFIG").filter(|v| !v.is_empty()) {
            let mut merged = File::default();
            for path in std::env::split_paths(&paths).filter(|p| !p.as_os_str().is_empty() && p.exists()) {
                merged = merged.merge(read(&path)?)?;
            }
            return Ok(Kubeconfig(merged));
        }
        let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default().join(".kube/config");
        if home.exists() { Ok(Kubeconfig(read(&home)?)) } else { Ok(Kubeconfig::default()) }
    }

    /// The names of all contexts.
    pub fn contexts(&self) -> impl Iterator<Item = &str> {
        self.0.contexts.iter().map(|c| c.name.as_str())
    }

    /// The namespace of a context, by default of the current one; `None` if the context names none.
    pub fn namespace(&self, context: Option<&str>) -> Option<&str> {
        let name = context.or(self.0.current_context.as_deref())?;
        let context = self.0.contexts.iter().find(|c| c.name == name)?.context.as_ref()?;
        context.namespace.as_deref().filter(|namespace| !namespace.is_empty())
    }
}

/// Settings of flags, which take precedence over the kubeconfig.
#[derive(Clone, Debug, Default)]
pub struct ConfigOverrides {
    pub context: Option<String>,
    pub cluster: Option<String>,
    pub user: Option<String>,
    /// Address of the API server; `http` if it has no scheme and nothing asks for TLS.
    pub server: Option<String>,
    pub token: Option<String>,
    pub certificate_authority: Option<PathBuf>,
    pub client_certificate: Option<String>,
    pub client_key: Option<String>,
    pub tls_server_name: Option<String>,
    pub insecure_skip_tls_verify: bool,
    pub disable_compression: bool,
    pub impersonate: Option<String>,
    pub impersonate_uid: Option<String>,
    pub impersonate_groups: Vec<String>,
    /// Keys and values; a key may be repeated.
    pub impersonate_extra: Vec<(String, String)>,
}

impl Connection {
    /// Connects to the cluster of a kubeconfig and its overrides; to the cluster of the Pod if neither names one.
    pub async fn from_kubeconfig(
        file: Kubeconfig,
        overrides: &ConfigOverrides,
    ) -> Result<Self, KubeconfigError> {
        let Kubeconfig(file) = file;
        let is_empty = file.clusters.is_empty() && file.contexts.is_empty();
        let mut config = if is_empty && overrides.context.is_none() {
            match &overrides.server {
                Some(server) => kube::Config::new(overrides.address(server)?),
                None => kube::Config::incluster().map_err(|_| KubeconfigError::NotConfigured)?,
            }
        } else {
            overrides.check_names(&file)?;
            let options = KubeConfigOptions {
                context: overrides.context.clone(),
                cluster: overrides.cluster.clone(),
                user: overrides.user.clone(),
            };
            kube::Config::from_custom_kubeconfig(file, &options).await?
        };
        if let Some(server) = &overrides.server {
            config.cluster_url = overrides.address(server)?;
        } else if config.cluster_url.scheme().is_none() {
            let tls = config.root_cert.is_some() || config.accept_invalid_certs;
            let address = config.cluster_url.to_string();
            config.cluster_url = with_scheme(&address, tls).map_err(KubeconfigError::Address)?;
        }
        config.accept_invalid_certs |= overrides.insecure_skip_tls_verify;
        config.disable_compression |= overrides.disable_compression;
        if let Some(name) = &overrides.tls_server_name {
            config.tls_server_name = Some(name.clone());
        }
        if let Some(path) = &overrides.certificate_authority {
            let pem = std::fs::read(path)
                .map_err(|source| KubeconfigError::ReadCa { path: path.clone(), source })?;
            config.root_cert = Some(certificates(&pem).map_err(KubeconfigError::ParseCa)?);
        }
        overrides.authenticate(&mut config.auth_info);
        Ok(Connection { config: tuned(config) })
    }
}

impl ConfigOverrides {
    fn check_names(&self, file: &File) -> Result<(), KubeconfigError> {
        let contexts = file.contexts.iter().map(|c| &c.name).collect();
        let clusters = file.clusters.iter().map(|c| &c.name).collect();
        let users = file.auth_infos.iter().map(|u| &u.name).collect();
        let named: [(_, _, Vec<&String>); 3] = [
            ("context", &self.context, contexts),
            ("cluster", &self.cluster, clusters),
            ("auth info", &self.user, users),
        ];
        for (what, name, names) in named {
            if let Some(name) = name.as_ref().filter(|name| !names.contains(name)) {
                return Err(KubeconfigError::Missing { what, name: name.clone() });
            }
        }
        Ok(())
    }

    fn address(&self, server: &str) -> Result<http::Uri, KubeconfigError> {
        let tls = self.insecure_skip_tls_verify || self.certificate_authority.is_some();
        with_scheme(server, tls).map_err(KubeconfigError::Server)
    }

    fn authenticate(&self, auth: &mut AuthInfo) {
        if let Some(token) = &self.token {
            auth.token = Some(token.clone().into());
            auth.exec = None;
        }
        if let Some(path) = &self.client_certificate {
            auth.client_certificate = Some(path.clone());
            auth.client_certificate_data = None;
        }
        if let Some(path) = &self.client_key {
            auth.client_key = Some(path.clone());
            auth.client_key_data = None;
        }
        if let Some(user) = &self.impersonate {
            auth.impersonate = Some(user.clone());
        }
        if let Some(uid) = &self.impersonate_uid {
            auth.impersonate_uid = Some(uid.clone());
        }
        if !self.impersonate_groups.is_empty() {
            auth.impersonate_groups = Some(self.impersonate_groups.clone());
        }
        if !self.impersonate_extra.is_empty() {
            let mut extra: HashMap<String, Vec<String>> = HashMap::new();
            for (key, value) in &self.impersonate_extra {
                extra.entry(key.clone()).or_default().push(value.clone());
            }
            auth.impersonate_user_extra = Some(extra);
        }
    }
}

/// An address without a scheme is plain HTTP unless TLS is configured, as in client-go.
fn with_scheme(text: &str, tls: bool) -> Result<http::Uri, http::uri::InvalidUri> {
    let text = text.trim_end_matches('/');
    if text.contains("://") {
        return text.parse();
    }
    format!("{}://{text}", if tls { "https" } else { "http" }).parse()
}

fn certificates(pem: &[u8]) -> Result<Vec<Vec<u8>>, rustls::pki_types::pem::Error> {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject as _;
    CertificateDer::pem_slice_iter(pem).map(|c| c.map(|c| c.to_vec())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO_CONTEXTS: &str = r#"{"apiVersion":"v1","kind":"Config","current-context":"a",
        "clusters":[{"name":"c","cluster":{"server":"127.0.0.1:1"}}],
        "users":[{"name":"u","user":{"token":"t"}}],
        "contexts":[{"name":"a","context":{"cluster":"c","user":"u","namespace":"apps"}},
            {"name":"b","context":{"cluster":"c","user":"u"}}]}"#;

    fn two_contexts() -> Kubeconfig {
        Kubeconfig(File::from_yaml(TWO_CONTEXTS).unwrap())
    }

    #[test]
    fn server_address_gets_a_scheme() {
        let text = |text: &str, tls| with_scheme(text, tls).unwrap().to_string();
        assert_eq!(text("10.0.0.1:6443", false), "http://10.0.0.1:6443/");
        assert_eq!(text("api.example.com", true), "https://api.example.com/");
        assert_eq!(text("https://api.example.com/", false), "https://api.example.com/");
        assert!(with_scheme("a b", false).is_err());
    }

    #[test]
    fn contexts_and_their_namespaces_are_listed() {
        let file = two_contexts();
        assert_eq!(file.contexts().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(file.namespace(None), Some("apps"));
        assert_eq!(file.namespace(Some("b")), None);
    }

    #[tokio::test]
    async fn overrides_take_precedence_over_the_file() {
        let overrides = ConfigOverrides {
            server: Some("https://api.example.com".to_owned()),
            token: Some("other".to_owned()),
            impersonate: Some("jane".to_owned()),
            impersonate_extra: vec![
                ("scopes".to_owned(), "one".to_owned()),
                ("scopes".to_owned(), "two".to_owned()),
            ],
            ..ConfigOverrides::default()
        };
        let connection = Connection::from_kubeconfig(two_contexts(), &overrides).await.unwrap();
        assert_eq!(connection.address(), "https://api.example.com/");
        let auth = &connection.config.auth_info;
        assert_eq!(auth.impersonate.as_deref(), Some("jane"));
        assert_eq!(auth.impersonate_user_extra.as_ref().unwrap()["scopes"], ["one", "two"]);
        let plain = Connection::from_kubeconfig(two_contexts(), &ConfigOverrides::default()).await.unwrap();
        assert_eq!(plain.address(), "http://127.0.0.1:1/");
    }

    #[tokio::test]
    async fn missing_names_are_rejected() {
        for (overrides, message) in [
            (
                ConfigOverrides { context: Some("x".into()), ..Default::default() },
                "context \"x\" does not exist",
            ),
            (
                ConfigOverrides { cluster: Some("x".into()), ..Default::default() },
                "cluster \"x\" does not exist",
            ),
            (
                ConfigOverrides { user: Some("x".into()), ..Default::default() },
                "auth info \"x\" does not exist",
            ),
        ] {
            let error = Connection::from_kubeconfig(two_contexts(), &overrides).await.unwrap_err();
            assert_eq!(error.to_string(), message);
        }
    }
}
