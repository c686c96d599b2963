//! Azure tokens, and request signatures of storage accounts.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use fl_types::Secret;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::json;
use sha1::{Digest as _, Sha1};
use sha2::Sha256;

use crate::{CloudError, CloudRequest, CredentialsError, Destination, Destinations, jwt, percent};

/// Default authority for tokens.
pub const AUTHORITY: &str = "https://login.microsoftonline.com";

/// An Azure identity.
#[derive(Clone)]
pub struct AzureIdentity {
    /// Authority that issues tokens.
    pub authority: String,
    pub kind: AzureKind,
}

#[derive(Clone)]
#[expect(missing_debug_implementations, reason = "it holds keys")]
pub enum AzureKind {
    ClientSecret {
        tenant: String,
        client: String,
        secret: Secret<String>,
    },
    Certificate {
        tenant: String,
        client: String,
        certificate: AzureCertificate,
    },
    /// A managed identity of the machine that the engine runs on.
    ManagedIdentity {
        client: String,
    },
}

/// Domains of Azure's clouds that only Microsoft serves.
const DOMAINS: &[&str] = &[
    "vault.azure.net",
    "vault.azure.cn",
    "vault.usgovcloudapi.net",
    "vault.microsoftazure.de",
    "managedhsm.azure.net",
    "managedhsm.azure.cn",
    "managedhsm.usgovcloudapi.net",
    "blob.core.windows.net",
    "blob.core.chinacloudapi.cn",
    "blob.core.usgovcloudapi.net",
    "blob.core.cloudapi.de",
    "blob.storage.azure.net",
];

/// A certificate and its key.
#[derive(Clone)]
pub struct AzureCertificate {
    key: Box<rsa::RsaPrivateKey>,
    der: Vec<u8>,
    /// Whether to send the certificate with the JWT.
    chain: bool,
}

impl std::fmt::Debug for AzureIdentity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AzureIdentity(***)")
    }
}

impl std::fmt::Debug for AzureCertificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AzureCertificate(***)")
    }
}

impl AzureCertificate {
    /// Parses a certificate and a key from one PEM text.
    ///
    /// # Errors
    /// One of them is missing, or the key is encrypted.
    pub fn from_pem(text: &str, chain: bool) -> Result<Self, CredentialsError> {
        let unreadable = CredentialsError(
            "the clientCertificate of the Azure credentials cannot be read: a certificate and an RSA key without a password, both PEM, are supported",
        );
        let key = jwt::private_key(text).ok_or(unreadable.clone())?;
        let der = jwt::pem(text, "CERTIFICATE").ok_or(unreadable)?;
        Ok(Self { key: Box::new(key), der, chain })
    }
}

impl AzureIdentity {
    /// Addresses that tokens of this identity may be sent to.
    pub fn destinations(&self) -> Destinations {
        match self.kind {
            AzureKind::ClientSecret { .. } | AzureKind::Certificate { .. } => Destinations::Any,
            AzureKind::ManagedIdentity { .. } => {
                Destinations::Only(DOMAINS.iter().map(|d| Destination::Domain(d)).collect())
            }
        }
    }

