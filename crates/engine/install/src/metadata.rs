//! Names and labels of the objects.

use serde_json::{Map, Value, json};

use crate::options::Options;

/// Name of the single Deployment and its ServiceAccount.
pub(crate) const ENGINE: &str = "fluorite";

/// Common labels of all objects, as in Flux: `flux check`, `uninstall` and dashboards select by them.
pub(crate) fn labels(options: &Options, component: Option<&str>) -> Map<String, Value> {
    let mut labels = Map::new();
    labels.insert("app.kubernetes.io/instance".to_owned(), json!(options.namespace));
    labels.insert("app.kubernetes.io/part-of".to_owned(), json!("flux"));
    labels.insert("app.kubernetes.io/version".to_owned(), json!(options.version));
    if let Some(component) = component {
        labels.insert("app.kubernetes.io/component".to_owned(), json!(component));
    }
    labels
}

/// Metadata of an object in the installation's namespace.
pub(crate) fn namespaced(options: &Options, name: &str, component: Option<&str>) -> Value {
    json!({"name": name, "namespace": options.namespace, "labels": labels(options, component)})
}

/// Metadata of a cluster-scoped object; the name contains the namespace, so that two installations do not
/// collide.
pub(crate) fn cluster_wide(options: &Options, name: &str) -> Value {
    json!({"name": format!("{name}-{}", options.namespace), "labels": labels(options, None)})
}

/// Adds labels to the metadata of an object.
pub(crate) fn add_labels(object: &mut Value, labels: Map<String, Value>) {
    let metadata = &mut object["metadata"];
    if !metadata["labels"].is_object() {
        metadata["labels"] = json!({});
    }
    if let Some(all) = metadata["labels"].as_object_mut() {
        all.extend(labels);
    }
}
