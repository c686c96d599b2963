//! References between schemas: direct, or by definition name and resolved on first use, because built-in
//! types are recursive.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use crate::structural::{ListType, MapType, Name, Patch, Schema};

/// A source of named definitions; implementations cache what they build.
pub trait Definitions: Send + Sync {
    fn definition(&self, name: &str) -> Option<Arc<Schema>>;
}

/// Attributes of a field next to the reference to its type.
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

/// A schema or a reference to one. Dereferences to the schema; an unknown name acts as a schema without
/// restrictions.
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
    // Resolved on first use. Recursive types form a cycle that is never freed, like the tables.
    resolved: OnceLock<Arc<Schema>>,
}

impl Node {
    pub fn new(schema: Schema) -> Self {
        Self(Inner::Here(Arc::new(schema)))
    }

    /// A reference that is resolved by `source` on first use.
    pub fn named(name: impl Into<Name>, source: Arc<dyn Definitions>) -> Self {
        Self::named_with(name, source, Overrides::default())
    }

    /// A reference whose definition is overridden by attributes of the field.
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
        // A reference prints its name only: recursive types would not end.
        match &self.0 {
            Inner::Here(schema) => schema.fmt(f),
            Inner::Named(named) => write!(f, "Ref({})", named.name),
        }
    }
}
