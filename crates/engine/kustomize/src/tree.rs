//! Small operations on nodes with the meaning they have in kustomize's tree library.

use fl_yaml::SmolStr;
use fl_yaml::{Dialect, Node, Style, Tag, Value};

/// Whether a node is null.
pub(crate) fn is_null(node: &Node) -> bool {
    node.is_null(Dialect::V3)
}

/// Null, or a collection without content.
pub(crate) fn is_nil_or_empty(node: &Node) -> bool {
    match &node.value {
        Value::Map(map) => map.is_empty(),
        Value::Seq(items) => items.is_empty(),
        Value::Scalar(_) => is_null(node),
    }
}

/// The text of a scalar; collections have the empty one.
pub(crate) fn text(node: &Node) -> &str {
    node.as_text().unwrap_or_default()
}

/// A scalar without tag: its type follows from its text.
pub(crate) fn untagged(text: &str) -> Node {
    Node::plain(text)
}

/// Changes the text of a scalar; the type stays what it was.
pub(crate) fn set_text(node: &mut Node, text: impl Into<SmolStr>) {
    if node.tag == Tag::Auto {
        // What the library resolved when it read the node sticks to it.
        node.tag =
            if node.line() == 0 && !node.is_quoted() { Tag::Auto } else { node.short_tag(Dialect::V3) };
    }
    node.value = Value::Scalar(text.into());
}

/// Puts a scalar in the place of a scalar; the way it is written stays.
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

/// A place that should hold a scalar holds something else.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("wrong node kind: expected a scalar but got {0}")]
pub(crate) struct NotAScalar(pub(crate) &'static str);

/// The name of a node's shape, for messages.
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

/// Whether a YAML 1.1 reader would take a text for something else than a string.
fn needs_quotes(text: &str) -> bool {
    !text.is_empty() && !matches!(fl_yaml::resolve_plain(text, Dialect::Sigs), fl_yaml::Scalar::Str(_))
}

/// The mapping at a path of keys, made where it is missing or null.
pub(crate) fn ensure_map<'a>(node: &'a mut Node, path: &[&str]) -> Option<&'a mut fl_yaml::Map> {
    let mut at = node;
    for key in path {
        at = at.as_map_mut()?.get_or_insert_with(key, Node::map);
    }
    at.as_map_mut()
}

/// `metadata`, when it is a mapping.
pub(crate) fn metadata(node: &Node) -> Option<&fl_yaml::Map> {
    node.get("metadata")?.as_map()
}

/// A text field of `metadata`, empty when missing.
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

/// Sets `metadata.labels` or `metadata.annotations` to these pairs, sorted, all of them strings; none removes the field.
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

/// Makes all labels or annotations strings: kustomize rewrites them so on many occasions.
pub(crate) fn normalise_pairs(node: &mut Node, field: &str) {
    let pairs = metadata_pairs(node, field).map(|(k, v)| (SmolStr::new(k), SmolStr::new(v))).collect();
    set_metadata_pairs(node, field, pairs);
}

/// Rewrites a tree as it comes back from JSON: plain types only, numbers as floating point ones. On its way there kustomize
/// writes the tree as YAML and reads it again, which does not keep everything that stands in a folded block or in brackets.
pub(crate) fn through_json(node: &mut Node) -> Result<(), String> {
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
                // Nothing at all is written as an empty string there.
                (true, _) if content.is_empty() => Node::string(""),
                (false, Style::Folded) => Node::string(fl_yaml::refolded(content)),
                _ => return,
            };
            let old = std::mem::replace(node, new);
            node.set_position_of(&old);
        }
    }
}

/// As [`through_json`], reading scalars by the rules of `dialect`.
pub(crate) fn rewrite(node: &mut Node, dialect: Dialect) -> Result<(), String> {
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
                .ok_or_else(|| format!("line {}: `{}` does not fit its tag", node.line(), text(node)))?;
            let mut new = json_scalar(&scalar);
            new.set_position_of(node);
            *node = new;
        }
    }
    Ok(())
}

/// The largest integer that a floating point number holds exactly.
const EXACT: u64 = 1 << 53;

fn json_scalar(scalar: &fl_yaml::Scalar<'_>) -> Node {
    use fl_yaml::Scalar;
    match scalar {
        Scalar::Null => Node::null(),
        Scalar::Bool(b) => Node::bool(*b),
        Scalar::Int(i) if i.unsigned_abs() <= EXACT => Node::int(*i),
        #[allow(clippy::cast_precision_loss)] // losing it is what the detour through JSON does
        Scalar::Int(i) => number(*i as f64),
        #[allow(clippy::cast_precision_loss)]
        Scalar::Uint(u) => number(*u as f64),
        Scalar::Float(f) => number(*f),
        Scalar::Str(s) => Node::string(*s),
        Scalar::Timestamp(t) => Node::string(t.as_str()),
        Scalar::Binary(bytes) => Node::string(String::from_utf8_lossy(bytes)),
    }
}

/// A number as JSON writes it, typed by its text: whole ones are integers again.
fn number(value: f64) -> Node {
    Node::plain(text(&Node::float(value)))
}

/// Kustomize adds one and the same node to several places when it sets a label, so what later changes one of them changes all.
/// Such twins carry a mark: an anchor of a name that no document can have.
const TWIN: char = '\u{0}';

/// Marks a node as one of the twins of number `id`.
pub(crate) fn mark_twin(node: &mut Node, id: usize) {
    node.extra_mut().anchor = smol_str::format_smolstr!("{TWIN}{id}");
}

/// The mark of a twin.
pub(crate) fn twin_mark(node: &Node) -> Option<&SmolStr> {
    node.extra().map(|e| &e.anchor).filter(|a| a.starts_with(TWIN))
}

/// Puts a node in the place of another, which may have twins.
pub(crate) fn overwrite(old: &mut Node, mut new: Node) {
    if new.is_scalar()
        && let Some(mark) = twin_mark(old)
    {
        new.extra_mut().anchor = mark.clone();
    }
    *old = new;
}

/// Forgets all twins: what is copied has none.
pub(crate) fn forget_twins(node: &mut Node) {
    if twin_mark(node).is_some() {
        node.extra_mut().anchor = SmolStr::default();
    }
    match &mut node.value {
        Value::Map(map) => map.iter_mut().for_each(|e| forget_twins(&mut e.value)),
        Value::Seq(items) => items.iter_mut().for_each(forget_twins),
        Value::Scalar(_) => {}
    }
}

/// Makes all twins equal to the one among them that changed. `known` has the text of each group, by number.
pub(crate) fn sync_twins(root: &mut Node, known: &mut [SmolStr]) {
    let mut changed: Vec<(usize, Node)> = Vec::new();
    each_twin(root, &mut |id, node| {
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
    each_twin(root, &mut |id, node| {
        if let Some((_, new)) = changed.iter().find(|(i, _)| *i == id) {
            *node = new.clone();
        }
    });
}

fn each_twin(node: &mut Node, visit: &mut dyn FnMut(usize, &mut Node)) {
    match &mut node.value {
        Value::Map(map) => map.iter_mut().for_each(|e| each_twin(&mut e.value, visit)),
        Value::Seq(items) => items.iter_mut().for_each(|item| each_twin(item, visit)),
        Value::Scalar(_) => {
            if let Some(id) = twin_mark(node).and_then(|mark| mark[1..].parse().ok()) {
                visit(id, node);
            }
        }
    }
}
