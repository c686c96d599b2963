//! How a HelmRepository is reached: its certificates, its login, and where that login may go.

use std::time::Duration;

use fl_api::source::HelmRepository;
use fl_api::source::helm_repository::HelmRepositoryType;
use fl_http::{Client, Credentials, Owner, Request, Response, Settings, StatusCode};
use fl_oci::{Keychain, RegistryOptions};
use fl_runtime::Reconciled;
use fl_types::Secret;
use url::Url;

use crate::secrets::{self, SecretData, Tls};

/// Certificates and login of a repository.
#[derive(Clone, Debug)]
pub(super) struct Access {
    owner: Owner,
    pub(super) url: String,
    tls: Tls,
    basic: Option<(String, Secret<String>)>,
    secret: Option<SecretData>,
    pass_credentials: bool,
    insecure: bool,
    timeout: Duration,
}

/// The address with exactly one slash at its end; of a registry, none.
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
) -> Result<Access, String> {
    let namespace = repository.namespace();
    let spec = &repository.spec;
    let mut tls = None;
    if let Some(reference) = &spec.cert_secret_ref {
        let name = &reference.name;
        let secret = secrets::read(cluster, namespace, name)
            .await
            .map_err(|e| format!("failed to get TLS authentication secret '{namespace}/{name}': {e}"))?;
        let found = secrets::tls(&secret);
        tls = Some(found.map_err(|e| format!("failed to construct Helm client's TLS config: {e}"))?);
    }
    let (mut basic, mut login) = (None, None);
    if let Some(reference) = &spec.secret_ref {
        let name = &reference.name;
        let secret = secrets::read(cluster, namespace, name)
            .await
            .map_err(|e| format!("failed to get authentication secret '{namespace}/{name}': {e}"))?;
        basic = basic_login(&secret).map_err(|e| format!("failed to detect authentication methods: {e}"))?;
        // Half a pair counts for nothing here, as in Flux; what is whole must be usable.
        if let Ok(found) = secrets::certificates(&secret) {
            let found =
                found.usable().map_err(|e| format!("failed to detect authentication methods: {e}"))?;
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

fn basic_login(secret: &SecretData) -> Result<Option<(String, Secret<String>)>, String> {
    let text = |key: &str| secret.data.get(key).map(|v| String::from_utf8_lossy(v).into_owned());
    let place = format!("{}/{}", secret.namespace, secret.name);
    let half = |present: &str, missing: &str| {
        Err(format!("secret '{place}': malformed basic auth - has '{present}' but missing '{missing}'"))
    };
    match (text("username"), text("password")) {
        (None, None) => Ok(None),
        (Some(_), None) => half("username", "password"),
        (None, Some(_)) => half("password", "username"),
        (Some(username), Some(password)) => Ok(Some((username, Secret::new(password)))),
    }
}

impl Access {
    /// Without a login, for a repository that no object describes.
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

    /// Fetches an address of the repository. The login goes along only to the repository's own host, unless the object says
    /// otherwise.
    pub(super) async fn get(&self, url: &str) -> Result<Response, String> {
        let client = Client::new(Settings {
            ca: self.tls.ca.clone(),
            client_certificate: self.tls.client_certificate.clone().filter(|_| self.at_home(url)),
            credentials: match &self.basic {
                Some((username, password)) if self.pass_credentials || self.at_home(url) => {
                    Credentials::Basic { username: username.clone(), password: password.clone() }
                }
                _ => Credentials::None,
            },
            timeout: self.timeout,
            ..Settings::new(self.owner.clone())
        })
        .map_err(|e| e.to_string())?;
        let response =
            client.send(Request::get(url).map_err(|e| e.to_string())?).await.map_err(|e| e.to_string())?;
        if response.status() != StatusCode::OK {
            let status = response.status();
            let reason = status.canonical_reason().unwrap_or_default();
            return Err(format!("failed to fetch {url} : {} {reason}", status.as_u16()));
        }
        Ok(response)
    }

    fn at_home(&self, url: &str) -> bool {
        let place = |text: &str| {
            let url = Url::parse(text).ok()?;
            Some((url.scheme().to_owned(), url.host_str()?.to_owned(), url.port_or_known_default()))
        };
        place(url).is_some_and(|p| Some(p) == place(&self.url))
    }

    /// The same for a registry.
    pub(super) fn registry(&self) -> Result<RegistryOptions, String> {
        let host = self.url.strip_prefix("oci://").unwrap_or(&self.url).split('/').next().unwrap_or_default();
        let keychain = match &self.secret {
            None => Keychain::anonymous(),
            Some(secret) => keychain(secret, host)
                .map_err(|e| format!("failed to configure OCI registry authentication: {e}"))?,
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

fn keychain(secret: &SecretData, host: &str) -> Result<Keychain, String> {
    if let Some(config) = secret.data.get(".dockerconfigjson") {
        let keychain = Keychain::from_docker_config(config)
            .map_err(|e| format!("unable to load Docker config from Secret '{}': {e}", secret.name))?;
        if !keychain.knows_host(host) {
            return Err(format!(
                "no auth config for '{host}' in the docker-registry Secret '{}'",
                secret.name
            ));
        }
        return Ok(keychain);
    }
    let text =
        |key: &str| secret.data.get(key).map(|v| String::from_utf8_lossy(v).into_owned()).unwrap_or_default();
    match (text("username"), text("password")) {
        (username, password) if username.is_empty() && password.is_empty() => Ok(Keychain::anonymous()),
        (username, password) if username.is_empty() || password.is_empty() => {
            Err(format!("invalid '{}' secret data: required fields 'username' and 'password'", secret.name))
        }
        (username, password) => {
            Ok(Keychain::fixed(Credentials::Basic { username, password: Secret::new(password) }))
        }
    }
}

/// A chart's address as the index gives it: on its own, or below the repository.
pub(super) fn resolve(base: &str, reference: &str) -> Result<String, String> {
    if let Ok(absolute) = Url::parse(reference) {
        return Ok(absolute.into());
    }
    let bad = |e: url::ParseError| format!("failed to parse {reference} as URL: {e}");
    let base = Url::parse(&normalized(base)).map_err(bad)?;
    let mut resolved = base.join(reference).map_err(bad)?;
    resolved.set_query(base.query());
    Ok(resolved.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        assert_eq!(normalized("https://h/charts"), "https://h/charts/");
        assert_eq!(normalized("https://h/charts//?a=b"), "https://h/charts/?a=b");
        assert_eq!(normalized("oci://h/charts/"), "oci://h/charts");
        assert_eq!(resolve("https://h/charts", "app-1.tgz").unwrap(), "https://h/charts/app-1.tgz");
        assert_eq!(resolve("https://h/charts/?t=1", "x/app.tgz").unwrap(), "https://h/charts/x/app.tgz?t=1");
        assert_eq!(resolve("https://h/charts", "https://other/app.tgz").unwrap(), "https://other/app.tgz");
    }

    #[test]
    fn a_login_stays_at_home() {
        let mut access = Access::anonymous(Owner::engine(), "https://h/charts");
        access.basic = Some(("u".into(), Secret::new("p".into())));
        assert!(access.at_home("https://h/charts/app.tgz") && access.at_home("https://h:443/x"));
        for away in ["http://h/charts/app.tgz", "https://h:8443/x", "https://evil/x", "https://h.evil/x"] {
            assert!(!access.at_home(away), "{away}");
        }
    }

    #[test]
    fn certificates_must_be_some() {
        let refused = |ca: Option<&str>, pair: Option<(&str, &str)>| {
            let tls = Tls {
                ca: ca.map(|ca| ca.as_bytes().to_vec()),
                client_certificate: pair.map(|(chain, key)| fl_http::ClientCertificate {
                    chain: chain.as_bytes().to_vec(),
                    key: Secret::new(key.as_bytes().to_vec()),
                }),
            };
            tls.usable().err()
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
    fn half_a_login_is_an_error() {
        let secret = |pairs: &[(&str, &str)]| SecretData {
            namespace: "ns".into(),
            name: "s".into(),
            data: pairs.iter().map(|(k, v)| ((*k).to_owned(), v.as_bytes().to_vec())).collect(),
            ..SecretData::default()
        };
        assert_eq!(
            basic_login(&secret(&[("username", "u")])).unwrap_err(),
            "secret 'ns/s': malformed basic auth - has 'username' but missing 'password'"
        );
        assert!(basic_login(&secret(&[])).unwrap().is_none());
    }
}
