//! Entries of a transparency log (Rekor), which prove that a signature was recorded, and when.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::trust_root::{Log, TrustRoot};
use super::{KeylessError, certificate, decode};

/// Signed content as recorded by the log.
pub(super) enum Signed<'a> {
    /// A blob with this digest.
    Blob { digest: Vec<u8>, signature: &'a [u8] },
    /// A DSSE envelope with this digest.
    Envelope { payload: Vec<u8>, signature: &'a [u8] },
}

/// An entry and its proofs.
#[derive(Debug)]
pub(super) struct Entry {
    log: Vec<u8>,
    index: u64,
    time: u64,
    body: Vec<u8>,
    /// The log's signature over the fields above.
    promise: Option<Vec<u8>>,
    proof: Option<Proof>,
}

/// Inclusion proof: the path from the entry to the root of the log's tree, and the log's signature over the
/// root.
#[derive(Debug)]
struct Proof {
    index: u64,
    size: u64,
    root: Vec<u8>,
    hashes: Vec<Vec<u8>>,
    checkpoint: String,
}

/// Numbers are strings in one format and numbers in the other.
fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

impl Entry {
    /// Parses the annotation `dev.sigstore.cosign/bundle`.
    pub(super) fn from_annotation(text: &str) -> Option<Self> {
        let bundle: Value = serde_json::from_str(text).ok()?;
        let payload = &bundle["Payload"];
        Some(Self {
            log: unhex(payload["logID"].as_str()?)?,
            index: number(&payload["logIndex"])?,
            time: number(&payload["integratedTime"])?,
            body: decode(&payload["body"])?,
            promise: Some(decode(&bundle["SignedEntryTimestamp"])?),
            proof: None,
        })
    }

    /// Parses an entry of a bundle.
    pub(super) fn from_bundle(entry: &Value) -> Option<Self> {
        let proof = match &entry["inclusionProof"] {
            Value::Null => None,
            proof => {
                let hashes = proof["hashes"].as_array().map(Vec::as_slice).unwrap_or_default();
                if hashes.len() > 64 {
                    return None;
                }
                Some(Proof {
                    index: number(&proof["logIndex"]).unwrap_or_default(),
                    size: number(&proof["treeSize"])?,
                    root: decode(&proof["rootHash"])?,
                    hashes: hashes.iter().map(decode).collect::<Option<_>>()?,
                    checkpoint: proof["checkpoint"]["envelope"].as_str()?.to_owned(),
                })
            }
        };
        Some(Self {
            log: decode(&entry["logId"]["keyId"])?,
            // Zero is omitted.
            index: number(&entry["logIndex"]).unwrap_or_default(),
            time: number(&entry["integratedTime"]).unwrap_or_default(),
            body: decode(&entry["canonicalizedBody"])?,
            promise: decode(&entry["inclusionPromise"]["signedEntryTimestamp"]),
            proof,
        })
    }

    /// Verifies the entry. Returns the time of the signature if the log has signed it.
    pub(super) fn verify(
        &self,
        root: &TrustRoot,
        about: &Signed<'_>,
        leaf: &[u8],
    ) -> Result<Option<u64>, KeylessError> {
        let wrong = KeylessError::Entry;
        let log = root.transparency_log(&self.log).ok_or(wrong("its log is not in the trusted root"))?;
        if let Some(promise) = &self.promise {
            // Canonical JSON: sorted keys, no blanks.
            let id: String = self.log.iter().map(|b| format!("{b:02x}")).collect();
            let signed = json!({"body": STANDARD.encode(&self.body), "integratedTime": self.time, "logID": id, "logIndex": self.index});
            if !log.key.verify(signed.to_string().as_bytes(), promise) {
                return Err(wrong("the log's signature does not match"));
            }
            if !log.valid_at(self.time) {
                return Err(wrong("the log's key was not valid then"));
            }
        }
        match &self.proof {
            Some(proof) => proof.verify(&self.body, log).map_err(wrong)?,
            None if self.promise.is_none() => return Err(wrong("it has neither a proof nor a promise")),
            None => {}
        }
        self.matches(about, leaf).map_err(wrong)?;
        Ok(self.promise.as_ref().map(|_| self.time))
    }

    /// Whether the log's key was valid at a time known from elsewhere.
    pub(super) fn valid_at(&self, root: &TrustRoot, when: u64) -> bool {
        root.transparency_log(&self.log).is_some_and(|log| log.valid_at(when))
    }

    /// Checks that the entry is about this signature and certificate.
    fn matches(&self, about: &Signed<'_>, leaf: &[u8]) -> Result<(), &'static str> {
        let body: Value = serde_json::from_slice(&self.body).map_err(|_| "its body is not JSON")?;
        let spec = &body["spec"];
        let same = |value: &Value, wanted: &[u8]| decode(value).is_some_and(|found| found == wanted);
        let digest = |value: &Value, wanted: &[u8]| {
            value["algorithm"].as_str() == Some("sha256")
                && value["value"].as_str().and_then(unhex).is_some_and(|found| found == wanted)
        };
        let holder = |value: &Value| {
            let pem = decode(value).and_then(|pem| String::from_utf8(pem).ok());
            pem.and_then(|pem| certificate::from_pem(&pem)).is_some_and(|der| der == leaf)
        };
        let matches = match (body["kind"].as_str(), body["apiVersion"].as_str(), about) {
            (Some("hashedrekord"), Some("0.0.1"), Signed::Blob { digest: wanted, signature }) => {
                let found = &spec["signature"];
                digest(&spec["data"]["hash"], wanted)
                    && same(&found["content"], signature)
                    && holder(&found["publicKey"]["content"])
            }
            (Some("dsse"), Some("0.0.1"), Signed::Envelope { payload, signature }) => {
                let signatures = spec["signatures"].as_array().map(Vec::as_slice).unwrap_or_default();
                let ours = |s: &Value| same(&s["signature"], signature) && holder(&s["verifier"]);
                digest(&spec["payloadHash"], payload) && signatures.iter().any(ours)
            }
            (Some("dsse"), Some("0.0.2"), Signed::Envelope { payload, signature }) => {
                let spec = &spec["dsseV002"];
                let signatures = spec["signatures"].as_array().map(Vec::as_slice).unwrap_or_default();
                let ours = |s: &Value| {
                    same(&s["content"], signature)
                        && same(&s["verifier"]["x509Certificate"]["rawBytes"], leaf)
                };
                spec["payloadHash"]["algorithm"].as_str() == Some("SHA2_256")
                    && same(&spec["payloadHash"]["digest"], payload)
                    && signatures.iter().any(ours)
            }
            (Some("intoto"), Some("0.0.2"), Signed::Envelope { payload, signature }) => {
                let content = &spec["content"];
                let signatures =
                    content["envelope"]["signatures"].as_array().map(Vec::as_slice).unwrap_or_default();
                // Encoded twice.
                let twice = |value: &Value| {
                    decode(value).and_then(|once| STANDARD.decode(once).ok()).is_some_and(|s| s == *signature)
                };
                let ours = |s: &Value| twice(&s["sig"]) && holder(&s["publicKey"]);
                digest(&content["payloadHash"], payload) && signatures.iter().any(ours)
            }
            _ => return Err("it is of a kind that is not supported"),
        };
        if matches { Ok(()) } else { Err("it is about another signature") }
    }
}

impl Proof {
    /// Verifies that the hashes lead to a root that the log has signed (RFC 9162, 2.1.3.2).
    fn verify(&self, body: &[u8], log: &Log) -> Result<(), &'static str> {
        if self.index >= self.size {
            return Err("its index lies outside of the log");
        }
        let (mut node, mut last) = (self.index, self.size - 1);
        let mut hash = Sha256::digest([&[0], body].concat()).to_vec();
        for other in &self.hashes {
            if last == 0 {
                return Err("its proof is too long");
            }
            if node & 1 == 1 || node == last {
                hash = inner(other, &hash);
                while node & 1 == 0 && node != 0 {
                    (node, last) = (node >> 1, last >> 1);
                }
            } else {
                hash = inner(&hash, other);
            }
            (node, last) = (node >> 1, last >> 1);
        }
        if last != 0 || hash != self.root {
            return Err("its proof does not lead to the root");
        }
        self.signed_root(log)
    }

    /// Verifies the checkpoint, a signed note with origin, size and root of the tree.
    fn signed_root(&self, log: &Log) -> Result<(), &'static str> {
        let malformed = "the checkpoint is malformed";
        let (text, signatures) = self.checkpoint.split_once("\n\n").ok_or(malformed)?;
        let text = format!("{text}\n");
        let mut lines = text.lines();
        lines.next().ok_or(malformed)?;
        let size: u64 = lines.next().and_then(|l| l.parse().ok()).ok_or(malformed)?;
        let root = lines.next().and_then(|l| STANDARD.decode(l).ok()).ok_or(malformed)?;
        if size != self.size || root != self.root {
            return Err("the checkpoint is about another tree");
        }
        let signed = signatures.lines().take(20).any(|line| {
            let encoded = line.strip_prefix("\u{2014} ").and_then(|l| l.rsplit_once(' '));
            let Some(bytes) = encoded.and_then(|(_, s)| STANDARD.decode(s).ok()) else { return false };
            // The first four bytes identify the key; others may have signed too.
            bytes.get(4..).is_some_and(|signature| log.key.verify(text.as_bytes(), signature))
        });
        if signed { Ok(()) } else { Err("the log has not signed the checkpoint") }
    }
}

fn inner(left: &[u8], right: &[u8]) -> Vec<u8> {
    Sha256::digest([&[1], left, right].concat()).to_vec()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    let digit = |b: u8| char::from(b).to_digit(16).and_then(|d| u8::try_from(d).ok());
    (digits.len().is_multiple_of(2))
        .then(|| digits.chunks(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect())?
}
