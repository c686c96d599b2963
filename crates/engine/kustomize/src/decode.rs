//! Decodes kustomizations and plugin configurations like Go's JSON decoder: names are case-insensitive, null
//! leaves a field empty, and a wrong type is an error with its line.

use fl_yaml::SmolStr;
use fl_yaml::{Dialect, Node, Scalar};

use crate::config::FieldSpec;
use crate::error::{Error, ErrorKind, Place};
use crate::resid::Gvk;

/// Strictness of the decoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Kustomizations: unknown fields and scalars of another type are rejected.
    Strict,
    /// Plugin configurations: unknown fields are ignored, scalars are converted to strings.
    Lenient,
    /// Transformer configurations: unknown fields are rejected, scalars are converted to strings.
    StrictNames,
}

/// Decodes one document.
#[derive(Debug, Clone)]
pub(crate) struct Decoder {
    pub(crate) place: Place,
    pub(crate) what: String,
    pub(crate) mode: Mode,
    /// The dialect of the scalars: that of the file, or of an already parsed tree.
    pub(crate) dialect: Dialect,
}

/// A value with its position.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Located<T> {
    /// The value.
    pub(crate) value: T,
    /// Line and column.
    pub(crate) at: (u32, u32),
}

/// The fields of one mapping.
pub(crate) struct Fields<'a> {
    decoder: &'a Decoder,
    found: Vec<(&'static str, &'a Node)>,
}

type Result<T> = std::result::Result<T, Error>;

impl Decoder {
    pub(crate) fn error_at(&self, node: &Node, reason: impl Into<String>) -> Error {
        let kind = ErrorKind::Invalid { what: self.what.clone(), reason: reason.into() };
        Error::new(self.place.at((node.line(), node.column())), kind)
    }

    fn is_null(&self, node: &Node) -> bool {
        node.is_null(self.dialect)
    }

    /// The fields of a mapping, by their known names.
    pub(crate) fn fields<'a>(&'a self, node: &'a Node, known: &[&'static str]) -> Result<Fields<'a>> {
        let mut found: Vec<(&'static str, &Node)> = Vec::new();
        if self.is_null(node) {
            return Ok(Fields { decoder: self, found });
        }
        let map = node.as_map().ok_or_else(|| self.error_at(node, "expected a mapping"))?;
        for entry in map {
            let name = entry.name().unwrap_or_default();
            let hit = known
                .iter()
                .find(|k| **k == name)
                .or_else(|| known.iter().find(|k| k.eq_ignore_ascii_case(name)));
            let Some(hit) = hit else {
                if self.mode == Mode::Lenient {
                    continue;
                }
                let kind = ErrorKind::UnknownField { what: self.what.clone(), field: name.to_owned() };
                return Err(Error::new(self.place.at((entry.key.line(), entry.key.column())), kind));
            };
            found.retain(|(k, _)| k != hit);
            found.push((hit, &entry.value));
        }
        Ok(Fields { decoder: self, found })
    }

    pub(crate) fn text(&self, node: &Node) -> Result<String> {
        let scalar = node.scalar(self.dialect).ok_or_else(|| self.error_at(node, "expected a string"))?;
        match scalar {
            Scalar::Str(s) => Ok(s.to_owned()),
            Scalar::Timestamp(s) => Ok(s),
            Scalar::Null => Ok(String::new()),
            Scalar::Binary(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            other if self.mode == Mode::Strict => Err(self.error_at(
                node,
                format!("cannot use {} where a string is wanted: put it in quotes", name_of(&other)),
            )),
            Scalar::Bool(b) => Ok(b.to_string()),
            Scalar::Int(i) => Ok(i.to_string()),
            Scalar::Uint(u) => Ok(u.to_string()),
            Scalar::Float(f) => Ok(crate::tree::text(&Node::float(f)).to_owned()),
        }
    }

    fn bool(&self, node: &Node) -> Result<bool> {
        match node.scalar(self.dialect) {
            Some(Scalar::Bool(b)) => Ok(b),
            Some(Scalar::Null) => Ok(false),
            _ => Err(self.error_at(node, "expected true or false")),
        }
    }

    fn int(&self, node: &Node) -> Result<i64> {
        match node.scalar(self.dialect) {
            Some(Scalar::Int(i)) => Ok(i),
            Some(Scalar::Null) => Ok(0),
            #[allow(clippy::cast_possible_truncation)] // checked: integral and in range
            Some(Scalar::Float(f)) if f.fract() == 0.0 && f.abs() < 9e15 => Ok(f as i64),
            _ => Err(self.error_at(node, "expected an integer")),
        }
    }

    pub(crate) fn items<'a>(&self, node: &'a Node) -> Result<&'a [Node]> {
        if self.is_null(node) {
            return Ok(&[]);
        }
        node.as_seq().ok_or_else(|| self.error_at(node, "expected a list"))
    }

    pub(crate) fn pairs(&self, node: &Node) -> Result<Vec<(SmolStr, SmolStr)>> {
        if self.is_null(node) {
            return Ok(Vec::new());
        }
        let map = node.as_map().ok_or_else(|| self.error_at(node, "expected a mapping of strings"))?;
        let mut pairs: Vec<(SmolStr, SmolStr)> = Vec::with_capacity(map.len());
        for entry in map {
            let key = SmolStr::new(crate::tree::text(&entry.key));
            pairs.retain(|(k, _)| *k != key);
            pairs.push((key, self.text(&entry.value)?.into()));
        }
        pairs.sort();
        Ok(pairs)
    }

    /// A field specification: kind, path and whether it is created.
    pub(crate) fn field_spec(&self, node: &Node) -> Result<FieldSpec> {
        let f = self.fields(node, &["group", "version", "kind", "path", "create"])?;
        Ok(FieldSpec { gvk: gvk(&f)?, path: f.text("path")?.into(), create: f.bool("create")? })
    }
}

