//! JSON patches (RFC 6902) like the library that kustomize uses: negative indexes count from the end.

use fl_yaml::{Dialect, JsonStyle, Node, Value};

use crate::tree::{self, text};

/// The action of an operation.
#[derive(Debug, Clone, PartialEq)]
enum Action {
    Add(Node),
    Remove,
    Replace(Node),
    Move(Pointer),
    Copy(Pointer),
    /// `None` if the operation has no value.
    Test(Option<Node>),
}

/// One operation.
#[derive(Debug, Clone, PartialEq)]
struct Operation {
    word: String,
    path: Pointer,
    action: Action,
}

/// A parsed JSON pointer.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Pointer {
    text: String,
    steps: Vec<String>,
}

/// Why a patch is invalid or does not apply, with the operation and its path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonPatchError {
    /// The text is not a list of operations.
    #[error("not a JSON patch: {0}")]
    Format(String),
    /// An unknown operation.
    #[error("operation {index}: unknown operation `{word}`")]
    Word {
        /// Its index in the patch.
        index: usize,
        /// The word.
        word: String,
    },
    /// An operation that does not apply to the object.
    #[error("{word} operation {index} does not apply at `{path}`: {reason}")]
    Apply {
        /// The operation.
        word: String,
        /// Its index in the patch.
        index: usize,
        /// The pointer.
        path: String,
        /// Why.
        reason: &'static str,
        /// The message of the library that kustomize uses.
        upstream: String,
    },
}

impl JsonPatchError {
    /// kustomize's message.
    #[must_use]
    pub fn upstream(&self) -> String {
        match self {
            Self::Apply { upstream, .. } => upstream.clone(),
            Self::Word { word, .. } => format!("Unexpected kind: {word}"),
            Self::Format(_) => self.to_string(),
        }
    }
}

/// A list of operations.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonPatch {
    operations: Vec<Operation>,
}

/// Limit on the nodes of a patched object: added values are copies.
const MAX_NODES: usize = 4_000_000;

impl Pointer {
    fn new(text: &str) -> Self {
        let steps = text.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~")).collect();
        Self { text: text.to_owned(), steps }
    }
}

impl JsonPatch {
    /// Parses a patch: JSON if it starts with a bracket, else YAML.
    ///
    /// # Errors
    /// The text is not a list of operations.
    pub fn parse(patch: &str) -> Result<Self, JsonPatchError> {
        let root = crate::input::read_operations(patch)
            .map_err(|error| JsonPatchError::Format(error.to_string()))?;
        if tree::is_null(&root) {
            return Ok(Self { operations: Vec::new() });
        }
        let items = root.as_seq().ok_or_else(|| JsonPatchError::Format("expected a list".to_owned()))?;
        let operations =
            items.iter().enumerate().map(|(i, item)| operation(i, item)).collect::<Result<_, _>>()?;
        Ok(Self { operations })
    }

    /// Whether it has no operation.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Applies all operations in order.
    ///
    /// # Errors
    /// The first operation that does not apply.
    pub fn apply(&self, object: &mut Node) -> Result<(), JsonPatchError> {
        let mut nodes = object.count();
        for (index, operation) in self.operations.iter().enumerate() {
            nodes += apply(object, operation).map_err(|why| JsonPatchError::Apply {
                word: operation.word.clone(),
                index,
                path: operation.path.text.clone(),
                reason: why.reason,
                upstream: why.upstream,
            })?;
            if nodes > MAX_NODES {
                return Err(JsonPatchError::Format("the patched object grows beyond all limits".to_owned()));
            }
        }
        Ok(())
    }
}

