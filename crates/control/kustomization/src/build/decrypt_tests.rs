//! Encrypted files of the real `sops` (the goldens of its engine) through a build, with every kind of key.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fl_types::Secret;
use serde_json::json;

use super::*;

fn golden(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../engine/sops/tests/sops");
    std::fs::read(folder.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn keys(entries: &[(&str, Vec<u8>)]) -> Result<KeyMaterial, String> {
    let data = entries.iter().map(|(k, v)| ((*k).to_owned(), Secret::new(v.clone()))).collect();
    KeyMaterial::import(&data, "sops decryption Secret 'ns/keys'").map_err(|e| e.to_string())
}

fn run(files: Vec<(&str, Vec<u8>)>, keys: KeyMaterial) -> Result<Built, String> {
    run_with(files, keys, &EngineKeyServices::default())
}

fn run_with(
    files: Vec<(&str, Vec<u8>)>,
    keys: KeyMaterial,
    key_services: &EngineKeyServices,
) -> Result<Built, String> {
    let files = files.into_iter().map(|(path, bytes)| (std::path::PathBuf::from(path), bytes));
    let tree = Arc::new(ArtifactFiles::new("/artifact/app".into(), files));
    let object: Kustomization = serde_json::from_value(json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1",
        "kind": "Kustomization", "metadata": {"name": "app", "namespace": "ns"}, "spec": {"interval": "10m", "prune": true,
        "sourceRef": {"kind": "GitRepository", "name": "app"}, "decryption": {"provider": "sops"}}}))
    .expect("a Kustomization");
    let variables = Ok(Secret::new(Default::default()));
    let keys = Some(keys);
    let secrets = KnownSecrets::default();
    let request =
        Request { object: &object, variables, strict: true, keys, key_services, secrets, remote: None };
    let directory = check_path(&tree, "").map_err(|e| e.to_string())?;
    build(&tree, &directory, &request).map_err(|e| e.to_string())
}

/// kustomize breaks long values into lines.
fn decoded(value: &Value) -> Vec<u8> {
    let text: String = value.as_str().expect("an entry").split_whitespace().collect();
    STANDARD.decode(text).expect("base64")
}

const GENERATOR: &str = "generatorOptions: {disableNameSuffixHash: true}\nsecretGenerator:\n- name: s\n  \
    files: [values.json, app.ini, file.bin]\n  envs: [app.env]\n";

/// Files of generators in all formats but YAML, whose comments the reader drops.
#[test]
fn generators_with_pgp_and_age_keys() {
    let cases = [
        ("cv25519", keys(&[("me.asc", golden("cv25519.asc"))])),
        ("rsa2048", keys(&[("me.asc", golden("rsa2048.asc"))])),
        ("age", keys(&[("me.agekey", golden("key.agekey"))])),
        ("groups", keys(&[("me.agekey", golden("key.agekey")), ("b.asc", golden("cv25519.asc"))])),
    ];
    for (kind, keys) in cases {
        let name = |file: &str| format!("{kind}.all.{file}");
        let mut files = vec![("kustomization.yaml", GENERATOR.as_bytes().to_vec())];
        for file in ["values.json", "app.ini", "file.bin", "app.env"] {
            files.push((file, golden(&name(file))));
        }
        let built = run(files, keys.expect("keys")).unwrap_or_else(|e| panic!("{kind}: {e}"));
        let data = &built.objects[0]["data"];
        for file in ["values.json", "app.ini", "file.bin"] {
            assert_eq!(decoded(&data[file]), golden(&name(&format!("{file}.want"))), "{kind} {file}");
        }
        assert_eq!(data["USER"], STANDARD.encode("ann"), "{kind}");
    }
}

#[test]
fn unusable_keys_are_reported_without_their_content() {
    let files = || {
        let generator = GENERATOR.replace(", app.ini, file.bin", "").replace("  envs: [app.env]\n", "");
        vec![
            ("kustomization.yaml", generator.into_bytes()),
            ("values.json", golden("rsa2048.all.values.json")),
        ]
    };
    let error = run(files(), keys(&[("x.asc", golden("cv25519.asc"))]).expect("keys")).expect_err("refused");
    assert!(error.contains("no PGP key matched any of the recipients"), "{error}");
    assert!(!error.contains("PGP MESSAGE"), "{error}");
    for (name, content) in [
        ("x.asc", b"canary".to_vec()),
        ("x.agekey", b"canary".to_vec()),
        ("sops.aws-kms", b"canary".to_vec()),
        ("sops.gcp-kms", b"{\"type\":\"canary\"}".to_vec()),
        ("sops.azure-kv", b"tenantId: canary".to_vec()),
    ] {
        let error = keys(&[(name, content)]).expect_err("refused");
        let start = format!("failed to import '{name}' data from sops decryption Secret 'ns/keys': ");
        assert!(error.starts_with(&start) && !error.contains("canary"), "{error}");
    }
}

