//! JSON patches (RFC 6902) with the behaviour of the library kustomize uses: negative indexes count from the end.

use fl_yaml::{Dialect, JsonStyle, Node, Value};

use crate::tree::{self, text};

/// What an operation does.
#[derive(Debug, Clone, PartialEq)]
enum Action {
    Add(Node),
    Remove,
    Replace(Node),
    Move(Pointer),
    Copy(Pointer),
    /// `None` when the operation names no value.
    Test(Option<Node>),
}

/// One operation.
#[derive(Debug, Clone, PartialEq)]
struct Operation {
    word: String,
    path: Pointer,
    action: Action,
}

/// A JSON pointer, cut and unescaped.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Pointer {
    text: String,
    steps: Vec<String>,
}

/// Why a patch is wrong or does not apply; names the operation and its path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonPatchError {
    /// The text is no list of operations.
    #[error("not a JSON patch: {0}")]
    Format(String),
    /// An operation with a word that does not exist.
    #[error("operation {index}: unknown operation `{word}`")]
    Word {
        /// Its place in the patch, from 0.
        index: usize,
        /// The word.
        word: String,
    },
    /// An operation that does not fit the object.
    #[error("{word} operation {index} does not apply at `{path}`: {reason}")]
    Apply {
        /// The operation.
        word: String,
        /// Its place in the patch, from 0.
        index: usize,
        /// The pointer.
        path: String,
        /// Why.
        reason: &'static str,
    },
}

/// A list of operations.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonPatch {
    operations: Vec<Operation>,
}

/// Added values are copies; this many nodes are enough for any object.
const MAX_NODES: usize = 4_000_000;

impl Pointer {
    fn new(text: &str) -> Self {
        let steps = text.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~")).collect();
        Self { text: text.to_owned(), steps }
    }
}

impl JsonPatch {
    /// Reads a patch: JSON when it starts with a bracket, else YAML.
    ///
    /// # Errors
    /// The text is no list of operations.
    pub fn parse(patch: &str) -> Result<Self, JsonPatchError> {
        let root = crate::input::read_operations(patch).map_err(JsonPatchError::Format)?;
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
    /// The first one that does not fit.
    pub fn apply(&self, object: &mut Node) -> Result<(), JsonPatchError> {
        let mut nodes = object.count();
        for (index, operation) in self.operations.iter().enumerate() {
            nodes += apply(object, operation).map_err(|reason| JsonPatchError::Apply {
                word: operation.word.clone(),
                index,
                path: operation.path.text.clone(),
                reason,
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

type Step<T> = Result<T, &'static str>;

/// Applies one operation; how many nodes it may have added.
fn apply(root: &mut Node, operation: &Operation) -> Step<usize> {
    let path = &operation.path;
    match &operation.action {
        Action::Add(value) => {
            let (parent, key) = parent(root, path)?;
            add(parent, key, value.clone())?;
            Ok(value.count())
        }
        Action::Remove => {
            let (parent, key) = parent(root, path)?;
            remove(parent, key)?;
            Ok(0)
        }
        Action::Replace(value) => {
            let (parent, key) = parent(root, path)?;
            *child(parent, key)? = value.clone();
            Ok(value.count())
        }
        Action::Move(from) => {
            let value = {
                let (parent, key) = parent(root, from)?;
                remove(parent, key)?
            };
            let (parent, key) = parent(root, path)?;
            add(parent, key, value)?;
            Ok(0)
        }
        Action::Copy(from) => {
            let value = {
                let (parent, key) = parent(root, from)?;
                child(parent, key)?.clone()
            };
            let count = value.count();
            let (parent, key) = parent(root, path)?;
            add(parent, key, value)?;
            Ok(count)
        }
        Action::Test(wanted) => {
            let (parent, key) = parent(root, path)?;
            let found = child(parent, key).ok().filter(|n| !tree::is_null(n));
            let equal = match (wanted, found) {
                (None, None) => true,
                (Some(wanted), Some(found)) => same(wanted, found),
                _ => false,
            };
            if equal { Ok(0) } else { Err("the value is another") }
        }
    }
}

/// The collection that holds what a pointer points to, and the last step.
fn parent<'a, 'p>(root: &'a mut Node, path: &'p Pointer) -> Step<(&'a mut Node, &'p str)> {
    let (last, steps) = path.steps.split_last().ok_or("the path is missing")?;
    let mut at = root;
    for step in steps {
        at = child(at, step).map_err(|_| "a part of the path is missing")?;
    }
    if at.is_scalar() {
        return Err("a part of the path is missing");
    }
    Ok((at, last))
}

fn index(key: &str, len: usize) -> Step<usize> {
    let number: i64 = key.parse().map_err(|_| "not an index of a list")?;
    let len = i64::try_from(len).unwrap_or(i64::MAX);
    let at = if number < 0 { number + len } else { number };
    if at < 0 || at >= len {
        return Err("the index is outside of the list");
    }
    usize::try_from(at).map_err(|_| "the index is outside of the list")
}

fn child<'a>(node: &'a mut Node, key: &str) -> Step<&'a mut Node> {
    match &mut node.value {
        Value::Map(map) => map.get_mut(key).ok_or("the path is missing"),
        Value::Seq(items) => {
            let at = index(key, items.len())?;
            Ok(&mut items[at])
        }
        Value::Scalar(_) => Err("the path leads into a scalar"),
    }
}

fn add(parent: &mut Node, key: &str, value: Node) -> Step<()> {
    match &mut parent.value {
        Value::Map(map) => {
            map.insert(fl_yaml::SmolStr::new(key), value);
            Ok(())
        }
        Value::Seq(items) => {
            // The end itself is a place to add at.
            let at = if key == "-" { items.len() } else { index(key, items.len() + 1)? };
            items.insert(at, value);
            Ok(())
        }
        Value::Scalar(_) => Err("the path leads into a scalar"),
    }
}

fn remove(parent: &mut Node, key: &str) -> Step<Node> {
    match &mut parent.value {
        Value::Map(map) => map.remove(key).ok_or("there is nothing to remove"),
        Value::Seq(items) => {
            let at = index(key, items.len())?;
            Ok(items.remove(at))
        }
        Value::Scalar(_) => Err("the path leads into a scalar"),
    }
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
        ];
        for (object, patch, want) in cases {
            assert_eq!(patched(object, patch).as_deref(), Ok(want), "{patch}");
        }
    }

    #[test]
    fn refusals_name_operation_and_path() {
        let cases = [
            ("{a: 1}", "- {op: replace, path: /b, value: 1}", "`/b`"),
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
}