fn operation(index: usize, item: &Node) -> Result<Operation, JsonPatchError> {
    let format = |reason: &str| JsonPatchError::Format(format!("operation {index}: {reason}"));
    if item.as_map().is_none() {
        return Err(format("expected a mapping"));
    }
    let word = item.get("op").and_then(|n| n.as_str(Dialect::V3)).unwrap_or("unknown").to_owned();
    let pointer = |field: &str| match item.get(field) {
        Some(node) => node.as_str(Dialect::V3).map(Pointer::new).ok_or_else(|| format("the path is no text")),
        None => Err(format(&format!("`{field}` is missing"))),
    };
    let value = || item.get("value").cloned();
    let action = match word.as_str() {
        "add" => Action::Add(value().unwrap_or_default()),
        "remove" => Action::Remove,
        "replace" => Action::Replace(value().unwrap_or_default()),
        "move" => Action::Move(pointer("from")?),
        "copy" => Action::Copy(pointer("from")?),
        "test" => Action::Test(value().filter(|v| !tree::is_null(v))),
        _ => return Err(JsonPatchError::Word { index, word }),
    };
    Ok(Operation { path: pointer("path")?, word, action })
}

/// Why an operation does not apply, with our message and that of the library that kustomize uses.
#[derive(Debug)]
struct OperationError {
    reason: &'static str,
    upstream: String,
}

impl OperationError {
    fn new(reason: &'static str, upstream: impl Into<String>) -> Self {
        Self { reason, upstream: upstream.into() }
    }

    /// A parent of the value does not exist.
    fn missing_parent(what: &str, path: &str) -> Self {
        Self::new("a part of the path is missing", format!("{what}: {path}: missing value"))
    }

    fn within(self, what: &str) -> Self {
        Self { upstream: format!("{what}: {}", self.upstream), ..self }
    }
}

type Step<T> = Result<T, OperationError>;

/// Applies one operation; returns the number of nodes that it may have added.
fn apply(root: &mut Node, operation: &Operation) -> Step<usize> {
    let path = &operation.path;
    let at = path.text.as_str();
    let quoted = format!("\"{at}\"");
    match &operation.action {
        Action::Add(value) => {
            let (parent, key) = parent(root, path).ok_or_else(|| {
                OperationError::missing_parent("add operation does not apply: doc is missing path", &quoted)
            })?;
            add(parent, key, value.clone())
                .map_err(|why| why.within(&format!("error in add for path: '{at}'")))?;
            Ok(value.count())
        }
        Action::Remove => {
            let (parent, key) = parent(root, path).ok_or_else(|| {
                OperationError::missing_parent(
                    "remove operation does not apply: doc is missing path",
                    &quoted,
                )
            })?;
            remove(parent, key).map_err(|why| why.within(&format!("error in remove for path: '{at}'")))?;
            Ok(0)
        }
        Action::Replace(value) => {
            replace(root, path, value)?;
            Ok(value.count())
        }
        Action::Move(from) => {
            let (parent_of_old, key) = parent(root, from).ok_or_else(|| {
                OperationError::missing_parent(
                    "move operation does not apply: doc is missing from path",
                    &from.text,
                )
            })?;
            let value = remove(parent_of_old, key)
                .map_err(|why| why.within(&format!("error in move for path: '{key}'")))?;
            let (parent, key) = parent(root, path).ok_or_else(|| {
                OperationError::missing_parent(
                    "move operation does not apply: doc is missing destination path",
                    at,
                )
            })?;
            add(parent, key, value).map_err(|why| why.within(&format!("error in move for path: '{at}'")))?;
            Ok(0)
        }
        Action::Copy(from) => {
            let (parent_of_old, key) = parent(root, from).ok_or_else(|| {
                OperationError::missing_parent(
                    "copy operation does not apply: doc is missing from path",
                    &from.text,
                )
            })?;
            // An absent value of a mapping is copied as null.
            let value = child(parent_of_old, key)
                .map_err(|why| why.within(&format!("error in copy for from: '{}'", from.text)))?;
            let value = value.cloned().unwrap_or_default();
            let count = value.count();
            let (parent, key) = parent(root, path).ok_or_else(|| {
                OperationError::missing_parent(
                    "copy operation does not apply: doc is missing destination path",
                    at,
                )
            })?;
            add(parent, key, value).map_err(|why| why.within("error while adding value during copy"))?;
            Ok(count)
        }
        Action::Test(wanted) => {
            let found = if at.is_empty() {
                Some(&*root)
            } else {
                let (parent, key) = parent(root, path).ok_or_else(|| {
                    OperationError::missing_parent("test operation does not apply: is missing path", at)
                })?;
                child(parent, key).map_err(|why| why.within(&format!("error in test for path: '{at}'")))?
            };
            let equal = match (wanted, found.filter(|n| !tree::is_null(n))) {
                (None, None) => true,
                (Some(wanted), Some(found)) => same(wanted, found),
                _ => false,
            };
            let failed = || {
                OperationError::new("the value is another", format!("testing value {at} failed: test failed"))
            };
            if equal { Ok(0) } else { Err(failed()) }
        }
    }
}

