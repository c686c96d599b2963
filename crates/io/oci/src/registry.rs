//! Requests to a registry: which scheme it speaks, which token it wants.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use fl_http::{
    Client, ClientCertificate, Credentials, HeaderMap, HeaderValue, Method, Owner, Proxy, Request, Response,
    Settings, StatusCode, header,
};
use fl_types::Secret;
use serde_json::Value;
use url::Url;

use crate::{Challenge, Error, Keychain, Repository, parse_challenges};

/// Bytes of a response that is not a blob.
pub(crate) const MAX_RESPONSE_BYTES: u64 = 8 << 20;
const ERROR_PAGE: u64 = 16 << 10;

/// How registries are reached.
#[derive(Clone, Debug)]
pub struct RegistryOptions {
    /// On whose behalf registries are used.
    pub owner: Owner,
    pub keychain: Keychain,
    /// Speak plain HTTP.
    pub insecure: bool,
    pub ca: Option<Vec<u8>>,
    pub client_certificate: Option<ClientCertificate>,
    pub proxy: Option<Proxy>,
    pub timeout: Duration,
}

impl RegistryOptions {
    #[must_use]
    pub fn new(owner: Owner) -> Self {
        Self {
            owner,
            keychain: Keychain::anonymous(),
            insecure: false,
            ca: None,
            client_certificate: None,
            proxy: None,
            timeout: Duration::from_secs(60),
        }
    }
}

/// A client with one set of certificates and logins. Cloning is cheap; clones share tokens.
#[derive(Clone, Debug)]
pub struct Registry {
    client: Client,
    keychain: Keychain,
    insecure: bool,
    /// What a registry wants to see, by host and scope.
    access: Arc<Mutex<HashMap<String, Secret<String>>>>,
    /// Scheme of hosts that may be without TLS. Kept for this client only: another one may have a proxy or certificates with
    /// which the answer differs.
    schemes: Arc<Mutex<HashMap<String, &'static str>>>,
}

impl Registry {
    pub fn new(options: RegistryOptions) -> Result<Self, Error> {
        let client = Client::new(Settings {
            ca: options.ca,
            client_certificate: options.client_certificate,
            proxy: options.proxy,
            timeout: options.timeout,
            ..Settings::new(options.owner)
        })?;
        Ok(Self {
            client,
            keychain: options.keychain,
            insecure: options.insecure,
            access: Arc::default(),
            schemes: Arc::default(),
        })
    }

