//! Edges between schemas: direct, or by definition name and resolved on first use because built-in types recurse.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use crate::model::{ListType, MapType, Name, Patch, Schema};

/// Where named definitions come from; implementations cache what they build.
pub trait Definitions: Send + Sync {
    fn definition(&self, name: &str) -> Option<Arc<Schema>>;
}

/// What a field says beside the type it refers to.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    pub patch: Option<Patch>,
    pub map: Option<MapType>,
    pub list: Option<ListType>,
    pub default: Option<Arc<Value>>,
    pub nullable: bool,
}

impl Overrides {
    fn is_empty(&self) -> bool {
        self.patch.is_none()
            && self.map.is_none()
            && self.list.is_none()
            && self.default.is_none()
            && !self.nullable
    }
}

/// A schema, or a reference to one. Dereferences to the schema; a dangling name acts as "anything".
#[derive(Clone)]
pub struct Node(Inner);

#[derive(Clone)]
enum Inner {
    Here(Arc<Schema>),
    Named(Arc<Named>),
}

struct Named {
    name: Name,
    overrides: Overrides,
    source: Arc<dyn Definitions>,
    // Filled on first use. Recursive types thus form a cycle that lives as long as the process, as the tables do.
    resolved: OnceLock<Arc<Schema>>,
}

impl Node {
    pub fn new(schema: Schema) -> Self {
        Self(Inner::Here(Arc::new(schema)))
    }

    /// A reference that `source` answers when first used.
    pub fn named(name: impl Into<Name>, source: Arc<dyn Definitions>) -> Self {
        Self::named_with(name, source, Overrides::default())
    }

    /// A reference with field-level attributes laid over the definition.
    pub fn named_with(name: impl Into<Name>, source: Arc<dyn Definitions>, overrides: Overrides) -> Self {
        Self(Inner::Named(Arc::new(Named {
            name: name.into(),
            overrides,
            source,
            resolved: OnceLock::new(),
        })))
    }

    /// The schema, shared.
    pub fn schema(&self) -> &Arc<Schema> {
        match &self.0 {
            Inner::Here(schema) => schema,
            Inner::Named(named) => named.resolved.get_or_init(|| named.resolve()),
        }
    }

    /// The definition name of a reference.
    pub fn reference(&self) -> Option<&str> {
        match &self.0 {
            Inner::Here(_) => None,
            Inner::Named(named) => Some(&named.name),
        }
    }
}

impl Named {
    fn resolve(&self) -> Arc<Schema> {
        let base = self
            .source
            .definition(&self.name)
            .unwrap_or_else(|| Arc::new(Schema { preserve_unknown: true, ..Schema::default() }));
        if self.overrides.is_empty() {
            return base;
        }
        let mut schema = Schema::clone(&base);
        let over = &self.overrides;
        if let Some(patch) = &over.patch {
            schema.patch = patch.clone();
        }
        schema.map = over.map.unwrap_or(schema.map);
        schema.list = over.list.unwrap_or(schema.list);
        schema.default = over.default.clone().or(schema.default);
        schema.nullable |= over.nullable;
        Arc::new(schema)
    }
}

impl Deref for Node {
    type Target = Schema;
    fn deref(&self) -> &Schema {
        self.schema()
    }
}

impl From<Schema> for Node {
    fn from(schema: Schema) -> Self {
        Self::new(schema)
    }
}

impl From<Arc<Schema>> for Node {
    fn from(schema: Arc<Schema>) -> Self {
        Self(Inner::Here(schema))
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A reference prints as its name: printing what it refers to would not end for recursive types.
        match &self.0 {
            Inner::Here(schema) => schema.fmt(f),
            Inner::Named(named) => write!(f, "Ref({})", named.name),
        }
    }
}
