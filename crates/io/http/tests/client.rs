//! The client against small servers on loopback.

#![allow(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

use std::io::Read;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use fl_http::{Client, Credentials, Error, Owner, Request, Settings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Answers every connection with what `answer` makes of the request's head; keeps the heads.
async fn server(
    answer: impl Fn(&str) -> String + Send + Sync + 'static,
) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let heads = seen.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            let head = String::from_utf8(head).unwrap();
            let body = answer(&head);
            heads.lock().unwrap().push(head.to_lowercase());
            stream.write_all(body.as_bytes()).await.unwrap();
        }
    });
    (address, seen)
}

fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
}

fn to(location: &str) -> String {
    format!("HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
}

fn client(credentials: Credentials) -> Client {
    Client::new(Settings { credentials, ..Settings::new(Owner::namespace("tenant")) }).unwrap()
}

fn basic() -> Credentials {
    Credentials::Basic { username: "u".into(), password: "canary".to_owned().into() }
}

/// E06: a redirect to another host.
#[tokio::test]
async fn credentials_are_not_carried_to_another_host() {
    let (elsewhere, seen_elsewhere) = server(|_| ok("there")).await;
    let (home, seen_home) =
        server(
            move |head| {
                if head.starts_with("GET /a") { to("/b") } else { to(&format!("http://{elsewhere}/c")) }
            },
        )
        .await;
    let answer = client(basic()).send(Request::get(&format!("http://{home}/a")).unwrap()).await.unwrap();
    assert_eq!(&answer.bytes(100).await.unwrap()[..], b"there");
    assert!(seen_home.lock().unwrap().iter().all(|head| head.contains("authorization: basic")));
    assert!(!seen_elsewhere.lock().unwrap()[0].contains("authorization"));
}

/// E06: headers and bodies that are secrets go to one host only.
#[tokio::test]
async fn direct_requests_follow_no_redirects() {
    let (elsewhere, seen_elsewhere) = server(|_| ok("there")).await;
    let (home, seen_home) = server(move |_| to(&format!("http://{elsewhere}/c"))).await;
    let request = Request::new(fl_http::Method::POST, &format!("http://{home}/a")).unwrap();
    let request = request.header(fl_http::HeaderName::from_static("x-vault-token"), "canary").unwrap();
    let answer = client(Credentials::None).send_direct(request.body("canary")).await.unwrap();
    assert!(answer.status().is_redirection());
    assert!(seen_home.lock().unwrap()[0].contains("x-vault-token: canary"));
    assert!(seen_elsewhere.lock().unwrap().is_empty());
}

#[tokio::test]
async fn endless_and_strange_redirects_end() {
    let (home, _) = server(|_| to("/again")).await;
    let error =
        client(Credentials::None).send(Request::get(&format!("http://{home}/")).unwrap()).await.unwrap_err();
    assert!(error.to_string().contains("more than 10 times"), "{error}");
    let (home, _) = server(|_| to("file:///etc/passwd")).await;
    let error =
        client(Credentials::None).send(Request::get(&format!("http://{home}/")).unwrap()).await.unwrap_err();
    assert!(matches!(error, Error::Redirect { .. }), "{error}");
}

#[tokio::test]
async fn bodies_are_bounded_both_ways_of_reading() {
    let (home, _) = server(|_| ok(&"x".repeat(1000))).await;
    let url = format!("http://{home}/");
    let get = || async { client(Credentials::None).send(Request::get(&url).unwrap()).await.unwrap() };
    assert_eq!(get().await.bytes(1000).await.unwrap().len(), 1000);
    assert!(matches!(get().await.bytes(999).await, Err(Error::TooLarge { limit: 999, .. })));
    for (limit, fine) in [(1000, true), (999, false)] {
        let mut reader = get().await.reader(limit);
        let read = tokio::task::spawn_blocking(move || reader.read_to_end(&mut Vec::new())).await.unwrap();
        assert_eq!(read.is_ok(), fine, "{read:?}");
    }
}

/// N10: for one owner and proxy, whatever the client, the path and the credentials: no request inside the forbidden window. Other
/// owners, and requests over another proxy, are not held back by it.
#[tokio::test]
async fn retry_after_holds_for_all_clients_of_one_owner_and_route() {
    let (home, seen) = server(|_| {
        "HTTP/1.1 429 No\r\nRetry-After: 30\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_owned()
    })
    .await;
    let url = format!("http://{home}/");
    assert_eq!(client(Credentials::None).send(Request::get(&url).unwrap()).await.unwrap().status(), 429);
    let forward = |by: u64| async move {
        tokio::time::pause();
        tokio::time::advance(std::time::Duration::from_secs(by)).await;
        tokio::time::resume();
    };
    for second in 0..29 {
        let request = Request::get(&format!("{url}{second}")).unwrap();
        let error = client(basic()).send(request.clone()).await.unwrap_err();
        assert!(matches!(error, Error::RetryAfter { .. }), "{error}");
        assert!(matches!(client(basic()).send_direct(request).await, Err(Error::RetryAfter { .. })));
        forward(1).await;
    }
    assert_eq!(seen.lock().unwrap().len(), 1);
    let other_owner = Client::new(Settings::new(Owner::namespace("other"))).unwrap();
    assert_eq!(other_owner.send(Request::get(&url).unwrap()).await.unwrap().status(), 429);
    let (proxy, _) = server(|_| ok("through the proxy")).await;
    let proxy = fl_http::Proxy {
        address: format!("http://{proxy}"),
        username: String::new(),
        password: String::new().into(),
    };
    let settings = Settings { proxy: Some(proxy), ..Settings::new(Owner::namespace("tenant")) };
    let other_route = Client::new(settings).unwrap();
    assert_eq!(other_route.send(Request::get(&url).unwrap()).await.unwrap().status(), 200);
    assert_eq!(seen.lock().unwrap().len(), 2);
    forward(2).await;
    assert_eq!(client(basic()).send(Request::get(&url).unwrap()).await.unwrap().status(), 429);
    assert_eq!(seen.lock().unwrap().len(), 3);
}

/// E06: credentials in addresses.
#[test]
fn addresses_and_errors_never_show_secrets() {
    for bad in ["ftp://user:canary@host/", "http://", "not an address", "file:///etc/passwd"] {
        let error = Request::get(bad).unwrap_err().to_string();
        assert!(!error.contains("canary"), "{error}");
    }
    assert!(!format!("{:?}", client(basic())).contains("canary"));
    assert!(Request::get("http://host/").unwrap().header(fl_http::header::ACCEPT, "a\r\nb: c").is_err());
}

/// E05: certificates of unknown authorities.
#[tokio::test]
async fn own_authorities_and_client_certificates() {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
    use tokio_rustls::rustls::{RootCertStore, ServerConfig, crypto::ring, server::WebPkiClientVerifier};

    let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca_key = KeyPair::generate().unwrap();
    let ca = params.clone().self_signed(&ca_key).unwrap();
    let issuer = Issuer::new(params, ca_key);
    let leaf = |name: &str| {
        let key = KeyPair::generate().unwrap();
        let certificate =
            CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
        (certificate, key)
    };
    let (server_cert, server_key) = leaf("127.0.0.1");
    let mut roots = RootCertStore::empty();
    roots.add(ca.der().clone()).unwrap();
    let provider = Arc::new(ring::default_provider());
    let verifier =
        WebPkiClientVerifier::builder_with_provider(roots.into(), provider.clone()).build().unwrap();
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![server_cert.der().clone()], server_key.serialize_der().try_into().unwrap())
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                if let Ok(mut stream) = acceptor.accept(stream).await {
                    let _ = stream.read(&mut [0; 1024]).await;
                    let _ = stream.write_all(ok("inside").as_bytes()).await;
                    let _ = stream.shutdown().await;
                }
            });
        }
    });
    let (client_cert, client_key) = leaf("client");
    let trusted = Settings { ca: Some(ca.pem().into_bytes()), ..Settings::new(Owner::namespace("tenant")) };
    let with_certificate = Settings {
        client_certificate: Some(fl_http::ClientCertificate {
            chain: client_cert.pem().into_bytes(),
            key: client_key.serialize_pem().into_bytes().into(),
        }),
        ..trusted.clone()
    };
    let get = |settings: Settings| {
        let request = Request::get(&url).unwrap();
        async move { Client::new(settings).unwrap().send(request).await?.bytes(100).await }
    };
    assert!(get(Settings::new(Owner::namespace("tenant"))).await.is_err(), "an unknown authority is refused");
    assert!(get(trusted).await.is_err(), "the server wants a certificate");
    assert_eq!(&get(with_certificate).await.unwrap()[..], b"inside");
    let broken = Settings { ca: Some(b"nonsense".to_vec()), ..Settings::new(Owner::namespace("tenant")) };
    assert!(matches!(Client::new(broken), Err(Error::Settings { what: "CA bundle", .. })));
}
