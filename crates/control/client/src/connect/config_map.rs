//! Connections by `spec.kubeConfig.configMapRef`: a remote cluster that trusts service account tokens of this
//! one.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::{ConnectError, Connection};
use crate::{Client, Error, Identity, Kind, KnownSecrets};

/// The token file of the Pod's service account.
const OWN_TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";

const GATE: &str = "ObjectLevelWorkloadIdentity";
const NO_DEFAULT_ACCOUNT: &str = "the specified default service account does not exist in the object namespace. your cluster is subject to multi-tenant workload identity lockdown, reach out to your cluster administrator for help";

/// Which service accounts may be used for a remote cluster.
#[derive(Clone, Copy, Debug, Default)]
pub struct RemoteAccounts<'a> {
    /// `--default-kubeconfig-service-account`: for ConfigMaps that name none.
    pub default: &'a str,
    /// Whether an object without an account may use the engine's own.
    pub engine_allowed: bool,
    /// The gate `ObjectLevelWorkloadIdentity`: whether objects may name accounts at all.
    pub per_object: bool,
}

/// Why a ConfigMap cannot be used, with Flux's message.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub struct RemoteError {
    text: String,
    missing: bool,
}

impl RemoteError {
    /// Whether the ConfigMap or the service account it names does not exist.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        self.missing
    }

    fn unreadable(what: &str, error: &Error) -> Self {
        RemoteError { text: format!("{what}: {error}"), missing: error.is_not_found() }
    }

    fn behind(self, what: &str) -> Self {
        RemoteError { text: format!("{what}: {}", self.text), ..self }
    }
}

impl From<String> for RemoteError {
    fn from(text: String) -> Self {
        RemoteError { text, missing: false }
    }
}

impl Connection {
    /// Reads a ConfigMap and gets a token for the cluster it describes.
    pub async fn from_config_map(
        client: &Client,
        namespace: &str,
        name: &str,
        accounts: RemoteAccounts<'_>,
    ) -> Result<Self, RemoteError> {
        let map = client.get(&Kind::config_map(), Some(namespace), name).await.map_err(|e| {
            RemoteError::unreadable(&format!("failed to get configmap {namespace}/{name}"), &e)
        })?;
        let text = |key: &str| map["data"][key].as_str().unwrap_or_default();
        match text("provider") {
            "generic" => {}
            cloud @ ("aws" | "azure" | "gcp") => {
                return Err(format!(
                    "provider '{cloud}' needs a cloud identity, which this engine does not use yet; use 'generic' or a kubeconfig Secret"
                )
                .into());
            }
            other => return Err(format!("provider '{other}' not implemented").into()),
        }
        let address = text("address");
        let mut audiences: Vec<&str> =
            text("audiences").lines().map(str::trim).filter(|l| !l.is_empty()).collect();
        if audiences.is_empty() {
            audiences.push(address);
        }
        let asked = text("serviceAccountName");
        let identity = Identity::of_object(namespace, Some(asked), accounts.default);
        let token = match identity.account() {
            Some(account) => {
                let is_default = asked.is_empty();
                account_token(client, namespace, account, is_default, accounts.per_object, &audiences).await
            }
            None => match check_engine_token(&accounts, address, &audiences) {
                Err(why) => Err(why.into()),
                Ok(()) => own_token(client, &audiences).await.map_err(|e| {
                    format!("failed to create provider access token for the controller: {e}").into()
                }),
            },
        };
        let token = token.map_err(|e: RemoteError| e.behind("failed to get access token for cluster"))?;
        if address.is_empty() {
            return Err("cluster address is required to create a REST config".to_owned().into());
        }
        let host = host(address).map_err(|e| format!("failed to parse cluster address {address}: {e}"))?;
        let ca = Some(text("ca.crt").as_bytes()).filter(|ca| !ca.is_empty());
        Connection::from_parts(&host, ca, &token).map_err(|e: ConnectError| e.to_string().into())
    }
}

/// Whether the engine's own token may be requested. The author of the ConfigMap chooses the receiver, so the
/// token must be useless to anyone else: its only audience is the address it is sent to.
fn check_engine_token(
    accounts: &RemoteAccounts<'_>,
    address: &str,
    audiences: &[&str],
) -> Result<(), String> {
    if !accounts.engine_allowed {
        return Err("the ConfigMap names no serviceAccountName, and multi-tenancy lock-down forbids the token of the controller".to_owned());
    }
    if let Some(other) = audiences.iter().find(|audience| **audience != address) {
        return Err(format!(
            "the token of the controller is not issued for the audience '{other}', only for the address of the cluster; name a serviceAccountName to choose audiences"
        ));
    }
    Ok(())
}

