//! SOPS files, keys and encrypted messages.

use fl_sops::{AgeIdentities, Document, Format, KeyService, Mac, MasterKey, PgpKeys};
use fl_types::Secret;

use super::Target;

pub(crate) const TARGETS: &[Target] =
    &[("sops-file", file), ("pgp-key", key), ("pgp-message", message), ("age-file", age)];

/// Any bytes as a file of any format: read, opened with a key that is not its own, never a panic.
fn file(input: &[u8]) {
    for format in [Format::Yaml, Format::Json, Format::Dotenv, Format::Ini, Format::Binary] {
        let Ok(document) = Document::parse(input, format) else { continue };
        let _ = document.data_key(&[&AgeIdentities::default(), &PgpKeys::default()]);
        let _ = document.decrypt(&Secret::new(vec![7; 32]), format, Mac::Ignore);
    }
}

fn key(input: &[u8]) {
    let _ = PgpKeys::default().import(input);
    let _ = fl_sops::kms::AwsCredentials::from_yaml(input);
    let _ = fl_sops::kms::AzureCredentials::from_yaml(input);
    let _ = fl_sops::kms::GcpCredentials::from_json(input);
}

fn message(input: &[u8]) {
    let mut keys = PgpKeys::default();
    if keys.import(EXAMPLE_KEY).is_ok() {
        let encrypted = String::from_utf8_lossy(input).into_owned();
        let _ = keys.data_key(&MasterKey::Pgp { fingerprint: String::new(), encrypted });
    }
}

fn age(input: &[u8]) {
    let mut keys = AgeIdentities::default();
    let _ = keys.import(&String::from_utf8_lossy(input));
    if keys.import(EXAMPLE_IDENTITY).is_ok() {
        let encrypted = String::from_utf8_lossy(input).into_owned();
        let _ = keys.data_key(&MasterKey::Age { recipient: String::new(), encrypted });
    }
}

const EXAMPLE_KEY: &[u8] = include_bytes!("../../../../engine/sops/tests/sops/cv25519.asc");
const EXAMPLE_IDENTITY: &str = include_str!("../../../../engine/sops/tests/sops/key.agekey");
