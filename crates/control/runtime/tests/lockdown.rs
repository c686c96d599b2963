//! F01, F02: every reference field of every kind that this engine reconciles, against every lock-down flag. The fields are found in the
//! schemas of the CRDs: a new one fails this test until it has a row here that says which rule it follows.

use std::collections::BTreeMap;

use fl_api::{CrdSet, definitions};
use fl_runtime::{Identity, Options};
use serde_json::Value;

/// The rule that a reference follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// Names an object in the namespace of its own; the schema has no field for another one.
    OwnNamespace,
    /// May name another namespace; refused by `--no-cross-namespace-refs`.
    AnyNamespace,
    /// May name another namespace; with an expression, refused by `--no-cross-namespace-refs`.
    Dependency,
    /// An account in the namespace of its own; without one, that of `--default-service-account`.
    Account,
    /// An account for a cloud or a key service; refused, as this engine exchanges no tokens. Without one, lock-down keeps the engine's own
    /// credentials from being used.
    CloudAccount,
    /// Selects among what the object itself builds, or is looked up with the identity the object applies with.
    Selector,
    /// Not read by the engine.
    Unread,
}

use Rule::{Account, AnyNamespace, CloudAccount, Dependency, OwnNamespace, Selector, Unread};

const ROWS: &[(&str, &str, Rule)] = &[
    ("Bucket", "certSecretRef", OwnNamespace),
    ("Bucket", "proxySecretRef", OwnNamespace),
    ("Bucket", "secretRef", OwnNamespace),
    ("Bucket", "serviceAccountName", CloudAccount),
    ("Bucket", "sts.certSecretRef", OwnNamespace),
    ("Bucket", "sts.secretRef", OwnNamespace),
    ("ExternalArtifact", "sourceRef", Unread),
    ("GitRepository", "include[].repository", OwnNamespace),
    ("GitRepository", "proxySecretRef", OwnNamespace),
    ("GitRepository", "ref", Selector),
    ("GitRepository", "secretRef", OwnNamespace),
    ("GitRepository", "serviceAccountName", CloudAccount),
    ("GitRepository", "verify.secretRef", OwnNamespace),
    ("HelmChart", "sourceRef", OwnNamespace),
    ("HelmChart", "verify.secretRef", OwnNamespace),
    ("HelmRepository", "certSecretRef", OwnNamespace),
    ("HelmRepository", "secretRef", OwnNamespace),
    ("OCIRepository", "certSecretRef", OwnNamespace),
    ("OCIRepository", "proxySecretRef", OwnNamespace),
    ("OCIRepository", "ref", Selector),
    ("OCIRepository", "secretRef", OwnNamespace),
    ("OCIRepository", "serviceAccountName", CloudAccount),
    ("OCIRepository", "verify.secretRef", OwnNamespace),
    ("OCIRepository", "verify.trustedRootSecretRef", OwnNamespace),
    ("Kustomization", "decryption.secretRef", OwnNamespace),
    ("Kustomization", "decryption.serviceAccountName", CloudAccount),
    ("Kustomization", "dependsOn[]", Dependency),
    ("Kustomization", "healthChecks[]", Selector),
    ("Kustomization", "ignore[].target", Selector),
    ("Kustomization", "kubeConfig.configMapRef", OwnNamespace),
    ("Kustomization", "kubeConfig.secretRef", OwnNamespace),
    ("Kustomization", "patches[].target", Selector),
    ("Kustomization", "patchesJson6902[].target", Selector),
    ("Kustomization", "postBuild.substituteFrom[]", OwnNamespace),
    // Of an old version of the API.
    ("Kustomization", "serviceAccount", Unread),
    ("Kustomization", "serviceAccountName", Account),
    ("Kustomization", "sourceRef", AnyNamespace),
    ("HelmRelease", "chart.spec.sourceRef", AnyNamespace),
    ("HelmRelease", "chart.spec.verify.secretRef", OwnNamespace),
    ("HelmRelease", "chartRef", AnyNamespace),
    ("HelmRelease", "dependsOn[]", Dependency),
    ("HelmRelease", "driftDetection.ignore[].target", Selector),
    ("HelmRelease", "kubeConfig.configMapRef", OwnNamespace),
    ("HelmRelease", "kubeConfig.secretRef", OwnNamespace),
    ("HelmRelease", "postRenderers[].kustomize.patches[].target", Selector),
    ("HelmRelease", "postRenderers[].kustomize.patchesJson6902[].target", Selector),
    ("HelmRelease", "serviceAccountName", Account),
    ("HelmRelease", "valuesFrom[]", OwnNamespace),
    // The name of a way to wait, not of an object.
    ("HelmRelease", "waitStrategy", Selector),
];

