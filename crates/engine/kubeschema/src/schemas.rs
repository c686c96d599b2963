//! Schemas of built-in types, built from the tables on first use.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use fl_schema::{
    Additional, Definitions, ListType, MapType, Name, Node, Overrides, Patch, PatchStrategy, Properties,
    Rules, Schema, Type,
};
use serde_json::Value;

use crate::types::{Element, Field, FieldType, TypeDef, type_named, type_of};

/// The schema of a built-in kind.
#[must_use]
pub fn schema(group: &str, version: &str, kind: &str) -> Option<Arc<Schema>> {
    schema_of(type_of(group, version, kind)?)
}

/// The schema of a type.
#[must_use]
pub fn schema_of(def: &'static TypeDef) -> Option<Arc<Schema>> {
    def.derived.schema.get_or_init(|| schema_named(&def.name)).clone()
}

/// The schema of the type with this definition name.
#[must_use]
pub fn schema_named(name: &str) -> Option<Arc<Schema>> {
    source().definition(name)
}

struct Tables {
    built: Mutex<HashMap<String, Arc<Schema>>>,
}

fn source() -> Arc<dyn Definitions> {
    static SOURCE: OnceLock<Arc<Tables>> = OnceLock::new();
    let tables = SOURCE.get_or_init(|| Arc::new(Tables { built: Mutex::default() }));
    Arc::clone(tables) as Arc<dyn Definitions>
}

impl Definitions for Tables {
    fn definition(&self, name: &str) -> Option<Arc<Schema>> {
        let mut built = self.built.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = built.get(name) {
            return Some(Arc::clone(found));
        }
        let made = Arc::new(build(type_named(name)?));
        built.insert(name.to_owned(), Arc::clone(&made));
        Some(made)
    }
}

/// Go's name of a type, from the last two parts of its definition name: `v1.PodSpec`.
fn go_name(name: &str) -> String {
    let mut parts = name.rsplitn(3, '.');
    let kind = parts.next().unwrap_or_default();
    format!("{}.{kind}", parts.next().unwrap_or_default())
}

fn build(def: &'static TypeDef) -> Schema {
    let named = Schema {
        name: Some(Name::Borrowed(def.name.as_str())),
        go_type: Some(go_name(&def.name).into()),
        ..Schema::default()
    };
    if def.literal.is_some() {
        return special(def, named);
    }
    let properties = def.fields.iter().map(|f| (Name::Borrowed(f.name), field_node(f)));
    let required: Vec<Name> =
        def.fields.iter().filter(|f| f.required).map(|f| Name::Borrowed(f.name)).collect();
    let rules = (!required.is_empty()).then(|| {
        let mut rules = Rules::default();
        rules.required = required;
        Arc::new(rules)
    });
    Schema {
        ty: Type::Object,
        map: map_type(def.map_type),
        properties: Arc::new(Properties::from_iter(properties)),
        rules,
        ..named
    }
}

/// Types with their own JSON representation.
fn special(def: &TypeDef, named: Schema) -> Schema {
    let kind = def.name.rsplit('.').next().unwrap_or_default();
    match kind {
        "Quantity" => Schema { int_or_string: true, format: Some("quantity".into()), ..named },
        "IntOrString" => Schema { int_or_string: true, format: Some("int-or-string".into()), ..named },
        "Time" => Schema { ty: Type::String, format: Some("date-time".into()), ..named },
        "MicroTime" => Schema { ty: Type::String, format: Some("micro-time".into()), ..named },
        // Objects without fields that do not keep raw JSON.
        "Patch" | "CustomResourceSubresourceStatus" => Schema { ty: Type::Object, ..named },
        "FieldsV1" | "RawExtension" => Schema { ty: Type::Object, preserve_unknown: true, ..named },
        _ => Schema { preserve_unknown: true, ..named },
    }
}

fn list_type(word: Option<&str>) -> ListType {
    match word {
        Some("atomic") => ListType::Atomic,
        Some("set") => ListType::Set,
        Some("map") => ListType::Map,
        _ => ListType::Unset,
    }
}

fn map_type(word: Option<&str>) -> MapType {
    match word {
        Some("atomic") => MapType::Atomic,
        Some("granular") => MapType::Granular,
        _ => MapType::Unset,
    }
}

fn patch(field: &Field) -> Patch {
    let has = |word: &str| field.patch_strategy.is_some_and(|s| s.split(',').any(|w| w == word));
    let strategy =
        PatchStrategy { merge: has("merge"), replace: has("replace"), retain_keys: has("retainKeys") };
    Patch { strategy, merge_key: field.merge_key.map(Name::Borrowed) }
}

fn default(field: &Field) -> Option<Arc<Value>> {
    if field.zero_default {
        return Some(Arc::new(zero(&field.ty)));
    }
    field.default.and_then(|text| serde_json::from_str(text).ok()).map(Arc::new)
}

