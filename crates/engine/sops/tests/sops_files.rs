//! Files written by `sops`, for every format and type of key (see `record_sops.py`), and tampered variants of
//! them.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fl_sops::{AgeIdentities, Document, Error, Format, KeyError, KeyService, Mac, MasterKey, PgpKeys};
use fl_types::Secret;

fn directory() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sops")
}

fn file(name: &str) -> Vec<u8> {
    std::fs::read(directory().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// The servers of the recording only encode.
struct Fake;

impl KeyService for Fake {
    fn data_key(&self, key: &MasterKey) -> Option<Result<Secret<Vec<u8>>, KeyError>> {
        let encoded = match key {
            MasterKey::Vault { encrypted, engine_path, key_name, address } => {
                assert_eq!((engine_path.as_str(), key_name.as_str()), ("transit", "sops"));
                assert_eq!(address, "http://127.0.0.1:8200");
                encrypted.strip_prefix("vault:v1:")?
            }
            MasterKey::AwsKms { encrypted, context, role, .. } => {
                let want = [("app", "web"), ("team", "blue")].map(|(k, v)| (k.to_owned(), v.to_owned()));
                assert_eq!(context, &BTreeMap::from(want));
                assert_eq!(role, "");
                encrypted
            }
            _ => return None,
        };
        Some(STANDARD.decode(encoded).map(Secret::new).map_err(|_| KeyError::NoKey("the recording")))
    }
}

fn age() -> AgeIdentities {
    let mut keys = AgeIdentities::default();
    keys.import(&String::from_utf8(file("key.agekey")).expect("text")).expect("a key");
    keys
}

fn pgp(names: &[&str]) -> PgpKeys {
    let mut keys = PgpKeys::default();
    for name in names {
        keys.import(&file(&format!("{name}.asc"))).expect("a key");
    }
    keys
}

fn open(bytes: &[u8], format: Format, services: &[&dyn KeyService]) -> Result<Vec<u8>, Error> {
    let document = Document::parse(bytes, format)?;
    let key = document.data_key(services)?;
    document.decrypt(&key, format, Mac::Check)
}

/// The YAML reader drops comments.
fn without_comments(text: &[u8]) -> String {
    let text = std::str::from_utf8(text).expect("text");
    text.split_inclusive('\n').filter(|l| !l.trim_start().starts_with('#')).collect()
}

#[test]
fn every_format_and_key_type_is_decrypted() {
    let names = ["rsa2048", "cv25519", "nistp256", "nistp384", "nistp521"];
    let mut seen = 0;
    for entry in std::fs::read_dir(directory()).expect("recorded") {
        let name = entry.expect("an entry").file_name().into_string().expect("a name");
        let Some(case) = name.strip_suffix(".want") else { continue };
        seen += 1;
        let (bytes, want) = (file(case), file(&name));
        let format = Format::of_path(case);
        let key = case.split('.').next().unwrap_or_default();
        let plain = match key {
            "age" => open(&bytes, format, &[&age()]),
            "vault" | "awskms" => open(&bytes, format, &[&Fake]),
            "groups" => open(&bytes, format, &[&age(), &pgp(&["cv25519"])]),
            key => open(&bytes, format, &[&pgp(&names), &pgp(&[key])]),
        }
        .unwrap_or_else(|e| panic!("{case}: {e}"));
        if format == Format::Yaml {
            assert_eq!(without_comments(&plain), without_comments(&want), "{case}");
        } else {
            assert_eq!(String::from_utf8_lossy(&plain), String::from_utf8_lossy(&want), "{case}");
            assert_eq!(plain, want, "{case}");
        }
    }
    assert!(seen > 30, "{seen} files");
}

#[test]
fn shares_of_key_groups_are_combined() {
    for name in ["secret.yaml", "values.json", "app.env", "app.ini", "file.bin"] {
        let (case, format) = (format!("groups.all.{name}"), Format::of_path(name));
        let bytes = file(&case);
        let opens = |services: &[&dyn KeyService]| open(&bytes, format, services);
        let pairs: [[&dyn KeyService; 2]; 3] = [
            [&age(), &pgp(&["rsa2048"])],
            [&pgp(&["cv25519"]), &pgp(&["rsa2048"])],
            [&age(), &pgp(&["rsa2048", "cv25519"])],
        ];
        for pair in pairs {
            assert!(opens(&pair).is_ok(), "{case}");
        }
        let error = opens(&[&age()]).expect_err("one share is not enough").to_string();
        assert!(error.ends_with("2 groups have to be successful, 1 were."), "{error}");
    }
}

fn message(name: &str) -> MasterKey {
    let encrypted = String::from_utf8(file(name)).expect("text");
    MasterKey::Pgp { fingerprint: String::new(), encrypted }
}

#[test]
fn authenticated_messages_are_decrypted() {
    let want: Vec<u8> = (0..200).cycle().take(600).collect();
    for name in ["gnupg-ocb.msg", "rfc9580-ocb.msg", "rfc9580-gcm.msg"] {
        let found = pgp(&["aead"]).data_key(&message(name)).expect("a PGP key");
        assert_eq!(found.expect(name).expose(), &want, "{name}");
    }
}

/// Threat G02 for PGP: every change of a message is rejected, and no error contains its content.
#[test]
fn changed_messages_are_rejected() {
    let keys = pgp(&["aead"]);
    for name in ["gnupg-ocb.msg", "rfc9580-ocb.msg", "rfc9580-gcm.msg"] {
        let text = String::from_utf8(file(name)).expect("text");
        let body: String = text.lines().filter(|l| !l.starts_with("--")).collect();
        let bytes = STANDARD.decode(body).expect("base64");
        for at in (0..bytes.len()).step_by(7) {
            let mut changed = bytes.clone();
            changed[at] ^= 0x20;
            let encoded = STANDARD.encode(&changed);
            let encrypted = format!("-----BEGIN PGP MESSAGE-----\n\n{encoded}\n-----END PGP MESSAGE-----\n");
            let key = MasterKey::Pgp { fingerprint: String::new(), encrypted };
            // The key's id and version may change without harm; the content may not.
            if let Some(Ok(plain)) = keys.data_key(&key) {
                assert_eq!(plain.expose().len(), 600, "{name} at {at}");
                assert_eq!(plain.expose()[..3], [0, 1, 2], "{name} at {at}");
            }
        }
    }
    let document = String::from_utf8(file("rsa2048.all.values.json")).expect("text");
    let problem = |keys: &PgpKeys| {
        let error = open(document.as_bytes(), Format::Json, &[keys]).expect_err("refused").to_string();
        assert!(!error.contains("PGP MESSAGE") && !error.contains("va&lue"), "{error}");
        error
    };
    assert!(problem(&pgp(&["cv25519"])).contains("no PGP key matched any of the recipients"));
    assert!(problem(&PgpKeys::default()).contains("no PGP key is configured"));
    assert!(problem(&pgp(&["locked"])).contains("passphrase"));
}

#[test]
fn invalid_keys_are_rejected() {
    let mut keys = PgpKeys::default();
    for bad in
        [b"".as_slice(), b"nonsense", b"\xff\xff\xff", b"-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nAAAA\n"]
    {
        assert!(keys.import(bad).is_err());
    }
    let cut = file("cv25519.asc");
    assert!(keys.import(&cut[..cut.len() / 2]).is_err());
    let public = b"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n-----END PGP PUBLIC KEY BLOCK-----\n";
    assert!(keys.import(public).is_ok() && keys.is_empty());
}
