//! Operations on nodes as in kustomize's kyaml library.

use fl_yaml::SmolStr;
use fl_yaml::{Dialect, Node, Style, Tag, Value};

/// Whether a node is null.
pub(crate) fn is_null(node: &Node) -> bool {
    node.is_null(Dialect::V3)
}

/// Whether a node is null or an empty collection.
pub(crate) fn is_nil_or_empty(node: &Node) -> bool {
    match &node.value {
        Value::Map(map) => map.is_empty(),
        Value::Seq(items) => items.is_empty(),
        Value::Scalar(_) => is_null(node),
    }
}

/// The text of a scalar; empty for collections.
pub(crate) fn text(node: &Node) -> &str {
    node.as_text().unwrap_or_default()
}

/// A scalar without tag: its type follows from its text.
pub(crate) fn untagged(text: &str) -> Node {
    Node::plain(text)
}

/// Changes the text of a scalar and keeps its type.
pub(crate) fn set_text(node: &mut Node, text: impl Into<SmolStr>) {
    if node.tag == Tag::Auto {
        // kyaml keeps the tag that was resolved when the node was parsed.
        node.tag =
            if node.line() == 0 && !node.is_quoted() { Tag::Auto } else { node.short_tag(Dialect::V3) };
    }
    node.value = Value::Scalar(text.into());
}

/// Replaces a scalar and keeps its style.
pub(crate) fn replace_scalar(node: &mut Node, text: impl Into<SmolStr>, tag: Tag) -> Result<(), NotAScalar> {
    if !is_null(node) && !node.is_scalar() {
        return Err(NotAScalar(shape(node)));
    }
    let style = if node.is_scalar() { node.style } else { Style::Plain };
    let mut new = Node::plain(text);
    (new.tag, new.style) = (tag, style);
    overwrite(node, new);
    Ok(())
}

/// A node that should be a scalar.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("wrong node kind: expected a scalar but got {0}")]
pub(crate) struct NotAScalar(pub(crate) &'static str);

/// The kind of a node, for messages.
pub(crate) fn shape(node: &Node) -> &'static str {
    match node.value {
        Value::Map(_) => "a mapping",
        Value::Seq(_) => "a sequence",
        Value::Scalar(_) => "a scalar",
    }
}

/// Sets a field of a mapping to a scalar, in place with its old style, or at the end.
pub(crate) fn set_field(map: &mut fl_yaml::Map, name: &str, mut value: Node) {
    if let Some(old) = map.get_mut(name) {
        value.style = old.style;
        overwrite(old, value);
        return;
    }
    let stringy = matches!(value.tag, Tag::Auto | Tag::Str);
    if stringy && value.style == Style::Plain && needs_quotes(text(&value)) {
        value.style = Style::DoubleQuoted;
    }
    map.push(Node::string(name), value);
}

/// Whether a YAML 1.1 parser would not read a text as a string.
fn needs_quotes(text: &str) -> bool {
    !text.is_empty() && !matches!(fl_yaml::resolve_plain(text, Dialect::Sigs), fl_yaml::Scalar::Str(_))
}

/// The mapping at a path of keys, created if absent or null.
pub(crate) fn ensure_map<'a>(node: &'a mut Node, path: &[&str]) -> Option<&'a mut fl_yaml::Map> {
    let mut at = node;
    for key in path {
        at = at.as_map_mut()?.get_or_insert_with(key, Node::map);
    }
    at.as_map_mut()
}

/// `metadata`, if it is a mapping.
pub(crate) fn metadata(node: &Node) -> Option<&fl_yaml::Map> {
    node.get("metadata")?.as_map()
}

/// A string field of `metadata`, empty if absent.
pub(crate) fn metadata_text<'a>(node: &'a Node, field: &str) -> &'a str {
    metadata(node).and_then(|m| m.get(field)).filter(|n| !is_nil_or_empty(n)).map(text).unwrap_or_default()
}

/// The pairs of `metadata.labels` or `metadata.annotations` as texts.
pub(crate) fn metadata_pairs<'a>(node: &'a Node, field: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    metadata(node)
        .and_then(|m| m.get(field))
        .and_then(Node::as_map)
        .into_iter()
        .flatten()
        .map(|e| (text(&e.key), text(&e.value)))
}

/// One value of `metadata.labels` or `metadata.annotations`.
pub(crate) fn metadata_pair<'a>(node: &'a Node, field: &str, key: &str) -> Option<&'a str> {
    metadata(node)?.get(field)?.get(key).map(text)
}

/// Sets `metadata.labels` or `metadata.annotations`, sorted and as strings; removes the field if empty.
pub(crate) fn set_metadata_pairs(node: &mut Node, field: &str, mut pairs: Vec<(SmolStr, SmolStr)>) {
    let Some(metadata) = ensure_map(node, &["metadata"]) else { return };
    metadata.remove(field);
    if pairs.is_empty() {
        return;
    }
    pairs.sort();
    metadata.push(
        Node::string(SmolStr::new(field)),
        Node::from(Value::Map(pairs.into_iter().map(|(k, v)| (k, Node::string(v))).collect())),
    );
}

/// Converts all labels or annotations to strings, as kustomize does in many steps.
pub(crate) fn normalise_pairs(node: &mut Node, field: &str) {
    let pairs = metadata_pairs(node, field).map(|(k, v)| (SmolStr::new(k), SmolStr::new(v))).collect();
    set_metadata_pairs(node, field, pairs);
}

/// A scalar whose tag does not match its text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: `{text}` does not fit its tag")]
pub(crate) struct TagMismatch {
    line: u32,
    text: String,
}

