//! Visits all objects inside a value together with their types.

use serde_json::{Map, Value};

use crate::types::{FieldType, TypeDef};

/// Calls `visit` for the object `value` of type `def` and for every object inside it, parents first.
pub fn visit_objects(
    def: &'static TypeDef,
    value: &mut Value,
    visit: &mut dyn FnMut(&'static TypeDef, &mut Map<String, Value>),
) {
    let Some(map) = value.as_object_mut() else { return };
    if def.literal.is_some() {
        return;
    }
    visit(def, map);
    for (name, value) in map.iter_mut().filter(|(_, value)| value.is_object() || value.is_array()) {
        if let Some(field) = def.field(name) {
            visit_type(&field.ty, value, visit);
        }
    }
}

fn visit_type(
    ty: &'static FieldType,
    value: &mut Value,
    visit: &mut dyn FnMut(&'static TypeDef, &mut Map<String, Value>),
) {
    match ty {
        FieldType::Ref(to) => {
            if let Some(def) = to.def() {
                visit_objects(def, value, visit);
            }
        }
        FieldType::List(element) => {
            for item in value.as_array_mut().into_iter().flatten() {
                visit_type(&element.ty, item, visit);
            }
        }
        FieldType::Map(element) => {
            for item in value.as_object_mut().into_iter().flat_map(|m| m.values_mut()) {
                visit_type(&element.ty, item, visit);
            }
        }
        _ => {}
    }
}
