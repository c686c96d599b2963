//! Defaults and validation compared with the recorded responses of kube-apiserver (see
//! `tests/golden/record.py`).

use fl_schema::FieldError;
use serde_json::{Value, json};

use crate::strategy::StrategyContext;

fn read(name: &str) -> Vec<Value> {
    let path = format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).expect("a golden file")).expect("JSON")
}

/// Removes the fields that the recorder leaves out.
fn strip(mut object: Value) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for key in ["uid", "creationTimestamp", "namespace", "generation"] {
            metadata.remove(key);
        }
    }
    if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
        status.remove("lastPhaseTransitionTime");
    }
    if object["kind"] == "Service"
        && let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut)
    {
        for key in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "healthCheckNodePort"] {
            spec.remove(key);
        }
    }
    if object["kind"] == "Pod"
        && let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut)
    {
        // Admission plugins set these from other objects.
        for key in ["priority", "preemptionPolicy"] {
            spec.remove(key);
        }
    }
    object
}

fn causes(errors: &[FieldError]) -> Value {
    let mut found: Vec<[String; 3]> =
        errors.iter().map(|e| [e.field.clone(), e.kind.reason().to_owned(), e.body()]).collect();
    found.sort();
    json!(found)
}

#[test]
fn responses_match_kube_apiserver() {
    let mut wrong = Vec::new();
    for (case, mut want) in read("cases.json").into_iter().zip(read("answers.json")) {
        if want["object"].is_object() {
            want["object"] = strip(want["object"].take());
        }
        let plural = case["path"].as_str().and_then(|p| p.rsplit('/').next()).expect("a path");
        let mut object = case["object"].clone();
        let api_version = object["apiVersion"].as_str().expect("apiVersion").to_owned();
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        let resource = fl_kubeschema::group_versions()
            .iter()
            .find(|gv| gv.group == group && gv.version == version)
            .and_then(|gv| gv.resources.iter().find(|resource| resource.plural == plural))
            .unwrap_or_else(|| panic!("{api_version} {plural} is served"));
        let strategy = crate::strategy(group, version, resource.kind);
        if resource.namespaced {
            object["metadata"]["namespace"] = json!("golden");
        }
        object["metadata"]["uid"] = json!("00000000-0000-4000-8000-000000000000");
        let context = StrategyContext {
            has_status: resource.subresources.iter().any(|s| s.name == "status"),
            subresource: "",
            now: "2024-01-01T00:00:00Z",
        };
        strategy.default(&mut object);
        strategy.prepare_for_create(context, &mut object);
        strategy.seal(&mut object);
        let errors = strategy.validate_create(context, &object);
        let got = if errors.is_empty() {
            json!({"object": strip(object)})
        } else {
            json!({"causes": causes(&errors)})
        };
        if got != want {
            let print = |v: &Value| serde_json::to_string_pretty(v).expect("prints");
            let diff = crate::validate::common_rules::unified_diff(&print(&want), &print(&got));
            wrong.push(format!("{plural} {}:\n{diff}", case["object"]["metadata"]["name"]));
        }
    }
    assert!(wrong.is_empty(), "{} answers differ:\n{}", wrong.len(), wrong.join("\n"));
}
