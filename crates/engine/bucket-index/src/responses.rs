//! Small answers of stores: refusals, regions, temporary credentials.

use fl_types::Secret;

use crate::{Event, Xml, XmlError};

/// Bytes of a text that are kept.
const MAX_RESPONSE_BYTES: usize = 16 << 10;

/// Why a store refuses, in its own words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusal {
    pub code: String,
    pub message: String,
    /// The region of the bucket, if the response names another one.
    pub region: String,
}

impl Refusal {
    /// Reads the body of a refusal; `None` when it is not one.
    pub fn read(body: &[u8]) -> Option<Self> {
        let [code, message, region] = texts(body, Some("Error"), ["Code", "Message", "Region"])?;
        Some(Self {
            code: code.unwrap_or_default(),
            message: message.unwrap_or_default(),
            region: region.unwrap_or_default(),
        })
    }

    /// The region of a bucket, out of the answer to the question for it.
    pub fn read_region(body: &[u8]) -> Option<String> {
        let [region] = texts(body, Some("LocationConstraint"), ["LocationConstraint"])?;
        region
    }
}

/// Keys for a while.
#[derive(Clone, Debug)]
pub struct S3Credentials {
    pub access_key: String,
    pub secret_key: Secret<String>,
    pub session_token: Secret<String>,
}

impl S3Credentials {
    /// Reads the answer of a token service.
    pub fn read(body: &[u8]) -> Option<Self> {
        let [access, secret, token] = texts(body, None, ["AccessKeyId", "SecretAccessKey", "SessionToken"])?;
        Some(Self {
            access_key: access.filter(|k| !k.is_empty())?,
            secret_key: Secret::new(secret.filter(|k| !k.is_empty())?),
            session_token: Secret::new(token.unwrap_or_default()),
        })
    }
}

/// The text of the first element of each name.
fn texts<const N: usize>(body: &[u8], root: Option<&str>, names: [&str; N]) -> Option<[Option<String>; N]> {
    let mut found: [Option<Vec<u8>>; N] = std::array::from_fn(|_| None);
    let (mut open, mut first) = (None, true);
    let mut xml = Xml::new();
    let read = xml.feed::<XmlError>(body, &mut |event| {
        match event {
            Event::Start { name, .. } => {
                if std::mem::take(&mut first) && root.is_some_and(|root| root != name) {
                    return Err(XmlError::Empty);
                }
                open = names.iter().position(|n| *n == name).filter(|i| found[*i].is_none());
                if let Some(i) = open {
                    found[i] = Some(Vec::new());
                }
            }
            Event::Text(text) => {
                if let Some(all) = open.and_then(|i: usize| found[i].as_mut())
                    && all.len() + text.len() <= MAX_RESPONSE_BYTES
                {
                    all.extend_from_slice(text);
                }
            }
            Event::End { .. } => open = None,
        }
        Ok(())
    });
    read.ok()?;
    xml.finish().ok()?;
    Some(found.map(|text| text.map(|t| String::from_utf8_lossy(&t).into_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_and_credentials() {
        let body = b"<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>";
        let refusal = Refusal::read(body).expect("a refusal");
        assert_eq!((refusal.code.as_str(), refusal.message.as_str()), ("AccessDenied", "Access Denied"));
        assert_eq!(Refusal::read(b"<html><Code>x</Code></html>"), None);
        assert_eq!(Refusal::read(b""), None);
        let region = |body: &str| Refusal::read_region(body.as_bytes());
        assert_eq!(
            region("<LocationConstraint xmlns=\"x\">garage</LocationConstraint>").as_deref(),
            Some("garage")
        );
        assert_eq!(region("<LocationConstraint/>").as_deref(), Some(""));
        let body = "<R><X><Credentials><AccessKeyId>a</AccessKeyId><SecretAccessKey>canary</SecretAccessKey><SessionToken>t</SessionToken></Credentials></X></R>";
        let keys = S3Credentials::read(body.as_bytes()).expect("keys");
        assert!(keys.access_key == "a" && !format!("{keys:?}").contains("canary"));
        assert!(S3Credentials::read(b"<R/>").is_none());
    }
}
