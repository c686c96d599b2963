//! Replacements: values of one object that are copied into others.

use fl_yaml::Node;

use super::plain_id;
use super::read::selector;
use crate::decode::{Decoder, Located, gvk};
use crate::error::Error;
use crate::resid::ResId;
use crate::selector::Selector;

type Result<T> = std::result::Result<T, Error>;

/// The part of a field that is read or written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FieldOptions {
    /// Delimiter of the parts.
    pub(crate) delimiter: String,
    /// Index of the part.
    pub(crate) index: i64,
    /// Whether an absent field is created.
    pub(crate) create: bool,
}

/// Source of the value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Source {
    /// The object.
    pub(crate) id: ResId,
    /// The field.
    pub(crate) field_path: String,
    /// The part of the field.
    pub(crate) options: Option<FieldOptions>,
}

/// Targets of the value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Target {
    /// The objects.
    pub(crate) select: Option<Selector>,
    /// Objects that are excluded.
    pub(crate) reject: Vec<Selector>,
    /// The fields.
    pub(crate) field_paths: Vec<String>,
    /// The part of the fields.
    pub(crate) options: Option<FieldOptions>,
}

/// One replacement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Replacement {
    /// The source of the value.
    pub(crate) source: Option<Source>,
    /// The value, instead of a source.
    pub(crate) source_value: Option<String>,
    /// The targets; `None` if the field is absent.
    pub(crate) targets: Option<Vec<Target>>,
    /// Position of the entry.
    pub(crate) at: (u32, u32),
}

fn options(d: &Decoder, node: &Node) -> Result<FieldOptions> {
    let f = d.fields(node, &["delimiter", "index", "encoding", "create"])?;
    // kustomize accepts `encoding` but ignores it.
    f.text("encoding")?;
    Ok(FieldOptions { delimiter: f.text("delimiter")?, index: f.int("index")?, create: f.bool("create")? })
}

fn source(d: &Decoder, node: &Node) -> Result<Source> {
    let f = d.fields(node, &["group", "version", "kind", "name", "namespace", "fieldPath", "options"])?;
    Ok(Source {
        id: plain_id(gvk(&f)?, f.text("name")?, f.text("namespace")?),
        field_path: f.text("fieldPath")?,
        options: f.part("options", |n| options(d, n))?,
    })
}

fn target(d: &Decoder, node: &Node) -> Result<Target> {
    let f = d.fields(node, &["select", "reject", "fieldPaths", "options"])?;
    Ok(Target {
        select: f.part("select", |n| selector(d, n))?,
        reject: f.list("reject", |n| selector(d, n))?,
        field_paths: f.texts("fieldPaths")?.into_iter().map(|l| l.value).collect(),
        options: f.part("options", |n| options(d, n))?,
    })
}

/// One replacement of a file.
fn replacement(d: &Decoder, node: &Node) -> Result<Replacement> {
    Ok(replacement_entry(d, node)?.1)
}

/// An entry of `replacements`: a replacement or the path of a file with some.
pub(crate) fn replacement_entry(d: &Decoder, node: &Node) -> Result<(Option<Located<String>>, Replacement)> {
    let f = d.fields(node, &["path", "source", "sourceValue", "targets"])?;
    let path = f.text("path")?;
    let replacement = Replacement {
        source: f.part("source", |n| source(d, n))?,
        source_value: f.part("sourceValue", |n| d.text(n))?,
        targets: f.get("targets").map(|_| f.list("targets", |n| target(d, n))).transpose()?,
        at: (node.line(), node.column()),
    };
    if path.is_empty() {
        return Ok((None, replacement));
    }
    if replacement.source.is_some() || replacement.targets.as_ref().is_some_and(|t| !t.is_empty()) {
        return Err(d.error_at(node, "cannot specify both path and inline replacement"));
    }
    let at = f.get("path").map_or((0, 0), |n| (n.line(), n.column()));
    Ok((Some(Located { value: path, at }), replacement))
}

/// The replacements of a file: a list or a single one.
pub(crate) fn replacements(d: &Decoder, root: &Node) -> Result<Vec<Replacement>> {
    if root.as_seq().is_some() {
        return d.items(root)?.iter().map(|n| replacement(d, n)).collect();
    }
    if root.as_map().is_some() {
        return Ok(vec![replacement(d, root)?]);
    }
    Err(d.error_at(root, "expected a replacement or a list of them"))
}
