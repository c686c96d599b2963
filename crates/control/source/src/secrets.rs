//! Secrets as sources use them: credentials, certificates, proxies, pull secrets. Error messages are Flux's.

use std::collections::BTreeMap;

use base64::Engine as _;
use fl_api::meta::references::LocalObjectReference;
use fl_http::{ClientCertificate, Proxy};
use fl_runtime::{Client, ClientError, Edge, Kind};
use fl_types::Secret;
use serde_json::Value;

/// Characters of the address of a proxy.
const MAX_PROXY_LENGTH: usize = 2048;
const PROXY_SCHEMES: [&str; 3] = ["http", "https", "socks5"];

/// Why a Secret cannot be used. Secrets are named `namespace/name`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecretError {
    #[error("secret '{0}' not found")]
    NotFound(String),
    #[error("failed to get secret '{secret}': {error}")]
    Read { secret: String, error: ClientError },
    #[error("secret '{secret}': {problem}")]
    Proxy { secret: String, problem: ProxyError },
    #[error("secret '{secret}' contains '{present}' but missing '{missing}'")]
    HalfPair { secret: String, present: &'static str, missing: &'static str },
    #[error("secret '{0}' must contain either 'ca.crt' or both 'tls.crt' and 'tls.key'")]
    NoCertificates(String),
    #[error("{0}")]
    Certificates(#[from] fl_http::CertificateError),
    #[error("serviceaccount '{0}' not found")]
    NoAccount(String),
    #[error("failed to get serviceaccount '{account}': {error}")]
    ReadAccount { account: String, error: ClientError },
    #[error("failed to get image pull secret for serviceaccount '{account}': {error}")]
    PullSecret { account: String, error: Box<SecretError> },
}

impl SecretError {
    pub(crate) fn read(namespace: &str, name: &str, error: ClientError) -> Self {
        SecretError::Read { secret: format!("{namespace}/{name}"), error }
    }
}

/// Why the address of a proxy is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyError {
    #[error("key 'address' not found")]
    NoAddress,
    #[error("proxy address is empty")]
    EmptyAddress,
    #[error("proxy URL exceeds maximum length of {MAX_PROXY_LENGTH} characters")]
    TooLong,
    #[error("proxy URL must use one of the supported schemes ({schemes}), got '{0}'", schemes = PROXY_SCHEMES.join(", "))]
    Scheme(String),
    #[error("failed to parse proxy address: {0}")]
    Malformed(url::ParseError),
}

/// The data of a Secret. Values are never shown.
#[derive(Clone, Default)]
pub struct SecretData {
    pub namespace: String,
    pub name: String,
    /// `type`, which decides how pull secrets are read.
    pub kind: String,
    pub data: BTreeMap<String, Vec<u8>>,
}

impl std::fmt::Debug for SecretData {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secret {}/{} with {} keys", self.namespace, self.name, self.data.len())
    }
}

impl SecretData {
    fn from_value(namespace: &str, name: &str, value: &Value) -> Self {
        let decode = |v: &Value| {
            v.as_str()
                .and_then(|t| base64::engine::general_purpose::STANDARD.decode(t).ok())
                .unwrap_or_default()
        };
        let data =
            value["data"].as_object().into_iter().flatten().map(|(k, v)| (k.clone(), decode(v))).collect();
        let kind = value["type"].as_str().unwrap_or_default().to_owned();
        SecretData { namespace: namespace.to_owned(), name: name.to_owned(), kind, data }
    }

    fn get(&self, key: &str) -> Option<&[u8]> {
        self.data.get(key).map(Vec::as_slice).filter(|v| !v.is_empty())
    }

