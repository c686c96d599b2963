//! OpenAPI v3 documents as a source of definitions.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use crate::node::{Definitions, Node};
use crate::structural::Schema;

/// The `components.schemas` of a document; each definition is parsed on first use.
pub struct OpenApi {
    schemas: HashMap<String, Value>,
    parsed: Mutex<HashMap<String, Arc<Schema>>>,
    this: std::sync::Weak<OpenApi>,
}

impl OpenApi {
    /// Takes the definitions of a document. Keep the handle alive as long as its schemas are used.
    pub fn new(document: &Value) -> Arc<Self> {
        let schemas = document
            .pointer("/components/schemas")
            .and_then(Value::as_object)
            .map(|map| map.iter().map(|(k, v)| (k.clone(), v.clone())).collect())
            .unwrap_or_default();
        Arc::new_cyclic(|this| Self { schemas, parsed: Mutex::default(), this: this.clone() })
    }

    /// A node for the named definition.
    pub fn node(self: &Arc<Self>, name: &str) -> Option<Node> {
        self.definition(name).map(Node::from)
    }
}

impl fmt::Debug for OpenApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpenApi({} definitions)", self.schemas.len())
    }
}

impl Definitions for OpenApi {
    fn definition(&self, name: &str) -> Option<Arc<Schema>> {
        let mut parsed = self.parsed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = parsed.get(name) {
            return Some(Arc::clone(found));
        }
        let source: Arc<dyn Definitions> = self.this.upgrade()?;
        let mut schema = Schema::from_openapi(self.schemas.get(name)?, &source).ok()?;
        if holds_raw_json(name) {
            schema.preserve_unknown = true;
        }
        // The document has these two as alternatives of types; for apply and decoding they are one scalar.
        if name.ends_with(".api.resource.Quantity") || name.ends_with(".util.intstr.IntOrString") {
            schema = Schema { int_or_string: true, format: schema.format, ..Schema::default() };
        }
        schema.name = Some(name.to_owned().into());
        let schema = Arc::new(schema);
        parsed.insert(name.to_owned(), Arc::clone(&schema));
        Some(schema)
    }
}

/// Definitions that are documented as objects without properties, and whose Go types keep any JSON.
fn holds_raw_json(name: &str) -> bool {
    const RAW: &[&str] = &[
        "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1",
        "io.k8s.apimachinery.pkg.runtime.RawExtension",
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON",
    ];
    RAW.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::structural::{Additional, Type};
    use serde_json::json;

    #[test]
    fn recursive_definitions_are_resolved_on_use() {
        let doc = OpenApi::new(&json!({"components": {"schemas": {
            "Tree": {"type": "object", "properties": {
                "kids": {"type": "array", "items": {"allOf": [{"$ref": "#/components/schemas/Tree"}], "default": {}}},
                "sel": {"allOf": [{"$ref": "#/components/schemas/Sel"}], "x-kubernetes-map-type": "atomic"}}},
            "Sel": {"type": "object", "additionalProperties": {"type": "string"}}}}}));
        let tree = doc.node("Tree").expect("defined");
        let kid = tree.property("kids").and_then(|k| k.items.clone()).expect("items");
        assert_eq!(kid.name.as_deref(), Some("Tree"));
        let sel = kid.property("sel").expect("sel");
        assert_eq!(sel.map, crate::MapType::Atomic);
        assert!(matches!(sel.additional, Additional::Schema(_)));
        assert_eq!(sel.ty, Type::Object);
    }
}
