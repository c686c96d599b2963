//! Signatures that gpg, ssh-keygen and openssl made; see `golden/README.md`.

use std::fs;
use std::path::PathBuf;

use fl_verify::cosign::{CosignError, SimpleSignature, verify_bundle, verify_simple};
use fl_verify::{GitKeys, KeyError, PublicKey, verify_git};

/// In the year 2033; the keys do not expire.
const NOW: u64 = 2_000_000_000;

fn file(name: &str) -> String {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "tests/golden", name].iter().collect();
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn pgp(kind: &str, ring: &str, payload: &str, now: u64) -> Result<String, String> {
    let keys = GitKeys { pgp: vec![file(&format!("pgp-{ring}.asc"))], ssh: Vec::new() };
    verify_git("commit", &file(&format!("pgp-{kind}.sig")), payload.as_bytes(), &keys, now)
        .map_err(|e| e.to_string())
}

#[test]
fn gpg_signatures_are_verified() {
    let payload = file("payload.txt");
    for kind in ["rsa2048", "ed25519", "nistp256", "subkey"] {
        assert_eq!(
            pgp(kind, kind, &payload, NOW).as_deref(),
            Ok(file(&format!("pgp-{kind}.id")).trim()),
            "{kind}"
        );
        let refused = "unable to verify Git commit: unable to verify payload with any of the given key rings: no matching key";
        assert_eq!(
            pgp(kind, kind, &payload.replace('m', "n"), NOW).unwrap_err(),
            refused,
            "{kind}, other text"
        );
        let other = if kind == "ed25519" { "rsa2048" } else { "ed25519" };
        assert_eq!(pgp(kind, other, &payload, NOW).unwrap_err(), refused, "{kind}, other key");
        assert_eq!(pgp(kind, kind, &payload, 1000).unwrap_err(), refused, "{kind}, from the future");
    }
}

#[test]
fn invalid_key_ring_is_rejected() {
    let keys = GitKeys { pgp: vec!["nonsense".to_owned()], ssh: Vec::new() };
    let error = verify_git("tag", &file("pgp-ed25519.sig"), b"x", &keys, NOW).unwrap_err();
    assert_eq!(error.to_string(), "unable to verify Git tag: unable to read armored key ring: EOF");
    let none = verify_git("tag", &file("pgp-ed25519.sig"), b"x", &GitKeys::default(), NOW).unwrap_err();
    assert_eq!(
        none.to_string(),
        "PGP signature detected but no PGP public keys found in secret (keys with .asc suffix)"
    );
    assert_eq!(
        verify_git("commit", "", b"x", &keys, NOW).unwrap_err().to_string(),
        "unsupported signature type: empty"
    );
}

#[test]
fn ssh_signatures_are_verified() {
    let payload = file("payload.txt");
    let verify = |signature: &str, keys: &str, payload: &str| {
        let keys = GitKeys { pgp: Vec::new(), ssh: vec![format!("# keys\n\n{keys}")] };
        verify_git("commit", signature, payload.as_bytes(), &keys, NOW).map_err(|e| e.to_string())
    };
    for kind in ["ed25519", "rsa", "ecdsa"] {
        let (signature, key) = (file(&format!("ssh-{kind}.sig")), file(&format!("ssh-{kind}.pub")));
        assert_eq!(
            verify(&signature, &key, &payload).as_deref(),
            Ok(file(&format!("ssh-{kind}.id")).trim()),
            "{kind}"
        );
        assert!(
            verify(&signature, &key, "other").unwrap_err().contains("no matching key\nssh: signature"),
            "{kind}"
        );
        let other = file(if kind == "rsa" { "ssh-ed25519.pub" } else { "ssh-rsa.pub" });
        assert!(
            verify(&signature, &other, &payload)
                .unwrap_err()
                .contains("no matching key\npublic key does not match")
        );
    }
    let error = verify(&file("ssh-namespace.sig"), &file("ssh-ecdsa.pub"), &payload).unwrap_err();
    assert!(error.ends_with("no matching key\nnamespace does not match"), "{error}");
}

#[test]
fn cosign_signatures_with_a_key_are_verified() {
    let (digest, key) = (file("image.digest"), PublicKey::from_pem(&file("cosign.pub")).unwrap());
    let digest = digest.trim();
    let signed = SimpleSignature {
        payload: file("simple.json").into_bytes(),
        signature: file("simple.sig"),
        certificate: None,
        bundle: None,
    };
    assert_eq!(verify_simple(&signed, digest, &key), Ok(()));
    assert_eq!(verify_bundle(file("bundle.json").as_bytes(), digest, &key), Ok(()));
    let rsa = PublicKey::from_pem(&file("cosign-rsa.pub")).unwrap();
    let by_rsa = SimpleSignature { signature: file("simple-rsa.sig"), ..signed.clone() };
    assert_eq!(verify_simple(&by_rsa, digest, &rsa), Ok(()));
    assert_eq!(verify_simple(&signed, digest, &rsa), Err(CosignError::WrongKey));
    assert_eq!(verify_bundle(file("bundle.json").as_bytes(), digest, &rsa), Err(CosignError::WrongKey));
    let other = format!("sha256:{}", "0".repeat(64));
    assert!(matches!(verify_simple(&signed, &other, &key), Err(CosignError::OtherImage { .. })));
    assert!(matches!(
        verify_bundle(file("bundle.json").as_bytes(), &other, &key),
        Err(CosignError::OtherImage { .. })
    ));
    let changed =
        SimpleSignature { payload: file("simple.json").replace("r/x", "r/y").into_bytes(), ..signed };
    assert_eq!(verify_simple(&changed, digest, &key), Err(CosignError::WrongKey));
}

/// E05: a weak key is rejected.
#[test]
fn weak_keys_are_rejected() {
    assert!(matches!(PublicKey::from_pem(&file("weak-rsa.pub")), Err(KeyError::Weak)));
    assert!(PublicKey::from_pem(&file("cosign-rsa.pub")).is_ok());
}