/// A Vault on loopback: the token arrives, the key comes back; a redirect is not followed.
#[tokio::test(flavor = "multi_thread")]
async fn a_vault_is_asked() {
    let generator = "generatorOptions: {disableNameSuffixHash: true}\nsecretGenerator:\n- {name: s, files: [values.json]}\n";
    for redirect in [false, true] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a request");
            let mut request = Vec::new();
            let mut buffer = [0; 4096];
            while !request.ends_with(b"}") {
                let count = stream.read(&mut buffer).expect("bytes");
                request.extend_from_slice(&buffer[..count]);
            }
            let request = String::from_utf8(request).expect("text");
            let sealed = request
                .split("vault:v1:")
                .nth(1)
                .and_then(|r| r.split('"').next())
                .expect("a key")
                .to_owned();
            let body = json!({"data": {"plaintext": sealed}}).to_string();
            let head = if redirect { "307 Go\r\nLocation: http://127.0.0.1:1/" } else { "200 OK" };
            let answer = format!(
                "HTTP/1.1 {head}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
            stream.write_all(answer.as_bytes()).expect("sent");
            request
        });
        let sealed = String::from_utf8(golden("vault.all.values.json")).expect("text");
        let sealed = sealed.replace("127.0.0.1:8200", &address.to_string()).into_bytes();
        let files = vec![("kustomization.yaml", generator.as_bytes().to_vec()), ("values.json", sealed)];
        let keys = keys(&[("sops.vault-token", b" canary\n".to_vec())]).expect("keys");
        let built = tokio::task::spawn_blocking(move || run(files, keys)).await.expect("no panic");
        let request = server.join().expect("served");
        assert!(request.starts_with("POST /v1/transit/decrypt/sops HTTP/1.1\r\n"), "{request}");
        assert!(request.contains("x-vault-token: canary\r\n"), "{request}");
        match built {
            Ok(built) => {
                assert!(!redirect);
                let plain = decoded(&built.objects[0]["data"]["values.json"]);
                assert_eq!(plain, golden("vault.all.values.json.want"));
            }
            Err(error) => {
                assert!(redirect && error.contains("status 307") && !error.contains("canary"), "{error}");
            }
        }
    }
}

/// A peer on loopback that records what it is sent and answers nothing of use.
fn recording_server() -> (String, std::sync::mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let (sender, received) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut buffer = [0; 8192];
            let count = stream.read(&mut buffer).unwrap_or_default();
            let _ = sender.send(String::from_utf8_lossy(&buffer[..count]).into_owned());
            let _ =
                stream.write_all(b"HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
        }
    });
    (address, received)
}

/// Hole: a SOPS file names `vault_address`, and the engine's `VAULT_TOKEN` was sent there.
#[tokio::test(flavor = "multi_thread")]
async fn the_vault_token_of_the_engine_is_sent_to_vault_addr_only() {
    let generator = "secretGenerator:\n- {name: s, files: [values.json]}\n";
    let build = |address: String, variables: Vec<(&'static str, String)>, secret: Option<&'static str>| async move {
        let sealed = String::from_utf8(golden("vault.all.values.json")).expect("text");
        let sealed = sealed.replace("127.0.0.1:8200", &address).into_bytes();
        let engine = EngineKeyServices::from_variables(|name| {
            variables.iter().find(|(n, _)| *n == name).map(|(_, value)| value.clone())
        });
        let entries: Vec<_> =
            secret.iter().map(|token| ("sops.vault-token", token.as_bytes().to_vec())).collect();
        let keys = keys(&entries).expect("keys");
        let run = move || {
            let files = vec![("kustomization.yaml", generator.as_bytes().to_vec()), ("values.json", sealed)];
            run_with(files, keys, &engine)
        };
        tokio::task::spawn_blocking(run).await.expect("no panic").expect_err("no key")
    };
    let (evil, at_evil) = recording_server();
    let (configured, at_configured) = recording_server();
    let token = || ("VAULT_TOKEN", "engine-canary".to_owned());
    for variables in [vec![token()], vec![token(), ("VAULT_ADDR", format!("http://{configured}"))]] {
        let error = build(evil.clone(), variables, None).await;
        let flat: String = error.split_whitespace().filter(|w| *w != "|").collect::<Vec<_>>().join(" ");
        assert!(flat.contains("the Vault token of the engine is not sent to"), "{error}");
        assert!(!error.contains("canary"), "{error}");
    }
    assert!(at_evil.try_recv().is_err(), "nothing was sent");
    let variables = vec![token(), ("VAULT_ADDR", format!("http://{configured}"))];
    build(configured.clone(), variables.clone(), None).await;
    let request = at_configured.try_recv().expect("the configured Vault is asked");
    assert!(request.contains("x-vault-token: engine-canary"), "{request}");
    // The owner of a Secret and of the file may send that Secret anywhere; it takes the place of the engine's token.
    build(evil.clone(), variables, Some("tenant-token")).await;
    let request = at_evil.try_recv().expect("the address in the file is asked");
    assert!(request.contains("x-vault-token: tenant-token") && !request.contains("canary"), "{request}");
}
