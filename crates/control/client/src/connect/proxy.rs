//! Proxies between the engine and an API server, chosen as Go's client chooses them.
//!
//! A `proxy-url` in the kubeconfig always counts. Otherwise `HTTPS_PROXY` or `HTTP_PROXY` (by the scheme of the server's address)
//! is used unless `NO_PROXY` covers the server. Addresses of this machine are never reached through a proxy of the environment.
//!
//! `kube` itself compares `NO_PROXY` with the address of the proxy instead of the server, and only when it is built with a feature
//! that also refuses lists Go accepts; so the choice and the tunnel are made here.

use std::net::IpAddr;

use base64::Engine as _;
use http::{HeaderValue, Uri};
use hyper_util::client::legacy::Client as HyperClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ConfigExt as _};
use tower::{BoxError, ServiceBuilder};

/// Why no client can be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(super) enum ProxyError {
    #[error("the proxy URL {0:?} cannot be used: only http, https and socks5 proxies are supported")]
    Unsupported(String),
    #[error(transparent)]
    Client(#[from] kube::Error),
}

/// A client for this configuration, through the proxy that the kubeconfig or the environment names for its server.
///
/// # Errors
/// The proxy, the certificates or the credentials cannot be used.
pub(super) fn client(mut config: kube::Config) -> Result<kube::Client, ProxyError> {
    super::crypto();
    let variable = |name: &str| std::env::var(name).ok();
    let Some(proxy) = choose(&config, &variable)? else {
        config.proxy_url = None;
        return Ok(kube::Client::try_from(config)?);
    };
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_connect_timeout(config.connect_timeout);
    let address = without_user(&proxy);
    match proxy.scheme_str() {
        Some("http") => {
            let tunnel = authorized(Tunnel::new(address, tcp), &proxy);
            connect(&config, config.rustls_https_connector_with_connector(tunnel)?)
        }
        Some("https") => {
            // The tunnel to the server is inside a TLS connection to the proxy, which the system's authorities vouch for.
            let own = kube::Config::new(proxy.clone());
            let tls = own.rustls_https_connector_with_connector(tcp)?;
            let tunnel = authorized(Tunnel::new(address, tls), &proxy);
            connect(&config, config.rustls_https_connector_with_connector(tunnel)?)
        }
        _ => {
            let mut socks = SocksV5::new(address, tcp);
            if let Some((name, password)) = user(&proxy) {
                socks = socks.with_auth(name, password);
            }
            connect(&config, config.rustls_https_connector_with_connector(socks)?)
        }
    }
}

fn connect<C>(config: &kube::Config, connector: C) -> Result<kube::Client, ProxyError>
where
    C: hyper_util::client::legacy::connect::Connect + Clone + Send + Sync + 'static,
{
    let client: HyperClient<C, Body> = HyperClient::builder(TokioExecutor::new()).build(connector);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(client);
    Ok(kube::Client::new(service, config.default_namespace.clone()))
}

fn authorized<C>(tunnel: Tunnel<C>, proxy: &Uri) -> Tunnel<C> {
    let Some((name, password)) = user(proxy) else { return tunnel };
    let pair = base64::engine::general_purpose::STANDARD.encode(format!("{name}:{password}"));
    match HeaderValue::from_str(&format!("Basic {pair}")) {
        Ok(value) => tunnel.with_auth(value),
        Err(_) => tunnel,
    }
}

/// User and password of a proxy URL, percent-decoded.
fn user(proxy: &Uri) -> Option<(String, String)> {
    let (user, _) = proxy.authority()?.as_str().rsplit_once('@')?;
    let (name, password) = user.split_once(':').unwrap_or((user, ""));
    Some((decoded(name), decoded(password)))
}

