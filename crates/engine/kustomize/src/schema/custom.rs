//! Custom schemas: OpenAPI documents of a kustomization (`openapi.path`) and comments of nodes.

use std::collections::HashMap;
use std::rc::Rc;

use fl_yaml::{Dialect, Node};

/// The parts of a schema that a merge needs.
#[derive(Debug, Default)]
pub(crate) struct CustomNode {
    /// The definition that `$ref` names.
    pub(super) reference: Option<String>,
    /// Whether its type is `array`.
    pub(super) is_array: bool,
    /// The items of an array.
    pub(super) items: Option<Rc<CustomNode>>,
    /// The merge keys, in order.
    pub(super) keys: Vec<String>,
    strategy: String,
    properties: HashMap<String, Rc<CustomNode>>,
    additional: Option<Rc<CustomNode>>,
}

impl CustomNode {
    fn read(node: &Node, depth: usize) -> Option<Self> {
        // Limit on nesting.
        if depth > 64 {
            return None;
        }
        let child = |node: &Node| CustomNode::read(node, depth + 1).map(Rc::new);
        let map = node.as_map()?;
        let text = |key: &str| map.get(key).and_then(Node::as_text).map(str::to_owned);
        let properties = map
            .get("properties")
            .and_then(Node::as_map)
            .map(|all| {
                all.iter()
                    .filter_map(|e| Some((e.name()?.to_owned(), child(&e.value)?)))
                    .collect::<HashMap<_, _>>()
            })
            .unwrap_or_default();
        let is_array = match map.get("type") {
            Some(list) if list.as_seq().is_some_and(|l| l.len() == 1) => {
                list.as_seq().and_then(|l| l[0].as_text()) == Some("array")
            }
            other => other.and_then(Node::as_text) == Some("array"),
        };
        let list_keys = map.get("x-kubernetes-list-map-keys").and_then(Node::as_seq);
        let keys = match list_keys {
            Some(list) => list.iter().filter_map(Node::as_text).map(str::to_owned).collect(),
            None => text("x-kubernetes-patch-merge-key").into_iter().collect(),
        };
        Some(Self {
            reference: text("$ref").map(|r| r.strip_prefix("#/definitions/").unwrap_or(&r).to_owned()),
            is_array,
            items: map.get("items").and_then(child),
            keys,
            strategy: text("x-kubernetes-patch-strategy").unwrap_or_default(),
            properties,
            additional: map.get("additionalProperties").and_then(child),
        })
    }

    pub(super) fn field(&self, name: &str) -> Option<Rc<CustomNode>> {
        self.properties.get(name).or(self.additional.as_ref()).cloned()
    }

    pub(super) fn merges(&self) -> bool {
        self.strategy.split(',').any(|s| s == "merge")
    }
}

/// An OpenAPI document.
#[derive(Debug, Default)]
pub(super) struct Custom {
    definitions: HashMap<String, Rc<CustomNode>>,
    kinds: HashMap<(String, String), Rc<CustomNode>>,
    scopes: HashMap<(String, String), bool>,
}

impl Custom {
    pub(super) fn parse(document: &[u8]) -> Result<Self, crate::input::InputError> {
        let root = crate::input::read_one(document)?;
        let mut custom = Self::default();
        for entry in root.get("definitions").and_then(Node::as_map).into_iter().flatten() {
            let (Some(name), Some(schema)) = (entry.name(), CustomNode::read(&entry.value, 0)) else {
                continue;
            };
            let schema = Rc::new(schema);
            for gvk in entry.value.get(GVK).and_then(Node::as_seq).into_iter().flatten() {
                if let Some(kind) = type_meta(gvk) {
                    custom.kinds.insert(kind, schema.clone());
                }
            }
            custom.definitions.insert(name.to_owned(), schema);
        }
        for entry in root.get("paths").and_then(Node::as_map).into_iter().flatten() {
            let Some(kind) = entry.value.at(&["get", GVK]).and_then(type_meta) else { continue };
            if entry.name().is_some_and(|path| path.contains("namespaces/{namespace}")) {
                custom.scopes.insert(kind, true);
            } else {
                custom.scopes.entry(kind).or_insert(false);
            }
        }
        Ok(custom)
    }

    pub(super) fn definition(&self, name: &str) -> Option<Rc<CustomNode>> {
        self.definitions.get(name).cloned()
    }

    pub(super) fn of_kind(&self, api_version: &str, kind: &str) -> Option<Rc<CustomNode>> {
        self.kinds.get(&(api_version.to_owned(), kind.to_owned())).cloned()
    }

    pub(super) fn namespaced(&self, api_version: &str, kind: &str) -> Option<bool> {
        self.scopes.get(&(api_version.to_owned(), kind.to_owned())).copied()
    }
}

const GVK: &str = "x-kubernetes-group-version-kind";

fn type_meta(gvk: &Node) -> Option<(String, String)> {
    let text = |key: &str| gvk.get(key).and_then(Node::as_text);
    let version = text("version")?;
    let api_version = match text("group") {
        Some(group) if !group.is_empty() => format!("{group}/{version}"),
        _ => version.to_owned(),
    };
    Some((api_version, text("kind")?.to_owned()))
}

/// The schema in the comment of a node: a JSON object after `#`, at the end of the line or else above.
pub(crate) fn comment_schema(node: &Node) -> Option<CustomNode> {
    let extra = node.extra()?;
    let comment = [&extra.line_comment, &extra.head_comment].into_iter().find(|c| !c.is_empty())?;
    let json = comment.trim_start_matches('#').trim();
    if !json.starts_with('{') {
        return None;
    }
    let node = crate::input::read_one(json.as_bytes()).ok()?;
    if node.as_map().is_none_or(fl_yaml::Map::is_empty) || node.is_null(Dialect::V3) {
        return None;
    }
    CustomNode::read(&node, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn document_has_kinds_and_scopes() {
        let document = br#"{
          "definitions": {
            "com.example.v1.Thing": {
              "properties": {"parts": {"type": "array", "items": {"type": "object"},
                "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "id"}},
              "x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Thing"}]
            }
          },
          "paths": {"/apis/example.com/v1/things": {"get": {
            "x-kubernetes-group-version-kind": {"group": "example.com", "version": "v1", "kind": "Thing"}}}}
        }"#;
        let custom = Custom::parse(document).expect("valid");
        let parts = custom.of_kind("example.com/v1", "Thing").expect("known").field("parts").expect("known");
        assert!(parts.merges() && parts.is_array && parts.keys == ["id"]);
        assert_eq!(custom.namespaced("example.com/v1", "Thing"), Some(false));
    }
}