    /// The request for a token for `resource`. `now` is the Unix time in seconds; `metadata` is the endpoint
    /// for managed identities.
    ///
    /// # Errors
    /// The key cannot sign.
    pub fn token_request(
        &self,
        resource: &str,
        metadata: &str,
        now: i64,
    ) -> Result<CloudRequest, CloudError> {
        let url = |tenant: &str| {
            format!("{}/{}/oauth2/v2.0/token", self.authority.trim_end_matches('/'), percent(tenant))
        };
        let scope = format!("{resource}/.default");
        let grant = [("grant_type", "client_credentials"), ("scope", scope.as_str())];
        Ok(match &self.kind {
            AzureKind::ClientSecret { tenant, client, secret } => CloudRequest::form(
                url(tenant),
                &[grant[0], grant[1], ("client_id", client), ("client_secret", secret.expose())],
            ),
            AzureKind::Certificate { tenant, client, certificate: AzureCertificate { key, der, chain } } => {
                let mut header =
                    json!({"alg": "RS256", "typ": "JWT", "x5t": URL_SAFE_NO_PAD.encode(Sha1::digest(der))});
                if *chain {
                    header["x5c"] = json!([STANDARD.encode(der)]);
                }
                let id = URL_SAFE_NO_PAD.encode(Sha256::digest(format!("{now} {client} {tenant}")));
                let claims = json!({"aud": url(tenant), "iss": client, "sub": client, "jti": id, "nbf": now, "exp": now + 600});
                let assertion =
                    jwt::sign(key, &header, &claims).ok_or(CloudError::CannotSign("the Azure key"))?;
                let kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
                let who = [("client_id", client.as_str()), ("client_assertion_type", kind)];
                CloudRequest::form(
                    url(tenant),
                    &[grant[0], grant[1], who[0], who[1], ("client_assertion", &assertion)],
                )
            }
            AzureKind::ManagedIdentity { client } => {
                let query = format!(
                    "api-version=2018-02-01&resource={}&client_id={}",
                    percent(resource),
                    percent(client)
                );
                let base = metadata.trim_end_matches('/');
                let mut request = CloudRequest::get(format!("{base}/metadata/identity/oauth2/token?{query}"));
                request.headers.push(("metadata", Secret::new("true".to_owned())));
                request
            }
        })
    }
}

/// The key of a storage account.
#[derive(Clone, Debug)]
pub struct SharedKey {
    account: String,
    key: Secret<Vec<u8>>,
}

impl SharedKey {
    /// # Errors
    /// The key is not base64.
    pub fn new(account: &str, key: &str) -> Result<Self, CredentialsError> {
        let key =
            STANDARD.decode(key.trim()).map_err(|_| CredentialsError("the account key is not base64"))?;
        Ok(Self { account: account.to_owned(), key: Secret::new(key) })
    }

    /// Adds the signature to a request without a body. The `x-ms-` headers must be set before; the query is
    /// given decoded.
    ///
    /// # Errors
    /// The key cannot sign.
    pub fn sign(
        &self,
        request: &mut CloudRequest,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<(), CloudError> {
        let mut own: Vec<(&str, &str)> = request
            .headers
            .iter()
            .filter(|(name, _)| name.starts_with("x-ms-"))
            .map(|(name, value)| (*name, value.expose().as_str()))
            .collect();
        own.sort_unstable();
        let headers: String = own.iter().map(|(name, value)| format!("{name}:{}\n", value.trim())).collect();
        let mut query = query.to_vec();
        query.sort_unstable();
        let query: String = query.iter().map(|(name, value)| format!("\n{name}:{value}")).collect();
        // Eleven standard headers, none of which is sent.
        let text = format!("{}\n{}{headers}/{}{path}{query}", request.method, "\n".repeat(11), self.account);
        let mut mac = Hmac::<Sha256>::new_from_slice(self.key.expose())
            .map_err(|_| CloudError::CannotSign("the account key"))?;
        mac.update(text.as_bytes());
        let signature = STANDARD.encode(mac.finalize().into_bytes());
        let header = format!("SharedKey {}:{signature}", self.account);
        request.headers.push(("authorization", Secret::new(header)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The well-known account and key of the storage emulator.
    #[test]
    fn shared_key_signature_matches_the_emulator() {
        let key = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
        let key = SharedKey::new("devstoreaccount1", key).expect("a key");
        let mut request = CloudRequest::get(
            "http://127.0.0.1:10000/devstoreaccount1/c?restype=container&comp=list".to_owned(),
        );
        request.headers.push(("x-ms-version", Secret::new("2021-08-06".to_owned())));
        request.headers.push(("x-ms-date", Secret::new("Tue, 17 Nov 2026 02:00:00 GMT".to_owned())));
        key.sign(&mut request, "/devstoreaccount1/c", &[("restype", "container"), ("comp", "list")])
            .expect("signs");
        let header = request.headers.last().expect("a header");
        assert!(header.0 == "authorization" && header.1.expose().starts_with("SharedKey devstoreaccount1:"));
        assert!(!format!("{key:?} {request:?}").contains("SharedKey devstore"));
        assert!(SharedKey::new("a", "no base64!").is_err());
    }
}
