//! Against a small registry in this process that can send wrong content.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use base64::Engine;
use bytes::Bytes;
use fl_http::Credentials;
use fl_oci::{Descriptor, Keychain, Reference, Registry, RegistryOptions, Repository, digest_of, media_type};
use fl_types::Secret;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

#[derive(Clone, Default)]
struct Fake {
    host: String,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// `manifests/v1` or `blobs/sha256:…` to content type and bytes.
    content: BTreeMap<String, (String, Vec<u8>)>,
    tags: Vec<String>,
    endless: bool,
    /// A token is demanded, and given for `user:secret`.
    locked: bool,
    log: Vec<String>,
}

impl Fake {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let fake = Fake { host: listener.local_addr().expect("an address").to_string(), ..Fake::default() };
        let served = fake.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let fake = served.clone();
                tokio::spawn(async move {
                    let _ = fake.answer(stream).await;
                });
            }
        });
        fake
    }

    fn put(&self, path: &str, kind: &str, bytes: &[u8]) -> String {
        let mut state = self.state.lock().expect("a lock");
        let digest = digest_of(bytes);
        state.content.insert(path.to_owned(), (kind.to_owned(), bytes.to_vec()));
        let folder = path.split('/').next().unwrap_or_default();
        state.content.insert(format!("{folder}/{digest}"), (kind.to_owned(), bytes.to_vec()));
        digest
    }

    async fn answer(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await?);
        }
        let head = String::from_utf8_lossy(&head).into_owned();
        let header = |name: &str| {
            head.lines().find_map(|l| {
                l.split_once(": ").filter(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.to_owned())
            })
        };
        let mut body = vec![0; header("content-length").and_then(|l| l.parse().ok()).unwrap_or(0)];
        stream.read_exact(&mut body).await?;
        let (method, target) = head
            .split_once(' ')
            .map(|(m, r)| (m, r.split(' ').next().unwrap_or_default()))
            .unwrap_or_default();
        let (status, extra, content) =
            self.respond(method, target, header("authorization"), header("content-type"), &body);
        let length = content.len();
        let answer =
            format!("HTTP/1.1 {status}\r\nConnection: close\r\n{extra}Content-Length: {length}\r\n\r\n");
        stream.write_all(answer.as_bytes()).await?;
        if method != "HEAD" {
            stream.write_all(&content).await?;
        }
        Ok(())
    }

    fn respond(
        &self,
        method: &str,
        target: &str,
        login: Option<String>,
        kind: Option<String>,
        body: &[u8],
    ) -> (String, String, Vec<u8>) {
        let mut state = self.state.lock().expect("a lock");
        state.log.push(format!("{method} {target} {}", login.as_deref().unwrap_or("-")));
        let none = String::new;
        if target.starts_with("/token") {
            let good = format!("Basic {}", base64::engine::general_purpose::STANDARD.encode("user:secret"));
            return if login.as_deref() == Some(&good) && target.contains("scope=repository") {
                ("200 OK".into(), none(), br#"{"token":"t0ken"}"#.to_vec())
            } else {
                (
                    "401 Unauthorized".into(),
                    none(),
                    br#"{"errors":[{"code":"UNAUTHORIZED","message":"who are you"}]}"#.to_vec(),
                )
            };
        }
        if state.locked && login.as_deref() != Some("Bearer t0ken") {
            let challenge =
                format!("WWW-Authenticate: Bearer realm=\"http://{}/token\",service=\"fake\"\r\n", self.host);
            return ("401 Unauthorized".into(), challenge, Vec::new());
        }
        let Some(rest) = target.strip_prefix("/v2/org/app/") else {
            return ("200 OK".into(), none(), Vec::new());
        };
        if let Some(query) = rest.strip_prefix("tags/list") {
            let at: usize = query.split("last=").nth(1).and_then(|n| n.parse().ok()).unwrap_or(0);
            let page: Vec<&String> = if state.endless {
                state.tags.iter().collect()
            } else {
                state.tags.iter().skip(at).take(2).collect()
            };
            let more = state.endless || at + 2 < state.tags.len();
            let link = if more {
                format!("Link: </v2/org/app/tags/list?last={}>; rel=\"next\"\r\n", at + 2)
            } else {
                none()
            };
            return ("200 OK".into(), link, serde_json::json!({"tags": page}).to_string().into_bytes());
        }
        match method {
            "POST" => (
                "202 Accepted".into(),
                "Location: /v2/org/app/blobs/uploads/1?state=x\r\n".into(),
                Vec::new(),
            ),
            "PUT" => {
                let path = rest
                    .split("digest=")
                    .nth(1)
                    .map_or_else(|| rest.to_owned(), |d| format!("blobs/{}", d.replace("%3A", ":")));
                drop(state);
                self.put(&path, &kind.unwrap_or_default(), body);
                ("201 Created".into(), none(), Vec::new())
            }
            _ => match state.content.get(rest) {
                Some((kind, bytes)) => {
                    let headers =
                        format!("Content-Type: {kind}\r\nDocker-Content-Digest: {}\r\n", digest_of(bytes));
                    ("200 OK".into(), headers, bytes.clone())
                }
                None => (
                    "404 Not Found".into(),
                    none(),
                    br#"{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown","detail":{"tag":"none"}}]}"#.to_vec(),
                ),
            },
        }
    }

    fn registry(&self, keychain: Keychain) -> Registry {
        Registry::new(RegistryOptions {
            keychain,
            insecure: true,
            ..RegistryOptions::new(fl_http::Owner::engine())
        })
        .expect("a client")
    }

    fn repository(&self) -> Repository {
        Repository::parse(&format!("{}/org/app", self.host)).expect("a name")
    }
}

