//! All objects in apply order, and their YAML.

use std::collections::BTreeSet;

use fl_api::definitions;
use fl_yaml::{Dialect, from_json, to_sigs_yaml};
use serde_json::{Value, json};

use crate::component::Component;
use crate::error::Error;
use crate::metadata::{add_labels, labels};
use crate::options::{NetworkPolicy, Options};
use crate::{network, rbac, workload};

/// The CRDs of some components, without the labels of an installation.
#[must_use]
pub fn crds(components: &BTreeSet<Component>) -> Vec<Value> {
    components.iter().flat_map(|c| definitions(c.crds())).map(|d| d.to_json()).collect()
}

/// The CRDs of an installation, with the labels that `check`, `uninstall` and dashboards select by.
#[must_use]
pub fn labelled_crds(options: &Options) -> Vec<Value> {
    let mut all = Vec::new();
    for component in &options.components {
        for definition in definitions(component.crds()) {
            let mut crd = definition.to_json();
            add_labels(&mut crd, labels(options, Some(component.name())));
            all.push(crd);
        }
    }
    all
}

/// The service accounts of an installation with their roles and bindings.
#[must_use]
pub fn accounts(options: &Options) -> Vec<Value> {
    let mut objects = rbac::service_accounts(options);
    objects.extend(rbac::roles(options));
    objects
}

/// All objects of an installation, in the order they should be applied.
///
/// # Errors
/// The API server would reject an option.
pub fn manifests(options: &Options) -> Result<Vec<Value>, Error> {
    options.check()?;
    let mut namespace_labels = labels(options, None);
    namespace_labels.insert("pod-security.kubernetes.io/warn".to_owned(), json!("restricted"));
    namespace_labels.insert("pod-security.kubernetes.io/warn-version".to_owned(), json!("latest"));
    let mut objects = vec![
        json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": options.namespace, "labels": namespace_labels},
        }),
        rbac::resource_quota(options),
    ];
    if options.network_policy == NetworkPolicy::Install {
        objects.extend(network::policies(options));
    }
    objects.extend(labelled_crds(options));
    objects.extend(accounts(options));
    objects.extend(workload::services(options));
    objects.extend(workload::deployments(options));
    Ok(objects)
}

/// Writes the objects as a stream of YAML documents.
///
/// # Errors
/// A string contains characters that YAML cannot represent.
pub fn to_yaml(objects: &[Value]) -> Result<String, Error> {
    let mut out = String::new();
    for object in objects {
        out.push_str("---\n");
        out.push_str(&to_sigs_yaml(&from_json(&object.to_string())?, Dialect::Sigs)?);
    }
    Ok(out)
}