/// A token of a service account in the namespace of the object.
async fn account_token(
    client: &Client,
    namespace: &str,
    account: &str,
    is_default: bool,
    allowed: bool,
    audiences: &[&str],
) -> Result<String, RemoteError> {
    let place = format!("{namespace}/{account}");
    let found = client.get(&Kind::service_account(), Some(namespace), account).await;
    found.map_err(|e| {
        let what = format!("failed to get service account '{place}'");
        if e.is_not_found() && is_default {
            // Not "missing": the administrator configured this account, so deletion must not go on without
            // it.
            RemoteError::from(format!("{what}: {NO_DEFAULT_ACCOUNT}"))
        } else {
            RemoteError::unreadable(&what, &e)
        }
    })?;
    if !allowed {
        return Err(format!("{GATE} feature gate is not enabled").into());
    }
    request(client, namespace, account, audiences).await.map_err(|e| {
        RemoteError::unreadable(
            &format!("failed to create kubernetes token for service account '{place}'"),
            &e,
        )
    })
}

/// A token of the service account the engine runs as.
async fn own_token(client: &Client, audiences: &[&str]) -> Result<String, String> {
    let own = tokio::fs::read_to_string(OWN_TOKEN).await.map_err(|e| {
        let why = match e.kind() {
            std::io::ErrorKind::NotFound => "no such file or directory".to_owned(),
            std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
            _ => e.to_string(),
        };
        format!("failed to read service account token file {OWN_TOKEN}: open {OWN_TOKEN}: {why}")
    })?;
    let subject = subject(&own).ok_or("failed to parse service account token")?;
    let parts: Vec<&str> = subject.split(':').collect();
    let [_, _, namespace, account] = parts.as_slice() else {
        return Err(format!("invalid subject format in service account token: {subject}"));
    };
    request(client, namespace, account, audiences).await.map_err(|e| {
        format!(
            "failed to create kubernetes token for controller service account '{namespace}/{account}': {e}"
        )
    })
}

async fn request(
    client: &Client,
    namespace: &str,
    account: &str,
    audiences: &[&str],
) -> Result<String, Error> {
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": {"audiences": audiences, "expirationSeconds": 3600}});
    let kind = Kind::service_account();
    let answer = client.create_subresource(&kind, Some(namespace), account, "token", &request).await?;
    let token = answer["status"]["token"].as_str().unwrap_or_default();
    KnownSecrets::current().learn_text(token);
    Ok(token.to_owned())
}

/// The subject of a token. Not verified: the API server that receives the token does that.
fn subject(token: &str) -> Option<String> {
    let payload = token.trim().split('.').nth(1)?;
    let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).ok()?).ok()?;
    claims["sub"].as_str().map(str::to_owned)
}

/// The normalized address: `https://<host>:<port>`.
fn host(address: &str) -> Result<String, String> {
    let full = if address.starts_with("http") { address.to_owned() } else { format!("https://{address}") };
    let bad =
        |e: &dyn std::fmt::Display| format!("failed to parse Kubernetes API server address '{full}': {e}");
    let uri: http::Uri = full.parse().map_err(|e: http::uri::InvalidUri| bad(&e))?;
    if uri.scheme_str() != Some("https") {
        return Err(format!("the Kubernetes API server address '{full}' must use https scheme"));
    }
    let authority = uri.authority().ok_or_else(|| bad(&"it has no host"))?;
    let port = authority.port_u16().unwrap_or(443);
    Ok(format!("https://{}:{port}", authority.host().to_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_normalized() {
        assert_eq!(host("Example.com").unwrap(), "https://example.com:443");
        assert_eq!(host("https://Example.com:6443/path").unwrap(), "https://example.com:6443");
        assert_eq!(
            host("http://example.com").unwrap_err(),
            "the Kubernetes API server address 'http://example.com' must use https scheme"
        );
    }

    #[test]
    fn engine_token_is_valid_for_the_address_only() {
        let check = |engine_allowed: bool, audiences: &[&str]| {
            let accounts = RemoteAccounts { engine_allowed, ..RemoteAccounts::default() };
            check_engine_token(&accounts, "https://remote.example", audiences)
        };
        assert_eq!(check(true, &["https://remote.example"]), Ok(()));
        for other in ["https://kubernetes.default.svc", "sts.amazonaws.com", "remote.example"] {
            let error = check(true, &["https://remote.example", other]).unwrap_err();
            assert!(error.contains(&format!("the audience '{other}'")), "{error}");
        }
        assert!(check(false, &["https://remote.example"]).unwrap_err().contains("lock-down"));
    }

    #[test]
    fn token_subject_is_decoded() {
        let payload = URL_SAFE_NO_PAD.encode(r#"{"sub":"system:serviceaccount:flux-system:engine"}"#);
        assert_eq!(
            subject(&format!("h.{payload}.s\n")).as_deref(),
            Some("system:serviceaccount:flux-system:engine")
        );
        assert_eq!(subject("nonsense"), None);
    }
}
