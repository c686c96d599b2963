//! Empty lists and maps in validation errors.
//!
//! Objects are validated in Go's normal form, in which an optional empty list or map is absent. Upstream
//! validates before they are dropped, and prints `{}` or `[]` instead of `null`.

use fl_schema::{FieldError, Schema, Type};
use serde_json::Value;

use crate::resource_type::ResourceType;
use crate::server::RequestContext;

/// Prints empty collections that the client sent as `{}` or `[]`. A patch that removes the last entry of a
/// map leaves an empty map as well.
pub(super) fn restore(
    ctx: &RequestContext,
    rt: &ResourceType,
    mut errors: Vec<FieldError>,
) -> Vec<FieldError> {
    let is_nothing = |error: &FieldError| error.value.as_deref() == Some("null");
    if !errors.iter().any(is_nothing) {
        return errors;
    }
    let Some(schema) = rt.strategy.schema().filter(|_| !rt.is_custom()) else { return errors };
    let Ok(body) = crate::yaml::read(&ctx.body) else { return errors };
    for error in errors.iter_mut().filter(|error| is_nothing(error)) {
        if !is_collection(&schema, &mut steps(&error.field)) {
            continue;
        }
        match find(&body, &error.field) {
            Some(Value::Object(map)) if map.values().all(Value::is_null) => {
                error.value = Some("{}".to_owned());
            }
            Some(Value::Array(list)) if list.is_empty() => error.value = Some("[]".to_owned()),
            _ => {}
        }
    }
    errors
}

/// The segments of a path such as `spec.containers[0].env`.
fn steps(path: &str) -> impl Iterator<Item = &str> {
    path.split(['.', '[']).map(|step| step.strip_suffix(']').unwrap_or(step))
}

/// Whether a path refers to a list or a map. For other fields the printed value is not the value of the
/// field.
fn is_collection<'p>(schema: &Schema, steps: &mut impl Iterator<Item = &'p str>) -> bool {
    let Some(step) = steps.next() else {
        return schema.ty == Type::Array || schema.map_values().is_some();
    };
    if let Some(items) = &schema.items {
        return is_collection(items, steps);
    }
    match schema.map_values() {
        Some(values) => is_collection(values, steps),
        None => schema.property(step).is_some_and(|property| is_collection(property, steps)),
    }
}

fn find<'v>(object: &'v Value, path: &str) -> Option<&'v Value> {
    steps(path).try_fold(object, |value, step| match step.parse::<usize>() {
        Ok(at) if value.is_array() => value.get(at),
        _ => value.get(step),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_traverse_lists_and_maps() {
        let object = json!({"spec": {"rules": [{"values": []}], "labels": {"a": {}}}});
        assert_eq!(find(&object, "spec.rules[0].values"), Some(&json!([])));
        assert_eq!(find(&object, "spec.labels[a]"), Some(&json!({})));
        assert_eq!(find(&object, "spec.rules[1].values"), None);
        let schema = fl_kubeschema::schema("apps", "v1", "Deployment").expect("built in");
        for (path, is) in [
            ("spec.template.metadata.labels", true),
            ("spec.template.spec.containers", true),
            ("spec", false),
        ] {
            assert_eq!(is_collection(&schema, &mut steps(path)), is, "{path}");
        }
    }
}