fn manifest(layer: &[u8]) -> Vec<u8> {
    serde_json::json!({
        "schemaVersion": 2, "mediaType": media_type::OCI_MANIFEST,
        "config": {"mediaType": "application/json", "digest": digest_of(b"{}"), "size": 2},
        "layers": [{"mediaType": "application/x-layer", "digest": digest_of(layer), "size": layer.len()}],
        "annotations": {"org.opencontainers.image.revision": "main@sha1:x"},
    })
    .to_string()
    .into_bytes()
}

/// E07: a layer over its budget, content and manifests with another digest than requested.
#[tokio::test(flavor = "multi_thread")]
async fn resolves_pulls_and_checks() {
    let fake = Fake::start().await;
    fake.put("blobs/x", "application/octet-stream", b"the layer");
    let digest = fake.put("manifests/v1", media_type::OCI_MANIFEST, &manifest(b"the layer"));
    let index = serde_json::json!({"manifests": [{"mediaType": media_type::OCI_MANIFEST, "digest": digest, "size": 1, "platform": {"os": "linux", "architecture": "amd64"}}]});
    fake.put("manifests/many", media_type::OCI_INDEX, index.to_string().as_bytes());
    let (registry, repository) = (fake.registry(Keychain::anonymous()), fake.repository());
    let tag = repository.tag("v1").unwrap();
    assert_eq!(registry.resolve(&tag).await.unwrap(), digest);
    let (found, its_digest) = registry.image(&repository.tag("many").unwrap()).await.unwrap();
    assert_eq!(its_digest, digest);
    let layer = found.layer(None).unwrap();
    assert_eq!(registry.blob_bytes(&repository, layer, 100).await.unwrap(), b"the layer");
    assert!(registry.blob_bytes(&repository, layer, 3).await.is_err(), "over the limit");
    let lie = Descriptor { digest: digest_of(b"something else"), size: 9, ..layer.clone() };
    fake.state
        .lock()
        .unwrap()
        .content
        .insert(format!("blobs/{}", lie.digest), (String::new(), b"the layer".to_vec()));
    let error = registry.blob_bytes(&repository, &lie, 100).await.unwrap_err().to_string();
    assert!(error.starts_with("error verifying digest; got "), "{error}");
    let pinned = repository.digest(&digest_of(b"another")).unwrap();
    fake.state
        .lock()
        .unwrap()
        .content
        .insert(format!("manifests/{}", pinned.identifier()), (String::new(), b"{}".to_vec()));
    assert!(
        registry.image(&pinned).await.unwrap_err().to_string().contains("does not match requested digest")
    );
    let missing = registry.image(&repository.tag("none").unwrap()).await.unwrap_err();
    assert!(missing.is_not_found());
    assert_eq!(
        missing.to_string(),
        format!(
            "GET http://{}/v2/org/app/manifests/none: MANIFEST_UNKNOWN: manifest unknown; map[tag:none]",
            fake.host
        )
    );
}

