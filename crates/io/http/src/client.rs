//! Requests and answers.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use bytes::Bytes;
use futures::StreamExt;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use tokio::sync::mpsc;
use url::Url;

use crate::address_policy::{self, Guard, Lookup};
use crate::error::{cause, problem, shown, verb};
use crate::{
    AddressPolicy, BodyReader, Credentials, Error, HeldBytes, PeerKey, Route, Settings, connection_pool,
    retry_after, tls,
};

const USER_AGENT: &str = concat!("fluorite/", env!("CARGO_PKG_VERSION"));
const REDIRECTS: usize = 10;

/// Makes requests with one set of certificates, proxy and credentials.
#[derive(Clone, Debug)]
pub struct Client {
    inner: reqwest::Client,
    route: Route,
    credentials: Credentials,
    timeout: Duration,
    addresses: AddressPolicy,
    /// Whom connections are made through, for errors.
    proxy: Option<String>,
}

/// A request to be sent.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: Method,
    pub url: Url,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Request {
    /// A request without a body. The address must be absolute, `http` or `https`, with a host.
    pub fn new(method: Method, url: &str) -> Result<Self, Error> {
        let bad = |problem: &str| Error::Address {
            url: Url::parse(url).map_or_else(|_| "…".to_owned(), |u| shown(&u)),
            problem: problem.to_owned(),
        };
        let parsed = Url::parse(url).map_err(|e| bad(&e.to_string()))?;
        if !matches!(parsed.scheme(), "http" | "https") {
            return Err(bad("only http and https are fetched"));
        }
        if parsed.host_str().is_none_or(str::is_empty) {
            return Err(bad("it has no host"));
        }
        Ok(Self { method, url: parsed, headers: HeaderMap::new(), body: Bytes::new() })
    }

    pub fn get(url: &str) -> Result<Self, Error> {
        Self::new(Method::GET, url)
    }

    /// Adds a header. A value that could end the line is refused.
    pub fn header(mut self, name: HeaderName, value: &str) -> Result<Self, Error> {
        let value = HeaderValue::from_str(value).map_err(|_| Error::Settings {
            what: "header",
            problem: format!("a value for {name} has characters that no header may have"),
        })?;
        self.headers.insert(name, value);
        Ok(self)
    }

    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }
}

impl Client {
    /// Clients with the same owner, certificates and proxy share their connections, whatever their credentials.
    pub fn new(settings: Settings) -> Result<Self, Error> {
        let route = Route::of(&settings);
        let inner = connection_pool::pool(&route, &settings, |settings| {
            Self::build(settings, address_policy::system)
        })?;
        Ok(Self::over(inner, settings))
    }

    fn over(inner: reqwest::Client, settings: Settings) -> Self {
        let route = Route::of(&settings);
        let Settings { credentials, timeout, addresses, proxy, .. } = settings;
        Self { inner, route, credentials, timeout, addresses, proxy: proxy.map(|p| p.address) }
    }

    /// The key under which something about the server at `url` may be kept beyond a request.
    #[must_use]
    pub fn peer(&self, url: &str) -> PeerKey {
        PeerKey::new(&self.route, &self.credentials, url)
    }

    fn build(settings: &Settings, lookup: Lookup) -> Result<reqwest::Client, Error> {
        let bad = |what, problem: String| Error::Settings { what, problem };
        let mut builder = reqwest::Client::builder()
            .tls_backend_preconfigured(tls::config(settings)?)
            .user_agent(USER_AGENT)
            .pool_idle_timeout(Duration::from_secs(30))
            // Followed here, where it is known which headers may go along.
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy();
        if !settings.addresses.is_open() {
            builder = builder.dns_resolver(Arc::new(Guard::new(&settings.addresses, lookup)));
        }
        if let Some(proxy) = &settings.proxy {
            let mut configured = reqwest::Proxy::all(&proxy.address).map_err(|e| bad("proxy", cause(&e)))?;
            if !proxy.username.is_empty() {
                configured = configured.basic_auth(&proxy.username, proxy.password.expose());
            }
            builder = builder.proxy(configured);
        }
        builder.build().map_err(|e| bad("connection settings", cause(&e)))
    }

    /// Sends a request and follows redirects. Any status is an answer; only a missing answer is an error.
    pub async fn send(&self, request: Request) -> Result<Response, Error> {
        let origin = request.url.clone();
        let mut request = request;
        for _ in 0..=REDIRECTS {
            if let Some(wait) = retry_after::wait(&self.route, &request.url) {
                return Err(Error::RetryAfter { url: shown(&request.url), wait });
            }
            let at_home = same_host(&request.url, &origin);
            let response = self.send_once(&request, at_home).await?;
            retry_after::note(&self.route, &request.url, response.status(), response.headers());
            let Some(next) = redirect(&request, &response)? else {
                return Ok(Response { inner: response, url: request.url });
            };
            if response.status() == StatusCode::SEE_OTHER {
                request.method = Method::GET;
                request.body = Bytes::new();
            }
            if !same_host(&next, &origin) {
                request.headers.remove(AUTHORIZATION);
            }
            request.url = next;
        }
        Err(Error::Redirect { url: shown(&origin), problem: format!("more than {REDIRECTS} times") })
    }

