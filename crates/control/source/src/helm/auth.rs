//! Access to a HelmRepository: certificates, credentials, and which hosts get them.

use std::time::Duration;

use fl_api::source::HelmRepository;
use fl_api::source::helm_repository::HelmRepositoryType;
use fl_http::{Client, Credentials, Owner, Request, Response, Settings, StatusCode};
use fl_oci::{Keychain, RegistryOptions};
use fl_runtime::{ClientError, Reconciled};
use fl_types::Secret;
use url::Url;

use crate::secrets::{self, SecretData, SecretError, Tls};

/// Why a repository cannot be accessed.
#[derive(Debug, thiserror::Error)]
pub(super) enum AccessError {
    #[error("failed to get TLS authentication secret '{secret}': {error}")]
    ReadTls { secret: String, error: ClientError },
    #[error("failed to construct Helm client's TLS config: {0}")]
    Tls(#[source] SecretError),
    #[error("failed to get authentication secret '{secret}': {error}")]
    ReadCredentials { secret: String, error: ClientError },
    #[error("failed to detect authentication methods: {0}")]
    Credentials(#[source] CredentialsError),
    #[error("{0}")]
    Http(#[from] fl_http::Error),
    #[error("failed to fetch {url} : {} {}", .status.as_u16(), .status.canonical_reason().unwrap_or_default())]
    Status { url: String, status: StatusCode },
    #[error("failed to parse {reference} as URL: {error}")]
    Url { reference: String, error: url::ParseError },
    #[error("failed to configure OCI registry authentication: {0}")]
    Registry(#[source] KeychainError),
}

/// Why the credentials of a Secret cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum CredentialsError {
    #[error("secret '{secret}': malformed basic auth - has '{present}' but missing '{missing}'")]
    Half { secret: String, present: &'static str, missing: &'static str },
    #[error("{0}")]
    Certificates(#[from] SecretError),
}

/// Why the credentials of a registry cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum KeychainError {
    #[error("unable to load Docker config from Secret '{secret}': {error}")]
    Config { secret: String, error: fl_oci::KeychainError },
    #[error("no auth config for '{host}' in the docker-registry Secret '{secret}'")]
    NoHost { host: String, secret: String },
    #[error("invalid '{0}' secret data: required fields 'username' and 'password'")]
    Incomplete(String),
}

/// Certificates and credentials of a repository.
#[derive(Clone, Debug)]
pub(super) struct Access {
    owner: Owner,
    pub(super) url: String,
    tls: Tls,
    basic: Option<(String, Secret<String>)>,
    secret: Option<SecretData>,
    pass_credentials: bool,
    insecure: bool,
    pub(super) timeout: Duration,
}

/// The address with exactly one slash at its end, or none for a registry.
pub(super) fn normalized(url: &str) -> String {
    let (address, query) = url.split_once('?').map_or((url, None), |(a, q)| (a, Some(q)));
    let trimmed = address.trim_end_matches('/');
    let address = if url.starts_with("oci://") { trimmed.to_owned() } else { format!("{trimmed}/") };
    match query {
        Some(query) => format!("{address}?{query}"),
        None => address,
    }
}

pub(super) fn is_oci(repository: &HelmRepository) -> bool {
    repository.spec.r#type == Some(HelmRepositoryType::Oci)
}

pub(super) fn timeout(repository: &HelmRepository) -> Duration {
    let given = repository.spec.timeout.and_then(fl_types::Duration::to_std);
    given.filter(|t| !t.is_zero()).unwrap_or(Duration::from_secs(60))
}

/// Reads the Secrets of a repository.
pub(super) async fn read(
    cluster: &fl_runtime::Client,
    repository: &HelmRepository,
) -> Result<Access, AccessError> {
    let namespace = repository.namespace();
    let spec = &repository.spec;
    let mut tls = None;
    if let Some(reference) = &spec.cert_secret_ref {
        let name = &reference.name;
        let secret = secrets::read(cluster, namespace, name)
            .await
            .map_err(|error| AccessError::ReadTls { secret: format!("{namespace}/{name}"), error })?;
        let found = secrets::tls(&secret);
        tls = Some(found.map_err(AccessError::Tls)?);
    }
    let (mut basic, mut login) = (None, None);
    if let Some(reference) = &spec.secret_ref {
        let name = &reference.name;
        let secret = secrets::read(cluster, namespace, name)
            .await
            .map_err(|error| AccessError::ReadCredentials { secret: format!("{namespace}/{name}"), error })?;
        basic = basic_auth(&secret).map_err(AccessError::Credentials)?;
        // As in Flux, an incomplete pair is ignored here; a complete one must be usable.
        if let Ok(found) = secrets::certificates(&secret) {
            let found = found.usable().map_err(|error| AccessError::Credentials(error.into()))?;
            tls.get_or_insert(found);
        }
        login = Some(secret);
    }
    Ok(Access {
        owner: Owner::namespace(namespace),
        url: normalized(&spec.url),
        tls: tls.unwrap_or_default(),
        basic,
        secret: login,
        pass_credentials: spec.pass_credentials.unwrap_or_default(),
        insecure: spec.insecure.unwrap_or_default(),
        timeout: timeout(repository),
    })
}

fn basic_auth(secret: &SecretData) -> Result<Option<(String, Secret<String>)>, CredentialsError> {
    let text = |key: &str| secret.data.get(key).map(|v| String::from_utf8_lossy(v).into_owned());
    let place = format!("{}/{}", secret.namespace, secret.name);
    let half = |present, missing| Err(CredentialsError::Half { secret: place.clone(), present, missing });
    match (text("username"), text("password")) {
        (None, None) => Ok(None),
        (Some(_), None) => half("username", "password"),
        (None, Some(_)) => half("password", "username"),
        (Some(username), Some(password)) => Ok(Some((username, Secret::new(password)))),
    }
}

impl Access {
    /// Without credentials, for a repository that no object describes.
    pub(super) fn anonymous(owner: Owner, url: &str) -> Self {
        Self {
            owner,
            url: normalized(url),
            tls: Tls::default(),
            basic: None,
            secret: None,
            pass_credentials: false,
            insecure: false,
            timeout: Duration::from_secs(60),
        }
    }

    /// Fetches an address of the repository. Credentials are sent to the repository's own host only, unless
    /// `passCredentials` is set.
    pub(super) async fn get(&self, url: &str) -> Result<Response, AccessError> {
        let client = Client::new(Settings {
            ca: self.tls.ca.clone(),
            client_certificate: self.tls.client_certificate.clone().filter(|_| self.is_own_host(url)),
            credentials: match &self.basic {
                Some((username, password)) if self.pass_credentials || self.is_own_host(url) => {
                    Credentials::Basic { username: username.clone(), password: password.clone() }
                }
                _ => Credentials::None,
            },
            timeout: self.timeout,
            ..Settings::new(self.owner.clone())
        })?;
        let response = client.send(Request::get(url)?).await?;
        if response.status() != StatusCode::OK {
            return Err(AccessError::Status { url: url.to_owned(), status: response.status() });
        }
        Ok(response)
    }

    fn is_own_host(&self, url: &str) -> bool {
        let place = |text: &str| {
            let url = Url::parse(text).ok()?;
            Some((url.scheme().to_owned(), url.host_str()?.to_owned(), url.port_or_known_default()))
        };
        place(url).is_some_and(|p| Some(p) == place(&self.url))
    }

    /// The options of a registry.
    pub(super) fn registry(&self) -> Result<RegistryOptions, AccessError> {
        let host = self.url.strip_prefix("oci://").unwrap_or(&self.url).split('/').next().unwrap_or_default();
        let keychain = match &self.secret {
            None => Keychain::anonymous(),
            Some(secret) => keychain(secret, host).map_err(AccessError::Registry)?,
        };
        Ok(RegistryOptions {
            owner: self.owner.clone(),
            keychain,
            insecure: self.insecure,
            ca: self.tls.ca.clone(),
            client_certificate: self.tls.client_certificate.clone(),
            proxy: None,
            timeout: self.timeout,
        })
    }
}

fn keychain(secret: &SecretData, host: &str) -> Result<Keychain, KeychainError> {
    if let Some(config) = secret.data.get(".dockerconfigjson") {
        let keychain = Keychain::from_docker_config(config)
            .map_err(|error| KeychainError::Config { secret: secret.name.clone(), error })?;
        if !keychain.knows_host(host) {
            return Err(KeychainError::NoHost { host: host.to_owned(), secret: secret.name.clone() });
        }
        return Ok(keychain);
    }
    let text =
        |key: &str| secret.data.get(key).map(|v| String::from_utf8_lossy(v).into_owned()).unwrap_or_default();
    match (text("username"), text("password")) {
        (username, password) if username.is_empty() && password.is_empty() => Ok(Keychain::anonymous()),
        (username, password) if username.is_empty() || password.is_empty() => {
            Err(KeychainError::Incomplete(secret.name.clone()))
        }
        (username, password) => {
            Ok(Keychain::fixed(Credentials::Basic { username, password: Secret::new(password) }))
        }
    }
}

/// The address of a chart: an absolute URL of the index, or one relative to the repository.
pub(super) fn resolve(base: &str, reference: &str) -> Result<String, AccessError> {
    if let Ok(absolute) = Url::parse(reference) {
        return Ok(absolute.into());
    }
    let bad = |error| AccessError::Url { reference: reference.to_owned(), error };
    let base = Url::parse(&normalized(base)).map_err(bad)?;
    let mut resolved = base.join(reference).map_err(bad)?;
    resolved.set_query(base.query());
    Ok(resolved.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_normalized_and_resolved() {
        assert_eq!(normalized("https://h/charts"), "https://h/charts/");
        assert_eq!(normalized("https://h/charts//?a=b"), "https://h/charts/?a=b");
        assert_eq!(normalized("oci://h/charts/"), "oci://h/charts");
        assert_eq!(resolve("https://h/charts", "app-1.tgz").unwrap(), "https://h/charts/app-1.tgz");
        assert_eq!(resolve("https://h/charts/?t=1", "x/app.tgz").unwrap(), "https://h/charts/x/app.tgz?t=1");
        assert_eq!(resolve("https://h/charts", "https://other/app.tgz").unwrap(), "https://other/app.tgz");
    }

    #[test]
    fn credentials_stay_on_their_host() {
        let mut access = Access::anonymous(Owner::engine(), "https://h/charts");
        access.basic = Some(("u".into(), Secret::new("p".into())));
        assert!(access.is_own_host("https://h/charts/app.tgz") && access.is_own_host("https://h:443/x"));
        for away in ["http://h/charts/app.tgz", "https://h:8443/x", "https://evil/x", "https://h.evil/x"] {
            assert!(!access.is_own_host(away), "{away}");
        }
    }

    #[test]
    fn certificates_must_be_pem() {
        let refused = |ca: Option<&str>, pair: Option<(&str, &str)>| {
            let tls = Tls {
                ca: ca.map(|ca| ca.as_bytes().to_vec()),
                client_certificate: pair.map(|(chain, key)| fl_http::ClientCertificate {
                    chain: chain.as_bytes().to_vec(),
                    key: Secret::new(key.as_bytes().to_vec()),
                }),
            };
            tls.usable().err().map(|error| error.to_string())
        };
        assert_eq!(refused(None, None), None);
        assert_eq!(refused(Some("garbage"), None).as_deref(), Some("failed to parse CA certificate"));
        assert_eq!(
            refused(None, Some(("x", "y"))).as_deref(),
            Some(
                "failed to parse TLS certificate and key: tls: failed to find any PEM data in certificate input"
            )
        );
    }

    #[test]
    fn incomplete_basic_auth_is_rejected() {
        let secret = |pairs: &[(&str, &str)]| SecretData {
            namespace: "ns".into(),
            name: "s".into(),
            data: pairs.iter().map(|(k, v)| ((*k).to_owned(), v.as_bytes().to_vec())).collect(),
            ..SecretData::default()
        };
        assert_eq!(
            basic_auth(&secret(&[("username", "u")])).unwrap_err().to_string(),
            "secret 'ns/s': malformed basic auth - has 'username' but missing 'password'"
        );
        assert!(basic_auth(&secret(&[])).unwrap().is_none());
    }
}