/// Rewrites a tree as it is after a round trip through JSON: plain types only, numbers as floats. Before that
/// kustomize prints the tree as YAML and parses it again, which changes folded blocks and flow collections.
pub(crate) fn through_json(node: &mut Node) -> Result<(), TagMismatch> {
    through_text(node, false);
    rewrite(node, Dialect::V3)
}

fn through_text(node: &mut Node, in_brackets: bool) {
    let in_brackets = in_brackets || node.style == Style::Flow;
    match &mut node.value {
        Value::Map(map) => map.iter_mut().for_each(|entry| through_text(&mut entry.value, in_brackets)),
        Value::Seq(items) => items.iter_mut().for_each(|item| through_text(item, in_brackets)),
        Value::Scalar(content) => {
            let new = match (in_brackets, node.style) {
                // An empty value is printed as an empty string there.
                (true, _) if content.is_empty() => Node::string(""),
                (false, Style::Folded) => Node::string(fl_yaml::refolded(content)),
                _ => return,
            };
            let old = std::mem::replace(node, new);
            node.set_position_of(&old);
        }
    }
}

/// [`through_json`] with the scalars of `dialect`.
pub(crate) fn rewrite(node: &mut Node, dialect: Dialect) -> Result<(), TagMismatch> {
    match &mut node.value {
        Value::Map(map) => {
            for entry in map.iter_mut() {
                let name = SmolStr::new(text(&entry.key));
                let mut key = Node::string(name);
                key.set_position_of(&entry.key);
                entry.key = key;
                rewrite(&mut entry.value, dialect)?;
            }
        }
        Value::Seq(items) => {
            for item in items {
                rewrite(item, dialect)?;
            }
        }
        Value::Scalar(_) => {
            let scalar = node
                .scalar(dialect)
                .ok_or_else(|| TagMismatch { line: node.line(), text: text(node).to_owned() })?;
            let mut new = json_scalar(&scalar);
            new.set_position_of(node);
            *node = new;
        }
    }
    Ok(())
}

/// The largest integer up to which floats represent every integer.
const EXACT: u64 = 1 << 53;

fn json_scalar(scalar: &fl_yaml::Scalar<'_>) -> Node {
    use fl_yaml::Scalar;
    match scalar {
        Scalar::Null => Node::null(),
        Scalar::Bool(b) => Node::bool(*b),
        Scalar::Int(i) if i.unsigned_abs() <= EXACT => Node::int(*i),
        #[allow(clippy::cast_precision_loss)] // kustomize's conversion through JSON loses it, too
        Scalar::Int(i) => number(*i as f64),
        #[allow(clippy::cast_precision_loss)]
        Scalar::Uint(u) => number(*u as f64),
        Scalar::Float(f) => number(*f),
        Scalar::Str(s) => Node::string(*s),
        Scalar::Timestamp(t) => Node::string(t.as_str()),
        Scalar::Binary(bytes) => Node::string(String::from_utf8_lossy(bytes)),
    }
}

/// A number as in JSON: integral ones are integers again.
fn number(value: f64) -> Node {
    Node::plain(text(&Node::float(value)))
}

/// kustomize adds the same node to several fields when it sets a label, so a later change of one changes all.
/// Such shared nodes are marked with an anchor that no document can have.
const SHARED_MARK: char = '\u{0}';

/// Marks a node as one of the shared nodes of group `id`.
pub(crate) fn mark_shared(node: &mut Node, id: usize) {
    node.extra_mut().anchor = smol_str::format_smolstr!("{SHARED_MARK}{id}");
}

/// The mark of a shared node.
pub(crate) fn shared_mark(node: &Node) -> Option<&SmolStr> {
    node.extra().map(|e| &e.anchor).filter(|a| a.starts_with(SHARED_MARK))
}

/// Replaces a node, which may be shared.
pub(crate) fn overwrite(old: &mut Node, mut new: Node) {
    if new.is_scalar()
        && let Some(mark) = shared_mark(old)
    {
        new.extra_mut().anchor = mark.clone();
    }
    *old = new;
}

/// Removes all marks: a copy is not shared.
pub(crate) fn clear_shared_marks(node: &mut Node) {
    if shared_mark(node).is_some() {
        node.extra_mut().anchor = SmolStr::default();
    }
    match &mut node.value {
        Value::Map(map) => map.iter_mut().for_each(|e| clear_shared_marks(&mut e.value)),
        Value::Seq(items) => items.iter_mut().for_each(clear_shared_marks),
        Value::Scalar(_) => {}
    }
}

/// Makes all nodes of a group equal to the one that changed. `known` has the text of each group.
pub(crate) fn sync_shared_nodes(root: &mut Node, known: &mut [SmolStr]) {
    let mut changed: Vec<(usize, Node)> = Vec::new();
    each_shared_node(root, &mut |id, node| {
        if known.get(id).is_some_and(|text| *text != self::text(node))
            && !changed.iter().any(|(i, _)| *i == id)
        {
            changed.push((id, node.clone()));
        }
    });
    if changed.is_empty() {
        return;
    }
    for (id, node) in &changed {
        known[*id] = text(node).into();
    }
    each_shared_node(root, &mut |id, node| {
        if let Some((_, new)) = changed.iter().find(|(i, _)| *i == id) {
            *node = new.clone();
        }
    });
}

fn each_shared_node(node: &mut Node, visit: &mut dyn FnMut(usize, &mut Node)) {
    match &mut node.value {
        Value::Map(map) => map.iter_mut().for_each(|e| each_shared_node(&mut e.value, visit)),
        Value::Seq(items) => items.iter_mut().for_each(|item| each_shared_node(item, visit)),
        Value::Scalar(_) => {
            if let Some(id) = shared_mark(node).and_then(|mark| mark[1..].parse().ok()) {
                visit(id, node);
            }
        }
    }
}
