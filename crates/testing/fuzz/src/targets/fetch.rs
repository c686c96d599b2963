//! Input of the fetchers: URLs, references, known hosts, registry responses, indexes, signatures.

use std::io::Cursor;

use fl_bucket_index::{Changes, Dialect, Index, IndexError, Key, Page, Refusal, S3Credentials};
use fl_git_client::{Address, KnownHosts};
use fl_helm::RepositoryIndex;
use fl_oci::{Index as ImageIndex, Keychain, Manifest, Reference, parse_challenges};
use fl_verify::cosign::SimpleSignature;
use fl_verify::keyless::{self, Identities, TrustRoot};
use fl_verify::{GitKeys, PublicKey, verify_git};

use super::Target;

pub(crate) const TARGETS: &[Target] = &[
    ("git-address", address),
    ("known-hosts", known_hosts),
    ("registry-answers", registry_answers),
    ("bucket-listing", bucket_listing),
    ("chart-index", chart_index),
    ("signatures", signatures),
    ("keyless", without_keys),
    ("trusted-root", trusted_root),
];

fn address(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    if let Ok(address) = Address::parse(&text) {
        assert!(!address.host.starts_with('-') && !address.path.contains('\n'));
        // What is shown must be readable again, and lead to the same server.
        if let Ok(again) = Address::parse(address.shown()) {
            assert!(again.same_server(&address));
        }
    }
    let _ = Reference::parse(&text);
}

fn known_hosts(input: &[u8]) {
    if let Ok(known) = KnownHosts::parse(&String::from_utf8_lossy(input)) {
        let _ = known.check("git.example", 22, input);
        let _ = known.kinds("git.example", 2222);
    }
}

fn registry_answers(input: &[u8]) {
    let _ = parse_challenges(&String::from_utf8_lossy(input));
    let _ = Keychain::from_docker_config(input);
    if let Ok(manifest) = serde_json::from_slice::<Manifest>(input) {
        let _ = manifest.layer(Some("x"));
    }
    if let Ok(index) = serde_json::from_slice::<ImageIndex>(input) {
        let _ = index.usual_child();
    }
}

/// A page that is accepted says the same however it was cut, and no key of it leads out.
fn bucket_listing(input: &[u8]) {
    for dialect in [Dialect::S3, Dialect::S3Markers, Dialect::Azure, Dialect::Google] {
        let read = |size: usize| {
            let mut page = Page::new(dialect);
            input.chunks(size).try_for_each(|piece| page.feed(piece))?;
            page.finish()
        };
        let whole = read(input.len().max(1));
        let cut = read(3);
        assert_eq!(whole.is_ok(), cut.is_ok());
        let Ok((objects, next)) = whole else { continue };
        assert_eq!(Ok((objects.clone(), next)), cut);
        let mut index = Index::new(Cursor::new(Vec::new()));
        for object in &objects {
            if let Ok(key) = Key::check(&object.key) {
                assert!(key.path().split('/').all(|step| !matches!(step, "" | "." | "..")));
                assert!(!key.encoded().contains(|c: char| c.is_ascii_control() || "?#\\ ".contains(c)));
            }
            if index.add(&object.key, &object.etag).is_err() {
                return;
            }
        }
        let listed = index.revision().expect("in memory");
        assert_eq!(listed, index.revision_with(&Changes::new()).expect("in memory"));
        if let Ok(mut files) = index.files(Cursor::new(Vec::new())) {
            let _ = files.visit(|_, _| Ok::<_, IndexError>(()));
        }
    }
    let _ = Refusal::read(input);
    let _ = Refusal::read_region(input);
    let _ = S3Credentials::read(input);
}

/// An index that is accepted is written as JSON that can be read.
fn chart_index(input: &[u8]) {
    if let Ok(mut index) = RepositoryIndex::read(Cursor::new(input), Cursor::new(Vec::new())) {
        let mut out = Vec::new();
        if index.write_json(&mut out).is_ok() {
            fl_helm::find_versions(out.as_slice(), "app").expect("a stored index is JSON");
        }
    }
}

fn signatures(input: &[u8]) {
    let text = String::from_utf8_lossy(input).into_owned();
    let _ = PublicKey::from_pem(&text);
    let keys = GitKeys { pgp: vec![text.clone()], ssh: vec![text.clone()] };
    let _ = verify_git("commit", &text, b"payload", &keys, 1_800_000_000);
    if let Ok(key) = PublicKey::from_pem(EXAMPLE_KEY) {
        assert!(fl_verify::cosign::verify_bundle(input, "sha256:00", &key).is_err());
    }
}

const EXAMPLE_KEY: &str = include_str!("../../../../engine/verify/tests/golden/cosign.pub");

/// Whatever a registry says, nothing is good that our root does not vouch for.
fn without_keys(input: &[u8]) {
    let Ok(root) = TrustRoot::from_json(EXAMPLE_ROOT.as_bytes()) else { return };
    let identities = Identities::default();
    assert!(keyless::verify_bundle(input, "sha256:00", &root, &identities).is_err());
    // A certificate and a log entry, one behind the other.
    let text = String::from_utf8_lossy(input).into_owned();
    let (certificate, bundle) = text.split_once('\0').unwrap_or((&text, "{}"));
    let signed = SimpleSignature {
        payload: b"{}".to_vec(),
        signature: "AAAA".to_owned(),
        certificate: Some(certificate.to_owned()),
        bundle: Some(bundle.to_owned()),
    };
    assert!(keyless::verify_simple(&signed, "sha256:00", &root, &identities).is_err());
}

fn trusted_root(input: &[u8]) {
    let _ = TrustRoot::from_json(input);
}

const EXAMPLE_ROOT: &str = include_str!("../../../../../fuzz/seeds/trusted-root/root.json");
