//! The form Flux gives objects before it sends them.
//!
//! Built-in kinds go through their Go types, so fields they do not have are dropped and those Go always writes are there; ports get
//! their protocol (server-side apply keys on it), a Secret's plain values become data. An object that does not fit its type is
//! sent as it is: the API server then says what is wrong.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fl_kubeschema::{FieldType, TypeDef, type_of};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::{Map, Value};

use crate::{ObjectRef, is_custom_resource_definition};

/// Groups whose types Kubernetes' Go client does not bring along.
const NOT_IN_CLIENT: [&str; 2] = ["apiextensions.k8s.io", "apiregistration.k8s.io"];

/// Brings an object into the form in which it is applied.
pub fn normalize(object: &mut Value) {
    let Ok(target) = ObjectRef::of(object) else { return };
    let id = &target.id;
    let rbac_role = target.api_version() == "rbac.authorization.k8s.io/v1"
        && matches!(id.kind.as_str(), "Role" | "ClusterRole");
    if rbac_role {
        return;
    }
    if !NOT_IN_CLIENT.contains(&id.group.as_str())
        && let Some(def) = type_of(&id.group, &target.version, &id.kind)
        && fits(def, object)
    {
        default_protocols(&target, object);
        if id.group.is_empty() && id.kind == "Secret" {
            move_plain_values(object);
        }
        fl_kubeschema::normalize_stored(def, object);
    }
    let definition = is_custom_resource_definition(id);
    if let Some(map) = object.as_object_mut() {
        // kstatus reads the conditions of a CRD that is applied with its status.
        if !definition {
            map.remove("status");
        }
        if let Some(metadata) = map.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("creationTimestamp");
            // An export of a live object is often committed; the server refuses an apply that brings these along.
            metadata.remove("managedFields");
        }
    }
    if definition {
        drop_bad_authority(object);
    }
}

fn default_protocols(target: &ObjectRef, object: &mut Value) {
    let id = &target.id;
    let containers = match (id.group.as_str(), target.version.as_str(), id.kind.as_str()) {
        ("", "v1", "Pod") => "/spec/containers",
        ("apps", "v1", "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet")
        | ("batch", "v1", "Job") => "/spec/template/spec/containers",
        ("batch", "v1", "CronJob") => "/spec/jobTemplate/spec/template/spec/containers",
        ("", "v1", "Service") => {
            set_protocol(object.pointer_mut("/spec/ports"));
            return;
        }
        _ => return,
    };
    for container in object.pointer_mut(containers).and_then(Value::as_array_mut).into_iter().flatten() {
        set_protocol(container.get_mut("ports"));
    }
}

fn set_protocol(ports: Option<&mut Value>) {
    for port in ports.and_then(Value::as_array_mut).into_iter().flatten() {
        let Some(port) = port.as_object_mut() else { continue };
        let missing = port.get("protocol").is_none_or(|p| p.is_null() || p == "");
        if missing {
            port.insert("protocol".to_owned(), Value::from("TCP"));
        }
    }
}

fn move_plain_values(secret: &mut Value) {
    let Some(map) = secret.as_object_mut() else { return };
    let Some(Value::Object(plain)) = map.remove("stringData") else { return };
    if plain.is_empty() {
        return;
    }
    let data = map.entry("data").or_insert_with(|| Value::Object(Map::new()));
    if data.is_null() {
        *data = Value::Object(Map::new());
    }
    let Some(data) = data.as_object_mut() else { return };
    for (key, value) in plain {
        data.insert(key, Value::String(STANDARD.encode(value.as_str().unwrap_or_default())));
    }
}

/// Kubernetes refuses a CRD whose webhook authority is none; many charts ship a placeholder there.
fn drop_bad_authority(object: &mut Value) {
    let Some(config) =
        object.pointer_mut("/spec/conversion/webhook/clientConfig").and_then(Value::as_object_mut)
    else {
        return;
    };
    let Some(bundle) = config.get("caBundle").and_then(Value::as_str).filter(|b| !b.is_empty()) else {
        return;
    };
    let valid = STANDARD.decode(bundle).is_ok_and(|pem| {
        pem.is_empty() || CertificateDer::pem_slice_iter(&pem).next().is_some_and(|first| first.is_ok())
    });
    if !valid {
        config.remove("caBundle");
    }
}