/// Replaces a value; in a mapping it may be absent, in a list it must exist. The empty path is the whole
/// object.
fn replace(root: &mut Node, path: &Pointer, value: &Node) -> Step<()> {
    let at = path.text.as_str();
    if at.is_empty() {
        if value.is_scalar() {
            let upstream = "replace operation value must be object or array";
            return Err(OperationError::new("an object can only become an object or a list", upstream));
        }
        *root = value.clone();
        return Ok(());
    }
    let (parent, key) = parent(root, path).ok_or_else(|| {
        OperationError::missing_parent("replace operation does not apply: doc is missing path", at)
    })?;
    match &mut parent.value {
        Value::Map(map) => {
            map.insert(fl_yaml::SmolStr::new(key), value.clone());
        }
        Value::Seq(items) => {
            let upstream =
                format!("replace operation does not apply: doc is missing key: {at}: missing value");
            let place = index(key, items.len()).map_err(|why| OperationError { upstream, ..why })?;
            items[place] = value.clone();
        }
        Value::Scalar(_) => {}
    }
    Ok(())
}

/// The collection that contains the value of a pointer, and the last step.
fn parent<'a, 'p>(root: &'a mut Node, path: &'p Pointer) -> Option<(&'a mut Node, &'p str)> {
    let (last, steps) = path.steps.split_last()?;
    let mut at = root;
    for step in steps {
        at = match &mut at.value {
            Value::Map(map) => map.get_mut(step.as_str())?,
            Value::Seq(items) => {
                let place = index(step, items.len()).ok()?;
                &mut items[place]
            }
            Value::Scalar(_) => return None,
        };
    }
    (!at.is_scalar()).then_some((at, last))
}

fn index(key: &str, len: usize) -> Step<usize> {
    let number: i64 = key.parse().map_err(|why: std::num::ParseIntError| {
        use std::num::IntErrorKind::{NegOverflow, PosOverflow};
        let why = match why.kind() {
            PosOverflow | NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        OperationError::new("not an index of a list", format!("strconv.Atoi: parsing {key:?}: {why}"))
    })?;
    let len = i64::try_from(len).unwrap_or(i64::MAX);
    let at = if number < 0 { number.saturating_add(len) } else { number };
    let outside = || {
        let upstream = format!("Unable to access invalid index: {number}: invalid index referenced");
        OperationError::new("the index is outside of the list", upstream)
    };
    if at >= len {
        return Err(outside());
    }
    usize::try_from(at).map_err(|_| outside())
}

/// The value of a collection at a key; `None` for an absent key of a mapping.
fn child<'a>(node: &'a Node, key: &str) -> Step<Option<&'a Node>> {
    match &node.value {
        Value::Map(map) => Ok(map.get(key)),
        Value::Seq(items) => Ok(Some(&items[index(key, items.len())?])),
        Value::Scalar(_) => Ok(None),
    }
}

fn add(parent: &mut Node, key: &str, value: Node) -> Step<()> {
    match &mut parent.value {
        Value::Map(map) => {
            map.insert(fl_yaml::SmolStr::new(key), value);
        }
        Value::Seq(items) => {
            // The end of the list is a valid index for adding.
            let at = if key == "-" {
                items.len()
            } else {
                index(key, items.len() + 1).map_err(|why| match why.reason {
                    "not an index of a list" => {
                        why.within(&format!("value was not a proper array index: '{key}'"))
                    }
                    _ => why,
                })?
            };
            items.insert(at, value);
        }
        Value::Scalar(_) => {}
    }
    Ok(())
}

