//! Events: the core form and that of `events.k8s.io`.

use serde_json::{Value, json};

/// Names of the same field in the core group and in `events.k8s.io`.
const RENAMED: &[(&str, &str)] = &[
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

/// Converts to the core form; an object in that form is returned unchanged.
pub(crate) fn to_core(object: Value) -> Value {
    convert(object, "events.k8s.io/v1", "v1", RENAMED.iter().map(|(core, events)| (*events, *core)))
}

/// Converts to the `events.k8s.io` form; an object in that form is returned unchanged.
pub(crate) fn to_events(object: Value) -> Value {
    convert(object, "v1", "events.k8s.io/v1", RENAMED.iter().copied())
}

fn convert(
    mut object: Value,
    from: &str,
    to: &str,
    names: impl Iterator<Item = (&'static str, &'static str)>,
) -> Value {
    if object["apiVersion"] != from {
        return object;
    }
    object["apiVersion"] = json!(to);
    if let Some(map) = object.as_object_mut() {
        for (old, new) in names {
            if let Some(value) = map.remove(old) {
                map.insert(new.to_owned(), value);
            }
        }
    }
    if let Some((group, version)) = Some(to).map(|t| t.split_once('/').unwrap_or(("", t))) {
        // The fields that Go always writes differ between the two types.
        fl_kubeschema::normalize_kind(group, version, "Event", &mut object);
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversion_round_trips() {
        let core = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "message": "hi",
            "involvedObject": {"kind": "Pod", "name": "p"}, "count": 2});
        let events = to_events(core.clone());
        assert_eq!((&events["note"], &events["regarding"]["name"]), (&json!("hi"), &json!("p")));
        assert_eq!(events["deprecatedCount"], 2);
        let back = to_core(events);
        assert_eq!((&back["message"], &back["count"]), (&core["message"], &core["count"]));
    }
}
