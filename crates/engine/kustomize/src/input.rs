//! Parses objects: splits documents and lists, and rejects what is not a Kubernetes object.

use fl_yaml::{Dialect, Duplicates, Node, Options};

use crate::tree::{self, is_nil_or_empty, metadata_text, text};

/// Why a text cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum InputError {
    /// It is not YAML.
    Yaml { line: u32, column: u32, message: String },
    /// It contains a value that is not a Kubernetes object.
    Object { line: u32, column: u32, message: String },
}

impl InputError {
    pub(crate) fn at(&self) -> (u32, u32) {
        match self {
            InputError::Yaml { line, column, .. } | InputError::Object { line, column, .. } => {
                (*line, *column)
            }
        }
    }

    pub(crate) fn message(&self) -> &str {
        match self {
            InputError::Yaml { message, .. } | InputError::Object { message, .. } => message,
        }
    }

    pub(crate) fn is_yaml(&self) -> bool {
        matches!(self, InputError::Yaml { .. })
    }
}

impl std::error::Error for InputError {}

impl std::fmt::Display for InputError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {}", self.at().0, self.message())
    }
}

/// The purpose of a text with objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Resources: duplicate keys are rejected.
    Objects,
    /// Patches: kustomize uses the first of duplicate keys.
    Patches,
}

/// Parses the first document by the rules of `sigs.k8s.io/yaml`; null if there is none.
pub(crate) fn read_one(bytes: &[u8]) -> Result<Node, InputError> {
    fl_yaml::parse_first(bytes, &Options::sigs())
        .map(Option::unwrap_or_default)
        .map_err(|e| InputError::Yaml { line: e.line, column: e.column, message: e.message })
}

/// Parses the objects of a text.
pub(crate) fn read_objects(bytes: &[u8], purpose: Purpose) -> Result<Vec<Node>, InputError> {
    let options = match purpose {
        Purpose::Objects => Options::v3(),
        Purpose::Patches => Options { duplicates: Duplicates::Keep, ..Options::v3() },
    };
    let crlf = memchr::memmem::find(bytes, b"\r\n").is_some();
    let unix;
    let bytes = if crlf {
        unix = replace_crlf(bytes);
        &unix[..]
    } else {
        bytes
    };
    let pieces = split(bytes)?;
    let single = pieces.len() == 1;
    let mut nodes = Vec::with_capacity(pieces.len());
    for (line, piece) in pieces {
        let document = fl_yaml::parse_first(piece, &options).map_err(|e| InputError::Yaml {
            line: e.line + line,
            column: e.column,
            message: e.message,
        })?;
        let Some(mut document) = document.filter(|d| !tree::is_null(d)) else { continue };
        note_schema_comments(&mut document, piece);
        if single && is_list(&document) {
            if let Some(items) = document.as_map_mut().and_then(|m| m.remove("items")) {
                nodes.extend(into_items(items).into_iter().map(|item| (item, line)));
            }
            continue;
        }
        nodes.push((document, line));
    }
    objects(nodes)
}

/// Keeps comments with JSON at the ends of lines: a merge reads them as schemas of the field on that line.
fn note_schema_comments(document: &mut Node, text: &[u8]) {
    if memchr::memmem::find(text, b"# {").is_none() && memchr::memmem::find(text, b"#{").is_none() {
        return;
    }
    let mut comments: Vec<(u32, &str)> = Vec::new();
    for (number, line) in (1..).zip(text.split(|b| *b == b'\n')) {
        let Some(at) = memchr::memmem::find(line, b" #") else { continue };
        let Ok(comment) = std::str::from_utf8(&line[at + 1..]) else { continue };
        if comment.trim_start_matches('#').trim_start().starts_with('{') {
            comments.push((number, comment.trim_end()));
        }
    }
    if !comments.is_empty() {
        attach_comments(document, &comments);
    }
}

fn attach_comments(node: &mut Node, comments: &[(u32, &str)]) {
    match &mut node.value {
        fl_yaml::Value::Map(map) => {
            for entry in map.iter_mut() {
                let line = entry.key.line();
                if let Ok(at) = comments.binary_search_by_key(&line, |(number, _)| *number) {
                    let same_line = entry.value.is_scalar() && entry.value.line() == line;
                    let holder = if same_line { &mut entry.value } else { &mut entry.key };
                    holder.extra_mut().line_comment = comments[at].1.into();
                }
                attach_comments(&mut entry.value, comments);
            }
        }
        fl_yaml::Value::Seq(items) => items.iter_mut().for_each(|item| attach_comments(item, comments)),
        fl_yaml::Value::Scalar(_) => {}
    }
}

fn is_list(document: &Node) -> bool {
    let kind = document.get("kind").map(text).unwrap_or_default();
    matches!(kind, "List" | "ResourceList")
        && (document.get("items").is_some() || document.get("functionConfig").is_some())
}

fn replace_crlf(bytes: &[u8]) -> Vec<u8> {
    let mut unix = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(at) = memchr::memmem::find(rest, b"\r\n") {
        unix.extend_from_slice(&rest[..at]);
        unix.push(b'\n');
        rest = &rest[at + 2..];
    }
    unix.extend_from_slice(rest);
    unix
}

