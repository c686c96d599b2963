//! Replacements: a value read from one object and written into others.

use fl_yaml::Node;

use super::plain_id;
use super::read::selector;
use crate::decode::{Decoder, Located, gvk};
use crate::error::Error;
use crate::ident::ResId;
use crate::selector::Selector;

type Result<T> = std::result::Result<T, Error>;

/// How a value is taken out of, or put into, a field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FieldOptions {
    /// The text that separates the parts of the field.
    pub(crate) delimiter: String,
    /// Which part is meant.
    pub(crate) index: i64,
    /// Whether a missing field is created.
    pub(crate) create: bool,
}

/// Where the value comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Source {
    /// The object.
    pub(crate) id: ResId,
    /// The field.
    pub(crate) field_path: String,
    /// Which part of the field.
    pub(crate) options: Option<FieldOptions>,
}

/// Where the value goes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Target {
    /// The objects.
    pub(crate) select: Option<Selector>,
    /// Those among them that are left alone.
    pub(crate) reject: Vec<Selector>,
    /// The fields.
    pub(crate) field_paths: Vec<String>,
    /// Which part of the fields.
    pub(crate) options: Option<FieldOptions>,
}

/// One replacement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Replacement {
    /// Where the value comes from.
    pub(crate) source: Option<Source>,
    /// The value itself, instead of a source.
    pub(crate) source_value: Option<String>,
    /// Where it goes; `None` when the field is missing.
    pub(crate) targets: Option<Vec<Target>>,
    /// Where the entry stands.
    pub(crate) at: (u32, u32),
}

fn options(d: &Decoder, node: &Node) -> Result<FieldOptions> {
    let f = d.fields(node, &["delimiter", "index", "encoding", "create"])?;
    // `encoding` exists in the format but kustomize does not act on it.
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

/// One entry of the `replacements` field: a replacement or the path of a file with some.
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
        return Err(d.refuse(node, "cannot specify both path and inline replacement"));
    }
    let at = f.get("path").map_or((0, 0), |n| (n.line(), n.column()));
    Ok((Some(Located { value: path, at }), replacement))
}

/// The replacements of a file: a list of them or a single one.
pub(crate) fn replacements(d: &Decoder, root: &Node) -> Result<Vec<Replacement>> {
    if root.as_seq().is_some() {
        return d.items(root)?.iter().map(|n| replacement(d, n)).collect();
    }
    if root.as_map().is_some() {
        return Ok(vec![replacement(d, root)?]);
    }
    Err(d.refuse(root, "expected a replacement or a list of them"))
}
