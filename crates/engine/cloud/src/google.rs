//! Google tokens.

use fl_types::Secret;
use serde_json::{Value, json};

use crate::{CloudError, CloudRequest, CredentialsError, jwt};

/// Google credentials.
#[derive(Clone)]
pub struct GoogleCredentials(Kind);

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

impl std::fmt::Debug for GoogleCredentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("GoogleCredentials(***)")
    }
}

impl GoogleCredentials {
    /// Parses a key file.
    ///
    /// # Errors
    /// Invalid JSON, or an unsupported type of credentials.
    pub fn from_json(bytes: &[u8]) -> Result<Self, CredentialsError> {
        let bad = CredentialsError("the Google credentials cannot be read");
        let fields: Value = serde_json::from_slice(bytes).map_err(|_| bad)?;
        let text = |key: &str| fields[key].as_str().unwrap_or_default().to_owned();
        let token_url = match text("token_uri") {
            url if url.is_empty() => "https://oauth2.googleapis.com/token".to_owned(),
            url => url,
        };
        match fields["type"].as_str() {
            Some("service_account") => {
                let key = jwt::private_key(&text("private_key"))
                    .ok_or(CredentialsError("the private_key of the Google credentials cannot be read"))?;
                let (email, key_id) = (text("client_email"), text("private_key_id"));
                Ok(Self(Kind::ServiceAccount { email, key_id, key: Box::new(key), token_url }))
            }
            Some("authorized_user") => Ok(Self(Kind::User {
                client_id: text("client_id"),
                client_secret: Secret::new(text("client_secret")),
                refresh_token: Secret::new(text("refresh_token")),
                token_url,
            })),
            _ => Err(CredentialsError(
                "the Google credentials are of a kind that is not supported; use a key of a service account",
            )),
        }
    }

    /// The request for a token with `scopes`. `now` is the Unix time in seconds.
    ///
    /// # Errors
    /// The key cannot sign.
    pub fn token_request(&self, scopes: &str, now: i64) -> Result<CloudRequest, CloudError> {
        Ok(match &self.0 {
            Kind::ServiceAccount { email, key_id, key, token_url } => {
                let header = json!({"alg": "RS256", "typ": "JWT", "kid": key_id});
                let claims =
                    json!({"iss": email, "scope": scopes, "aud": token_url, "iat": now, "exp": now + 3600});
                let assertion =
                    jwt::sign(key, &header, &claims).ok_or(CloudError::CannotSign("the Google key"))?;
                let grant = "urn:ietf:params:oauth:grant-type:jwt-bearer";
                CloudRequest::form(token_url.clone(), &[("grant_type", grant), ("assertion", &assertion)])
            }
            Kind::User { client_id, client_secret, refresh_token, token_url } => CloudRequest::form(
                token_url.clone(),
                &[
                    ("grant_type", "refresh_token"),
                    ("client_id", client_id),
                    ("client_secret", client_secret.expose()),
                    ("refresh_token", refresh_token.expose()),
                ],
            ),
        })
    }
}