/// Splits a text at lines that start with `---`, and counts the lines before each part.
fn split(bytes: &[u8]) -> Result<Vec<(u32, &[u8])>, InputError> {
    let mut pieces = Vec::new();
    let (mut start, mut start_line, mut from) = (0, 0, 0);
    while let Some(found) = memchr::memmem::find(&bytes[from..], b"\n---") {
        let at = from + found;
        let Some(end) = memchr::memchr(b'\n', &bytes[at + 1..]).map(|e| at + 1 + e) else { break };
        let after = bytes[at + 4..end].trim_ascii();
        let line = start_line + count_lines(&bytes[start..=at]);
        if after.first().is_some_and(|b| *b != b'#') {
            let message =
                format!("invalid document separator: ---{}", String::from_utf8_lossy(&bytes[at + 4..end]));
            return Err(InputError::Yaml { line: line + 1, column: 1, message });
        }
        // The line feed before the separator belongs to the document.
        pieces.push((start_line, &bytes[start..=at]));
        (start, start_line) = (end + 1, line + 1);
        // The line feed that ends a separator cannot begin the next one.
        from = end + 1;
    }
    pieces.push((start_line, &bytes[start..]));
    Ok(pieces)
}

fn count_lines(bytes: &[u8]) -> u32 {
    u32::try_from(memchr::memchr_iter(b'\n', bytes).count()).unwrap_or(u32::MAX)
}

/// Checks that the nodes are objects, and flattens lists.
fn objects(nodes: Vec<(Node, u32)>) -> Result<Vec<Node>, InputError> {
    let mut queue = std::collections::VecDeque::from(nodes);
    let mut done = Vec::with_capacity(queue.len());
    queue.retain(|(n, _)| !is_nil_or_empty(n));
    for (node, offset) in &queue {
        check(node, *offset)?;
    }
    while let Some((mut node, offset)) = queue.pop_front() {
        let is_list = node.get("kind").map(text).unwrap_or_default().ends_with("List");
        if !is_list || node.get("items").is_none() {
            done.push(node);
            continue;
        }
        let (at, kind) = (
            (node.line() + offset, node.column()),
            node.get("kind").map(text).unwrap_or_default().to_owned(),
        );
        let Some(items) = node.as_map_mut().and_then(|m| m.remove("items")) else { continue };
        if tree::is_null(&items) {
            continue;
        }
        if items.as_seq().is_none() {
            let message = format!("expected a list in the items of {kind}");
            return Err(InputError::Object { line: at.0, column: at.1, message });
        }
        for mut item in into_items(items) {
            // kustomize converts items through JSON.
            tree::through_json(&mut item).map_err(|error| InputError::Object {
                line: at.0,
                column: at.1,
                message: error.to_string(),
            })?;
            if is_nil_or_empty(&item) {
                continue;
            }
            check(&item, offset)?;
            if matches!(item.get("kind").map(text), Some("List" | "ResourceList")) && is_list_of_items(&item)
            {
                let inner = item.as_map_mut().and_then(|m| m.remove("items"));
                for node in inner.map(into_items).unwrap_or_default() {
                    check(&node, offset)?;
                    queue.push_back((node, offset));
                }
            } else {
                queue.push_back((item, offset));
            }
        }
    }
    Ok(done)
}

fn is_list_of_items(node: &Node) -> bool {
    node.get("items").is_some_and(|i| i.as_seq().is_some())
}

fn into_items(node: Node) -> fl_yaml::ThinVec<Node> {
    if let fl_yaml::Value::Seq(items) = node.value { items } else { fl_yaml::ThinVec::new() }
}

/// Checks that an object has a kind and, unless it is a list, a name. Its document starts after `offset`
/// lines.
fn check(node: &Node, offset: u32) -> Result<(), InputError> {
    let refuse = |message: &str| {
        let line = node.line() + offset;
        Err(InputError::Object { line, column: node.column(), message: message.to_owned() })
    };
    if node.as_map().is_none() {
        return refuse("missing Resource metadata: this is not an object");
    }
    let kind = node.get("kind").filter(|n| !is_nil_or_empty(n)).map(text).unwrap_or_default();
    if kind.is_empty() {
        return refuse("missing kind in object");
    }
    if !kind.ends_with("List") && metadata_text(node, "name").is_empty() {
        return refuse("missing metadata.name in object");
    }
    Ok(())
}

/// Why a text cannot be parsed as a list of JSON patch operations.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OperationsError {
    #[error(transparent)]
    Json(#[from] fl_yaml::Error),
    #[error(transparent)]
    Input(#[from] InputError),
    #[error(transparent)]
    Tag(#[from] tree::TagMismatch),
}

/// Parses JSON patch operations: JSON if the text starts with a bracket, else YAML.
pub(crate) fn read_operations(text: &str) -> Result<Node, OperationsError> {
    if text.starts_with('[') {
        return Ok(fl_yaml::from_json(text)?);
    }
    let mut node = read_one(text.as_bytes())?;
    tree::rewrite(&mut node, Dialect::Sigs)?;
    Ok(node)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<String> {
        let nodes = read_objects(text.as_bytes(), Purpose::Objects).expect("valid");
        nodes.iter().map(|n| tree::text(n.get("kind").expect("kind")).to_owned()).collect()
    }

    #[test]
    fn documents_and_lists_are_split() {
        let object = |kind: &str| format!("kind: {kind}\nmetadata: {{name: x}}\n");
        assert_eq!(kinds(&format!("---\n{}---\n# nothing\n---\n{}", object("A"), object("B"))), ["A", "B"]);
        assert_eq!(
            kinds("kind: List\nitems:\n- {kind: A, metadata: {name: a}}\n- {kind: B, metadata: {name: b}}\n")
                .len(),
            2
        );
        assert_eq!(kinds("kind: FooList\nitems:\n").len(), 0);
    }

    #[test]
    fn invalid_objects_are_rejected() {
        for text in ["kind: A\n", "metadata: {name: a}\n", "- a\n", "a: [\n", "a: b\n--- c\nd: e\n"] {
            assert!(read_objects(text.as_bytes(), Purpose::Objects).is_err(), "{text}");
        }
    }
}
