//! Strategic merge of a patch into an object: lists merge by the keys of their schema, `$patch` directives
//! apply.
//!
//! The algorithm follows kustomize's walker including its oddities. Two of them: a part that only the patch
//! has is merged with itself (so that its nulls and directives take effect), and list items of the object
//! replace others with the same key.

mod directive;
mod list;

use fl_yaml::{Dialect, Node, Value};

use crate::schema::{SchemaNode, Schemas};
use directive::{Directive, take_directive};

/// Why a patch cannot be merged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MergeError {
    /// Object and patch have different kinds of values.
    #[error("wrong node kind at `{path}`: expected {expected} but got {found}")]
    Kind {
        /// Dotted path.
        path: String,
        /// What the object has.
        expected: &'static str,
        /// What the patch has.
        found: &'static str,
    },
    /// An unknown value of `$patch`.
    #[error("unknown patch strategy '{word}' at `{path}`")]
    Directive {
        /// The value.
        word: String,
        /// Dotted path.
        path: String,
    },
    /// A list of scalars has another item.
    #[error("wrong node kind in the list at `{path}`: expected a scalar")]
    Item {
        /// Dotted path.
        path: String,
    },
    /// The patch is nested too deeply.
    #[error("patch is nested too deeply at `{path}`")]
    Depth {
        /// Dotted path.
        path: String,
    },
}

/// Limit on nesting: far above that of the API server, far below what the stack allows.
const MAX_DEPTH: usize = 512;

/// Merges `patch` into `object`; `None` if the patch deletes it.
pub(crate) fn merge(object: Node, patch: Node, schemas: &mut Schemas) -> Result<Option<Node>, MergeError> {
    Ok(Walk { schemas, path: Vec::new() }.walk(Some(object), Some(patch), None)?.node)
}

/// A merged node, and whether it is that of the object (changed in place) or of the patch.
struct Walked {
    node: Option<Node>,
    own: bool,
}

struct Walk<'a> {
    schemas: &'a mut Schemas,
    path: Vec<String>,
}

fn is_null(node: &Node) -> bool {
    node.is_null(Dialect::V3)
}

/// Neither missing nor null.
fn present(node: Option<&Node>) -> Option<&Node> {
    node.filter(|n| !is_null(n))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Map,
    Seq,
    Scalar,
}

impl Shape {
    fn of(node: &Node) -> Self {
        match node.value {
            Value::Map(_) => Shape::Map,
            Value::Seq(_) => Shape::Seq,
            Value::Scalar(_) => Shape::Scalar,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Shape::Map => "a mapping",
            Shape::Seq => "a sequence",
            Shape::Scalar => "a scalar",
        }
    }
}

