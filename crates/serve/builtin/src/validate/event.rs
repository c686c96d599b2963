//! Events of the core group and of `events.k8s.io`.

use serde_json::{Value, json};

use crate::field::{Errors, Path, is_set, text};
use crate::validate::common_rules::{qualified_name, subdomain};

pub(crate) fn event_core(errors: &mut Errors, object: &Value) {
    legacy(errors, object, "reportingComponent");
}

/// Rules of both groups, for the core form.
fn legacy(errors: &mut Errors, event: &Value, controller: &str) {
    let namespace = text(&event["metadata"], "namespace");
    let involved = text(&event["involvedObject"], "namespace");
    let at = Path::new("involvedObject.namespace");
    let mismatch = "does not match event.namespace";
    if is_set(event, "eventTime") {
        if involved.is_empty() && !matches!(namespace, "default" | "kube-system") {
            errors.invalid(&at, involved, mismatch);
        }
        let reporting = text(event, "reportingComponent");
        if reporting.is_empty() {
            errors.required(&Path::new(controller), "");
        }
        qualified_name(errors, &Path::new(controller), reporting);
        for (field, limit, required) in [
            ("reportingInstance", 128, true),
            ("action", 128, true),
            ("reason", 128, true),
            ("message", 1024, false),
        ] {
            let value = text(event, field);
            if required && value.is_empty() {
                errors.required(&Path::new(field), "");
            }
            if value.len() > limit {
                errors.invalid(&Path::new(field), "", format!("can have at most {limit} characters"));
            }
        }
    } else if involved.is_empty() {
        if !matches!(namespace, "" | "default") {
            errors.invalid(&at, involved, mismatch);
        }
    } else if namespace != involved {
        errors.invalid(&at, involved, mismatch);
    }
    subdomain(errors, &Path::new("namespace"), namespace);
}

pub(crate) fn event_events(errors: &mut Errors, object: &Value) {
    let event = crate::versions::event_to_core(object.clone());
    legacy(errors, &event, "reportingController");
    series(errors, &event);
    if !is_set(&event, "eventTime") {
        errors.required(&Path::new("eventTime"), "");
    }
    let kind = text(&event, "type");
    if !matches!(kind, "Normal" | "Warning") {
        errors.invalid(&Path::new("type"), "", format!("has invalid value: {kind}"));
    }
    for field in ["firstTimestamp", "lastTimestamp"] {
        if is_set(&event, field) {
            errors.invalid(&Path::new(field), "", "needs to be unset");
        }
    }
    if event["count"].as_i64().unwrap_or(0) != 0 {
        errors.invalid(&Path::new("count"), "", "needs to be unset");
    }
    let source = &event["source"];
    if !text(source, "component").is_empty() || !text(source, "host").is_empty() {
        errors.invalid(&Path::new("source"), "", "needs to be unset");
    }
}

fn series(errors: &mut Errors, event: &Value) {
    if !is_set(event, "series") {
        return;
    }
    if event["series"]["count"].as_i64().unwrap_or(0) < 2 {
        errors.invalid(&Path::new("series.count"), "", "should be at least 2");
    }
    if !is_set(&event["series"], "lastObservedTime") {
        errors.required(&Path::new("series.lastObservedTime"), "");
    }
}

pub(crate) fn event_events_update(errors: &mut Errors, new: &Value, old: &Value) {
    let convert = |event: &Value| crate::versions::event_to_core(event.clone());
    let (event, before) = (convert(new), convert(old));
    legacy(errors, &event, "reportingController");
    if event["series"] != before["series"] {
        series(errors, &event);
    }
    const FIXED: &[&str] = &[
        "involvedObject",
        "reason",
        "message",
        "source",
        "firstTimestamp",
        "lastTimestamp",
        "count",
        "type",
        "eventTime",
        "action",
        "related",
        "reportingInstance",
        // Upstream validates it twice and reports the error twice.
        "reason",
    ];
    const TEXTS: &[&str] = &["reason", "message", "type", "action", "reportingInstance"];
    for field in FIXED {
        let path = Path::new(field);
        if *field == "involvedObject" && event[*field] != before[*field] {
            let shown = crate::go_print::compact("ObjectReference", &event[*field]);
            errors.invalid_printed(&path, shown, "field is immutable");
        } else if TEXTS.contains(field) {
            errors.immutable(&path, &json!(text(&event, field)), &json!(text(&before, field)));
        } else {
            errors.immutable(&path, &event[*field], &before[*field]);
        }
    }
    errors.immutable(
        &Path::new("reportingController"),
        &event["reportingComponent"],
        &before["reportingComponent"],
    );
}
