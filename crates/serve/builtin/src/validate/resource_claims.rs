//! Pod-level resources, resource claims and Windows options.

use std::collections::HashSet;

use serde_json::Value;

use crate::field::{Errors, Path, is_set, list, text};
use crate::validate::common_rules::{label, subdomain};
use crate::validate::resources;

/// Validates the resources of a pod and its resource claims.
pub(super) fn resources(errors: &mut Errors, path: &Path, spec: &Value) {
    if is_set(spec, "resources") {
        resources::resource_requirements(errors, &path.child("resources"), &spec["resources"]);
    }
    let mut names = HashSet::new();
    for (at, claim) in list(spec, "resourceClaims").iter().enumerate() {
        let (here, name) = (path.child("resourceClaims").index(at), text(claim, "name"));
        if name.is_empty() {
            errors.required(&here.child("name"), "");
        } else if !names.insert(name) {
            errors.duplicate(&here.child("name"), name);
        } else {
            label(errors, &here.child("name"), name);
        }
        let (one, template) = (&claim["resourceClaimName"], &claim["resourceClaimTemplateName"]);
        let shown = format!(
            "{{\"Name\":{},\"ResourceClaimName\":{one},\"ResourceClaimTemplateName\":{template}}}",
            claim["name"]
        );
        match (one.is_null(), template.is_null()) {
            (true, true) => {
                let why = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`";
                errors.invalid_printed(&here, shown, why);
            }
            (false, false) => {
                let why =
                    "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified";
                errors.invalid_printed(&here, shown, why);
            }
            _ => {}
        }
        for key in ["resourceClaimName", "resourceClaimTemplateName"] {
            if let Some(name) = claim[key].as_str() {
                subdomain(errors, &here.child(key), name);
            }
        }
    }
    for kind in ["initContainers", "containers"] {
        for (at, container) in list(spec, kind).iter().enumerate() {
            let here = path.child(kind).index(at).at("resources.claims");
            used_claims(errors, &here, list(&container["resources"], "claims"), &names);
        }
    }
}

fn used_claims(errors: &mut Errors, path: &Path, claims: &[Value], known: &HashSet<&str>) {
    let mut seen: HashSet<(&str, &str)> = HashSet::new();
    for (at, claim) in claims.iter().enumerate() {
        let (here, name, request) = (path.index(at), text(claim, "name"), text(claim, "request"));
        if name.is_empty() {
            errors.required(&here, "");
        } else if !seen.insert((name, request)) {
            errors.duplicate(&here, name);
        } else if !known.contains(name) {
            let why = if known.is_empty() {
                "must be one of the names in pod.spec.resourceClaims which is empty".to_owned()
            } else {
                let mut all: Vec<&str> = known.iter().copied().collect();
                all.sort_unstable();
                format!("must be one of the names in pod.spec.resourceClaims: {}", all.join(", "))
            };
            errors.not_found(&here, name);
            if let Some(error) = errors.0.last_mut() {
                error.detail = why;
            }
        }
    }
}

/// Validates the Windows options of a security context.
pub(super) fn windows_options(errors: &mut Errors, path: &Path, options: &Value) {
    if let Some(name) = options["gmsaCredentialSpecName"].as_str() {
        subdomain(errors, &path.child("gmsaCredentialSpecName"), name);
    }
    for key in ["gmsaCredentialSpec", "runAsUserName"] {
        if options[key].as_str() == Some("") {
            errors.invalid(&path.child(key), "", format!("{key} cannot be an empty string"));
        }
    }
}
