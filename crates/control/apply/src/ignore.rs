//! Fields that are left to others: `spec.ignore` of a Kustomization, drift rules of a HelmRelease.

use std::str::FromStr as _;

use fl_api::meta::drift::IgnoreRule;
use fl_types::Selector;
use regex::Regex;
use serde_json::Value;

use crate::{ObjectRef, annotation, label};

/// A rule that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid {what}: {cause}")]
pub struct IgnoreError {
    what: &'static str,
    cause: String,
}

/// Compiled rules.
#[derive(Debug, Clone, Default)]
pub struct IgnoreRules {
    rules: Vec<(Option<Target>, Vec<String>)>,
}

#[derive(Debug, Clone)]
struct Target {
    group: Option<Regex>,
    version: Option<Regex>,
    kind: Option<Regex>,
    name: Option<Regex>,
    namespace: Option<Regex>,
    labels: Option<Selector>,
    annotations: Option<Selector>,
}

/// What to do with an ignored field that differs, when its object is written for another reason.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Resolution {
    /// Somebody else applies it: leave it out.
    Strip(String),
    /// Nobody else does: write what is there.
    Adopt(String, Value),
}

impl IgnoreRules {
    /// Compiles rules.
    ///
    /// # Errors
    /// A pattern or selector that cannot be read.
    pub fn compile(rules: &[IgnoreRule]) -> Result<Self, IgnoreError> {
        let mut compiled = Vec::with_capacity(rules.len());
        for rule in rules {
            let target = match &rule.target {
                None => None,
                Some(t) => Some(Target {
                    group: pattern("group regex", t.group.as_deref())?,
                    version: pattern("version regex", t.version.as_deref())?,
                    kind: pattern("kind regex", t.kind.as_deref())?,
                    name: pattern("name regex", t.name.as_deref())?,
                    namespace: pattern("namespace regex", t.namespace.as_deref())?,
                    labels: selector("label selector", t.label_selector.as_deref())?,
                    annotations: selector("annotation selector", t.annotation_selector.as_deref())?,
                }),
            };
            compiled.push((target, rule.paths.clone()));
        }
        Ok(IgnoreRules { rules: compiled })
    }

    /// Whether there is no rule.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The paths ignored in an object.
    pub fn paths<'a>(&'a self, object: &'a Value) -> impl Iterator<Item = &'a str> {
        self.rules
            .iter()
            .filter(move |(target, _)| target.as_ref().is_none_or(|t| t.matches(object)))
            .flat_map(|(_, paths)| paths.iter().map(String::as_str))
    }

    /// Takes the ignored fields of `matched` out of `object`.
    pub fn strip(&self, matched: &Value, object: &mut Value) {
        for path in self.paths(matched) {
            remove(object, path);
        }
    }

    /// What to do with each ignored field in which the live object differs from the result of the dry-run.
    pub(crate) fn resolutions(&self, live: &Value, dry_run: &Value, manager: &str) -> Vec<Resolution> {
        let others = applied_fields(live, manager);
        let mut resolutions = Vec::new();
        for path in self.paths(dry_run) {
            let (there, wanted) = (live.pointer(path), dry_run.pointer(path));
            if there == wanted {
                continue;
            }
            let owned = segments(live, path, &others)
                .is_some_and(|segments| others.iter().any(|fields| contains(fields, &segments)));
            resolutions.push(if owned {
                Resolution::Strip(path.to_owned())
            } else {
                Resolution::Adopt(path.to_owned(), there.cloned().unwrap_or(Value::Null))
            });
        }
        resolutions
    }
}

/// Carries the resolutions out on what is about to be applied.
pub(crate) fn resolve(payload: &mut Value, resolutions: &[Resolution]) -> Result<(), String> {
    for resolution in resolutions {
        match resolution {
            Resolution::Strip(path) => remove(payload, path),
            Resolution::Adopt(path, value) => {
                let target =
                    payload.pointer_mut(path).ok_or_else(|| format!("{path} is not in the object"))?;
                *target = value.clone();
            }
        }
    }
    Ok(())
}

impl Target {
    fn matches(&self, object: &Value) -> bool {
        let Ok(target) = ObjectRef::of(object) else { return false };
        let id = &target.id;
        let fits = |regex: &Option<Regex>, text: &str| regex.as_ref().is_none_or(|r| r.is_match(text));
        fits(&self.namespace, &id.namespace)
            && fits(&self.name, &id.name)
            && fits(&self.group, &id.group)
            && fits(&self.version, &target.version)
            && fits(&self.kind, &id.kind)
            && self.labels.as_ref().is_none_or(|s| s.matches(|key| label(object, key)))
            && self.annotations.as_ref().is_none_or(|s| s.matches(|key| annotation(object, key)))
    }
}

fn pattern(what: &'static str, text: Option<&str>) -> Result<Option<Regex>, IgnoreError> {
    let Some(text) = text.filter(|t| !t.is_empty()) else { return Ok(None) };
    let whole = fl_go::regexp::compile(&format!("^(?:{text})$"));
    whole.map(Some).map_err(|e| IgnoreError { what, cause: e.to_string() })
}

fn selector(what: &'static str, text: Option<&str>) -> Result<Option<Selector>, IgnoreError> {
    let Some(text) = text.filter(|t| !t.is_empty()) else { return Ok(None) };
    Selector::from_str(text).map(Some).map_err(|e| IgnoreError { what, cause: e.to_string() })
}

