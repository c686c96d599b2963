//! Splits template output into manifests and parses their heads.

use std::collections::BTreeMap;

use crate::decode::{self, DecodeError, Decoder};

/// One manifest of a release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// Template that the manifest comes from.
    pub source: String,
    /// `apiVersion`
    pub api_version: String,
    /// `kind`
    pub kind: String,
    /// `metadata.name`
    pub name: String,
    /// Text, trimmed.
    pub content: String,
}

/// The fields of a manifest that Helm uses.
#[derive(Debug, Default)]
pub(crate) struct Head {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) annotations: BTreeMap<String, String>,
}

/// The root fields of a head.
const HEAD_FIELDS: &[&str] = &["apiVersion", "kind", "metadata"];

impl Head {
    /// Parses the head of a manifest; the whole text must be valid YAML.
    pub(crate) fn read(text: &str) -> Result<Self, DecodeError> {
        let document =
            decode::outline(text.as_bytes(), |key| HEAD_FIELDS.iter().any(|k| k.eq_ignore_ascii_case(key)))?;
        let mut head = Self::default();
        let mut d = Decoder::default();
        d.fields(&document, "releaseutil.SimpleHead", "SimpleHead", HEAD_FIELDS, |d, field, node| match field {
            "apiVersion" => d.string(node, "SimpleHead", field, &mut head.api_version),
            "kind" => d.string(node, "SimpleHead", field, &mut head.kind),
            _ => {
                let go_type = "struct { Name string \"json:\\\"name\\\"\"; Annotations map[string]string \"json:\\\"annotations\\\"\" }";
                d.fields(node, go_type, "SimpleHead.metadata", &["name", "annotations"], |d, field, node| {
                    match field {
                        "name" => d.string(node, ".metadata", field, &mut head.name),
                        _ => d.string_map(node, ".metadata.annotations", &mut head.annotations),
                    }
                });
                true
            }
        });
        d.finish()?;
        Ok(head)
    }
}

fn is_space(b: u8) -> bool {
    matches!(b, b' ' | b'\t' | b'\n' | b'\x0c' | b'\r')
}

/// Splits text at lines that start with `---`. White space around a separator is dropped; a second `---`
/// right after one does not split again.
pub fn split_manifests(text: &str) -> Vec<&str> {
    let text = text.trim();
    let bytes = text.as_bytes();
    let skip_blanks = |mut at: usize| {
        while at < bytes.len() && is_space(bytes[at]) {
            at += 1;
        }
        at
    };
    let mut pieces = Vec::new();
    let mut start = if text.starts_with("---") { skip_blanks(3) } else { 0 };
    loop {
        let cut = memchr::memmem::find(&bytes[start..], b"\n---").map(|i| start + i);
        let mut end = cut.unwrap_or(bytes.len());
        while end > start && is_space(bytes[end - 1]) {
            end -= 1;
        }
        if end > start {
            pieces.push(text[start..end].trim());
        }
        match cut {
            Some(cut) => start = skip_blanks(cut + 4),
            None => return pieces,
        }
    }
}

/// Like [`split_manifests`] with Helm 4's rule: white space after the last document is kept.
pub fn split_documents(text: &str) -> Vec<&str> {
    let text = text.trim_start();
    let bytes = text.as_bytes();
    let skip_blanks = |mut at: usize| {
        while at < bytes.len() && is_space(bytes[at]) {
            at += 1;
        }
        at
    };
    let mut pieces = Vec::new();
    let mut start = if text.starts_with("---") { skip_blanks(3) } else { 0 };
    loop {
        let cut = memchr::memmem::find(&bytes[start..], b"\n---").map(|i| start + i);
        let mut end = cut.unwrap_or(bytes.len());
        while cut.is_some() && end > start && is_space(bytes[end - 1]) {
            end -= 1;
        }
        let piece = text[start..end].trim_start();
        if !piece.is_empty() {
            pieces.push(piece);
        }
        match cut {
            Some(cut) => start = skip_blanks(cut + 4),
            None => return pieces,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_split_as_in_helm() {
        assert_eq!(split_manifests("---\na: 1\n---\nb: 2\n"), ["a: 1", "b: 2"]);
        assert_eq!(split_manifests("a: 1\n---\n---\nb: 2"), ["a: 1", "---\nb: 2"]);
        assert_eq!(split_manifests("a: 1 \n\n--- # note\nb: 2"), ["a: 1", "# note\nb: 2"]);
        assert_eq!(split_manifests("a: |\n  x ---\n  y"), ["a: |\n  x ---\n  y"]);
        assert_eq!(split_manifests("---\n"), Vec::<&str>::new());
        assert_eq!(split_manifests("a\n----\nb"), ["a", "-\nb"]);
    }

    #[test]
    fn the_last_document_keeps_its_end() {
        assert_eq!(split_documents("---\na: 1\n---\nb: 2\n"), ["a: 1", "b: 2\n"]);
        assert_eq!(split_documents("\n a: 1 \n"), ["a: 1 \n"]);
        assert_eq!(split_documents("---\n\n"), Vec::<&str>::new());
    }

    #[test]
    fn numbers_in_heads_become_strings() {
        let head =
            Head::read("kind: 5\nmetadata: {name: 1.50, annotations: {a: 1, b: true, c: }}").expect("a head");
        assert_eq!((head.kind.as_str(), head.name.as_str()), ("5", "1.5"));
        assert_eq!(head.annotations["a"], "1");
        assert_eq!(head.annotations["b"], "true");
        assert!(Head::read("[a]").is_err());
        assert!(Head::read("metadata: {annotations: {a: [1]}}").is_err());
    }
}
