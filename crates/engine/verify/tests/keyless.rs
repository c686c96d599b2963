//! Keyless signatures of a small test Sigstore (see `record_keyless.py`).

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fl_verify::cosign::SimpleSignature;
use fl_verify::keyless::{Identities, KeylessError, TrustRoot, TrustRootError, verify_bundle, verify_simple};
use serde_json::Value;

fn world() -> Value {
    serde_json::from_str(include_str!("keyless/world.json")).expect("recorded")
}

fn root(world: &Value, name: &str) -> TrustRoot {
    TrustRoot::from_json(world["roots"][name].to_string().as_bytes()).expect("a trusted root")
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

fn simple(value: &Value) -> SimpleSignature {
    let optional = |name: &str| value[name].as_str().map(str::to_owned);
    SimpleSignature {
        payload: STANDARD.decode(text(&value["payload"])).expect("base64"),
        signature: text(&value["signature"]).to_owned(),
        certificate: optional("certificate"),
        bundle: optional("bundle"),
    }
}

fn check(world: &Value, case: &Value) -> Result<(), KeylessError> {
    let (root, digest) = (root(world, text(&case["root"])), text(&case["digest"]));
    let identities = Identities::new([(text(&case["issuer"]), text(&case["subject"]))]).expect("expressions");
    match &case["simple"] {
        Value::Null => verify_bundle(case["bundle"].to_string().as_bytes(), digest, &root, &identities),
        value => verify_simple(&simple(value), digest, &root, &identities),
    }
}

/// Threat E08: unsigned, another identity, expired or missing proof: rejected with the right error.
#[test]
fn every_case_gives_its_error() {
    let world = world();
    let cases = world["cases"].as_array().expect("cases");
    let (mut good, mut names) = (0, BTreeSet::new());
    for case in cases {
        let (name, want) = (text(&case["name"]), text(&case["want"]));
        assert!(names.insert(name), "{name} twice");
        match check(&world, case) {
            Ok(()) => {
                assert_eq!(want, "", "{name} must be refused");
                good += 1;
            }
            Err(error) => {
                let error = error.to_string();
                assert!(!want.is_empty() && error.contains(want), "{name}: {error}");
            }
        }
    }
    assert!(good >= 10 && cases.len() - good >= 30, "{good} of {}", cases.len());
}

/// One of several identities must match; without identities every signer of the root is accepted.
#[test]
fn one_of_several_identities_must_match() {
    let world = world();
    let case = &world["cases"][0];
    let (root, digest) = (root(&world, "good"), text(&case["digest"]));
    let verdict = |pairs: &[(&str, &str)]| {
        let identities = Identities::new(pairs.iter().copied()).expect("expressions");
        verify_simple(&simple(&case["simple"]), digest, &root, &identities).is_ok()
    };
    assert!(verdict(&[]));
    assert!(verdict(&[("x", "y"), ("issuer", "ann")]));
    // Issuer and subject must match together.
    assert!(!verdict(&[("issuer", "bob"), ("other", "ann")]));
    assert!(Identities::new([("(", "x")]).is_err());
}

/// Every change of a signature is rejected.
#[test]
fn every_changed_bit_is_rejected() {
    let world = world();
    let case = &world["cases"][0];
    let (root, digest) = (root(&world, "good"), text(&case["digest"]));
    let identities = Identities::default();
    let original = simple(&case["simple"]);
    let der_text = original.certificate.clone().expect("a certificate");
    let body: String = der_text.lines().filter(|l| !l.starts_with('-')).collect();
    let der = STANDARD.decode(body).expect("base64");
    for at in 0..der.len() {
        let mut changed = der.clone();
        changed[at] ^= 0x04;
        let pem = format!(
            "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n",
            STANDARD.encode(&changed)
        );
        let signed = SimpleSignature { certificate: Some(pem), ..original.clone() };
        assert!(verify_simple(&signed, digest, &root, &identities).is_err(), "byte {at} of the certificate");
    }
    for at in 0..original.payload.len() {
        let mut signed = original.clone();
        signed.payload[at] ^= 0x04;
        assert!(verify_simple(&signed, digest, &root, &identities).is_err(), "byte {at} of the payload");
    }
}

#[test]
fn invalid_trust_roots_are_rejected() {
    let parse = |text: &str| TrustRoot::from_json(text.as_bytes()).map(|_| ());
    assert_eq!(parse("nonsense"), Err(TrustRootError::Json));
    assert!(matches!(parse("{}"), Err(TrustRootError::MediaType(_))));
    let mut value = world()["roots"]["good"].clone();
    value["tlogs"][0]["publicKey"]["rawBytes"] = "AAAA".into();
    assert_eq!(parse(&value.to_string()), Err(TrustRootError::Entry("tlogs")));
    value["tlogs"] = Value::Array(Vec::new());
    assert_eq!(parse(&value.to_string()), Err(TrustRootError::NoLogs));
    let mut value = world()["roots"]["good"].clone();
    value["certificateAuthorities"] = Value::Null;
    assert_eq!(parse(&value.to_string()), Err(TrustRootError::NoAuthorities));
}