    /// Sends a request without following redirects, which are returned as responses. For requests whose headers or body are
    /// secrets.
    pub async fn send_direct(&self, request: Request) -> Result<Response, Error> {
        if let Some(wait) = retry_after::wait(&self.route, &request.url) {
            return Err(Error::RetryAfter { url: shown(&request.url), wait });
        }
        let response = self.send_once(&request, true).await?;
        retry_after::note(&self.route, &request.url, response.status(), response.headers());
        Ok(Response { inner: response, url: request.url })
    }

    async fn send_once(&self, request: &Request, at_home: bool) -> Result<reqwest::Response, Error> {
        self.addresses.check_host(&request.url).map_err(|forbidden| Error::Request {
            method: verb(&request.method),
            url: shown(&request.url),
            problem: format!("dial tcp: {forbidden}"),
        })?;
        let mut headers = request.headers.clone();
        if at_home
            && !headers.contains_key(AUTHORIZATION)
            && let Some(value) = authorization(&self.credentials)?
        {
            headers.insert(AUTHORIZATION, value);
        }
        let sent = self
            .inner
            .request(request.method.clone(), request.url.clone())
            .timeout(self.timeout)
            .headers(headers)
            .body(request.body.clone())
            .send();
        sent.await.map_err(|e| Error::Request {
            method: verb(&request.method),
            url: shown(&request.url),
            problem: problem(&e, self.proxy.as_deref()),
        })
    }
}

fn authorization(credentials: &Credentials) -> Result<Option<HeaderValue>, Error> {
    let text = match credentials {
        Credentials::None => return Ok(None),
        Credentials::Bearer(token) => format!("Bearer {}", token.expose()),
        Credentials::Basic { username, password } => {
            let pair = format!("{username}:{}", password.expose());
            format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(pair))
        }
    };
    let mut value = HeaderValue::from_str(&text).map_err(|_| Error::Settings {
        what: "token",
        problem: "it has characters that no header may have".to_owned(),
    })?;
    value.set_sensitive(true);
    Ok(Some(value))
}

fn same_host(a: &Url, b: &Url) -> bool {
    (a.scheme(), a.host_str(), a.port_or_known_default())
        == (b.scheme(), b.host_str(), b.port_or_known_default())
}

/// Where an answer redirects to, when it does.
fn redirect(request: &Request, response: &reqwest::Response) -> Result<Option<Url>, Error> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(target) = response.headers().get(http::header::LOCATION) else { return Ok(None) };
    let bad = |problem: &str| Error::Redirect { url: shown(&request.url), problem: problem.to_owned() };
    let target = target.to_str().map_err(|_| bad("to something that is no address"))?;
    let next = request.url.join(target).map_err(|_| bad("to something that is no address"))?;
    match (request.url.scheme(), next.scheme()) {
        ("https", "http") => Err(bad("from https to http, which is refused")),
        (_, "http" | "https") => Ok(Some(next)),
        _ => Err(bad("to an address that is neither http nor https")),
    }
}

/// An answer whose body has not been read yet.
#[derive(Debug)]
pub struct Response {
    inner: reqwest::Response,
    url: Url,
}

impl Response {
    pub fn status(&self) -> StatusCode {
        self.inner.status()
    }

    pub fn headers(&self) -> &HeaderMap {
        self.inner.headers()
    }

    /// Where the answer came from, after redirects.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// The next piece of the body, for those who read it as it comes and keep count themselves.
    pub async fn piece(&mut self) -> Result<Option<Bytes>, Error> {
        self.inner.chunk().await.map_err(|e| Error::Request {
            method: "Get".to_owned(),
            url: shown(&self.url),
            problem: problem(&e, None),
        })
    }

    /// The whole body, at most `limit` bytes.
    pub async fn bytes(self, limit: u64) -> Result<Bytes, Error> {
        self.read_all(limit, None).await
    }

    /// The whole body, at most `limit` bytes, which `held` counts.
    pub async fn bytes_held(self, limit: u64, held: &mut HeldBytes) -> Result<Bytes, Error> {
        self.read_all(limit, Some(held)).await
    }

    async fn read_all(self, limit: u64, mut held: Option<&mut HeldBytes>) -> Result<Bytes, Error> {
        let url = shown(&self.url);
        let mut pieces = self.inner.bytes_stream();
        let mut all = Vec::new();
        while let Some(piece) = pieces.next().await {
            let piece = piece.map_err(|e| Error::Request {
                method: "Get".to_owned(),
                url: url.clone(),
                problem: problem(&e, None),
            })?;
            if (all.len() + piece.len()) as u64 > limit {
                return Err(Error::TooLarge { url, limit });
            }
            if let Some(held) = &mut held {
                held.add(piece.len() as u64).await?;
            }
            all.extend_from_slice(&piece);
        }
        Ok(all.into())
    }

