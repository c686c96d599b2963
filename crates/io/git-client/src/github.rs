//! GitHub Apps: a signed JSON web token is exchanged for a token of an installation.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fl_http::{Client, ClientCertificate, Credentials, Method, Owner, Proxy, Request, Settings, header};
use fl_types::Secret;
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject;
use serde_json::{Value, json};

/// Bytes of a response.
const MAX_RESPONSE_BYTES: u64 = 8 << 20;
/// Pages of installations that are searched for an owner.
const MAX_PAGES: usize = 100;

/// An app, as the keys `githubApp…` of a Secret describe it.
#[derive(Clone, Debug)]
pub struct GithubApp {
    id: i64,
    installation: Installation,
    key: Secret<Vec<u8>>,
    base: String,
    ca: Option<Vec<u8>>,
    client_certificate: Option<ClientCertificate>,
}

#[derive(Clone, Debug)]
enum Installation {
    Id(i64),
    Owner(String),
}

/// Why there is no token. The texts follow `failed to configure authentication options: `.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GithubAppError {
    #[error("app ID must be provided to use github app authentication")]
    NoId,
    #[error("app installation owner or ID must be provided to use github app authentication")]
    NoInstallation,
    #[error("only one of app installation owner or ID must be provided to use github app authentication")]
    TwoInstallations,
    #[error("private key must be provided to use github app authentication")]
    NoKey,
    #[error("could not parse private key: {0}")]
    Key(&'static str),
    #[error("installation for owner '{0}' not found")]
    NoSuchOwner(String),
    #[error("{0}")]
    Http(#[from] fl_http::Error),
    #[error("{method} {url}: {status} {message}")]
    Refused { method: String, url: String, status: u16, message: String },
}

impl GithubApp {
    /// Whether a Secret describes an app.
    pub fn is_in(data: &BTreeMap<String, Vec<u8>>) -> bool {
        data.get("githubAppID").is_some_and(|v| !v.is_empty())
    }

    pub fn from_secret(data: &BTreeMap<String, Vec<u8>>) -> Result<Self, GithubAppError> {
        let text = |key: &str| {
            data.get(key).map(|v| String::from_utf8_lossy(v).trim().to_owned()).filter(|v| !v.is_empty())
        };
        let id = text("githubAppID").and_then(|v| v.parse().ok()).ok_or(GithubAppError::NoId)?;
        let by_id = text("githubAppInstallationID").and_then(|v| v.parse().ok());
        let installation = match (by_id, text("githubAppInstallationOwner")) {
            (Some(_), Some(_)) => return Err(GithubAppError::TwoInstallations),
            (Some(id), None) => Installation::Id(id),
            (None, Some(owner)) => Installation::Owner(owner),
            (None, None) => return Err(GithubAppError::NoInstallation),
        };
        let key = data.get("githubAppPrivateKey").filter(|k| !k.is_empty()).ok_or(GithubAppError::NoKey)?;
        key_pair(key)?;
        let pair = (data.get("tls.crt"), data.get("tls.key"));
        let client_certificate = match pair {
            (Some(chain), Some(key)) => {
                Some(ClientCertificate { chain: chain.clone(), key: Secret::new(key.clone()) })
            }
            _ => None,
        };
        Ok(Self {
            id,
            installation,
            key: Secret::new(key.clone()),
            base: text("githubAppBaseURL")
                .map_or_else(|| "https://api.github.com".to_owned(), |b| b.trim_end_matches('/').to_owned()),
            ca: data.get("ca.crt").or_else(|| data.get("caFile")).cloned(),
            client_certificate,
        })
    }

    /// Credentials for cloning, good for about an hour.
    pub async fn credentials(
        &self,
        owner: Owner,
        proxy: Option<Proxy>,
        timeout: Duration,
    ) -> Result<Credentials, GithubAppError> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let client = Client::new(Settings {
            ca: self.ca.clone(),
            client_certificate: self.client_certificate.clone(),
            proxy,
            credentials: Credentials::Bearer(Secret::new(self.statement(now)?)),
            timeout,
            ..Settings::new(owner)
        })?;
        let installation = match &self.installation {
            Installation::Id(id) => *id,
            Installation::Owner(owner) => self.find(&client, owner).await?,
        };
        let url = format!("{}/app/installations/{installation}/access_tokens", self.base);
        let answer = call(&client, Method::POST, &url).await?;
        let token = answer["token"].as_str().unwrap_or_default().to_owned();
        Ok(Credentials::Basic { username: "x-access-token".to_owned(), password: Secret::new(token) })
    }

    async fn find(&self, client: &Client, owner: &str) -> Result<i64, GithubAppError> {
        for page in 1..=MAX_PAGES {
            let url = format!("{}/app/installations?per_page=100&page={page}", self.base);
            let answer = call(client, Method::GET, &url).await?;
            let found = answer.as_array().map(Vec::as_slice).unwrap_or_default();
            let ours = found.iter().find(|i| i["account"]["login"].as_str() == Some(owner));
            if let Some(id) = ours.and_then(|i| i["id"].as_i64()) {
                return Ok(id);
            }
            if found.len() < 100 {
                break;
            }
        }
        Err(GithubAppError::NoSuchOwner(owner.to_owned()))
    }

    /// A JSON web token of the app, valid for two minutes. It begins in the past, because clocks differ.
    fn statement(&self, now: u64) -> Result<String, GithubAppError> {
        let begin = now.saturating_sub(30);
        let head = URL_SAFE_NO_PAD.encode(json!({"alg": "RS256", "typ": "JWT"}).to_string());
        let claims = json!({"iat": begin, "exp": begin + 120, "iss": self.id.to_string()});
        let text = format!("{head}.{}", URL_SAFE_NO_PAD.encode(claims.to_string()));
        let key = key_pair(self.key.expose())?;
        let mut signature = vec![0; key.public().modulus_len()];
        key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text.as_bytes(), &mut signature)
            .map_err(|_| GithubAppError::Key("it cannot sign"))?;
        Ok(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}

fn key_pair(pem: &[u8]) -> Result<RsaKeyPair, GithubAppError> {
    let key = PrivateKeyDer::from_pem_slice(pem).map_err(|_| GithubAppError::Key("it is not a PEM key"))?;
    let pair = match &key {
        PrivateKeyDer::Pkcs1(der) => RsaKeyPair::from_der(der.secret_pkcs1_der()),
        PrivateKeyDer::Pkcs8(der) => RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()),
        _ => return Err(GithubAppError::Key("it is not an RSA key")),
    };
    pair.map_err(|_| GithubAppError::Key("it is not a usable RSA key"))
}

async fn call(client: &Client, method: Method, url: &str) -> Result<Value, GithubAppError> {
    let request = Request::new(method.clone(), url)?.header(header::ACCEPT, "application/vnd.github+json")?;
    let response = client.send(request).await?;
    let status = response.status();
    let body = response.bytes(MAX_RESPONSE_BYTES).await?;
    let value: Value = serde_json::from_slice(&body).unwrap_or_default();
    if status.is_success() {
        return Ok(value);
    }
    let message = value["message"].as_str().unwrap_or_default().to_owned();
    let url = url.split('?').next().unwrap_or_default().to_owned();
    Err(GithubAppError::Refused { method: method.to_string(), url, status: status.as_u16(), message })
}
