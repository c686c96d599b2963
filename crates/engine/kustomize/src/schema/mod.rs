//! Schemas: the merge keys of lists and the scope of kinds.
//!
//! Those of Kubernetes' own types are a table in the binary; a kustomization may have its own OpenAPI
//! document, which is parsed on demand.

mod custom;
mod table;

use std::rc::Rc;

use fl_yaml::Node;

pub(crate) use custom::comment_schema;
use custom::{Custom, CustomNode};

/// One type of the table.
#[derive(Debug)]
struct Row {
    name: &'static str,
    fields: &'static [FieldRow],
}

/// One field of a type: an object of another type, or a list that merges by keys.
#[derive(Debug)]
pub(crate) struct FieldRow {
    name: &'static str,
    target: u16,
    list: bool,
    keys: &'static [&'static str],
}

/// The schema of one node.
#[derive(Debug, Clone)]
pub(crate) enum SchemaNode {
    /// An object of the table.
    Object(u16),
    /// A merging list of the table.
    List(&'static FieldRow),
    /// From an OpenAPI document or a comment.
    Custom(Rc<CustomNode>),
}

/// The schemas of a build: the table and those of the kustomizations.
#[derive(Debug, Default)]
pub(crate) struct Schemas {
    custom: Option<Rc<Custom>>,
    /// Set once a kustomization selects a schema or version: those below do not change it.
    chosen: bool,
    /// A version of the built-in schema was selected instead of a document.
    version: Option<String>,
    /// Whether the table is used: always without a custom document, else only if it was needed before.
    builtin: BuiltinUse,
    /// Whether definitions of `custom` take precedence over those of the table.
    custom_wins: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum BuiltinUse {
    /// Not needed yet.
    #[default]
    Untouched,
    /// The scope of a kind outside of the table was needed, so the table is used from the next merge on.
    Delayed,
    /// A merge used it.
    Loaded,
    /// A custom document was loaded first.
    Absent,
}

/// Why the `openapi` field of a kustomization cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SchemaError {
    #[error("builtin version and custom schema provided, cannot use both")]
    VersionAndDocument,
    #[error("invalid schema file: {0}")]
    Document(#[from] crate::input::InputError),
    #[error("the specified OpenAPI version is not built in: {0}")]
    UnknownVersion(String),
}

/// The version of the built-in table.
const BUILTIN_VERSION: &str = "v1.21.2";

impl Schemas {
    /// Applies the `openapi` field of a kustomization. The root always selects; below it only the first
    /// selection counts.
    pub(crate) fn choose(
        &mut self,
        version: Option<&str>,
        document: Option<&[u8]>,
        is_root: bool,
    ) -> Result<(), SchemaError> {
        if self.chosen && !is_root {
            return Ok(());
        }
        if let Some(document) = document {
            if version.is_some() {
                return Err(SchemaError::VersionAndDocument);
            }
            self.custom = Some(Rc::new(Custom::parse(document)?));
            self.chosen = true;
            self.custom_wins = self.builtin == BuiltinUse::Loaded;
            if self.builtin == BuiltinUse::Untouched {
                self.builtin = BuiltinUse::Absent;
            }
            return Ok(());
        }
        match version {
            None | Some("") => Ok(()),
            Some(BUILTIN_VERSION) => {
                self.chosen = true;
                self.version = version.map(str::to_owned);
                Ok(())
            }
            Some(other) => Err(SchemaError::UnknownVersion(other.to_owned())),
        }
    }

    /// Whether a kind is namespaced; `None` if unknown.
    pub(crate) fn namespaced(&mut self, api_version: &str, kind: &str) -> Option<bool> {
        if let Some(scope) = builtin_scope(api_version, kind) {
            return Some(scope);
        }
        if self.builtin == BuiltinUse::Untouched && self.custom.is_none() {
            self.builtin = BuiltinUse::Delayed;
        }
        self.custom.as_ref()?.namespaced(api_version, kind)
    }

    /// The schema of an object of this kind.
    pub(crate) fn of_kind(&mut self, api_version: &str, kind: &str) -> Option<SchemaNode> {
        self.touch();
        let table = || {
            table::KINDS
                .binary_search_by(|(a, k, _)| (*a, *k).cmp(&(api_version, kind)))
                .ok()
                .map(|i| SchemaNode::Object(table::KINDS[i].2))
        };
        let custom =
            || self.custom.as_ref().and_then(|c| c.of_kind(api_version, kind)).map(SchemaNode::Custom);
        match (self.uses_table(), self.custom_wins) {
            (false, _) => custom(),
            (true, true) => custom().or_else(table),
            (true, false) => table().or_else(custom),
        }
    }

