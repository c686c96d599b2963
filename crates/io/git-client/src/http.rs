//! Git over HTTP: one GET for the capabilities of the server, then a POST for each request.
//!
//! The capabilities of a server are cached, so that an unchanged repository costs one request.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use fl_git::Advertisement;
use fl_http::{
    BodyReader, Client, HeaderName, Method, PeerKey, Request, Response, Settings, StatusCode, header,
};

use crate::transport::blocking;
use crate::{Address, Auth, Failure, RemoteOptions, Scheme};

const GIT_PROTOCOL: HeaderName = HeaderName::from_static("git-protocol");
/// Bytes of an error page that are shown.
const MAX_ERROR_BYTES: u64 = 4096;
/// Bytes of a response. Packs and lines have smaller limits of their own.
const MAX_RESPONSE_BYTES: u64 = 1 << 40;
/// Servers whose capabilities are cached.
const CAPABILITIES_CACHE_SIZE: usize = 10_000;

/// Capabilities of protocol v2 servers, by everything that decides who answers. A server that was reached through a redirect is
/// not cached: a redirect is followed again each time.
static CAPABILITIES: LazyLock<Mutex<HashMap<PeerKey, Advertisement>>> = LazyLock::new(Mutex::default);

fn cached(peer: &PeerKey) -> Option<Advertisement> {
    CAPABILITIES.lock().unwrap_or_else(PoisonError::into_inner).get(peer).cloned()
}

fn cache(peer: PeerKey, server: Advertisement) {
    let mut all = CAPABILITIES.lock().unwrap_or_else(PoisonError::into_inner);
    if all.len() >= CAPABILITIES_CACHE_SIZE && !all.contains_key(&peer) {
        all.clear();
    }
    all.insert(peer, server);
}

fn forget(peer: &PeerKey) {
    CAPABILITIES.lock().unwrap_or_else(PoisonError::into_inner).remove(peer);
}

pub(crate) struct HttpSession {
    client: Client,
    /// The URL of the repository in the spec; `base` is another one after a redirect.
    given: String,
    base: String,
    pub(crate) server: Advertisement,
    /// Whether `server` is from the cache and may be stale.
    from_cache: bool,
    settings: Settings,
}

impl HttpSession {
    pub(crate) async fn open(
        address: &Address,
        auth: &Auth,
        options: &RemoteOptions,
    ) -> Result<Self, Failure> {
        let given = address.http_base().unwrap_or_default();
        let settings = settings(address, auth, options);
        let client = Client::new(settings.clone())?;
        if let Some(server) = cached(&client.peer(&given)) {
            let base = given.clone();
            return Ok(Self { client, given, base, server, from_cache: true, settings });
        }
        Self::discover(given, settings).await
    }

    async fn discover(given: String, settings: Settings) -> Result<Self, Failure> {
        let client = Client::new(settings.clone())?;
        let url = format!("{given}/info/refs?service=git-upload-pack");
        let request = Request::get(&url)?.header(GIT_PROTOCOL, "version=2")?;
        let response = client.send(request).await?;
        if !response.status().is_success() {
            return Err(refused(response).await);
        }
        let reached = response.url().as_str();
        let base = reached.split("/info/refs").next().unwrap_or(&given).to_owned();
        let reader = response.reader(MAX_RESPONSE_BYTES);
        let server = blocking(move || Ok(Advertisement::read(reader)?)).await?;
        // The advertisement of the old protocol has the references in it, which change.
        if server.refs().is_none() && base == given {
            cache(client.peer(&given), server.clone());
        }
        let client = client_for(&given, &base, &settings)?;
        Ok(Self { client, given, base, server, from_cache: false, settings })
    }

    pub(crate) async fn ask(&mut self, body: Vec<u8>) -> Result<BodyReader, Failure> {
        let response = match self.post(&body).await {
            Ok(response) if self.from_cache && !response.status().is_success() => {
                // The server may have moved or changed since: discover it again.
                forget(&self.client.peer(&self.given));
                *self = Self::discover(self.given.clone(), self.settings.clone()).await?;
                self.post(&body).await?
            }
            other => other?,
        };
        self.from_cache = false;
        if !response.status().is_success() {
            return Err(refused(response).await);
        }
        Ok(response.reader(MAX_RESPONSE_BYTES))
    }

    async fn post(&self, body: &[u8]) -> Result<Response, Failure> {
        let mut request = Request::new(Method::POST, &format!("{}/git-upload-pack", self.base))?
            .header(header::CONTENT_TYPE, "application/x-git-upload-pack-request")?
            .header(header::ACCEPT, "application/x-git-upload-pack-result")?;
        if self.server.refs().is_none() {
            request = request.header(GIT_PROTOCOL, "version=2")?;
        }
        Ok(self.client.send(request.body(body.to_vec())).await?)
    }
}

fn settings(address: &Address, auth: &Auth, options: &RemoteOptions) -> Settings {
    let mut settings = Settings {
        proxy: options.proxy.clone(),
        timeout: options.timeout,
        addresses: options.addresses.clone(),
        ..Settings::new(options.owner.clone())
    };
    if let Auth::Http { credentials, ca, client_certificate } = auth {
        settings.credentials = credentials.clone();
        // A plain connection has no use for certificates; they need not even be any.
        if address.scheme == Scheme::Https {
            settings.ca.clone_from(ca);
            settings.client_certificate.clone_from(client_certificate);
        }
    }
    settings
}

/// A server we were redirected to does not get the credentials meant for the first one.
fn client_for(given: &str, base: &str, settings: &Settings) -> Result<Client, Failure> {
    let home = match (Address::parse(given), Address::parse(base)) {
        (Ok(given), Ok(base)) => given.same_server(&base),
        _ => false,
    };
    let mut settings = settings.clone();
    if !home {
        settings.credentials = fl_http::Credentials::None;
        settings.client_certificate = None;
    }
    Ok(Client::new(settings)?)
}

/// The error of Flux's Git library for a response that is not a success.
async fn refused(response: Response) -> Failure {
    let (status, url) = (response.status(), response.url().to_string());
    let body = response.bytes(MAX_ERROR_BYTES).await.unwrap_or_default();
    let body = String::from_utf8_lossy(&body).into_owned();
    match status {
        StatusCode::UNAUTHORIZED => Failure::AuthenticationRequired(body),
        StatusCode::FORBIDDEN => Failure::AuthorizationFailed(body),
        StatusCode::NOT_FOUND => Failure::NotFound(body),
        other => Failure::Status { url, code: other.as_u16() },
    }
}