/// Collects references below a schema: path, and whether a namespace can be given.
fn references(schema: &Value, path: &str, found: &mut BTreeMap<String, bool>) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let (mut inner, mut path) =
            (property, if path.is_empty() { name.clone() } else { format!("{path}.{name}") });
        while inner["type"] == "array" && inner["items"].is_object() {
            inner = &inner["items"];
            path.push_str("[]");
        }
        let fields = |field: &str| inner["properties"].get(field).is_some();
        let named = name.to_lowercase().trim_end_matches('s').ends_with("ref")
            || name.to_lowercase().contains("serviceaccount");
        // An object that is only told apart by its name, or by kind and name.
        let only_name =
            inner["properties"].as_object().is_some_and(|p| p.len() == 1 && p.contains_key("name"));
        if named || only_name || (fields("name") && (fields("namespace") || fields("kind"))) {
            found.insert(path.clone(), fields("namespace"));
        }
        references(inner, &path, found);
    }
}

fn storage_schema(definition: &Value) -> Value {
    let versions = definition["spec"]["versions"].as_array().cloned().unwrap_or_default();
    let storage = versions.into_iter().find(|version| version["storage"] == true).expect("a storage version");
    storage["schema"]["openAPIV3Schema"]["properties"]["spec"].clone()
}

#[test]
fn every_reference_field_has_a_rule() {
    let mut fields = BTreeMap::new();
    for set in [CrdSet::Source, CrdSet::Kustomize, CrdSet::Helm] {
        for definition in definitions(set) {
            let definition = definition.to_json();
            let kind = definition["spec"]["names"]["kind"].as_str().expect("a kind").to_owned();
            let mut found = BTreeMap::new();
            references(&storage_schema(&definition), "", &mut found);
            fields.extend(found.into_iter().map(|(path, foreign)| ((kind.clone(), path), foreign)));
        }
    }
    let rules: BTreeMap<(String, String), Rule> =
        ROWS.iter().map(|(kind, path, rule)| (((*kind).to_owned(), (*path).to_owned()), *rule)).collect();
    assert_eq!(rules.len(), ROWS.len(), "a row is there twice");
    let without_rule: Vec<_> = fields.keys().filter(|field| !rules.contains_key(*field)).collect();
    assert!(without_rule.is_empty(), "reference fields without a row: {without_rule:?}");
    let without_field: Vec<_> = rules.keys().filter(|row| !fields.contains_key(*row)).collect();
    assert!(without_field.is_empty(), "rows without a field: {without_field:?}");
    for (field, rule) in rules {
        let foreign = fields[&field];
        match rule {
            OwnNamespace | Account | CloudAccount => {
                assert!(!foreign, "{field:?} can name another namespace");
            }
            AnyNamespace | Dependency => assert!(foreign, "{field:?} cannot name another namespace"),
            Selector | Unread => {}
        }
    }
}

#[test]
fn every_rule_holds_under_every_flag() {
    for no_cross_namespace_refs in [false, true] {
        for default in ["", "tenant-default"] {
            let options = Options {
                no_cross_namespace_refs,
                default_service_account: default.to_owned(),
                ..Options::default()
            };
            let lockdown = options.lockdown();
            for (kind, path, rule) in ROWS {
                let at = format!("{kind} {path}, {no_cross_namespace_refs}, {default:?}");
                match rule {
                    AnyNamespace => {
                        assert!(lockdown.check_reference("own", kind, "own", "x").is_ok(), "{at}");
                        let other = lockdown.check_reference("own", kind, "other", "x");
                        assert_eq!(other.is_err(), no_cross_namespace_refs, "{at}");
                    }
                    Dependency => {
                        let check = |namespace: &str, expression: Option<&str>| {
                            lockdown.check_dependency("own", kind, namespace, "x", expression).is_err()
                        };
                        assert!(!check("own", Some("true")) && !check("other", None), "{at}");
                        assert_eq!(check("other", Some("true")), no_cross_namespace_refs, "{at}");
                    }
                    Account => {
                        for named in [None, Some("")] {
                            let identity = lockdown.identity("own", named);
                            assert_eq!(identity == Identity::Engine, default.is_empty(), "{at}");
                        }
                        let user = lockdown.identity("own", Some("x")).user();
                        assert_eq!(user.as_deref(), Some("system:serviceaccount:own:x"), "{at}");
                    }
                    CloudAccount => {
                        let open = !no_cross_namespace_refs && default.is_empty();
                        assert_eq!(lockdown.engine_credentials_allowed(), open, "{at}");
                    }
                    OwnNamespace | Selector | Unread => {}
                }
            }
        }
    }
}