fn decoded(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let hex = (byte == b'%').then(|| after.get(..2).and_then(|d| std::str::from_utf8(d).ok())).flatten();
        match hex.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(value) => {
                out.push(value);
                rest = &after[2..];
            }
            None => {
                out.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn without_user(proxy: &Uri) -> Uri {
    let Some(authority) = proxy.authority() else { return proxy.clone() };
    let Some((_, host)) = authority.as_str().rsplit_once('@') else { return proxy.clone() };
    let mut parts = proxy.clone().into_parts();
    match host.parse() {
        Ok(authority) => parts.authority = Some(authority),
        Err(_) => return proxy.clone(),
    }
    Uri::from_parts(parts).unwrap_or_else(|_| proxy.clone())
}

type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Upper case first, as Go does; empty counts as absent.
fn either(variables: Variables<'_>, upper: &str) -> Option<String> {
    let set = |name: &str| variables(name).filter(|value| !value.is_empty());
    set(upper).or_else(|| set(&upper.to_ascii_lowercase()))
}

/// The proxy for the server of a configuration.
fn choose(config: &kube::Config, variables: Variables<'_>) -> Result<Option<Uri>, ProxyError> {
    let secure = either(variables, "HTTPS_PROXY");
    // The loader puts `HTTPS_PROXY` where it puts the proxy of the kubeconfig.
    let from_environment = |proxy: &Uri| {
        secure.as_deref().and_then(|value| value.parse::<Uri>().ok()).is_some_and(|value| value == *proxy)
    };
    if let Some(proxy) = config.proxy_url.as_ref().filter(|proxy| !from_environment(proxy)) {
        return usable(proxy.clone(), &proxy.to_string()).map(Some);
    }
    let server = &config.cluster_url;
    let value = match server.scheme_str() {
        Some("https") => secure,
        _ => either(variables, "HTTP_PROXY"),
    };
    let Some(value) = value else { return Ok(None) };
    let host = server.host().unwrap_or_default();
    let port = server.port_u16().unwrap_or(if server.scheme_str() == Some("https") { 443 } else { 80 });
    if is_excepted(host, port, &either(variables, "NO_PROXY").unwrap_or_default()) {
        return Ok(None);
    }
    // `proxy.example:3128` without a scheme is an http proxy.
    let with_scheme = if value.contains("://") { value.clone() } else { format!("http://{value}") };
    let parsed = with_scheme.parse::<Uri>().map_err(|_| unsupported(&value))?;
    usable(parsed, &value).map(Some)
}

fn usable(proxy: Uri, shown: &str) -> Result<Uri, ProxyError> {
    match proxy.scheme_str() {
        Some("http" | "https" | "socks5") if proxy.host().is_some() => Ok(proxy),
        _ => Err(unsupported(shown)),
    }
}

/// A password in the URL must not reach a log.
fn unsupported(proxy: &str) -> ProxyError {
    ProxyError::Unsupported(proxy.rsplit_once('@').map_or(proxy, |(_, host)| host).to_owned())
}

/// Whether a server is reached without a proxy: `localhost` and loopback addresses always, otherwise by the list of `NO_PROXY`.
///
/// Entries are `*`, an address, a network, a name (which covers its subdomains), a name with a leading dot or `*.` (subdomains
/// only), each but `*` and networks with an optional port.
fn is_excepted(host: &str, port: u16, list: &str) -> bool {
    let host = host.trim().to_ascii_lowercase();
    let host = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(&host);
    let address: Option<IpAddr> = host.parse().ok();
    if host == "localhost" || address.is_some_and(|ip| ip.is_loopback()) {
        return true;
    }
    list.split(',').map(|entry| entry.trim().to_ascii_lowercase()).filter(|e| !e.is_empty()).any(|entry| {
        if entry == "*" {
            return true;
        }
        if let Some((network, bits)) = entry.split_once('/')
            && let (Ok(network), Ok(bits)) = (network.parse::<IpAddr>(), bits.parse::<u8>())
        {
            return address.is_some_and(|ip| in_network(ip, network, bits));
        }
        let (name, wanted) = split_port(&entry);
        if wanted.is_some_and(|wanted| wanted != port.to_string()) {
            return false;
        }
        let name = name.strip_prefix('[').and_then(|n| n.strip_suffix(']')).unwrap_or(name);
        if let Ok(ip) = name.parse::<IpAddr>() {
            return address == Some(ip);
        }
        let name = name.strip_prefix('*').filter(|rest| rest.starts_with('.')).unwrap_or(name);
        if name.is_empty() {
            return false;
        }
        match name.strip_prefix('.') {
            Some(_) => host.ends_with(name),
            None => host == name || host.strip_suffix(name).is_some_and(|rest| rest.ends_with('.')),
        }
    })
}

/// Host and port of an entry; an address of IPv6 has a port only behind brackets.
fn split_port(entry: &str) -> (&str, Option<&str>) {
    match entry.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, Some(port)),
        _ => (entry, None),
    }
}

