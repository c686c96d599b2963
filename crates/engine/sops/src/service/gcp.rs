//! Google's KMS.

use fl_types::Secret;
use serde_json::{Value, json};

use super::jwt;
use super::{Call, Endpoints, Network, access_token, decoded, send};
use crate::Error;

const SCOPES: &str =
    "https://www.googleapis.com/auth/cloud-platform https://www.googleapis.com/auth/cloudkms";

/// Who we are to Google.
#[derive(Clone)]
pub struct GcpCredentials(Kind);

#[derive(Clone)]
enum Kind {
    ServiceAccount {
        email: String,
        key_id: String,
        key: Box<rsa::RsaPrivateKey>,
        token_url: String,
    },
    User {
        client_id: String,
        client_secret: Secret<String>,
        refresh_token: Secret<String>,
        token_url: String,
    },
}

impl std::fmt::Debug for GcpCredentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("GcpCredentials(***)")
    }
}

impl GcpCredentials {
    /// Reads the entry `sops.gcp-kms` of a Secret.
    ///
    /// # Errors
    /// When it is no JSON, or credentials of a kind that is not supported.
    pub fn from_json(bytes: &[u8]) -> Result<Self, Error> {
        let bad = Error::Key("the Google credentials cannot be read");
        let fields: Value = serde_json::from_slice(bytes).map_err(|_| bad.clone())?;
        let text = |key: &str| fields[key].as_str().unwrap_or_default().to_owned();
        let token_url = match text("token_uri") {
            url if url.is_empty() => "https://oauth2.googleapis.com/token".to_owned(),
            url => url,
        };
        match fields["type"].as_str() {
            Some("service_account") => {
                let key = jwt::private_key(&text("private_key"))
                    .ok_or(Error::Key("the private_key of the Google credentials cannot be read"))?;
                let (email, key_id) = (text("client_email"), text("private_key_id"));
                Ok(Self(Kind::ServiceAccount { email, key_id, key: Box::new(key), token_url }))
            }
            Some("authorized_user") => Ok(Self(Kind::User {
                client_id: text("client_id"),
                client_secret: Secret::new(text("client_secret")),
                refresh_token: Secret::new(text("refresh_token")),
                token_url,
            })),
            _ => Err(Error::Key(
                "the Google credentials are of a kind that is not supported; use a key of a service account",
            )),
        }
    }

    fn token(&self, network: &dyn Network) -> Result<Secret<String>, String> {
        let call = match &self.0 {
            Kind::ServiceAccount { email, key_id, key, token_url } => {
                let now = network.now();
                let header = json!({"alg": "RS256", "typ": "JWT", "kid": key_id});
                let claims =
                    json!({"iss": email, "scope": SCOPES, "aud": token_url, "iat": now, "exp": now + 3600});
                let assertion = jwt::sign(key, &header, &claims).ok_or("the Google key cannot sign")?;
                let grant = "urn:ietf:params:oauth:grant-type:jwt-bearer";
                Call::form(token_url.clone(), &[("grant_type", grant), ("assertion", &assertion)])
            }
            Kind::User { client_id, client_secret, refresh_token, token_url } => Call::form(
                token_url.clone(),
                &[
                    ("grant_type", "refresh_token"),
                    ("client_id", client_id),
                    ("client_secret", client_secret.expose()),
                    ("refresh_token", refresh_token.expose()),
                ],
            ),
        };
        access_token(&send(network, &call, "Google's token service")?, "Google's token service")
    }

    pub(super) fn decrypt(
        &self,
        network: &dyn Network,
        endpoints: &Endpoints,
        resource: &str,
        encrypted: &str,
    ) -> Result<Secret<Vec<u8>>, String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '/');
        let steps = resource.split('/').collect::<Vec<_>>();
        let named =
            matches!(steps.as_slice(), ["projects", _, "locations", _, "keyRings", _, "cryptoKeys", _, ..]);
        if !named || !resource.chars().all(plain) || steps.iter().any(|s| s.is_empty() || *s == "..") {
            return Err("the resource of the key is not valid".to_owned());
        }
        let token = self.token(network)?;
        let base = endpoints.gcp_kms.as_deref().unwrap_or("https://cloudkms.googleapis.com");
        let url = format!("{}/v1/{resource}:decrypt", base.trim_end_matches('/'));
        let call = Call::json(url, &json!({"ciphertext": encrypted})).bearer(&token);
        let answer = send(network, &call, "Google's KMS")?;
        decoded(answer["plaintext"].as_str(), "Google's KMS")
    }
}