impl Walk<'_> {
    fn dotted(&self) -> String {
        self.path.join(".")
    }

    fn walk(
        &mut self,
        object: Option<Node>,
        patch: Option<Node>,
        schema: Option<SchemaNode>,
    ) -> Result<Walked, MergeError> {
        if self.path.len() > MAX_DEPTH {
            return Err(MergeError::Depth { path: self.dotted() });
        }
        let schema = self.schema_of(present(object.as_ref()), present(patch.as_ref()), schema);
        if patch.is_none()
            && object.as_ref().is_some_and(|o| self.is_unchanged_by_merge(o, schema.as_ref(), 0))
        {
            // Fast path: no patch, and nothing that a merge without patch would change.
            return Ok(Walked { node: object, own: true });
        }
        let shapes = [present(object.as_ref()), present(patch.as_ref())].map(|n| n.map(Shape::of));
        let shape = match shapes {
            [Some(a), Some(b)] if a != b => {
                return Err(MergeError::Kind { path: self.dotted(), expected: a.name(), found: b.name() });
            }
            [Some(a), _] => a,
            [None, Some(b)] => b,
            [None, None] => Shape::Map,
        };
        match shape {
            Shape::Map => self.walk_map(object, patch, schema),
            Shape::Seq => match schema.as_ref().and_then(Schemas::merge_keys) {
                Some(keys) => self.walk_list(object, patch, schema, &keys),
                // A list without merge strategy is replaced; null removes it.
                None => Ok(prefer_patch(object, patch)),
            },
            Shape::Scalar => Ok(prefer_patch(object, patch)),
        }
    }

    /// The schema of a comment wins, then that of the parent, then that of an object with apiVersion and
    /// kind.
    fn schema_of(
        &mut self,
        object: Option<&Node>,
        patch: Option<&Node>,
        schema: Option<SchemaNode>,
    ) -> Option<SchemaNode> {
        let sources = || object.into_iter().chain(patch);
        if let Some(commented) = sources().find_map(|n| self.schemas.schema_in_comment(n)) {
            return Some(commented);
        }
        schema.or_else(|| {
            sources().find_map(|node| {
                let text = |key: &str| node.get(key).filter(|n| !is_null(n)).and_then(Node::as_text);
                let (api_version, kind) = (text("apiVersion")?, text("kind")?);
                if api_version.is_empty() || kind.is_empty() {
                    return None;
                }
                self.schemas.of_kind(api_version, kind)
            })
        })
    }

    fn walk_map(
        &mut self,
        object: Option<Node>,
        patch: Option<Node>,
        schema: Option<SchemaNode>,
    ) -> Result<Walked, MergeError> {
        let gone = Walked { node: None, own: false };
        let Some(mut object) = object.filter(|o| patch.is_none() || !is_null(o)) else {
            // Only the patch has a value.
            let Some(mut patch) = patch else { return Ok(gone) };
            if matches!(take_directive(&mut patch, &self.path), Ok(Directive::Delete)) {
                return Ok(gone);
            }
            return Ok(Walked { node: self.merge_fields_with_itself(patch, schema.as_ref())?, own: false });
        };
        if is_null(&object) {
            // An explicit null of the object is kept; an empty value is not.
            let spelled = object.as_text().is_some_and(|t| !t.is_empty());
            return Ok(Walked { node: spelled.then_some(object), own: true });
        }
        let Some(mut patch) = patch else {
            return self.walk_fields(object, None, schema.as_ref());
        };
        if is_null(&patch) {
            return Ok(gone);
        }
        match take_directive(&mut patch, &self.path)? {
            Directive::Delete => Ok(gone),
            Directive::Replace => {
                Ok(Walked { node: self.merge_fields_with_itself(patch, schema.as_ref())?, own: false })
            }
            Directive::Merge => {
                if object.as_map().is_some_and(fl_yaml::Map::is_empty) {
                    object.style = patch.style;
                }
                self.walk_fields(object, Some(patch), schema.as_ref())
            }
        }
    }

    fn walk_fields(
        &mut self,
        mut object: Node,
        mut patch: Option<Node>,
        schema: Option<&SchemaNode>,
    ) -> Result<Walked, MergeError> {
        let Some(map) = object.as_map_mut() else { return Ok(Walked { node: Some(object), own: true }) };
        let mut names: Vec<String> = map.iter().filter_map(|e| e.name().map(str::to_owned)).collect();
        if let Some(more) = patch.as_ref().and_then(Node::as_map) {
            names.extend(more.iter().filter_map(|e| e.name().map(str::to_owned)));
        }
        names.sort_unstable();
        names.dedup();
        for name in names {
            let patch_map = patch.as_mut().and_then(Node::as_map_mut);
            let commented = |node: &Node| self.schemas.schema_in_comment(node);
            let key_schema = |map: &fl_yaml::Map| {
                let entry = &map.entries()[map.position(&name)?];
                commented(&entry.value).or_else(|| commented(&entry.key))
            };
            let field_schema = key_schema(map)
                .or_else(|| key_schema(patch_map.as_deref()?))
                .or_else(|| self.schemas.field(schema?, &name));
            let theirs = patch_map.and_then(|m| m.remove(&name));
            let at = map.position(&name);
            let Some(at) = at else {
                self.path.push(name.clone());
                let walked = self.walk(None, theirs, field_schema)?;
                self.path.pop();
                if let Some(node) = walked.node.filter(|n| !is_null(n)) {
                    map.push(Node::string(name), node);
                }
                continue;
            };
            if theirs.is_none() && is_unchanged(&map.entries()[at].value) {
                continue;
            }
            let ours = std::mem::take(&mut map.entries_mut()[at].value);
            let twin = crate::tree::shared_mark(&ours).cloned();
            let kept_null = is_null(&ours) && theirs.is_none();
            self.path.push(name);
            let walked = self.walk(Some(ours), theirs, field_schema)?;
            self.path.pop();
            match walked.node.filter(|n| kept_null || !is_null(n)) {
                Some(mut node) => {
                    if let Some(mark) = twin.filter(|_| node.is_scalar()) {
                        node.extra_mut().anchor = mark;
                    }
                    map.entries_mut()[at].value = node;
                }
                None => drop(map.entries_mut().remove(at)),
            }
        }
        Ok(Walked { node: Some(object), own: true })
    }

    /// Whether a merge without patch does not change a node: no empty values, no list whose items would be
    /// merged or dropped.
    fn is_unchanged_by_merge(&mut self, node: &Node, schema: Option<&SchemaNode>, depth: usize) -> bool {
        if depth > MAX_DEPTH {
            return false;
        }
        match &node.value {
            Value::Scalar(text) => !is_null(node) || !text.is_empty(),
            Value::Map(map) => map.iter().all(|entry| {
                if entry.value.is_scalar() {
                    return self.is_unchanged_by_merge(&entry.value, None, depth + 1);
                }
                let commented = self
                    .schemas
                    .schema_in_comment(&entry.value)
                    .or_else(|| self.schemas.schema_in_comment(&entry.key));
                let schema = commented.or_else(|| self.schemas.field(schema?, entry.name()?));
                let schema = self.schema_of(Some(&entry.value), None, schema);
                self.is_unchanged_by_merge(&entry.value, schema.as_ref(), depth + 1)
            }),
            Value::Seq(items) => {
                let Some(keys) = schema.and_then(Schemas::merge_keys) else { return true };
                let item_schema = schema.and_then(|s| self.schemas.elements(s));
                list::items_are_distinct(items, &keys)
                    && items.iter().all(|item| {
                        let schema = self.schema_of(Some(item), None, item_schema.clone());
                        self.is_unchanged_by_merge(item, schema.as_ref(), depth + 1)
                    })
            }
        }
    }

    /// Merges a node that only the patch has with itself: removes nulls, applies directives.
    fn merge_with_itself(
        &mut self,
        mut node: Node,
        schema: Option<SchemaNode>,
    ) -> Result<Option<Node>, MergeError> {
        if self.path.len() > MAX_DEPTH {
            return Err(MergeError::Depth { path: self.dotted() });
        }
        if is_null(&node) {
            return Ok(Some(node));
        }
        let schema = self.schema_of(Some(&node), None, schema);
        match Shape::of(&node) {
            Shape::Scalar => Ok(Some(node)),
            Shape::Seq => match schema.as_ref().and_then(Schemas::merge_keys) {
                Some(keys) => Ok(self.merge_list_with_itself(node, schema, &keys)?),
                None => Ok(Some(node)),
            },
            Shape::Map => match take_directive(&mut node, &self.path)? {
                Directive::Delete => Ok(None),
                _ => self.merge_fields_with_itself(node, schema.as_ref()),
            },
        }
    }

    fn merge_fields_with_itself(
        &mut self,
        mut node: Node,
        schema: Option<&SchemaNode>,
    ) -> Result<Option<Node>, MergeError> {
        let Some(map) = node.as_map_mut() else { return Ok(Some(node)) };
        let entries = std::mem::take(map);
        let mut kept = fl_yaml::Map::with_capacity(entries.len());
        for entry in entries {
            let name = entry.name().unwrap_or_default().to_owned();
            let field_schema = self
                .schemas
                .schema_in_comment(&entry.value)
                .or_else(|| self.schemas.schema_in_comment(&entry.key))
                .or_else(|| self.schemas.field(schema?, &name));
            self.path.push(name);
            let settled = self.merge_with_itself(entry.value, field_schema)?;
            self.path.pop();
            if let Some(value) = settled.filter(|n| !is_null(n)) {
                kept.push(entry.key, value);
            }
        }
        *map = kept;
        Ok(Some(node))
    }
}

/// Whether a merge without patch cannot change a value: no maps or lists inside that could lose an empty
/// value or be reordered.
fn is_unchanged(node: &Node) -> bool {
    node.is_scalar() && !is_null(node)
}

fn prefer_patch(object: Option<Node>, patch: Option<Node>) -> Walked {
    match patch {
        Some(patch) => Walked { node: Some(patch), own: false },
        None => Walked { node: object, own: true },
    }
}

#[cfg(test)]
mod tests;