/// The zero value of a type as in the OpenAPI documents.
pub(crate) fn zero(ty: &FieldType) -> Value {
    match ty {
        FieldType::String | FieldType::Bytes => Value::from(""),
        FieldType::Int32 | FieldType::Int64 | FieldType::Double => Value::from(0),
        FieldType::Bool => Value::from(false),
        FieldType::Ref(_) | FieldType::Map(_) => Value::Object(serde_json::Map::new()),
        FieldType::List(_) => Value::Array(Vec::new()),
    }
}

fn enumeration(values: &[&str]) -> Option<Arc<Rules>> {
    (!values.is_empty()).then(|| {
        let enumeration = values.iter().map(|v| Value::from(*v)).collect();
        let mut rules = Rules::default();
        rules.enumeration = enumeration;
        Arc::new(rules)
    })
}

fn field_node(field: &'static Field) -> Node {
    if let FieldType::Ref(to) = &field.ty {
        let patch = patch(field);
        let overrides = Overrides {
            patch: (patch != Patch::default()).then_some(patch),
            map: field.map_type.map(|w| map_type(Some(w))),
            list: field.list_type.map(|w| list_type(Some(w))),
            default: default(field),
            nullable: false,
        };
        return Node::named_with(to.name(), source(), overrides);
    }
    Node::new(Schema {
        go_type: field.go_type.map(Name::Borrowed),
        list: list_type(field.list_type),
        list_keys: field.map_keys.iter().map(|k| Name::Borrowed(*k)).collect(),
        map: map_type(field.map_type),
        patch: patch(field),
        default: default(field),
        rules: enumeration(&field.enumeration),
        ..plain(&field.ty, &field.element_enumeration, field.go_type)
    })
}

fn element_node(element: &'static Element, values: &[&'static str], go_type: Option<&'static str>) -> Node {
    let default = element.zero_default.then(|| Arc::new(zero(&element.ty)));
    if let FieldType::Ref(to) = &element.ty {
        return Node::named_with(to.name(), source(), Overrides { default, ..Overrides::default() });
    }
    let rules = enumeration(values);
    Node::new(Schema {
        go_type: go_type.map(Name::Borrowed),
        default,
        rules,
        ..plain(&element.ty, &[], go_type)
    })
}

/// The schema of an unnamed type; `go_type` is its Go name, from which the names of its elements are derived.
fn plain(ty: &'static FieldType, element_values: &[&'static str], go_type: Option<&'static str>) -> Schema {
    let of = |ty: Type, format: Option<&'static str>| Schema {
        ty,
        format: format.map(Name::Borrowed),
        ..Schema::default()
    };
    match ty {
        FieldType::String => of(Type::String, None),
        FieldType::Bytes => of(Type::String, Some("byte")),
        FieldType::Int32 => of(Type::Integer, Some("int32")),
        FieldType::Int64 => of(Type::Integer, Some("int64")),
        FieldType::Bool => of(Type::Boolean, None),
        FieldType::Double => of(Type::Number, Some("double")),
        FieldType::List(element) => {
            let inner = go_type.and_then(|name| name.strip_prefix("[]"));
            Schema { items: Some(element_node(element, element_values, inner)), ..of(Type::Array, None) }
        }
        FieldType::Map(element) => Schema {
            additional: Additional::Schema(element_node(element, element_values, None)),
            ..of(Type::Object, None)
        },
        FieldType::Ref(_) => Schema::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deployment_schema_has_its_containers() {
        let deployment = schema("apps", "v1", "Deployment").expect("built in");
        let spec = deployment.property("spec").expect("spec");
        assert_eq!(spec.name.as_deref(), Some("io.k8s.api.apps.v1.DeploymentSpec"));
        let strategy = spec.property("strategy").expect("strategy");
        assert!(strategy.patch.strategy.retain_keys);
        let pod = spec.property("template").and_then(|t| t.property("spec")).expect("pod spec");
        let containers = pod.property("containers").expect("containers");
        assert_eq!((containers.list, containers.list_keys[0].as_ref()), (ListType::Map, "name"));
        let ports = containers.items.as_ref().and_then(|c| c.property("ports")).expect("ports");
        assert_eq!(ports.list_keys, ["containerPort", "protocol"]);
        let protocol = ports.items.as_ref().and_then(|p| p.property("protocol")).expect("protocol");
        assert_eq!(protocol.default.as_deref(), Some(&Value::from("TCP")));
        assert_eq!(spec.property("selector").map(|s| s.map), Some(MapType::Atomic));
    }

    #[test]
    fn recursive_types_are_resolved_lazily() {
        let crd = schema("apiextensions.k8s.io", "v1", "CustomResourceDefinition").expect("built in");
        let versions = crd.property("spec").and_then(|s| s.property("versions")).expect("versions");
        let version = versions.items.as_ref().expect("items");
        let props = version.property("schema").and_then(|s| s.property("openAPIV3Schema")).expect("schema");
        let inner = props.property("properties").and_then(|p| p.map_values()).expect("properties");
        assert!(inner.property("not").is_some());
    }
}
