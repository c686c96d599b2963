//! JWTs for the token services of clouds.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use rsa::pkcs1::DecodeRsaPrivateKey as _;
use rsa::pkcs8::DecodePrivateKey as _;
use rsa::{Pkcs1v15Sign, RsaPrivateKey};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// The content of the first PEM block with this label.
pub fn pem(text: &str, label: &str) -> Option<Vec<u8>> {
    let inside = text.split_once(&format!("-----BEGIN {label}-----"))?.1;
    let inside = inside.split_once(&format!("-----END {label}-----"))?.0;
    let body: String = inside.chars().filter(|c| !c.is_whitespace()).collect();
    STANDARD.decode(body).ok()
}

/// Parses an RSA key in PEM.
pub fn private_key(text: &str) -> Option<RsaPrivateKey> {
    match pem(text, "PRIVATE KEY") {
        Some(der) => RsaPrivateKey::from_pkcs8_der(&der).ok(),
        None => RsaPrivateKey::from_pkcs1_der(&pem(text, "RSA PRIVATE KEY")?).ok(),
    }
}

/// Signs a JWT with RS256.
pub fn sign(key: &RsaPrivateKey, header: &Value, claims: &Value) -> Option<String> {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let text = format!("{}.{}", part(header), part(claims));
    // ASN.1 prefix of SHA-256.
    let prefix = [0x30, 0x31, 0x30, 0x0d, 6, 9, 0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 1, 5, 0, 4, 0x20];
    let scheme = Pkcs1v15Sign { hash_len: Some(32), prefix: prefix.into() };
    let signature = key.sign(scheme, &Sha256::digest(&text)).ok()?;
    Some(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)))
}
