//! Azure's tokens, and the signature of its storage accounts.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use fl_types::Secret;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::json;
use sha1::{Digest as _, Sha1};
use sha2::Sha256;

use crate::{Call, Destination, Destinations, Unusable, jwt, percent};

/// Where tokens are asked for when nobody says otherwise.
pub const AUTHORITY: &str = "https://login.microsoftonline.com";

/// Who we are to Azure.
#[derive(Clone)]
pub struct AzureIdentity {
    /// Where tokens are asked for.
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
    /// An identity of the machine the engine runs on, whoever names it.
    ManagedIdentity {
        client: String,
    },
}

/// Domains of Azure's clouds that Microsoft alone serves.
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
    /// Send the certificate along.
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
    /// Reads a certificate and a key, one behind the other.
    ///
    /// # Errors
    /// When either is missing, or the key has a password.
    pub fn from_pem(text: &str, chain: bool) -> Result<Self, Unusable> {
        let unreadable = Unusable(
            "the clientCertificate of the Azure credentials cannot be read: a certificate and an RSA key without a password, both PEM, are supported",
        );
        let key = jwt::private_key(text).ok_or(unreadable.clone())?;
        let der = jwt::pem(text, "CERTIFICATE").ok_or(unreadable)?;
        Ok(Self { key: Box::new(key), der, chain })
    }
}

impl AzureIdentity {
    /// Where tokens of this identity may be sent.
    pub fn destinations(&self) -> Destinations {
        match self.kind {
            AzureKind::ClientSecret { .. } | AzureKind::Certificate { .. } => Destinations::Any,
            AzureKind::ManagedIdentity { .. } => {
                Destinations::Only(DOMAINS.iter().map(|d| Destination::Domain(d)).collect())
            }
        }
    }

    /// The request for a token that is good for `resource`, at a time in seconds since 1970; `metadata` is where a managed
    /// identity asks.
    ///
    /// # Errors
    /// When the key cannot sign.
    pub fn token_call(&self, resource: &str, metadata: &str, now: i64) -> Result<Call, String> {
        let url = |tenant: &str| {
            format!("{}/{}/oauth2/v2.0/token", self.authority.trim_end_matches('/'), percent(tenant))
        };
        let scope = format!("{resource}/.default");
        let grant = [("grant_type", "client_credentials"), ("scope", scope.as_str())];
        Ok(match &self.kind {
            AzureKind::ClientSecret { tenant, client, secret } => Call::form(
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
                let assertion = jwt::sign(key, &header, &claims).ok_or("the Azure key cannot sign")?;
                let kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
                let who = [("client_id", client.as_str()), ("client_assertion_type", kind)];
                Call::form(
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
                let mut call = Call::get(format!("{base}/metadata/identity/oauth2/token?{query}"));
                call.headers.push(("metadata", Secret::new("true".to_owned())));
                call
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
    /// When the key is not base64.
    pub fn new(account: &str, key: &str) -> Result<Self, Unusable> {
        let key = STANDARD.decode(key.trim()).map_err(|_| Unusable("the account key is not base64"))?;
        Ok(Self { account: account.to_owned(), key: Secret::new(key) })
    }

    /// Adds the signature to a request without a body. The headers that begin with `x-ms-` must be there already; the query is
    /// given decoded.
    ///
    /// # Errors
    /// When the key cannot sign.
    pub fn sign(&self, call: &mut Call, path: &str, query: &[(&str, &str)]) -> Result<(), String> {
        let mut own: Vec<(&str, &str)> = call
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
        let text = format!("{}\n{}{headers}/{}{path}{query}", call.method, "\n".repeat(11), self.account);
        let mut mac = Hmac::<Sha256>::new_from_slice(self.key.expose())
            .map_err(|_| "the account key cannot sign".to_owned())?;
        mac.update(text.as_bytes());
        let signature = STANDARD.encode(mac.finalize().into_bytes());
        let header = format!("SharedKey {}:{signature}", self.account);
        call.headers.push(("authorization", Secret::new(header)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The account, key and signature that the storage emulator's users know.
    #[test]
    fn an_account_signs() {
        let key = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
        let key = SharedKey::new("devstoreaccount1", key).expect("a key");
        let mut call =
            Call::get("http://127.0.0.1:10000/devstoreaccount1/c?restype=container&comp=list".to_owned());
        call.headers.push(("x-ms-version", Secret::new("2021-08-06".to_owned())));
        call.headers.push(("x-ms-date", Secret::new("Tue, 17 Nov 2026 02:00:00 GMT".to_owned())));
        key.sign(&mut call, "/devstoreaccount1/c", &[("restype", "container"), ("comp", "list")])
            .expect("signs");
        let header = call.headers.last().expect("a header");
        assert!(header.0 == "authorization" && header.1.expose().starts_with("SharedKey devstoreaccount1:"));
        assert!(!format!("{key:?} {call:?}").contains("SharedKey devstore"));
        assert!(SharedKey::new("a", "no base64!").is_err());
    }
}
