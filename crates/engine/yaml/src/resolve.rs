//! Resolves the type of scalars as Go's two libraries do.

use std::borrow::Cow;

use crate::error::{Error, Stage};
use crate::node::{Node, Tag, Value};
use crate::{base64, number, timestamp};

/// The library whose rules decide the type of plain scalars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// `yaml.v3`, used by kustomize: `yes` is a string, dates are timestamps.
    V3,
    /// `sigs.k8s.io/yaml` (on `yaml.v2`), used by Helm, kubectl and the API server: `yes`, `on`, `n` are
    /// booleans, dates are strings.
    Sigs,
}

/// A typed scalar.
#[derive(Debug, Clone, PartialEq)]
pub enum Scalar<'a> {
    /// `null`, `~` or empty.
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer that fits 64 bits with sign.
    Int(i64),
    /// A larger integer that fits 64 bits without sign.
    Uint(u64),
    /// A floating point number.
    Float(f64),
    /// A string.
    Str(&'a str),
    /// A timestamp in RFC 3339, as Go prints it ([`Dialect::V3`] only).
    Timestamp(String),
    /// The bytes of a `!!binary`.
    Binary(Vec<u8>),
}

impl Scalar<'_> {
    /// Its tag.
    #[must_use]
    pub fn tag(&self) -> Tag {
        match self {
            Scalar::Null => Tag::Null,
            Scalar::Bool(_) => Tag::Bool,
            Scalar::Int(_) | Scalar::Uint(_) => Tag::Int,
            Scalar::Float(_) => Tag::Float,
            Scalar::Str(_) => Tag::Str,
            Scalar::Timestamp(_) => Tag::Timestamp,
            Scalar::Binary(_) => Tag::Binary,
        }
    }
}

/// Resolves a plain scalar without tag.
#[must_use]
pub fn resolve_plain(text: &str, dialect: Dialect) -> Scalar<'_> {
    let Some(&first) = text.as_bytes().first() else { return Scalar::Null };
    match first {
        b'+' | b'-' | b'0'..=b'9' => {
            if let Some(special) = special_float(text) {
                return special;
            }
            if let Some(time) = timestamp::parse(text) {
                // `yaml.v2` recognises the timestamp, too, but returns its text for compatibility.
                return if dialect == Dialect::V3 { Scalar::Timestamp(time) } else { Scalar::Str(text) };
            }
            number::parse(text, dialect).unwrap_or(Scalar::Str(text))
        }
        b'.' => special_float(text)
            .or_else(|| number::parse_dotted(text).map(Scalar::Float))
            .unwrap_or(Scalar::Str(text)),
        b'~' if text.len() == 1 => Scalar::Null,
        b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' if text.len() <= 5 => {
            keyword(text, dialect).unwrap_or(Scalar::Str(text))
        }
        _ => Scalar::Str(text),
    }
}

fn keyword(text: &str, dialect: Dialect) -> Option<Scalar<'static>> {
    Some(match text {
        "true" | "True" | "TRUE" => Scalar::Bool(true),
        "false" | "False" | "FALSE" => Scalar::Bool(false),
        "null" | "Null" | "NULL" => Scalar::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" if dialect == Dialect::Sigs => {
            Scalar::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" if dialect == Dialect::Sigs => {
            Scalar::Bool(false)
        }
        _ => return None,
    })
}

fn special_float(text: &str) -> Option<Scalar<'static>> {
    Some(Scalar::Float(match text {
        ".nan" | ".NaN" | ".NAN" => f64::NAN,
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => f64::INFINITY,
        "-.inf" | "-.Inf" | "-.INF" => f64::NEG_INFINITY,
        _ => return None,
    }))
}

/// The tag of a plain scalar without tag. Unlike [`resolve_plain`], returns `Timestamp` in both dialects.
pub(crate) fn tag_of(text: &str, dialect: Dialect) -> Tag {
    match resolve_plain(text, dialect) {
        Scalar::Str(_) if dialect == Dialect::Sigs && looks_like_time(text) => Tag::Timestamp,
        scalar => scalar.tag(),
    }
}

