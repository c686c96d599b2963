//! Pages of a listing, read as they come.

use serde::Deserialize;

use crate::key::unescape;
use crate::{Event, KeyError, Xml, XmlError};

/// Objects of one page; stores give a thousand, Azure five.
const MAX_OBJECTS: usize = 10_000;
/// Bytes of a page that are kept until its end.
const MAX_KEPT_BYTES: usize = 8 << 20;
/// Bytes of a page; it is read as it comes.
const LONGEST_PAGE: u64 = 64 << 20;
/// A key in its longest spelling, or a token.
const LONGEST_FIELD: usize = 16 << 10;

/// Whose words a listing is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    S3,
    /// The older listing, which continues after the last key.
    S3Markers,
    Azure,
    Google,
}

/// Why a listing cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ListError {
    #[error("the answer is not XML: {0}")]
    Xml(#[from] XmlError),
    #[error("the answer is not JSON: {0}")]
    Json(String),
    #[error("expected element type <{want}> but have <{found}>")]
    Root { want: &'static str, found: String },
    #[error("a page of the listing is too large")]
    Large,
    #[error("{0}")]
    Key(#[from] KeyError),
    #[error("invalid URL escape in the name of an object")]
    Escape,
    #[error("Truncated response should have continuation token set")]
    NoToken,
}

/// An object of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub key: String,
    pub etag: String,
}

/// One page of a listing, while it is read.
#[derive(Debug)]
pub struct Page {
    dialect: Dialect,
    reader: Reader,
    total: u64,
}

#[derive(Debug)]
enum Reader {
    Xml(Box<XmlPage>),
    Json(Vec<u8>),
}

impl Page {
    pub fn new(dialect: Dialect) -> Self {
        let reader = match dialect {
            Dialect::Google => Reader::Json(Vec::new()),
            _ => Reader::Xml(Box::new(XmlPage { dialect, ..XmlPage::default() })),
        };
        Self { dialect, reader, total: 0 }
    }

    /// Reads a piece.
    ///
    /// # Errors
    /// It is no listing, or too large.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), ListError> {
        self.total += bytes.len() as u64;
        if self.total > LONGEST_PAGE {
            return Err(ListError::Large);
        }
        match &mut self.reader {
            Reader::Json(all) if all.len() + bytes.len() > MAX_KEPT_BYTES => Err(ListError::Large),
            Reader::Json(all) => {
                all.extend_from_slice(bytes);
                Ok(())
            }
            Reader::Xml(page) => {
                let mut xml = std::mem::take(&mut page.xml);
                let result = xml.feed(bytes, &mut |event| page.event(event));
                page.xml = xml;
                result
            }
        }
    }

    /// The objects, and where the next page begins when there is one.
    ///
    /// # Errors
    /// The answer is cut short, or its names cannot be read.
    pub fn finish(self) -> Result<(Vec<Listed>, Option<String>), ListError> {
        match self.reader {
            Reader::Json(all) => google(&all),
            Reader::Xml(page) => {
                page.xml.finish()?;
                page.finish(self.dialect)
            }
        }
    }
}

/// What is being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Key,
    Etag,
    Truncated,
    Token,
    Marker,
    Encoding,
}

#[derive(Debug)]
struct XmlPage {
    dialect: Dialect,
    xml: Xml,
    /// The names that lead to where we are; deeper ones are only counted.
    path: [&'static str; 5],
    depth: usize,
    field: Option<Field>,
    text: Vec<u8>,
    kept: usize,
    key: String,
    /// Whether this name alone is escaped.
    escaped: bool,
    etag: String,
    objects: Vec<Listed>,
    truncated: bool,
    token: String,
    marker: String,
    encoding: String,
}

impl Default for XmlPage {
    fn default() -> Self {
        Self {
            dialect: Dialect::S3,
            xml: Xml::new(),
            path: [""; 5],
            depth: 0,
            field: None,
            text: Vec::new(),
            kept: 0,
            key: String::new(),
            escaped: false,
            etag: String::new(),
            objects: Vec::new(),
            truncated: false,
            token: String::new(),
            marker: String::new(),
            encoding: String::new(),
        }
    }
}

/// Names that mean something; all others are one.
const KNOWN: [&str; 14] = [
    "ListBucketResult",
    "Contents",
    "Key",
    "ETag",
    "IsTruncated",
    "NextContinuationToken",
    "NextMarker",
    "EncodingType",
    "EnumerationResults",
    "Blobs",
    "Blob",
    "Name",
    "Properties",
    "Etag",
];

impl XmlPage {
    fn event(&mut self, event: Event<'_>) -> Result<(), ListError> {
        match event {
            Event::Start { name, attributes } => self.start(name, attributes),
            Event::Text(text) => {
                if self.field.is_some() {
                    if self.text.len() + text.len() > LONGEST_FIELD {
                        return Err(ListError::Large);
                    }
                    self.text.extend_from_slice(text);
                }
                Ok(())
            }
            Event::End { .. } => self.end(),
        }
    }

