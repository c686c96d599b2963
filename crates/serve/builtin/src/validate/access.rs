//! Roles and bindings.

use serde_json::{Value, json};

use crate::field::{Errors, Path, list, text};
use crate::name_validation::path_segment;
use crate::validate::common_rules::{label_selector, messages};

const RBAC: &str = "rbac.authorization.k8s.io";

pub(crate) fn role(errors: &mut Errors, object: &Value) {
    rules(errors, object, true);
}

pub(crate) fn cluster_role(errors: &mut Errors, object: &Value) {
    rules(errors, object, false);
    let aggregation = &object["aggregationRule"];
    if aggregation.is_null() {
        return;
    }
    let path = Path::new("aggregationRule.clusterRoleSelectors");
    let selectors = list(aggregation, "clusterRoleSelectors");
    if selectors.is_empty() {
        errors.required(&path, "at least one clusterRoleSelector required if aggregationRule is non-nil");
    }
    for (at, selector) in selectors.iter().enumerate() {
        let before = errors.0.len();
        label_selector(errors, &path.index(at), selector);
        if errors.0.len() > before {
            errors.invalid(&path.index(at), Value::Null, "invalid label selector.");
        }
    }
}

fn rules(errors: &mut Errors, object: &Value, namespaced: bool) {
    for (at, rule) in list(object, "rules").iter().enumerate() {
        let path = Path::new("rules").index(at);
        if list(rule, "verbs").is_empty() {
            errors.required(&path.child("verbs"), "verbs must contain at least one value");
        }
        let urls = &rule["nonResourceURLs"];
        if !list(rule, "nonResourceURLs").is_empty() {
            let at = path.child("nonResourceURLs");
            if namespaced {
                errors.invalid(&at, urls.clone(), "namespaced rules cannot apply to non-resource URLs");
            }
            let others = ["apiGroups", "resources", "resourceNames"];
            if others.iter().any(|key| !list(rule, key).is_empty()) {
                let why = "rules cannot apply to both regular resources and non-resource URLs";
                errors.invalid(&at, urls.clone(), why);
            }
            continue;
        }
        if list(rule, "apiGroups").is_empty() {
            errors.required(&path.child("apiGroups"), "resource rules must supply at least one api group");
        }
        if list(rule, "resources").is_empty() {
            errors.required(&path.child("resources"), "resource rules must supply at least one resource");
        }
    }
}

pub(crate) fn role_binding(errors: &mut Errors, object: &Value) {
    binding(errors, object, &["Role", "ClusterRole"], true);
}

pub(crate) fn cluster_role_binding(errors: &mut Errors, object: &Value) {
    binding(errors, object, &["ClusterRole"], false);
}

fn binding(errors: &mut Errors, object: &Value, kinds: &[&str], namespaced: bool) {
    let (path, role) = (Path::new("roleRef"), &object["roleRef"]);
    errors.one_of(&path.child("apiGroup"), text(role, "apiGroup"), &[RBAC]);
    errors.one_of(&path.child("kind"), text(role, "kind"), kinds);
    match text(role, "name") {
        "" => errors.required(&path.child("name"), ""),
        name => errors.each_invalid(&path.child("name"), name, &path_segment(name, false)),
    }
    for (at, subject) in list(object, "subjects").iter().enumerate() {
        let path = Path::new("subjects").index(at);
        let (name, group) = (text(subject, "name"), text(subject, "apiGroup"));
        if name.is_empty() {
            errors.required(&path.child("name"), "");
        }
        match text(subject, "kind") {
            "ServiceAccount" => {
                if !name.is_empty() {
                    let found = messages(fl_types::check_dns1123_subdomain(name));
                    errors.each_invalid(&path.child("name"), name, &found);
                }
                if !group.is_empty() {
                    errors.not_supported(&path.child("apiGroup"), group, &[""]);
                }
                if !namespaced && text(subject, "namespace").is_empty() {
                    errors.required(&path.child("namespace"), "");
                }
            }
            "User" | "Group" => errors.one_of(&path.child("apiGroup"), group, &[RBAC]),
            other => errors.not_supported(&path.child("kind"), other, &["ServiceAccount", "User", "Group"]),
        }
    }
}

fn immutable_role_ref(errors: &mut Errors, new: &Value, old: &Value) {
    if new["roleRef"] == old["roleRef"] {
        return;
    }
    let part = |key: &str| json!(text(&new["roleRef"], key));
    let shown =
        format!("{{\"APIGroup\":{},\"Kind\":{},\"Name\":{}}}", part("apiGroup"), part("kind"), part("name"));
    errors.invalid_printed(&Path::new("roleRef"), shown, "cannot change roleRef");
}

pub(crate) fn role_binding_update(errors: &mut Errors, new: &Value, old: &Value) {
    immutable_role_ref(errors, new, old);
}

pub(crate) fn cluster_role_binding_update(errors: &mut Errors, new: &Value, old: &Value) {
    immutable_role_ref(errors, new, old);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_need_verbs_and_targets() {
        let mut errors = Errors::default();
        role(
            &mut errors,
            &json!({"rules": [{"verbs": null}, {"verbs": ["get"], "nonResourceURLs": ["/x"]}]}),
        );
        let shown: Vec<String> = errors.0.iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "rules[0].verbs: Required value: verbs must contain at least one value",
                "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
                "rules[0].resources: Required value: resource rules must supply at least one resource",
                "rules[1].nonResourceURLs: Invalid value: [\"/x\"]: namespaced rules cannot apply to non-resource URLs",
            ]
        );
    }
}