fn looks_like_time(text: &str) -> bool {
    text.as_bytes().first().is_some_and(u8::is_ascii_digit) && timestamp::parse(text).is_some()
}

/// Resolves a text with `tag`, which was quoted or not; see [`Node::scalar`] for nodes.
///
/// # Errors
/// The tag does not match the text (`!!int x`).
pub fn resolve(text: &str, quoted: bool, tag: Tag, dialect: Dialect) -> Result<Scalar<'_>, Error> {
    let (string, plain) = (Ok(Scalar::Str(text)), || resolve_plain(text, dialect));
    let wanted = match tag {
        Tag::Auto if quoted => return string,
        Tag::Auto => return Ok(plain()),
        Tag::NonSpecific if dialect == Dialect::Sigs || quoted => return string,
        Tag::NonSpecific => return Ok(plain()),
        Tag::Str | Tag::Custom | Tag::Merge | Tag::Map | Tag::Seq => return string,
        Tag::Binary => {
            return base64::decode(text)
                .map(Scalar::Binary)
                .ok_or_else(|| mismatch("!!binary value contains invalid base64 data".to_owned()));
        }
        tag => tag,
    };
    let found = match plain() {
        // Only untagged and `!!timestamp` scalars are parsed as timestamps.
        Scalar::Timestamp(_) if wanted != Tag::Timestamp => Scalar::Str(text),
        found => found,
    };
    match (wanted, found) {
        (Tag::Float, Scalar::Int(i)) => Ok(Scalar::Float(i as f64)),
        (Tag::Timestamp, Scalar::Str(_)) if looks_like_time(text) => string,
        (_, found) if found.tag() == wanted => Ok(found),
        (_, found) => {
            Err(mismatch(format!("cannot decode {} `{text}` as a {}", found.tag().as_str(), wanted.as_str())))
        }
    }
}

fn mismatch(message: String) -> Error {
    Error::at(Stage::Decoder, 0, 0, message)
}

/// The typed value of a scalar node; the error has its position.
pub(crate) fn resolve_node(node: &Node, dialect: Dialect) -> Result<Scalar<'_>, Error> {
    let place = |mut e: Error| {
        (e.line, e.column) = (node.line().max(1), node.column().max(1));
        e
    };
    match &node.value {
        Value::Scalar(text) => resolve(text, node.is_quoted(), node.tag, dialect).map_err(place),
        _ => Err(place(mismatch("a collection is not a scalar".to_owned()))),
    }
}

impl Tag {
    /// The short form (`!!int`); empty for tags that are not core ones.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Tag::Auto | Tag::Custom => "",
            Tag::Str => "!!str",
            Tag::Int => "!!int",
            Tag::Float => "!!float",
            Tag::Bool => "!!bool",
            Tag::Null => "!!null",
            Tag::Timestamp => "!!timestamp",
            Tag::Binary => "!!binary",
            Tag::Merge => "!!merge",
            Tag::Map => "!!map",
            Tag::Seq => "!!seq",
            Tag::NonSpecific => "!",
        }
    }

    /// Parses a full or short tag.
    #[must_use]
    pub fn from_text(text: &str) -> Tag {
        let short = text
            .strip_prefix("tag:yaml.org,2002:")
            .map_or(Cow::Borrowed(text), |s| Cow::Owned(format!("!!{s}")));
        match &*short {
            "" => Tag::Auto,
            "!" => Tag::NonSpecific,
            "!!str" => Tag::Str,
            "!!int" => Tag::Int,
            "!!float" => Tag::Float,
            "!!bool" => Tag::Bool,
            "!!null" => Tag::Null,
            "!!timestamp" => Tag::Timestamp,
            "!!binary" => Tag::Binary,
            "!!merge" => Tag::Merge,
            "!!map" => Tag::Map,
            "!!seq" => Tag::Seq,
            _ => Tag::Custom,
        }
    }
}