    /// The body as a reader for the blocking pool; more than `limit` bytes end in an error.
    pub fn reader(self, limit: u64) -> BodyReader {
        let (sender, receiver) = mpsc::channel(4);
        let url = shown(&self.url);
        tokio::spawn(async move {
            let mut pieces = self.inner.bytes_stream();
            let mut seen = 0u64;
            while let Some(piece) = pieces.next().await {
                let piece = match piece {
                    Ok(piece) => {
                        seen += piece.len() as u64;
                        if seen > limit {
                            Err(io::Error::other(Error::TooLarge { url: url.clone(), limit }))
                        } else {
                            Ok(piece)
                        }
                    }
                    Err(e) => Err(io::Error::other(cause(&e))),
                };
                let last = piece.is_err();
                if sender.send(piece).await.is_err() || last {
                    return;
                }
            }
        });
        BodyReader::new(receiver)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, SocketAddr};
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;
    use crate::Owner;

    const ALLOWED: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

    /// Counts its connections and answers all of them with the same text.
    async fn server(ip: Ipv4Addr, port: u16, answer: String) -> (u16, Arc<AtomicUsize>) {
        let listener = TcpListener::bind((ip, port)).await.expect("a port");
        let (port, seen) = (listener.local_addr().expect("an address").port(), Arc::new(AtomicUsize::new(0)));
        let count = seen.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                let _ = stream.read(&mut [0; 4096]).await;
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        (port, seen)
    }

    fn redirect_to(url: &str) -> String {
        format!("HTTP/1.1 302 Found\r\nLocation: {url}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    }

    /// The first answer is the allowed server, all further ones are this machine: DNS rebinding.
    fn rebinding(
        _name: String,
    ) -> std::pin::Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send>> {
        static ASKED: Mutex<usize> = Mutex::new(0);
        let mut asked = ASKED.lock().expect("not poisoned");
        *asked += 1;
        let ip: IpAddr = if *asked == 1 { ALLOWED.into() } else { Ipv4Addr::LOCALHOST.into() };
        Box::pin(async move { Ok(vec![SocketAddr::from((ip, 0))]) })
    }

    fn guarded() -> Settings {
        let allowed = [ALLOWED.to_string().parse().expect("a network")];
        Settings { addresses: AddressPolicy::cluster().allow(allowed), ..Settings::new(Owner::engine()) }
    }

    /// C03: a name that resolves to something else the second time leads nowhere.
    #[tokio::test]
    async fn names_are_checked_at_every_connection() {
        let (port, seen) = server(ALLOWED, 0, redirect_to("/again")).await;
        let (_, forbidden) = server(Ipv4Addr::LOCALHOST, port, redirect_to("/again")).await;
        let inner = Client::build(&guarded(), rebinding).expect("a client");
        let client = Client::over(inner, guarded());
        let request = Request::get(&format!("http://rebound.example:{port}/")).expect("an address");
        let error = client.send(request).await.expect_err("refused").to_string();
        assert!(error.contains("127.0.0.1 are refused: it is a loopback address"), "{error}");
        assert_eq!((seen.load(Ordering::SeqCst), forbidden.load(Ordering::SeqCst)), (1, 0));
    }

    /// C03: addresses and names of this machine, at first and through a redirect.
    #[tokio::test]
    async fn forbidden_addresses_get_no_request() {
        let (port, forbidden) = server(Ipv4Addr::LOCALHOST, 0, redirect_to("/")).await;
        let client = Client::new(guarded()).expect("a client");
        let hosts =
            ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "0.0.0.0", "[::ffff:127.0.0.1]", "[::1]"];
        for host in hosts {
            let url = format!("http://{host}:{port}/");
            let direct = client.send(Request::get(&url).expect("an address")).await;
            let (start, seen) = server(ALLOWED, 0, redirect_to(&url)).await;
            let start = Request::get(&format!("http://{ALLOWED}:{start}/")).expect("an address");
            let redirected = client.send(start).await;
            for refused in [direct, redirected] {
                let error = refused.expect_err(host).to_string();
                assert!(error.contains("are refused: it is"), "{host}: {error}");
            }
            assert_eq!(seen.load(Ordering::SeqCst), 1, "{host}");
        }
        assert_eq!(forbidden.load(Ordering::SeqCst), 0);
        // Connections of clients that may go anywhere are not lent to those that may not.
        let open = Client::new(Settings::new(Owner::engine())).expect("a client");
        let _ =
            open.send_direct(Request::get(&format!("http://127.0.0.1:{port}/")).expect("an address")).await;
        assert_eq!(forbidden.load(Ordering::SeqCst), 1);
        let again = Request::get(&format!("http://127.0.0.1:{port}/")).expect("an address");
        assert!(client.send(again).await.is_err());
        assert_eq!(forbidden.load(Ordering::SeqCst), 1);
    }
}