/// E07: pages without an end.
#[tokio::test(flavor = "multi_thread")]
async fn tags_come_in_pages_and_end() {
    let fake = Fake::start().await;
    fake.state.lock().unwrap().tags = (0..5).map(|n| format!("1.0.{n}")).collect();
    let (registry, repository) = (fake.registry(Keychain::anonymous()), fake.repository());
    assert_eq!(registry.tags(&repository).await.unwrap().len(), 5);
    {
        let mut state = fake.state.lock().unwrap();
        state.endless = true;
        state.tags = (0..1000).map(|n| format!("{n}{}", "x".repeat(100))).collect();
    }
    assert!(registry.tags(&repository).await.unwrap_err().to_string().contains("over the limit"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_asked_for_once_and_only_with_our_login() {
    let fake = Fake::start().await;
    fake.put("manifests/v1", media_type::OCI_MANIFEST, &manifest(b"x"));
    fake.state.lock().unwrap().locked = true;
    let login = |password: &str| {
        Keychain::fixed(Credentials::Basic {
            username: "user".into(),
            password: Secret::new(password.to_owned()),
        })
    };
    let repository = fake.repository();
    let tag = repository.tag("v1").unwrap();
    let registry = fake.registry(login("secret"));
    registry.resolve(&tag).await.unwrap();
    registry.image(&tag).await.unwrap();
    let asked = fake.state.lock().unwrap().log.iter().filter(|l| l.contains("/token")).count();
    assert_eq!(asked, 1);
    for keychain in [Keychain::anonymous(), login("canary")] {
        let error = fake.registry(keychain).image(&tag).await.unwrap_err();
        assert!(error.is_unauthorized());
        assert!(!format!("{error} {error:?}").contains("canary"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pushed_artifacts_can_be_pulled() {
    let fake = Fake::start().await;
    let (registry, repository) = (fake.registry(Keychain::anonymous()), fake.repository());
    let layer =
        registry.push_blob(&repository, "application/x-layer", Bytes::from_static(b"new")).await.unwrap();
    let tag = repository.tag("v2").unwrap();
    let digest =
        registry.push_manifest(&tag, media_type::OCI_MANIFEST, manifest(b"new").into()).await.unwrap();
    registry.tag(&tag, "latest").await.unwrap();
    assert_eq!(
        registry.resolve(&Reference::parse(&format!("{}/org/app", fake.host)).unwrap()).await.unwrap(),
        digest
    );
    assert_eq!(registry.blob_bytes(&repository, &layer, 10).await.unwrap(), b"new");
}

/// E08: signatures without keys, found under a tag (older format) or as referrer (newer format), against a trusted root
/// of the test's own.
#[tokio::test(flavor = "multi_thread")]
async fn signatures_without_keys() {
    use fl_verify::keyless::{Identities, TrustRoot};
    let world: serde_json::Value =
        serde_json::from_str(include_str!("../../../engine/verify/tests/keyless/world.json")).unwrap();
    let root = TrustRoot::from_json(world["roots"]["good"].to_string().as_bytes()).unwrap();
    let case =
        |name: &str| world["cases"].as_array().unwrap().iter().find(|c| c["name"] == name).unwrap().clone();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let ann = Identities::new([("issuer", "ann@")]).unwrap();
    let bob = Identities::new([("issuer", "bob@")]).unwrap();
    for newer in [false, true] {
        let fake = Fake::start().await;
        let (registry, repository) = (fake.registry(Keychain::anonymous()), fake.repository());
        let digest = fake.put("manifests/v1", media_type::OCI_MANIFEST, b"the manifest");
        let none = registry.signatures(&repository, &digest).await.unwrap().by_identities(&root, &ann);
        assert_eq!(none.unwrap_err().to_string(), "no signatures found");
        let (kind, content, annotations) = if newer {
            let bundle = case("bundle, entry 3 of 7")["bundle"].to_string().into_bytes();
            ("application/vnd.dev.sigstore.bundle.v0.3+json", bundle, serde_json::json!({}))
        } else {
            let simple = case("good")["simple"].clone();
            let payload = base64::engine::general_purpose::STANDARD.decode(text(&simple["payload"])).unwrap();
            let annotations = serde_json::json!({
                "dev.cosignproject.cosign/signature": simple["signature"],
                "dev.sigstore.cosign/certificate": simple["certificate"],
                "dev.sigstore.cosign/bundle": simple["bundle"],
            });
            ("application/vnd.dev.cosign.simplesigning.v1+json", payload, annotations)
        };
        let blob = fake.put("blobs/x", "application/octet-stream", &content);
        let signature = serde_json::json!({
            "schemaVersion": 2, "mediaType": media_type::OCI_MANIFEST, "artifactType": kind,
            "config": {"mediaType": "application/json", "digest": digest_of(b"{}"), "size": 2},
            "layers": [{"mediaType": kind, "digest": blob, "size": content.len(), "annotations": annotations}],
        })
        .to_string()
        .into_bytes();
        let tag = format!("manifests/{}.sig", digest.replace(':', "-"));
        let stored =
            fake.put(if newer { "manifests/bundle" } else { &tag }, media_type::OCI_MANIFEST, &signature);
        if newer {
            let index = serde_json::json!({"schemaVersion": 2, "mediaType": media_type::OCI_INDEX, "manifests": [
                {"mediaType": media_type::OCI_MANIFEST, "artifactType": kind, "digest": stored, "size": signature.len()}]});
            fake.put(&format!("referrers/{digest}"), media_type::OCI_INDEX, index.to_string().as_bytes());
        }
        let verdict = registry.signatures(&repository, &digest).await.unwrap().by_identities(&root, &ann);
        assert!(verdict.is_ok(), "newer: {newer}");
        let verdict =
            registry.signatures(&repository, &digest).await.unwrap().by_identities(&root, &bob).unwrap_err();
        assert!(
            verdict.to_string().starts_with("no matching signatures: none of the expected identities"),
            "{verdict}"
        );
        let other = digest_of(b"another manifest");
        assert!(registry.signatures(&repository, &other).await.unwrap().by_identities(&root, &ann).is_err());
    }
}