/// Group, version and kind among other fields.
pub(crate) fn gvk(f: &Fields<'_>) -> Result<Gvk> {
    Ok(Gvk {
        group: f.text("group")?.into(),
        version: f.text("version")?.into(),
        kind: f.text("kind")?.into(),
    })
}

impl<'a> Fields<'a> {
    pub(crate) fn get(&self, name: &str) -> Option<&'a Node> {
        self.found.iter().find(|(k, _)| *k == name).map(|(_, n)| *n).filter(|n| !self.decoder.is_null(n))
    }

    /// Whether the field exists, even if it is null.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub(crate) fn text(&self, name: &str) -> Result<String> {
        self.get(name).map_or(Ok(String::new()), |n| self.decoder.text(n))
    }

    pub(crate) fn bool(&self, name: &str) -> Result<bool> {
        self.get(name).map_or(Ok(false), |n| self.decoder.bool(n))
    }

    pub(crate) fn int(&self, name: &str) -> Result<i64> {
        self.get(name).map_or(Ok(0), |n| self.decoder.int(n))
    }

    pub(crate) fn pairs(&self, name: &str) -> Result<Vec<(SmolStr, SmolStr)>> {
        self.get(name).map_or(Ok(Vec::new()), |n| self.decoder.pairs(n))
    }

    pub(crate) fn list<T>(&self, name: &str, read: impl Fn(&'a Node) -> Result<T>) -> Result<Vec<T>> {
        let Some(node) = self.get(name) else { return Ok(Vec::new()) };
        self.decoder.items(node)?.iter().map(read).collect()
    }

    pub(crate) fn texts(&self, name: &str) -> Result<Vec<Located<String>>> {
        self.list(name, |n| Ok(Located { value: self.decoder.text(n)?, at: (n.line(), n.column()) }))
    }

    pub(crate) fn field_specs(&self, name: &str) -> Result<Vec<FieldSpec>> {
        self.list(name, |n| self.decoder.field_spec(n))
    }

    /// Decodes an optional part.
    pub(crate) fn part<T>(&self, name: &str, read: impl Fn(&'a Node) -> Result<T>) -> Result<Option<T>> {
        self.get(name).map(read).transpose()
    }
}

fn name_of(scalar: &Scalar<'_>) -> &'static str {
    match scalar {
        Scalar::Bool(_) => "a boolean",
        _ => "a number",
    }
}
