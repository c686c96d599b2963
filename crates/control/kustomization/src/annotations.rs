//! Labels and annotations that change how an object is applied, and invalid values of them.

use fl_apply::{DroppedMetadata, ObjectRef, annotation, label};
use serde_json::Value;

const GROUP: &str = "kustomize.toolkit.fluxcd.io";
const SWITCH: &[&str] = &["enabled", "disabled"];
/// The valid values of each key, in any case. Other values have no effect.
const VALID_VALUES: &[(&str, &[&str])] = &[
    ("decrypt", SWITCH),
    ("force", SWITCH),
    ("prune", SWITCH),
    ("reconcile", SWITCH),
    ("ssa", &["ignore", "ifnotpresent", "merge", "override"]),
    ("substitute", SWITCH),
];
/// How many lines a message has; the others are counted.
const MAX_LINES: usize = 5;

/// The message about values that have no effect; none when all are valid.
pub(crate) fn ignored<'a>(objects: impl Iterator<Item = &'a Value>) -> Option<String> {
    let mut found = Vec::new();
    for object in objects {
        for (key, values) in VALID_VALUES {
            let key = format!("{GROUP}/{key}");
            let values_set = [label(object, &key), annotation(object, &key)].into_iter().flatten();
            // The value is not shown: a variable may have put a secret there.
            for _ in values_set.filter(|v| !values.iter().any(|known| known.eq_ignore_ascii_case(v))) {
                let subject = ObjectRef::of(object).map(|r| r.to_string()).unwrap_or_default();
                found.push(format!("{subject}: {key} is none of {}", values.join(", ")));
            }
        }
    }
    summarize("ignored what no label or annotation may say:", found)
}

/// The message about labels and annotations that were not applied; none when all were.
pub(crate) fn dropped(all: &[DroppedMetadata]) -> Option<String> {
    // Values are not shown: a variable may have put a secret there.
    let lines = all.iter().map(|d| format!("{}: metadata.{}", d.target, d.field)).collect();
    summarize("not applied, because at least one value is not a string (put it in quotes):", lines)
}

/// A heading and the first lines below it; none without lines.
fn summarize(heading: &str, mut lines: Vec<String>) -> Option<String> {
    let more = lines.len().saturating_sub(MAX_LINES);
    lines.truncate(MAX_LINES);
    let rest = if more == 0 { String::new() } else { format!("\nand {more} more") };
    (!lines.is_empty()).then(|| format!("{heading}\n{}{rest}", lines.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_invalid_values_are_reported() {
        let object = |value: Value| {
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b",
                "annotations": {"kustomize.toolkit.fluxcd.io/ssa": value}}})
        };
        for fine in [json!("Merge"), json!("ignore"), json!("IfNotPresent"), json!(7), json!(null)] {
            assert_eq!(ignored([object(fine)].iter()), None);
        }
        let text = ignored([object(json!("mergee")), object(json!(""))].iter()).expect("two of them");
        let line =
            "ConfigMap/b/a: kustomize.toolkit.fluxcd.io/ssa is none of ignore, ifnotpresent, merge, override";
        assert_eq!(text.lines().skip(1).collect::<Vec<_>>(), [line, line]);
        let many: Vec<Value> = (0..9).map(|_| object(json!("x".repeat(1000)))).collect();
        let text = ignored(many.iter()).expect("nine of them");
        assert!(text.ends_with("and 4 more") && !text.contains("xx"), "{text}");
    }
}
