//! Service account tokens: JWTs signed with the server's key (ES256).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, UnparsedPublicKey,
};
use serde_json::{Value, json};

/// The key that signs tokens.
#[derive(Debug)]
pub(crate) struct Signer {
    key: EcdsaKeyPair,
    random: SystemRandom,
    id: String,
}

impl Signer {
    /// Generates a key in PKCS#8 form.
    pub(crate) fn generate() -> Result<Vec<u8>, String> {
        let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
        made.map(|d| d.as_ref().to_vec()).map_err(|_| "cannot make a signing key".to_owned())
    }

    pub(crate) fn from_pkcs8(bytes: &[u8]) -> Result<Self, String> {
        let random = SystemRandom::new();
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, bytes, &random)
            .map_err(|e| format!("the token signing key is not usable: {e}"))?;
        let id = BASE64.encode(ring::digest::digest(&ring::digest::SHA256, key.public_key().as_ref()));
        Ok(Self { key, random, id })
    }

    pub(crate) fn sign(&self, claims: &Value) -> Result<String, String> {
        let header = json!({"alg": "ES256", "kid": self.id});
        let text = format!("{}.{}", BASE64.encode(header.to_string()), BASE64.encode(claims.to_string()));
        let signature =
            self.key.sign(&self.random, text.as_bytes()).map_err(|_| "cannot sign a token".to_owned())?;
        Ok(format!("{text}.{}", BASE64.encode(signature)))
    }

    /// The claims of a token signed by this key.
    pub(crate) fn verify(&self, token: &str) -> Option<Value> {
        let (text, signature) = token.rsplit_once('.')?;
        let (header, claims) = text.split_once('.')?;
        let header: Value = serde_json::from_slice(&BASE64.decode(header).ok()?).ok()?;
        if header.get("alg") != Some(&json!("ES256")) {
            return None;
        }
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.key.public_key().as_ref());
        public.verify(text.as_bytes(), &BASE64.decode(signature).ok()?).ok()?;
        serde_json::from_slice(&BASE64.decode(claims).ok()?).ok()
    }

    /// The public key for `/openid/v1/jwks`.
    pub(crate) fn jwks(&self) -> Value {
        let point = self.key.public_key().as_ref();
        // Uncompressed point: 0x04, x, y.
        let (x, y) = (&point[1..33], &point[33..65]);
        json!({"keys": [{"use": "sig", "kty": "EC", "kid": self.id, "crv": "P-256", "alg": "ES256",
            "x": BASE64.encode(x), "y": BASE64.encode(y)}]})
    }
}

/// Generates a signing key in PKCS#8 form.
pub fn generate_signing_key() -> Result<Vec<u8>, String> {
    Signer::generate()
}

/// A random bearer token.
#[must_use]
pub fn random_token() -> Option<String> {
    let mut bytes = [0u8; 32];
    ring::rand::SecureRandom::fill(&SystemRandom::new(), &mut bytes).ok()?;
    Some(bytes.iter().map(|b| format!("{b:02x}")).collect())
}