    fn place(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

/// The Secrets that a source in a namespace uses; a change of one of them triggers a reconcile.
pub fn edges<'a>(
    namespace: &str,
    used: impl IntoIterator<Item = Option<&'a LocalObjectReference>>,
) -> Vec<Edge> {
    let edge = |secret: &LocalObjectReference| Edge::change(Kind::secret().key(namespace, &secret.name));
    used.into_iter().flatten().map(edge).collect()
}

/// Reads a Secret; the error is that of the API server.
pub async fn read(cluster: &Client, namespace: &str, name: &str) -> Result<SecretData, ClientError> {
    let value = cluster.get(&Kind::secret(), Some(namespace), name).await?;
    Ok(SecretData::from_value(namespace, name, &value))
}

/// Reads a Secret; the error names it.
pub async fn read_named(cluster: &Client, namespace: &str, name: &str) -> Result<SecretData, SecretError> {
    read(cluster, namespace, name).await.map_err(|error| {
        if error.is_not_found() {
            SecretError::NotFound(format!("{namespace}/{name}"))
        } else {
            SecretError::read(namespace, name, error)
        }
    })
}

/// The proxy a Secret describes: `address`, `username`, `password`.
pub fn proxy(secret: &SecretData) -> Result<Proxy, SecretError> {
    let refuse = |problem| SecretError::Proxy { secret: secret.place(), problem };
    let Some(address) = secret.data.get("address") else {
        return Err(refuse(ProxyError::NoAddress));
    };
    let address = String::from_utf8_lossy(address).into_owned();
    if address.is_empty() {
        return Err(refuse(ProxyError::EmptyAddress));
    }
    if address.len() > MAX_PROXY_LENGTH {
        return Err(refuse(ProxyError::TooLong));
    }
    let scheme = address.split_once(':').map_or("", |(scheme, _)| scheme);
    if !PROXY_SCHEMES.contains(&scheme) {
        return Err(refuse(ProxyError::Scheme(scheme.to_owned())));
    }
    url::Url::parse(&address).map_err(|error| refuse(ProxyError::Malformed(error)))?;
    let text = |key: &str| secret.data.get(key).map(|v| String::from_utf8_lossy(v).into_owned());
    Ok(Proxy {
        address,
        username: text("username").unwrap_or_default(),
        password: Secret::new(text("password").unwrap_or_default()),
    })
}

/// Certificates out of a Secret.
#[derive(Clone, Debug, Default)]
pub struct Tls {
    pub ca: Option<Vec<u8>>,
    pub client_certificate: Option<ClientCertificate>,
}

impl Tls {
    /// Checks that certificates and key can be parsed.
    pub fn usable(self) -> Result<Self, SecretError> {
        fl_http::check_certificates(self.ca.as_deref(), self.client_certificate.as_ref())?;
        Ok(self)
    }
}

/// `tls.crt` with `tls.key`, and `ca.crt`, which can be used; the old names `certFile`, `keyFile`, `caFile` where the new ones are
/// absent.
pub fn tls(secret: &SecretData) -> Result<Tls, SecretError> {
    certificates(secret)?.usable()
}

/// As [`tls`], without parsing them.
pub fn certificates(secret: &SecretData) -> Result<Tls, SecretError> {
    let half = |present, missing| SecretError::HalfPair { secret: secret.place(), present, missing };
    let key = |new: &str, old: &str| secret.get(new).or_else(|| secret.get(old)).map(<[u8]>::to_vec);
    let ca = key("ca.crt", "caFile");
    let client_certificate = match (key("tls.crt", "certFile"), key("tls.key", "keyFile")) {
        (Some(chain), Some(key)) => Some(ClientCertificate { chain, key: Secret::new(key) }),
        (Some(_), None) => return Err(half("tls.crt", "tls.key")),
        (None, Some(_)) => return Err(half("tls.key", "tls.crt")),
        (None, None) => None,
    };
    if ca.is_none() && client_certificate.is_none() {
        return Err(SecretError::NoCertificates(secret.place()));
    }
    Ok(Tls { ca, client_certificate })
}

/// The pull secrets of a service account, all of which must be there.
pub async fn pull_secrets(
    cluster: &Client,
    namespace: &str,
    account: &str,
) -> Result<Vec<SecretData>, SecretError> {
    let place = format!("{namespace}/{account}");
    let account = cluster.get(&Kind::service_account(), Some(namespace), account).await.map_err(|error| {
        if error.is_not_found() {
            SecretError::NoAccount(place.clone())
        } else {
            SecretError::ReadAccount { account: place.clone(), error }
        }
    })?;
    let mut found = Vec::new();
    for reference in account["imagePullSecrets"].as_array().into_iter().flatten() {
        let name = reference["name"].as_str().unwrap_or_default();
        let secret = read_named(cluster, namespace, name)
            .await
            .map_err(|error| SecretError::PullSecret { account: place.clone(), error: Box::new(error) })?;
        found.push(secret);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(pairs: &[(&str, &str)]) -> SecretData {
        let data = pairs.iter().map(|(k, v)| ((*k).to_owned(), v.as_bytes().to_vec())).collect();
        SecretData { namespace: "ns".into(), name: "s".into(), data, ..SecretData::default() }
    }

    #[test]
    fn proxy_error_messages_match_flux() {
        assert_eq!(proxy(&secret(&[])).unwrap_err().to_string(), "secret 'ns/s': key 'address' not found");
        assert_eq!(
            proxy(&secret(&[("address", "ftp://x")])).unwrap_err().to_string(),
            "secret 'ns/s': proxy URL must use one of the supported schemes (http, https, socks5), got 'ftp'"
        );
        let good =
            proxy(&secret(&[("address", "http://p:1"), ("username", "u"), ("password", "w")])).unwrap();
        assert_eq!((good.username.as_str(), good.password.expose().as_str()), ("u", "w"));
        assert!(!format!("{good:?}").contains("\"w\""));
    }

    #[test]
    fn certificate_error_messages_match_flux() {
        assert_eq!(
            tls(&secret(&[])).unwrap_err().to_string(),
            "secret 'ns/s' must contain either 'ca.crt' or both 'tls.crt' and 'tls.key'"
        );
        assert_eq!(
            tls(&secret(&[("tls.crt", "x")])).unwrap_err().to_string(),
            "secret 'ns/s' contains 'tls.crt' but missing 'tls.key'"
        );
        assert_eq!(
            tls(&secret(&[("caFile", "x")])).unwrap_err().to_string(),
            "failed to parse CA certificate"
        );
        assert_eq!(
            tls(&secret(&[("tls.crt", "x"), ("tls.key", "y")])).unwrap_err().to_string(),
            "failed to parse TLS certificate and key: tls: failed to find any PEM data in certificate input"
        );
    }
}
