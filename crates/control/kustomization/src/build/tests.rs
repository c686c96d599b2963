//! Builds over files in memory.

use std::sync::Arc;

use serde_json::json;

use super::*;

fn object(spec: serde_json::Value) -> Kustomization {
    let mut full =
        json!({"interval": "10m", "prune": true, "sourceRef": {"kind": "GitRepository", "name": "app"}});
    for (key, value) in spec.as_object().expect("a map") {
        full[key] = value.clone();
    }
    serde_json::from_value(json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": {"name": "app", "namespace": "ns"}, "spec": full}))
    .expect("a Kustomization")
}

fn tree(files: &[(&str, &str)]) -> Arc<ArtifactFiles> {
    let files = files.iter().map(|(p, c)| (std::path::PathBuf::from(p), c.as_bytes().to_vec()));
    Arc::new(ArtifactFiles::new("/artifact/app".into(), files))
}

fn run(files: &[(&str, &str)], path: &str, spec: serde_json::Value) -> Result<Built, String> {
    run_in(&tree(files), path, spec)
}

fn run_in(tree: &Arc<ArtifactFiles>, path: &str, spec: serde_json::Value) -> Result<Built, String> {
    let object = object(spec);
    let variables = object.spec.post_build.as_ref().and_then(|p| p.substitute.clone()).unwrap_or_default();
    let variables = Ok(fl_types::Secret::new(variables));
    let request = Request {
        object: &object,
        variables,
        strict: true,
        keys: None,
        key_services: &EngineKeyServices::default(),
        secrets: KnownSecrets::default(),
        remote: None,
    };
    let directory = check_path(tree, path).map_err(|e| e.to_string())?;
    build(tree, &directory, &request).map_err(|e| e.to_string())
}

fn names(built: &Built) -> Vec<String> {
    let name = |o: &Value| {
        format!(
            "{}/{}",
            o["kind"].as_str().unwrap_or_default(),
            o["metadata"]["name"].as_str().unwrap_or_default()
        )
    };
    built.objects.iter().map(name).collect()
}

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  key: ${who:=world}\n";

#[test]
fn directory_without_kustomization_is_walked_in_order() {
    let service = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n";
    let files = [
        ("b.yaml", MAP),
        ("a/s.yml", service),
        ("c/kustomization.yaml", "namePrefix: c-\nresources: [m.yaml]\n"),
        ("c/m.yaml", MAP),
        ("notes.txt", "not yaml: ["),
    ];
    let built = run(&files, "./", json!({})).expect("builds");
    assert_eq!(names(&built), ["Service/web", "ConfigMap/a", "ConfigMap/c-a"]);
}

#[test]
fn spec_overrides_are_applied() {
    let files = [
        (
            "app/kustomization.yaml",
            "resources: [m.yaml]\nnonsense: true\nimages: [{name: web, newTag: '1', digest: 'sha256:0'}]\n",
        ),
        (
            "app/m.yaml",
            "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: web}]}\n",
        ),
    ];
    let spec = json!({"targetNamespace": "team", "namePrefix": "x-", "images": [{"name": "web", "newTag": "2"}],
        "patches": [{"patch": "- {op: add, path: /metadata/labels, value: {a: b}}", "target": {"kind": "Pod"}}]});
    let built = run(&files, "app", spec).expect("builds");
    let pod = &built.objects[0];
    assert_eq!(pod["metadata"], json!({"name": "x-p", "namespace": "team", "labels": {"a": "b"}}));
    assert_eq!(pod["spec"]["containers"][0]["image"], "web:2");
}

#[test]
fn substitution_is_strict_and_typed() {
    let substituted =
        run(&[("m.yaml", MAP)], "", json!({"postBuild": {"substitute": {"who": "you"}}})).expect("builds");
    assert_eq!(substituted.objects[0]["data"]["key"], "you");
    let untouched = run(&[("m.yaml", MAP)], "", json!({})).expect("builds");
    assert_eq!(untouched.objects[0]["data"]["key"], "${who:=world}");
    let strict = MAP.replace(":=world", "");
    let error =
        run(&[("m.yaml", &strict)], "", json!({"postBuild": {"substitute": {"other": "x"}}})).unwrap_err();
    assert_eq!(
        error,
        "post build failed for 'ConfigMap.v1.[noGrp]/a': envsubst error: variable substitution failed: variable not set (strict mode): \"who\""
    );
    let bad = run(&[("m.yaml", MAP)], "", json!({"postBuild": {"substitute": {"my-var": "x"}}})).unwrap_err();
    assert!(
        bad.ends_with("'my-var' var name is invalid, must match '^[_[:alpha:]][_[:alpha:][:digit:]]*$'"),
        "{bad}"
    );
    let number =
        run(&[("m.yaml", MAP)], "", json!({"postBuild": {"substitute": {"who": "3"}}})).expect("builds");
    assert_eq!(number.objects[0]["data"]["key"], 3);
}

/// Recorded from Flux: what a substituted value breaks is named as Go names it, without the value.
#[test]
fn substituted_values_are_not_quoted_in_errors() {
    let broken = |value: &str| {
        run(&[("m.yaml", MAP)], "", json!({"postBuild": {"substitute": {"who": value}}})).unwrap_err()
    };
    assert_eq!(
        broken("[a, : b"),
        "post build failed for 'ConfigMap.v1.[noGrp]/a': envsubst error: YAMLToJSON: yaml: line 2: did not find expected node content"
    );
    let alias = broken("*s3cret");
    assert!(
        alias.ends_with("the text after substitution is not YAML") && !alias.contains("s3cret"),
        "{alias}"
    );
}

#[test]
fn invalid_files_are_reported() {
    let error = run(&[("b.yaml", "a: [")], "", json!({})).unwrap_err();
    assert!(
        error.starts_with("failed to decode Kubernetes YAML from /artifact/app/b.yaml: MalformedYAMLError: "),
        "{error}"
    );
    let error = run(&[("b.yaml", MAP)], "missing", json!({})).unwrap_err();
    assert_eq!(error, "kustomization path not found: stat /artifact/app/missing: no such file or directory");
    let error = run(&[("b.yaml", MAP)], "b.yaml", json!({})).unwrap_err();
    assert_eq!(error, "open /artifact/app/b.yaml/kustomization.yaml: not a directory");
    let error = run(&[("b.yaml", MAP)], "", json!({"components": ["https://example.com/x"]})).unwrap_err();
    assert_eq!(error, "component path 'https://example.com/x' must be local and relative");
}

#[test]
fn invalid_kustomization_is_reported_with_its_position() {
    let broken = |text| run(&[("app/kustomization.yaml", text)], "./app", json!({})).map(|_| ()).unwrap_err();
    let error = broken("resources:\n- a.yaml\n  b: [\n");
    assert!(error.starts_with("error converting YAML to JSON: "), "{error}");
    assert!(error.contains("app/kustomization.yaml:3:4: mapping values are not allowed"), "{error}");
    let error = broken("- a.yaml\n");
    assert!(error.contains("app/kustomization.yaml: a kustomization must be a map"), "{error}");
}

#[test]
fn empty_directory_builds_no_objects() {
    let built = run(&[("empty/notes.txt", "x")], "empty", json!({})).expect("builds");
    assert!(built.objects.is_empty());
}

#[test]
fn invalid_objects_are_reported() {
    let refuse = |text: &str| run(&[("a.yaml", text)], "./", json!({})).map(|_| ()).expect_err("no object");
    let begin = "failed to decode Kubernetes YAML from /artifact/app/a.yaml: ";
    assert_eq!(refuse("just text\n"), format!("{begin}missing Resource metadata"));
    assert_eq!(
        refuse("apiVersion: v1\nmetadata:\n  name: x\n"),
        format!("{begin}missing kind in object {{{{v1 }} {{{{x }} map[] map[]}}}}")
    );
    assert_eq!(
        refuse(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  generateName: x-\n  namespace: ns\n  labels: {b: c, a: d}\n"
        ),
        format!("{begin}missing metadata.name in object {{{{v1 ConfigMap}} {{{{ ns}} map[a:d b:c] map[]}}}}")
    );
    assert!(
        refuse("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  name: b\n")
            .starts_with("kustomize build failed: ")
    );
}

#[test]
fn shared_builds_are_finished_with_each_set_of_variables() {
    let files =
        [("app/a.yaml", MAP), ("other/a.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: b}\n")];
    let shared = tree(&files);
    let with = |who: &str| json!({"postBuild": {"substitute": {"who": who}}});
    let prefixed = json!({"namePrefix": "x-", "postBuild": {"substitute": {"who": "5"}}});
    let builds = [
        ("app", with("1")),
        ("app", with("2")),
        ("app", with("3")),
        ("other", with("4")),
        ("app", prefixed.clone()),
        ("app", prefixed),
        ("app", with("6")),
        ("app", json!({})),
        ("app", json!({})),
    ];
    for (path, spec) in builds {
        let alone = run(&files, path, spec.clone()).expect("builds");
        let together = run_in(&shared, path, spec.clone()).expect("builds");
        assert_eq!(together.objects, alone.objects, "{path} {spec}");
        assert_eq!((&together.digest, format!("{together:?}")), (&alone.digest, format!("{alone:?}")));
    }
}