fn remove(object: &mut Value, path: &str) {
    let Some((parent, last)) = path.rsplit_once('/') else { return };
    let last = unescape(last);
    match object.pointer_mut(parent) {
        Some(Value::Object(map)) => {
            map.remove(&last);
        }
        Some(Value::Array(items)) => {
            if let Ok(index) = last.parse::<usize>()
                && index < items.len()
            {
                items.remove(index);
            }
        }
        _ => {}
    }
}

fn unescape(segment: &str) -> String {
    segment.replace("~1", "/").replace("~0", "~")
}

/// What managers other than ours have applied.
fn applied_fields(live: &Value, manager: &str) -> Vec<Value> {
    let entries = live.pointer("/metadata/managedFields").and_then(Value::as_array);
    entries
        .into_iter()
        .flatten()
        .filter(|e| {
            e["operation"] == "Apply"
                && e["manager"].as_str().is_some_and(|m| m != manager)
                && e["subresource"].as_str().unwrap_or_default().is_empty()
        })
        .map(|e| e["fieldsV1"].clone())
        .collect()
}

/// The pointer in the words of managed fields: list items by the keys that name them.
fn segments(live: &Value, pointer: &str, managers: &[Value]) -> Option<Vec<String>> {
    let mut segments: Vec<String> = Vec::new();
    let mut at = live;
    for raw in pointer.strip_prefix('/')?.split('/') {
        let name = unescape(raw);
        if let (Ok(index), Some(items)) = (name.parse::<usize>(), at.as_array()) {
            let item = items.get(index)?;
            let key = managers
                .iter()
                .filter_map(|fields| walk(fields, &segments))
                .flat_map(|node| node.keys())
                .find(|key| is_key_of(key, item))?;
            segments.push(key.clone());
            at = item;
        } else {
            segments.push(format!("f:{name}"));
            at = at.get(&name).unwrap_or(&Value::Null);
        }
    }
    Some(segments)
}

fn walk<'a>(fields: &'a Value, segments: &[String]) -> Option<&'a serde_json::Map<String, Value>> {
    segments.iter().try_fold(fields, |at, segment| at.get(segment))?.as_object()
}

fn contains(fields: &Value, segments: &[String]) -> bool {
    !segments.is_empty() && segments.iter().try_fold(fields, |at, segment| at.get(segment)).is_some()
}

fn is_key_of(key: &str, item: &Value) -> bool {
    let Some(text) = key.strip_prefix("k:") else { return false };
    let Ok(Value::Object(pairs)) = serde_json::from_str(text) else { return false };
    pairs.iter().all(|(name, value)| item.get(name) == Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fl_api::meta::kustomize::PatchTarget;
    use serde_json::json;

    fn rules(paths: &[&str], kind: Option<&str>) -> IgnoreRules {
        let target = kind.map(|k| PatchTarget { kind: Some(k.to_owned()), ..PatchTarget::default() });
        let paths = paths.iter().map(|p| (*p).to_owned()).collect();
        IgnoreRules::compile(&[IgnoreRule { paths, target }]).expect("good rules")
    }

    fn deployment(replicas: i64) -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": replicas}})
    }

    #[test]
    fn patterns_are_anchored() {
        let mut object = deployment(1);
        rules(&["/spec/replicas"], Some("Deploy")).strip(&object.clone(), &mut object);
        assert_eq!(object, deployment(1));
        rules(&["/spec/replicas", "/no/such/path"], Some("Deploy.*")).strip(&object.clone(), &mut object);
        assert_eq!(object["spec"], json!({}));
    }

    #[test]
    fn drifted_fields_are_adopted_or_left_out() {
        let rules = rules(&["/spec/replicas"], None);
        let mut live = deployment(3);
        let adopt = rules.resolutions(&live, &deployment(1), "kustomize-controller");
        assert_eq!(adopt, [Resolution::Adopt("/spec/replicas".to_owned(), json!(3))]);
        live["metadata"]["managedFields"] =
            json!([{"manager": "scaler", "operation": "Apply", "fieldsV1": {"f:spec": {"f:replicas": {}}}}]);
        let strip = rules.resolutions(&live, &deployment(1), "kustomize-controller");
        assert_eq!(strip, [Resolution::Strip("/spec/replicas".to_owned())]);
        let mut payload = deployment(1);
        resolve(&mut payload, &strip).expect("fits");
        assert_eq!(payload["spec"], json!({}));
        assert!(rules.resolutions(&live, &deployment(3), "kustomize-controller").is_empty());
    }

    #[test]
    fn list_items_are_found_by_their_keys() {
        let rules = rules(&["/spec/containers/0/image"], None);
        let pod = |image: &str| {
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p",
            "managedFields": [{"manager": "updater", "operation": "Apply",
                "fieldsV1": {"f:spec": {"f:containers": {"k:{\"name\":\"main\"}": {"f:image": {}}}}}}]},
            "spec": {"containers": [{"name": "main", "image": image}]}})
        };
        let got = rules.resolutions(&pod("a:2"), &pod("a:1"), "kustomize-controller");
        assert_eq!(got, [Resolution::Strip("/spec/containers/0/image".to_owned())]);
    }

    #[test]
    fn bad_patterns_are_refused() {
        let target = PatchTarget { name: Some("(".to_owned()), ..PatchTarget::default() };
        let error =
            IgnoreRules::compile(&[IgnoreRule { paths: Vec::new(), target: Some(target) }]).unwrap_err();
        assert!(error.to_string().starts_with("invalid name regex"), "{error}");
    }
}