    /// Sends a request for a path below `/v2/<repository>/`, with a token when the registry requires one.
    pub(crate) async fn call(
        &self,
        repository: &Repository,
        method: Method,
        path: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response, Error> {
        let scheme = self.scheme(repository).await?;
        let url = format!("{scheme}://{}/v2/{}/{path}", host(repository), repository.name());
        self.call_url(repository, method, &url, headers, body).await
    }

    /// The same for an address the registry gave us, such as a page or an upload; it must be on the same host.
    pub(crate) async fn call_url(
        &self,
        repository: &Repository,
        method: Method,
        url: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response, Error> {
        let actions = if matches!(method, Method::GET | Method::HEAD) { "pull" } else { "pull,push" };
        let key = format!("{repository} {actions}");
        let known = self.access.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        let response = self.send(method.clone(), url, &headers, &body, known.as_ref()).await?;
        if response.status() != StatusCode::UNAUTHORIZED {
            return accepted(method, response).await;
        }
        let Some(access) = self.log_in(repository, actions, &response).await? else {
            return accepted(method, response).await;
        };
        self.access.lock().unwrap_or_else(PoisonError::into_inner).insert(key, access.clone());
        let response = self.send(method.clone(), url, &headers, &body, Some(&access)).await?;
        accepted(method, response).await
    }

    async fn send(
        &self,
        method: Method,
        url: &str,
        headers: &HeaderMap,
        body: &Bytes,
        access: Option<&Secret<String>>,
    ) -> Result<Response, Error> {
        let mut request = Request::new(method, url)?.body(body.clone());
        request.headers.clone_from(headers);
        if let Some(access) = access {
            request = request.header(header::AUTHORIZATION, access.expose())?;
            if let Some(value) = request.headers.get_mut(header::AUTHORIZATION) {
                value.set_sensitive(true);
            }
        }
        Ok(self.client.send(request).await?)
    }

    /// The value of the `Authorization` header for a challenge; `None` without credentials.
    async fn log_in(
        &self,
        repository: &Repository,
        actions: &str,
        refusal: &Response,
    ) -> Result<Option<Secret<String>>, Error> {
        let text = |v: &HeaderValue| v.to_str().ok().map(parse_challenges);
        let challenges: Vec<Challenge> =
            refusal.headers().get_all(header::WWW_AUTHENTICATE).iter().filter_map(text).flatten().collect();
        let credentials = self.keychain.credentials(repository);
        if let Credentials::Bearer(token) = &credentials {
            return Ok(Some(Secret::new(format!("Bearer {}", token.expose()))));
        }
        let bearer = challenges.iter().find_map(|c| match c {
            Challenge::Bearer { realm, service, scope } => Some((realm, service, scope)),
            Challenge::Basic => None,
        });
        if let Some((realm, service, scope)) = bearer {
            let scope =
                scope.clone().unwrap_or_else(|| format!("repository:{}:{actions}", repository.name()));
            let plain = refusal.url().scheme() == "http";
            let token = self.token(realm, service.as_deref(), &scope, &credentials, plain).await?;
            return Ok(Some(Secret::new(format!("Bearer {}", token.expose()))));
        }
        match credentials {
            Credentials::Basic { username, password } if challenges.contains(&Challenge::Basic) => {
                let pair = STANDARD.encode(format!("{username}:{}", password.expose()));
                Ok(Some(Secret::new(format!("Basic {pair}"))))
            }
            _ => Ok(None),
        }
    }

    /// Asks the token service. A registry that is spoken to with TLS cannot send our password over plain HTTP.
    async fn token(
        &self,
        realm: &str,
        service: Option<&str>,
        scope: &str,
        credentials: &Credentials,
        plain: bool,
    ) -> Result<Secret<String>, Error> {
        let bad = |problem: &str| Error::Malformed {
            url: realm.chars().take(200).collect(),
            problem: problem.to_owned(),
        };
        let mut url = Url::parse(realm).map_err(|_| bad("the address of the token service is not a URL"))?;
        if url.scheme() == "http" && !plain {
            return Err(bad("the token service is without TLS, though the registry is not"));
        }
        {
            let mut query = url.query_pairs_mut();
            query.append_pair("scope", scope);
            if let Some(service) = service {
                query.append_pair("service", service);
            }
        }
        let mut request = Request::get(url.as_str())?;
        if let Credentials::Basic { username, password } = credentials {
            let pair = STANDARD.encode(format!("{username}:{}", password.expose()));
            request = request.header(header::AUTHORIZATION, &format!("Basic {pair}"))?;
        }
        let response = accepted(Method::GET, self.client.send(request).await?).await?;
        let answer: Value = serde_json::from_slice(&response.bytes(MAX_RESPONSE_BYTES).await?)
            .map_err(|_| bad("the token service did not answer with JSON"))?;
        let token = answer["token"].as_str().or_else(|| answer["access_token"].as_str());
        match token.filter(|t| !t.is_empty()) {
            Some(token) => Ok(Secret::new(token.to_owned())),
            None => Err(bad("no token in bearer response")),
        }
    }

    /// The scheme of a host that may be without TLS: HTTPS is tried first.
    async fn scheme(&self, repository: &Repository) -> Result<&'static str, Error> {
        if self.insecure {
            return Ok("http");
        }
        if !repository.may_be_plain() {
            return Ok("https");
        }
        let name = repository.registry().to_owned();
        let known = self.schemes.lock().unwrap_or_else(PoisonError::into_inner).get(&name).copied();
        if let Some(scheme) = known {
            return Ok(scheme);
        }
        let ping = |scheme: &str| Request::get(&format!("{scheme}://{name}/v2/"));
        let scheme = match self.client.send(ping("https")?).await {
            Ok(_) => "https",
            Err(_) => {
                self.client.send(ping("http")?).await?;
                "http"
            }
        };
        self.schemes.lock().unwrap_or_else(PoisonError::into_inner).insert(name, scheme);
        Ok(scheme)
    }
}

/// Docker's registry has another name for its API.
fn host(repository: &Repository) -> &str {
    match repository.registry() {
        "docker.io" => "index.docker.io",
        other => other,
    }
}

/// The response if it is a success, or the registry's message as an error.
async fn accepted(method: Method, response: Response) -> Result<Response, Error> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let url = shown(response.url());
    let body = response.bytes(ERROR_PAGE).await.unwrap_or_default();
    Err(Error::Refused {
        method: method.to_string(),
        url,
        status: status.as_u16(),
        text: error_text(status, &body),
    })
}

/// A URL without query and credentials; the query of an upload contains its state.
fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    let _ = url.set_password(None);
    let _ = url.set_username("");
    url.into()
}

/// `CODE: message; detail` of each error the registry lists.
fn error_text(status: StatusCode, body: &[u8]) -> String {
    let parsed: Value = serde_json::from_slice(body).unwrap_or_default();
    let errors = parsed["errors"].as_array().map(Vec::as_slice).unwrap_or_default();
    let word = |error: &Value| {
        let code = error["code"].as_str().unwrap_or("UNKNOWN");
        let message = error["message"].as_str().unwrap_or_default();
        match &error["detail"] {
            Value::Null => format!("{code}: {message}"),
            detail => format!("{code}: {message}; {}", fl_go::plain(detail)),
        }
    };
    let listed: Vec<String> = errors.iter().take(10).map(word).collect();
    match listed.as_slice() {
        [] => {}
        [only] => return only.clone(),
        several => return format!("multiple errors returned: {}", several.join("; ")),
    }
    let reason = status.canonical_reason().unwrap_or_default();
    let text = String::from_utf8_lossy(body);
    match text.trim() {
        "" => format!("unexpected status code {} {reason}", status.as_u16()),
        text => format!("unexpected status code {} {reason}: {text}", status.as_u16()),
    }
}