    /// The schema of a definition by name.
    fn of_definition(&self, name: &str) -> Option<SchemaNode> {
        let table = || {
            table::TYPES
                .binary_search_by(|row| row.name.cmp(name))
                .ok()
                .and_then(|i| u16::try_from(i).ok())
                .map(SchemaNode::Object)
        };
        let custom = || self.custom.as_ref().and_then(|c| c.definition(name)).map(SchemaNode::Custom);
        match (self.uses_table(), self.custom_wins) {
            (false, _) => custom(),
            (true, true) => custom().or_else(table),
            (true, false) => table().or_else(custom),
        }
    }

    fn touch(&mut self) {
        if matches!(self.builtin, BuiltinUse::Untouched | BuiltinUse::Delayed) {
            self.builtin = BuiltinUse::Loaded;
        }
    }

    fn uses_table(&self) -> bool {
        self.builtin == BuiltinUse::Loaded
    }

    /// The schema of a field.
    pub(crate) fn field(&self, node: &SchemaNode, name: &str) -> Option<SchemaNode> {
        match node {
            SchemaNode::Object(row) => {
                let fields = table::TYPES[usize::from(*row)].fields;
                let field = &fields[fields.binary_search_by(|f| f.name.cmp(name)).ok()?];
                Some(if field.list { SchemaNode::List(field) } else { SchemaNode::Object(field.target) })
            }
            SchemaNode::List(_) => None,
            SchemaNode::Custom(node) => self.resolve(node.field(name)?),
        }
    }

    /// The schema of a list's items.
    pub(crate) fn elements(&self, node: &SchemaNode) -> Option<SchemaNode> {
        match node {
            SchemaNode::Object(_) => None,
            SchemaNode::List(field) => (field.target != u16::MAX).then_some(SchemaNode::Object(field.target)),
            SchemaNode::Custom(node) => self.resolve(node.items.clone().filter(|_| node.is_array)?),
        }
    }

    /// Resolves `$ref`; an unknown reference is no schema.
    pub(crate) fn resolve(&self, node: Rc<CustomNode>) -> Option<SchemaNode> {
        let mut current = node;
        // Limit on a chain of references, to detect cycles.
        for _ in 0..64 {
            let Some(reference) = &current.reference else { return Some(SchemaNode::Custom(current)) };
            match self.of_definition(reference)? {
                SchemaNode::Custom(next) => current = next,
                table => return Some(table),
            }
        }
        None
    }

    /// The merge keys of a list with merge strategy; `None` if it is replaced.
    pub(crate) fn merge_keys(node: &SchemaNode) -> Option<Vec<String>> {
        match node {
            SchemaNode::Object(_) => None,
            SchemaNode::List(field) => Some(field.keys.iter().map(|k| (*k).to_owned()).collect()),
            SchemaNode::Custom(node) => node.merges().then(|| node.keys.clone()),
        }
    }

    /// The schema in the comment of a node, as JSON.
    pub(crate) fn schema_in_comment(&self, node: &Node) -> Option<SchemaNode> {
        let custom = Rc::new(comment_schema(node)?);
        // An unknown reference counts as an empty schema.
        Some(self.resolve(custom.clone()).unwrap_or(SchemaNode::Custom(custom)))
    }
}

/// The scope of a kind in the table.
fn builtin_scope(api_version: &str, kind: &str) -> Option<bool> {
    table::SCOPES
        .binary_search_by(|(a, k, _)| (*a, *k).cmp(&(api_version, kind)))
        .ok()
        .map(|i| table::SCOPES[i].2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_sorted() {
        assert!(table::TYPES.is_sorted_by(|a, b| a.name < b.name));
        assert!(table::KINDS.is_sorted_by(|a, b| (a.0, a.1) < (b.0, b.1)));
        assert!(table::SCOPES.is_sorted_by(|a, b| (a.0, a.1) < (b.0, b.1)));
        assert!(table::TYPES.iter().all(|row| row.fields.is_sorted_by(|a, b| a.name < b.name)));
    }

    #[test]
    fn containers_of_a_deployment_merge_by_name() {
        let mut schemas = Schemas::default();
        let mut node = schemas.of_kind("apps/v1", "Deployment").expect("a known kind");
        for field in ["spec", "template", "spec", "containers"] {
            node = schemas.field(&node, field).expect("a known field");
        }
        assert_eq!(Schemas::merge_keys(&node), Some(vec!["name".to_owned()]));
        let ports =
            schemas.field(&schemas.elements(&node).expect("a container"), "ports").expect("its ports");
        assert_eq!(
            Schemas::merge_keys(&ports),
            Some(vec!["containerPort".to_owned(), "protocol".to_owned()])
        );
    }

    #[test]
    fn scopes() {
        let mut schemas = Schemas::default();
        assert_eq!(schemas.namespaced("v1", "Namespace"), Some(false));
        assert_eq!(schemas.namespaced("apps/v1", "Deployment"), Some(true));
        assert_eq!(schemas.namespaced("example.com/v1", "Thing"), None);
    }
}
