//! The difference of two JSON documents as a JSON patch, made as Flux's differ makes it: the counts in its messages are
//! counts of these operations.

use serde_json::{Map, Value, json};

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    Add,
    Replace,
    Remove,
}

/// One operation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Operation {
    pub(crate) op: Op,
    pub(crate) path: String,
    pub(crate) value: Value,
    /// The length of the value that counts when operations are weighed against each other. Additions weigh nothing.
    weight: usize,
}

impl Operation {
    pub(crate) fn to_json(&self) -> Value {
        match self.op {
            Op::Add => json!({"op": "add", "path": self.path, "value": self.value}),
            Op::Replace => json!({"op": "replace", "path": self.path, "value": self.value}),
            Op::Remove => json!({"op": "remove", "path": self.path}),
        }
    }

    fn length(&self) -> usize {
        const BASE: usize = r#"{"op":"","path":""}"#.len();
        const VALUE: usize = r#","value":"#.len();
        match self.op {
            Op::Add => BASE + "add".len() + self.path.len() + VALUE + self.weight,
            Op::Replace => BASE + "replace".len() + self.path.len() + VALUE + self.weight,
            Op::Remove => BASE + "remove".len() + self.path.len(),
        }
    }
}

/// What leads from one document to another. Many small operations become one replacement where that is shorter.
pub(crate) fn compare(from: &Value, to: &Value) -> Vec<Operation> {
    let mut patch = Vec::new();
    diff("", from, to, &mut patch);
    patch
}

fn json_length(value: &Value) -> usize {
    fl_go::to_go_json(value).map_or(0, |bytes| bytes.len())
}

fn replace(path: &str, to: &Value) -> Operation {
    Operation { op: Op::Replace, path: path.to_owned(), value: to.clone(), weight: json_length(to) }
}

fn diff(path: &str, from: &Value, to: &Value, patch: &mut Vec<Operation>) {
    if from == to || same_number(from, to) {
        return;
    }
    let before = patch.len();
    match (from, to) {
        (Value::Array(from), Value::Array(to)) => arrays(path, from, to, patch),
        (Value::Object(from), Value::Object(to)) => objects(path, from, to, patch),
        _ => {
            let root = path.is_empty();
            let op = if root { Op::Add } else { Op::Replace };
            patch.push(Operation { op, ..replace(path, to) });
            return;
        }
    }
    let made = patch.get(before..).unwrap_or_default();
    if made.is_empty() {
        return;
    }
    let commas = made.len() - 1;
    let length: usize = made.iter().map(Operation::length).sum::<usize>() + commas;
    let whole = replace(path, to);
    if length > whole.length() {
        patch.truncate(before);
        patch.push(whole);
    }
}

fn same_number(a: &Value, b: &Value) -> bool {
    matches!((a, b), (Value::Number(a), Value::Number(b)) if a.as_f64() == b.as_f64())
}

fn below(path: &str, key: &str) -> String {
    format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"))
}

fn objects(path: &str, from: &Map<String, Value>, to: &Map<String, Value>, patch: &mut Vec<Operation>) {
    let mut keys: Vec<&String> = from.keys().chain(to.keys()).collect();
    keys.sort();
    keys.dedup();
    for key in keys {
        let path = below(path, key);
        match (from.get(key), to.get(key)) {
            (Some(from), Some(to)) => diff(&path, from, to, patch),
            (Some(_), None) => {
                patch.push(Operation { op: Op::Remove, path, value: Value::Null, weight: 0 });
            }
            (None, Some(to)) => patch.push(Operation { op: Op::Add, path, value: to.clone(), weight: 0 }),
            (None, None) => {}
        }
    }
}

fn arrays(path: &str, from: &[Value], to: &[Value], patch: &mut Vec<Operation>) {
    let common = from.len().min(to.len());
    for _ in common..from.len() {
        let path = format!("{path}/{common}");
        patch.push(Operation { op: Op::Remove, path, value: Value::Null, weight: 0 });
    }
    for (at, (from, to)) in from.iter().zip(to).enumerate() {
        diff(&format!("{path}/{at}"), from, to, patch);
    }
    for to in &to[common..] {
        patch.push(Operation { op: Op::Add, path: format!("{path}/-"), value: to.clone(), weight: 0 });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(from: Value, to: Value) -> Vec<Value> {
        compare(&from, &to).iter().map(Operation::to_json).collect()
    }

    #[test]
    fn small_changes_stay_small() {
        assert_eq!(
            shown(
                json!({"data": {"a": "1", "b": "2", "c": "3"}}),
                json!({"data": {"a": "1", "b": "x", "c": "3"}})
            ),
            [json!({"op": "replace", "path": "/data/b", "value": "x"})]
        );
        assert_eq!(shown(json!({"a": 1}), json!({"a": 1.0})), [] as [Value; 0]);
        assert_eq!(
            shown(
                json!({"l": ["aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"]}),
                json!({"l": ["aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "b"]})
            ),
            [json!({"op": "add", "path": "/l/-", "value": "b"})]
        );
        assert_eq!(
            shown(
                json!({"m": {"a/b~c": "1", "k": "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"}}),
                json!({"m": {"k": "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"}})
            ),
            [json!({"op": "remove", "path": "/m/a~1b~0c"})]
        );
    }

    #[test]
    fn many_changes_become_one() {
        assert_eq!(
            shown(json!({"data": {"a": "1", "b": "2"}}), json!({"data": {"a": "3", "b": "4"}})),
            [json!({"op": "replace", "path": "/data", "value": {"a": "3", "b": "4"}})]
        );
    }
}