    fn start(&mut self, name: &str, attributes: &str) -> Result<(), ListError> {
        let want = if self.dialect == Dialect::Azure { "EnumerationResults" } else { "ListBucketResult" };
        if self.depth == 0 && name != want {
            let found = name.chars().take(80).collect();
            return Err(ListError::Root { want, found });
        }
        if let Some(step) = self.path.get_mut(self.depth) {
            *step = KNOWN.iter().find(|known| **known == name).copied().unwrap_or("");
        }
        self.depth += 1;
        self.field = match self.path.get(1..self.depth).unwrap_or_default() {
            ["Contents", "Key"] => Some(Field::Key),
            ["Contents", "ETag"] => Some(Field::Etag),
            ["IsTruncated"] => Some(Field::Truncated),
            ["NextContinuationToken"] => Some(Field::Token),
            ["NextMarker"] => Some(Field::Marker),
            ["EncodingType"] => Some(Field::Encoding),
            ["Blobs", "Blob", "Name"] => {
                self.escaped =
                    attributes.contains("Encoded=\"true\"") || attributes.contains("Encoded='true'");
                Some(Field::Key)
            }
            ["Blobs", "Blob", "Properties", "Etag"] => Some(Field::Etag),
            _ => None,
        };
        self.text.clear();
        Ok(())
    }

    fn end(&mut self) -> Result<(), ListError> {
        if let Some(field) = self.field.take() {
            let bytes = std::mem::take(&mut self.text);
            self.kept += bytes.len();
            if self.kept > MAX_KEPT_BYTES {
                return Err(ListError::Large);
            }
            let text = String::from_utf8(bytes).map_err(|_| ListError::Key(KeyError::Encoding))?;
            match field {
                Field::Key => self.key = text,
                Field::Etag => self.etag = text,
                Field::Truncated => self.truncated = text.trim() == "true",
                Field::Token => self.token = text,
                Field::Marker => self.marker = text,
                Field::Encoding => self.encoding = text,
            }
        }
        self.depth = self.depth.saturating_sub(1);
        match self.path.get(1..=self.depth).unwrap_or_default() {
            ["Contents"] | ["Blobs", "Blob"] if self.depth == self.object_depth() => {
                if self.objects.len() >= MAX_OBJECTS {
                    return Err(ListError::Large);
                }
                let mut key = std::mem::take(&mut self.key);
                if std::mem::take(&mut self.escaped) {
                    // Azure writes a space as `%20`; a plus is a plus.
                    key = decoded(&key.replace('+', "%2B"))?;
                }
                self.objects.push(Listed { key, etag: std::mem::take(&mut self.etag) });
            }
            _ => {}
        }
        Ok(())
    }

    fn object_depth(&self) -> usize {
        if self.dialect == Dialect::Azure { 2 } else { 1 }
    }