/// Whether Go could read the value into the type: unknown fields are fine, wrong JSON types are not.
fn fits(def: &'static TypeDef, value: &Value) -> bool {
    if value.is_null() {
        return true;
    }
    if def.literal.is_some() {
        return fits_special(&def.name, value);
    }
    let Some(map) = value.as_object() else { return false };
    def.fields.iter().all(|field| map.get(field.name).is_none_or(|v| fits_type(&field.ty, v)))
}

fn fits_type(ty: &'static FieldType, value: &Value) -> bool {
    if value.is_null() {
        return true;
    }
    match ty {
        FieldType::String => value.is_string(),
        FieldType::Bool => value.is_boolean(),
        FieldType::Int32 | FieldType::Int64 => {
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|f| f.fract() == 0.0)
        }
        FieldType::Double => value.is_number(),
        FieldType::Bytes => value.as_str().is_some_and(|text| STANDARD.decode(text).is_ok()),
        FieldType::Ref(to) => to.def().is_none_or(|def| fits(def, value)),
        FieldType::List(element) => {
            value.as_array().is_some_and(|items| items.iter().all(|item| fits_type(&element.ty, item)))
        }
        FieldType::Map(element) => {
            value.as_object().is_some_and(|map| map.values().all(|item| fits_type(&element.ty, item)))
        }
    }
}

fn fits_special(name: &str, value: &Value) -> bool {
    match (name.rsplit('.').next().unwrap_or_default(), value) {
        ("Quantity", Value::String(text)) => text.parse::<fl_types::Quantity>().is_ok(),
        ("Quantity" | "IntOrString", Value::Number(_)) | ("IntOrString", Value::String(_)) => true,
        ("Quantity" | "IntOrString", _) => false,
        ("Time" | "MicroTime" | "Duration", value) => value.is_string(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn normal(mut object: Value) -> Value {
        normalize(&mut object);
        object
    }

    #[test]
    fn secrets_and_unknown_fields() {
        let got = normal(
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "creationTimestamp": null},
            "data": {"a": "eA=="}, "stringData": {"b": "y"}, "sops": {"mac": "x"}}),
        );
        assert_eq!(
            got,
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "eA==", "b": "eQ=="}})
        );
    }

    #[test]
    fn ports_get_a_protocol() {
        let got = normal(
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}),
        );
        assert_eq!(got["spec"]["ports"][0]["protocol"], "TCP");
        let got = normal(json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
            "spec": {"replicas": 0, "template": {"spec": {"containers": [{"name": "c", "ports": [{"containerPort": 1}]}]}}}}));
        assert_eq!(got.pointer("/spec/template/spec/containers/0/ports/0/protocol"), Some(&json!("TCP")));
        assert_eq!(got.pointer("/spec/template/spec/containers/0/resources"), Some(&json!({})));
        assert_eq!(got["spec"]["replicas"], 0);
        assert!(got.get("status").is_none());
    }

    #[test]
    fn what_does_not_fit_is_left_to_the_server() {
        let bad = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"q": 3}, "extra": 1});
        assert_eq!(normal(bad.clone()), bad);
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"q": "not base64"}});
        assert_eq!(normal(secret.clone()), secret);
    }

    #[test]
    fn roles_and_custom_resources_stay() {
        let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r"}, "rules": []});
        assert_eq!(normal(role.clone()), role);
        let thing = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {"any": null}, "status": {"x": 1}});
        assert_eq!(
            normal(thing),
            json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {"any": null}})
        );
    }

    #[test]
    fn a_placeholder_authority_goes() {
        let definition = |bundle: &str| {
            json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "x"}, "spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": bundle}}}}, "status": {}})
        };
        for bad in ["Cg==", "not base64!"] {
            let got = normal(definition(bad));
            assert_eq!(got.pointer("/spec/conversion/webhook/clientConfig"), Some(&json!({})), "{bad}");
            assert!(got.get("status").is_some());
        }
    }
}
