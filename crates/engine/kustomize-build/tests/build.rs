//! Builds over files in memory.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use fl_kustomize::{Files, Memory};
use fl_kustomize_build::{BuildError, EntryFilter, Request, SourceFiles, clean, finish, render};
use fl_yaml::Node;
use serde_json::{Value, json};

struct TestFiles {
    files: Memory,
    paths: Vec<PathBuf>,
}

impl TestFiles {
    fn new(files: &[(&str, &str)]) -> Self {
        let mut memory = Memory::new();
        let mut paths = Vec::new();
        for (path, content) in files {
            let path = Path::new("/app").join(path);
            memory.add(&path, *content);
            paths.push(path);
        }
        TestFiles { files: memory, paths }
    }
}

impl Files for TestFiles {
    fn resolve(&self, path: &Path) -> io::Result<(PathBuf, bool)> {
        self.files.resolve(path)
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.files.read(path)
    }
}

impl SourceFiles for TestFiles {
    fn list(&self, directory: &Path) -> Vec<(String, bool)> {
        let mut names = BTreeMap::new();
        for path in &self.paths {
            let Ok(below) = path.strip_prefix(directory) else { continue };
            let mut components = below.components();
            let Some(first) = components.next() else { continue };
            names.insert(first.as_os_str().to_string_lossy().into_owned(), components.next().is_some());
        }
        names.into_iter().collect()
    }

    fn normalize(&self, path: &Path) -> PathBuf {
        clean(path)
    }
}

struct Without(&'static str);

impl EntryFilter for Without {
    fn keeps_manifest(&self, _path: &Path, relative: &str) -> Result<bool, String> {
        Ok(relative != self.0)
    }

    fn keeps_entry(&self, _directory: &Path, _field: &str, entry: &str) -> Result<bool, String> {
        Ok(entry.trim_start_matches("./") != self.0)
    }
}

fn build(
    files: &TestFiles,
    spec: &Value,
    variables: &[(&str, &str)],
    filter: Option<&dyn EntryFilter>,
) -> Result<Vec<String>, BuildError> {
    let variables = variables.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let request = Request {
        files,
        directory: Path::new("/app"),
        boundary: Some(Path::new("/app")),
        spec,
        variables: Ok(&variables),
        derived: None,
        strict: true,
        decryptor: None,
        remote: None,
        filter,
        shared: None,
        require_names: true,
    };
    let objects = finish(render(&request)?.objects, &request)?;
    let name = |node: &Node| node.at(&["metadata", "name"]).and_then(Node::as_text).map(str::to_owned);
    Ok(objects.iter().filter_map(name).collect())
}

fn map(name: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: \"{name}\"}}\n")
}

#[test]
fn directory_without_kustomization_lists_its_manifests() {
    let (a, b, c) = (map("a"), map("b"), map("c"));
    let files = [
        ("b.yaml", b.as_str()),
        ("a/a.yml", &a),
        ("k/kustomization.yaml", "namePrefix: k-\nresources: [c.yaml]\n"),
        ("k/c.yaml", &c),
        ("notes.txt", "x"),
    ];
    let files = TestFiles::new(&files);
    assert_eq!(build(&files, &json!({}), &[], None).expect("valid"), ["a", "b", "k-c"]);
    let without_b = build(&files, &json!({"nameSuffix": "-x"}), &[], Some(&Without("b.yaml")));
    assert_eq!(without_b.expect("valid"), ["a-x", "k-c-x"]);
}

#[test]
fn entries_of_a_kustomization_are_filtered() {
    let (a, b) = (map("a"), map("b"));
    let kustomization = ("kustomization.yaml", "resources: [a.yaml, ./b.yaml]\n");
    let files = TestFiles::new(&[kustomization, ("a.yaml", &a), ("b.yaml", &b)]);
    assert_eq!(build(&files, &json!({}), &[], Some(&Without("b.yaml"))).expect("valid"), ["a"]);
}

#[test]
fn variables_are_substituted_and_errors_name_the_object() {
    let file = map("${who}");
    let files = TestFiles::new(&[("a.yaml", &file)]);
    let spec = json!({"postBuild": {"substitute": {}}});
    assert_eq!(build(&files, &spec, &[("who", "web")], None).expect("valid"), ["web"]);
    let error = build(&files, &spec, &[("other", "x")], None).expect_err("strict");
    assert_eq!(
        error.to_string(),
        "post build failed for 'ConfigMap.v1.[noGrp]/${who}': envsubst error: variable substitution failed: variable not set (strict mode): \"who\""
    );
}

#[test]
fn invalid_kustomization_files_are_rejected() {
    let text = |files: &[(&str, &str)], spec: Value| {
        build(&TestFiles::new(files), &spec, &[], None).expect_err("invalid").to_string()
    };
    let not_a_map = text(&[("kustomization.yaml", "[a]\n")], json!({}));
    assert_eq!(not_a_map, "error unmarshaling JSON: /app/kustomization.yaml: a kustomization must be a map");
    let remote = text(&[("note.txt", "")], json!({"components": ["https://example.com/c"]}));
    assert_eq!(remote, "component path 'https://example.com/c' must be local and relative");
}