    fn finish(self, dialect: Dialect) -> Result<(Vec<Listed>, Option<String>), ListError> {
        let mut objects = self.objects;
        let some = |text: String| Some(text).filter(|t| !t.is_empty());
        if dialect == Dialect::Azure {
            // The header of an object has its etag in quotes, and those are part of the revision.
            for object in &mut objects {
                if !object.etag.starts_with('"') {
                    object.etag = format!("\"{}\"", object.etag);
                }
            }
            return Ok((objects, some(self.marker)));
        }
        // Some servers say only at the end how names are written.
        let url = self.encoding == "url";
        for object in &mut objects {
            if url {
                object.key = decoded(&object.key)?;
            }
            let etag = object.etag.strip_prefix('"').unwrap_or(&object.etag);
            object.etag = etag.strip_suffix('"').unwrap_or(etag).to_owned();
        }
        if !self.truncated {
            return Ok((objects, None));
        }
        let next = if dialect == Dialect::S3Markers {
            let marker = some(self.marker);
            let marker = if url { marker.map(|m| decoded(&m)).transpose()? } else { marker };
            marker.or_else(|| objects.last().map(|o| o.key.clone()))
        } else {
            some(self.token)
        };
        next.map(|next| (objects, Some(next))).ok_or(ListError::NoToken)
    }
}

fn decoded(text: &str) -> Result<String, ListError> {
    let bytes = unescape(text).ok_or(ListError::Escape)?;
    String::from_utf8(bytes).map_err(|_| ListError::Key(KeyError::Encoding))
}

fn google(bytes: &[u8]) -> Result<(Vec<Listed>, Option<String>), ListError> {
    #[derive(Deserialize)]
    struct Answer {
        #[serde(default)]
        items: Vec<Item>,
        #[serde(default, rename = "nextPageToken")]
        next: String,
    }
    #[derive(Deserialize)]
    struct Item {
        name: String,
        #[serde(default)]
        etag: String,
    }
    let answer: Answer = serde_json::from_slice(bytes).map_err(|e| ListError::Json(e.to_string()))?;
    if answer.items.len() > MAX_OBJECTS {
        return Err(ListError::Large);
    }
    let objects = answer.items.into_iter().map(|i| Listed { key: i.name, etag: i.etag }).collect();
    Ok((objects, Some(answer.next).filter(|n| !n.is_empty())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys with their etags, and where the next page begins.
    type Read = (Vec<(String, String)>, Option<String>);

    fn read(dialect: Dialect, text: &str) -> Result<Read, ListError> {
        let mut page = Page::new(dialect);
        for piece in text.as_bytes().chunks(7) {
            page.feed(piece)?;
        }
        let (objects, next) = page.finish()?;
        Ok((objects.into_iter().map(|o| (o.key, o.etag)).collect(), next))
    }

    fn pair(key: &str, etag: &str) -> (String, String) {
        (key.to_owned(), etag.to_owned())
    }

    #[test]
    fn a_page_of_s3() {
        // The encoding may come last, and names of others than objects do not count.
        let text = r#"<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>b</Name><Prefix></Prefix><Key>no</Key>
<IsTruncated>true</IsTruncated><NextContinuationToken>t&amp;1</NextContinuationToken>
<Contents><Key>a%2Fb+c%26.yaml</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>&quot;abc-2&quot;</ETag>
<Owner><ID>1</ID><Key>no</Key><ETag>no</ETag></Owner></Contents><Contents><ETag>"e"</ETag><Key>z</Key></Contents>
<CommonPrefixes><Prefix>x</Prefix></CommonPrefixes><EncodingType>url</EncodingType></ListBucketResult>"#;
        let want = vec![pair("a/b c&.yaml", "abc-2"), pair("z", "e")];
        assert_eq!(read(Dialect::S3, text), Ok((want.clone(), Some("t&1".to_owned()))));
        assert_eq!(read(Dialect::S3Markers, text), Ok((want, Some("z".to_owned()))));
        let plain = text.replace("<EncodingType>url</EncodingType>", "").replace("true", "false");
        assert_eq!(read(Dialect::S3, &plain).expect("fine").0[0].0, "a%2Fb+c%26.yaml");
        assert_eq!(read(Dialect::S3, &plain).expect("fine").1, None);
    }

    #[test]
    fn a_page_of_azure() {
        let text = r#"<?xml version="1.0"?><EnumerationResults ServiceEndpoint="x" ContainerName="c"><Blobs>
<Blob><Name>a b.yaml</Name><Properties><Etag>0x8D</Etag><Content-MD5/></Properties></Blob>
<Blob><Name Encoded="true">x%EF%BF%BE+y</Name><Properties><Etag>0x9</Etag></Properties></Blob>
<BlobPrefix><Name>p/</Name></BlobPrefix></Blobs><NextMarker>m</NextMarker></EnumerationResults>"#;
        let want = vec![pair("a b.yaml", "\"0x8D\""), pair("x\u{fffe}+y", "\"0x9\"")];
        assert_eq!(read(Dialect::Azure, text), Ok((want, Some("m".to_owned()))));
        let end = text.replace("<NextMarker>m</NextMarker>", "<NextMarker />");
        assert_eq!(read(Dialect::Azure, &end).expect("fine").1, None);
    }

    #[test]
    fn a_page_of_google() {
        let text = r#"{"items": [{"name": "a/b", "etag": "CK="}], "nextPageToken": "t"}"#;
        assert_eq!(read(Dialect::Google, text), Ok((vec![pair("a/b", "CK=")], Some("t".to_owned()))));
        assert_eq!(read(Dialect::Google, "{}"), Ok((vec![], None)));
        assert!(read(Dialect::Google, "[").is_err());
    }

    /// E09: what is no listing, or too much of one.
    #[test]
    fn hostile_pages() {
        let list =
            |inside: &str| read(Dialect::S3, &format!("<ListBucketResult>{inside}</ListBucketResult>"));
        assert_eq!(
            read(Dialect::S3, "<html/>").expect_err("refused").to_string(),
            "expected element type <ListBucketResult> but have <html>"
        );
        assert_eq!(list("<IsTruncated>true</IsTruncated>"), Err(ListError::NoToken));
        let key = |key: &str| {
            list(&format!("<Contents><Key>{key}</Key></Contents><EncodingType>url</EncodingType>"))
        };
        assert_eq!(key("%zz"), Err(ListError::Escape));
        assert_eq!(key("%ff"), Err(ListError::Key(KeyError::Encoding)));
        assert_eq!(key(&"x".repeat(LONGEST_FIELD + 1)), Err(ListError::Large));
        assert_eq!(list(&"<Contents/>".repeat(MAX_OBJECTS + 1)), Err(ListError::Large));
        let big = format!("<Contents><Key>{}</Key></Contents>", "x".repeat(LONGEST_FIELD));
        assert_eq!(list(&big.repeat(600)), Err(ListError::Large));
        assert!(matches!(read(Dialect::S3, "<!DOCTYPE x>"), Err(ListError::Xml(_))));
        let mut page = Page::new(Dialect::S3);
        page.feed(b"<ListBucketResult>").expect("fine");
        let ended = (0..2000).find_map(|_| page.feed(&[b' '; 1 << 16]).err());
        assert_eq!(ended, Some(ListError::Large));
    }
}