fn remove(parent: &mut Node, key: &str) -> Step<Node> {
    match &mut parent.value {
        Value::Seq(items) => {
            let at = index(key, items.len())?;
            Ok(items.remove(at))
        }
        Value::Map(map) => map.remove(key).ok_or_else(|| nothing(key)),
        Value::Scalar(_) => Err(nothing(key)),
    }
}

fn nothing(key: &str) -> OperationError {
    let upstream = format!("Unable to remove nonexistent key: {key}: missing value");
    OperationError::new("there is nothing to remove", upstream)
}

fn same(a: &Node, b: &Node) -> bool {
    match (&a.value, &b.value) {
        (Value::Map(x), Value::Map(y)) => {
            x.len() == y.len()
                && x.iter().all(|e| y.get(text(&e.key)).is_some_and(|other| same(&e.value, other)))
        }
        (Value::Seq(x), Value::Seq(y)) => x.len() == y.len() && x.iter().zip(y).all(|(p, q)| same(p, q)),
        _ => {
            let json = |n: &Node| fl_yaml::to_json(n, Dialect::V3, JsonStyle::GO).ok();
            json(a).is_some() && json(a) == json(b)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patched(object: &str, patch: &str) -> Result<String, JsonPatchError> {
        let mut node = crate::input::read_one(object.as_bytes()).expect("valid");
        JsonPatch::parse(patch)?.apply(&mut node)?;
        Ok(fl_yaml::to_json(&node, Dialect::V3, JsonStyle::GO).expect("valid"))
    }

    #[test]
    fn operations() {
        let cases = [
            ("{a: 1}", r#"[{"op":"add","path":"/b","value":{"c":[1]}}]"#, r#"{"a":1,"b":{"c":[1]}}"#),
            ("{a: [1, 2]}", "- {op: add, path: /a/-, value: 3}", r#"{"a":[1,2,3]}"#),
            ("{a: [1, 2]}", "- {op: add, path: /a/0, value: 0}", r#"{"a":[0,1,2]}"#),
            ("{a: [1, 2]}", "- {op: remove, path: /a/-1}", r#"{"a":[1]}"#),
            ("{a/b: 1, c~d: 2}", "- {op: remove, path: /a~1b}\n- {op: remove, path: /c~0d}", "{}"),
            ("{a: 1}", "- {op: move, from: /a, path: /b}", r#"{"b":1}"#),
            ("{a: {x: 1}}", "- {op: copy, from: /a, path: /b}", r#"{"a":{"x":1},"b":{"x":1}}"#),
            (
                "{a: 1}",
                "- {op: test, path: /a, value: 1}\n- {op: replace, path: /a, value: yes}",
                r#"{"a":true}"#,
            ),
            ("{a: 1}", "- {op: test, path: /b}", r#"{"a":1}"#),
            // A mapping accepts an absent key, and returns null for it.
            ("{a: 1}", "- {op: replace, path: /b, value: 2}", r#"{"a":1,"b":2}"#),
            ("{a: 1}", "- {op: copy, from: /x, path: /b}", r#"{"a":1,"b":null}"#),
            ("{a: 1}", "- {op: replace, path: '', value: {b: 2}}", r#"{"b":2}"#),
        ];
        for (object, patch, want) in cases {
            assert_eq!(patched(object, patch).as_deref(), Ok(want), "{patch}");
        }
    }

    #[test]
    fn refusals_name_operation_and_path() {
        let cases = [
            ("{a: 1}", "- {op: replace, path: /b/c, value: 1}", "`/b/c`"),
            ("{a: 1}", "- {op: remove, path: /b/c}", "`/b/c`"),
            ("{a: [1]}", "- {op: add, path: /a/99999999999999999999, value: 1}", "`/a/99999999999999999999`"),
            ("{a: [1]}", "- {op: add, path: /a/3, value: 1}", "`/a/3`"),
            ("{a: [1]}", "- {op: remove, path: /a/-2}", "`/a/-2`"),
            ("{a: 1}", "- {op: test, path: /a, value: 2}", "`/a`"),
            ("{a: 1}", "- {op: add, path: '', value: 2}", "add operation 0"),
            ("{a: 1}", "- {op: frob, path: /a}", "frob"),
            ("{a: 1}", "- {op: move, path: /a}", "from"),
            ("{a: 1}", "a: b", "expected a list"),
        ];
        for (object, patch, want) in cases {
            let error = patched(object, patch).expect_err(patch).to_string();
            assert!(error.contains(want), "{patch}: {error}");
        }
    }

    /// Recorded from kustomize.
    #[test]
    fn error_messages_match_kustomize() {
        let object = "{data: {k: v}, list: [1, 2]}";
        let cases = [
            (
                "{op: replace, path: /b/c, value: 1}",
                "replace operation does not apply: doc is missing path: /b/c: missing value",
            ),
            (
                "{op: replace, path: /list/9, value: 1}",
                "replace operation does not apply: doc is missing key: /list/9: missing value",
            ),
            (
                "{op: remove, path: /data/x}",
                "error in remove for path: '/data/x': Unable to remove nonexistent key: x: missing value",
            ),
            (
                "{op: remove, path: /x/y}",
                "remove operation does not apply: doc is missing path: \"/x/y\": missing value",
            ),
            (
                "{op: remove, path: /list/x}",
                "error in remove for path: '/list/x': strconv.Atoi: parsing \"x\": invalid syntax",
            ),
            ("{op: test, path: /data/k, value: 2}", "testing value /data/k failed: test failed"),
            ("{op: test, path: /data/z, value: 2}", "testing value /data/z failed: test failed"),
            (
                "{op: test, path: /q/z, value: 2}",
                "test operation does not apply: is missing path: /q/z: missing value",
            ),
            (
                "{op: test, path: /list/9, value: 2}",
                "error in test for path: '/list/9': Unable to access invalid index: 9: invalid index referenced",
            ),
            (
                "{op: add, path: /list/-9, value: 2}",
                "error in add for path: '/list/-9': Unable to access invalid index: -9: invalid index referenced",
            ),
            (
                "{op: add, path: /list/x, value: 2}",
                "error in add for path: '/list/x': value was not a proper array index: 'x': strconv.Atoi: parsing \"x\": invalid syntax",
            ),
            (
                "{op: add, path: /data/k/x, value: 2}",
                "add operation does not apply: doc is missing path: \"/data/k/x\": missing value",
            ),
            (
                "{op: add, path: '', value: 2}",
                "add operation does not apply: doc is missing path: \"\": missing value",
            ),
            (
                "{op: move, from: /x/y, path: /z}",
                "move operation does not apply: doc is missing from path: /x/y: missing value",
            ),
            (
                "{op: move, from: /x, path: /z}",
                "error in move for path: 'x': Unable to remove nonexistent key: x: missing value",
            ),
            (
                "{op: move, from: /data, path: /z/y}",
                "move operation does not apply: doc is missing destination path: /z/y: missing value",
            ),
            (
                "{op: move, from: /data, path: /list/9}",
                "error in move for path: '/list/9': Unable to access invalid index: 9: invalid index referenced",
            ),
            (
                "{op: copy, from: /x/y, path: /z}",
                "copy operation does not apply: doc is missing from path: /x/y: missing value",
            ),
            (
                "{op: copy, from: /data, path: /z/y}",
                "copy operation does not apply: doc is missing destination path: /z/y: missing value",
            ),
            (
                "{op: copy, from: /data, path: /list/9}",
                "error while adding value during copy: Unable to access invalid index: 9: invalid index referenced",
            ),
            ("{op: frob, path: /x}", "Unexpected kind: frob"),
        ];
        for (operation, want) in cases {
            let error = patched(object, &format!("- {operation}")).expect_err(operation);
            assert_eq!(error.upstream(), want, "{operation}");
        }
    }
}