fn in_network(ip: IpAddr, network: IpAddr, bits: u8) -> bool {
    let (ip, network, width) = match (ip, network) {
        (IpAddr::V4(ip), IpAddr::V4(network)) => {
            (u128::from(u32::from(ip)), u128::from(u32::from(network)), 32)
        }
        (IpAddr::V6(ip), IpAddr::V6(network)) => (u128::from(ip), u128::from(network), 128),
        _ => return false,
    };
    let shift = width - u32::from(bits.min(u8::try_from(width).unwrap_or(128)));
    u32::from(bits) <= width && (shift >= 128 || ip >> shift == network >> shift)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    fn config(server: &str, proxy: Option<&str>) -> kube::Config {
        let mut config = kube::Config::new(server.parse().expect("an address"));
        config.proxy_url = proxy.map(|p| p.parse().expect("an address"));
        config
    }

    fn chosen(server: &str, kubeconfig: Option<&str>, set: &[(&str, &str)]) -> Option<String> {
        let variables = |name: &str| set.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
        choose(&config(server, kubeconfig), &variables).expect("a choice").map(|uri| uri.to_string())
    }

    #[test]
    fn the_proxy_of_the_environment_is_used_unless_no_proxy_covers_the_server() {
        let https = ("HTTPS_PROXY", "http://proxy:3128");
        let server = "https://10.96.0.1:443";
        assert_eq!(chosen(server, None, &[https]).as_deref(), Some("http://proxy:3128/"));
        assert_eq!(chosen(server, None, &[https, ("NO_PROXY", "10.96.0.0/12")]), None);
        assert_eq!(chosen(server, None, &[https, ("no_proxy", "10.96.0.1")]), None);
        // What the loader of kubeconfigs took from the environment is no choice of the kubeconfig.
        assert_eq!(chosen(server, Some(https.1), &[https, ("NO_PROXY", "10.96.0.1")]), None);
        assert_eq!(chosen(server, Some(https.1), &[https]).as_deref(), Some("http://proxy:3128/"));
        let own = chosen(server, Some("socks5://other:1"), &[https, ("NO_PROXY", "*")]);
        assert_eq!(own.as_deref(), Some("socks5://other:1/"));
        assert_eq!(chosen("http://api", None, &[https]), None);
        assert_eq!(chosen("http://api", None, &[("http_proxy", "p:1")]).as_deref(), Some("http://p:1/"));
        assert_eq!(chosen("https://localhost:6443", None, &[https]), None);
        assert_eq!(chosen(server, None, &[("HTTPS_PROXY", "")]), None);
    }

    #[test]
    fn no_proxy_matches_go() {
        for (host, port, list, excepted) in [
            ("127.0.0.1", 6443, "", true),
            ("[::1]", 6443, "", true),
            ("api.example", 443, "*", true),
            ("api.example", 443, "a,*,b", true),
            ("api.example", 443, "api.example", true),
            ("API.example", 443, " Api.Example ", true),
            ("api.example", 443, "example", true),
            ("api.example", 443, ".example", true),
            ("api.example", 443, "*.example", true),
            ("example", 443, ".example", false),
            ("example", 443, "*.example", false),
            ("notexample", 443, "example", false),
            ("api.example", 443, "api.example:443", true),
            ("api.example", 6443, "api.example:443", false),
            ("10.0.0.1", 443, "10.0.0.1:443", true),
            ("10.0.0.1", 443, "10.0.0.0/8", true),
            ("11.0.0.1", 443, "10.0.0.0/8", false),
            ("10.0.0.1", 443, "0.0.0.0/0", true),
            ("[fd00::1]", 443, "fd00::/8", true),
            ("[fd00::1]", 443, "fd00::1", true),
            ("[fd00::1]", 443, "[fd00::1]:443", true),
            ("[fd00::1]", 443, "[fd00::1]:80", false),
            ("10.0.0.1", 443, "0.1", true),
            ("api.example", 443, "", false),
            ("api.example", 443, ",, ,", false),
            ("api.example", 443, "10.0.0.0/99,/,:,*.", false),
        ] {
            assert_eq!(is_excepted(host, port, list), excepted, "{host}:{port} in {list:?}");
        }
    }

    #[test]
    fn proxies_that_cannot_be_used_are_named_without_their_password() {
        let bad = config("https://api", Some("ftp://u:canary@proxy:1"));
        let error = choose(&bad, &|_| None).expect_err("refused").to_string();
        assert!(error.contains("proxy:1") && !error.contains("canary"), "{error}");
    }

    /// A tunnel is asked for with the login, and the request goes through it.
    #[tokio::test]
    async fn requests_go_through_the_tunnel_of_a_proxy() {
        let proxy = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = proxy.local_addr().expect("an address");
        let served = tokio::spawn(async move {
            let (mut stream, _) = proxy.accept().await.expect("a connection");
            let mut heads = Vec::new();
            for answer in [
                "HTTP/1.1 200 OK\r\n\r\n".to_owned(),
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}".to_owned(),
            ] {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await.expect("a byte"));
                }
                heads.push(String::from_utf8(head).expect("text"));
                stream.write_all(answer.as_bytes()).await.expect("written");
            }
            heads
        });
        let config = config("http://api.example:8080", Some(&format!("http://u:p%40ss@{address}")));
        let client = client(config).expect("a client");
        let request = http::Request::get("/version").body(Vec::new()).expect("a request");
        client.request::<serde_json::Value>(request).await.expect("an answer");
        let heads = served.await.expect("served");
        assert!(heads[0].starts_with("CONNECT api.example:8080 HTTP/1.1\r\n"), "{}", heads[0]);
        // `u:p@ss`
        assert!(heads[0].to_lowercase().contains("proxy-authorization: basic dtpwqhnz"), "{}", heads[0]);
        assert!(heads[1].starts_with("GET /version HTTP/1.1\r\n"), "{}", heads[1]);
    }
}
