//! Malicious and invalid trees: threats B05, C01–C06, C08 and C09.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fl_kustomize::{ErrorKind, Files, LoadRestrictor, Memory, Options, Output, Reorder, build};

const CONFIG_MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: v}\n";

fn run(files: &Memory, options: &Options<'_>) -> Result<Output, fl_kustomize::Error> {
    build(files, Path::new("/w/app"), options)
}

/// C01: every field with a path, pointed outside by `..`, by an absolute path and through a link.
#[test]
fn no_field_reads_outside_its_root() {
    let plugin = |kind: &str, body: &str| {
        format!("|-\n  apiVersion: builtin\n  kind: {kind}\n  metadata: {{name: x}}\n  {body}\n")
    };
    type Field = Box<dyn Fn(&str) -> String>;
    let fields: Vec<Field> = vec![
        Box::new(|p| format!("resources: ['{p}']\n")),
        Box::new(|p| format!("bases: ['{p}']\n")),
        Box::new(|p| format!("resources: [r.yaml]\npatches: [{{path: '{p}'}}]\n")),
        Box::new(|p| format!("resources: [r.yaml]\npatchesStrategicMerge: ['{p}']\n")),
        Box::new(|p| {
            format!(
                "resources: [r.yaml]\npatchesJson6902: [{{path: '{p}', target: {{version: v1, kind: ConfigMap, name: a}}}}]\n"
            )
        }),
        Box::new(|p| format!("configMapGenerator: [{{name: c, files: ['{p}']}}]\n")),
        Box::new(|p| format!("configMapGenerator: [{{name: c, files: ['k={p}']}}]\n")),
        Box::new(|p| format!("configMapGenerator: [{{name: c, envs: ['{p}']}}]\n")),
        Box::new(|p| format!("configMapGenerator: [{{name: c, env: '{p}'}}]\n")),
        Box::new(|p| format!("secretGenerator: [{{name: c, files: ['{p}']}}]\n")),
        Box::new(|p| format!("secretGenerator: [{{name: c, envs: ['{p}']}}]\n")),
        Box::new(|p| format!("resources: [r.yaml]\nconfigurations: ['{p}']\n")),
        Box::new(|p| format!("resources: [r.yaml]\ncrds: ['{p}']\n")),
        Box::new(|p| format!("resources: [r.yaml]\nopenapi: {{path: '{p}'}}\n")),
        Box::new(|p| format!("resources: [r.yaml]\nreplacements: [{{path: '{p}'}}]\n")),
        Box::new(|p| format!("generators: ['{p}']\n")),
        Box::new(|p| format!("resources: [r.yaml]\ntransformers: ['{p}']\n")),
        Box::new(|p| format!("resources: [r.yaml]\nvalidators: ['{p}']\n")),
        Box::new(move |p| {
            format!(
                "resources: [r.yaml]\ntransformers:\n- {}",
                plugin("PatchTransformer", &format!("path: '{p}'"))
            )
        }),
        Box::new(move |p| {
            format!(
                "resources: [r.yaml]\ntransformers:\n- {}",
                plugin("ValueAddTransformer", &format!("targetFilePath: '{p}'"))
            )
        }),
    ];
    for field in &fields {
        for path in ["../secret.yaml", "/w/secret.yaml", "link.yaml", "linked/secret.yaml"] {
            let kustomization = field(path);
            let mut files = Memory::new();
            files
                .add("/w/app/kustomization.yaml", kustomization.as_str())
                .add("/w/app/r.yaml", CONFIG_MAP)
                .add("/w/secret.yaml", CONFIG_MAP)
                .link("/w/app/link.yaml", "../secret.yaml")
                .link("/w/app/linked", "..");
            let spy = RecordingFiles::new(&files);
            let error = build(&spy, Path::new("/w/app"), &Options::default()).expect_err(&kustomization);
            let refused = matches!(&*error.kind, ErrorKind::Restricted { .. });
            assert!(refused, "{kustomization}: {error}");
            assert!(spy.read_outside().is_empty(), "{kustomization} read {:?}", spy.read_outside());
        }
    }
}

/// C01: without load restrictions the boundary of the artifact still applies, for directories, too.
#[test]
fn boundary_cannot_be_left() {
    for kustomization in [
        "resources: [../../out.yaml]\n",
        "resources: [../../out]\n",
        "components: [../../out]\n",
        "configMapGenerator: [{name: a, files: [../../out.yaml]}]\n",
    ] {
        let mut files = Memory::new();
        files
            .add("/w/app/kustomization.yaml", kustomization)
            .add("/out.yaml", CONFIG_MAP)
            .add("/out/kustomization.yaml", "resources: [r.yaml]\n")
            .add("/out/r.yaml", CONFIG_MAP);
        let options = Options {
            load_restrictor: LoadRestrictor::None,
            boundary: Some(PathBuf::from("/w")),
            ..Options::default()
        };
        let error = run(&files, &options).expect_err(kustomization);
        assert!(matches!(&*error.kind, ErrorKind::Boundary { .. }), "{kustomization}: {error}");
    }
}

/// Records the files that were read.
struct RecordingFiles<'a> {
    files: &'a Memory,
    reads: std::cell::RefCell<Vec<PathBuf>>,
}

impl<'a> RecordingFiles<'a> {
    fn new(files: &'a Memory) -> Self {
        Self { files, reads: std::cell::RefCell::default() }
    }

    fn read_outside(&self) -> Vec<PathBuf> {
        self.reads.borrow().iter().filter(|p| !p.starts_with("/w/app")).cloned().collect()
    }
}

impl Files for RecordingFiles<'_> {
    fn resolve(&self, path: &Path) -> std::io::Result<(PathBuf, bool)> {
        self.files.resolve(path)
    }

    fn read(&self, path: &Path) -> std::io::Result<Vec<u8>> {
        self.reads.borrow_mut().push(path.to_path_buf());
        self.files.read(path)
    }
}

/// C02: a base that includes itself, cycles of 2 to 50, a cycle through a link: rejected, and the cycle is
/// named.
#[test]
fn cycles_are_rejected_and_named() {
    for length in [1, 2, 3, 50] {
        let mut files = Memory::new();
        for i in 0..length {
            let next = if i + 1 == length { "../app".to_owned() } else { format!("../k{}", i + 1) };
            let dir = if i == 0 { "app".to_owned() } else { format!("k{i}") };
            files.add(format!("/w/{dir}/kustomization.yaml"), format!("resources:\n- {next}\n"));
        }
        let start = Instant::now();
        let error = run(&files, &Options::default()).expect_err("a circle");
        assert!(start.elapsed() < Duration::from_millis(100), "{length}");
        assert!(matches!(&*error.kind, ErrorKind::Cycle { .. }), "{error}");
        assert!(error.to_string().contains("/w/app") && error.place.line == 2, "{error}");
    }
    let mut files = Memory::new();
    files.add("/w/app/kustomization.yaml", "resources: [link]\n").link("/w/app/link", ".");
    assert!(matches!(
        &*run(&files, &Options::default()).expect_err("a circle").kind,
        ErrorKind::Cycle { .. }
    ));
}

/// C03: without a fetcher remote content is rejected.
#[test]
fn remote_content_is_rejected_without_fetcher() {
    for kustomization in [
        "resources: ['https://example.com/a.yaml']\n",
        "resources: ['https://github.com/org/repo//dir?ref=v1']\n",
        "resources: ['git@github.com:org/repo']\n",
        "components: ['github.com/org/repo/dir']\n",
        "configMapGenerator: [{name: a, files: ['https://example.com/a']}]\n",
        "resources: [r.yaml]\npatches: [{path: 'http://169.254.169.254/x'}]\n",
    ] {
        let mut files = Memory::new();
        files.add("/w/app/kustomization.yaml", kustomization).add("/w/app/r.yaml", CONFIG_MAP);
        let error = run(&files, &Options::default()).expect_err(kustomization);
        assert!(matches!(&*error.kind, ErrorKind::RemoteOff(_)), "{kustomization}: {error}");
    }
}

/// C04: exec, container and Starlark functions and other plugins never run.
#[test]
fn functions_never_run() {
    for function in
        ["exec: {path: ./run.sh}", "container: {image: example.com/f}", "starlark: {path: f.star}"]
    {
        for field in ["generators", "transformers", "validators"] {
            let mut files = Memory::new();
            files
                .add("/w/app/kustomization.yaml", format!("resources: [r.yaml]\n{field}: [f.yaml]\n"))
                .add("/w/app/r.yaml", CONFIG_MAP)
                .add(
                    "/w/app/f.yaml",
                    format!("apiVersion: example.com/v1\nkind: F\nmetadata:\n  name: f\n  annotations:\n    config.kubernetes.io/function: \"{function}\"\n"),
                );
            let error = run(&files, &Options::default()).expect_err(function);
            assert!(matches!(&*error.kind, ErrorKind::Denied(_)), "{error}");
        }
    }
    let mut files = Memory::new();
    files.add("/w/app/kustomization.yaml", "helmCharts: [{name: a}]\n");
    assert!(matches!(&*run(&files, &Options::default()).expect_err("a chart").kind, ErrorKind::Denied(_)));
}

fn patched_tree(count: usize) -> Memory {
    let (mut objects, mut patches) = (String::new(), String::from("resources: [r.yaml]\npatches:\n"));
    for i in 0..count {
        let _ = write!(
            objects,
            "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c{i}}}\ndata: {{k: v}}\n"
        );
        let _ = write!(
            patches,
            "- patch: |\n    apiVersion: v1\n    kind: ConfigMap\n    metadata: {{name: c{i}}}\n    data: {{p: '{i}'}}\n"
        );
    }
    let mut files = Memory::new();
    files.add("/w/app/kustomization.yaml", patches).add("/w/app/r.yaml", objects);
    files
}

/// C05: many patches and deep overlays take about linear time.
#[test]
fn many_patches_take_linear_time() {
    let time = |count: usize| {
        let files = patched_tree(count);
        (0..3)
            .map(|_| {
                let start = Instant::now();
                assert_eq!(run(&files, &Options::default()).expect("valid").objects.len(), count);
                start.elapsed()
            })
            .min()
            .expect("three runs")
    };
    let (small, large) = (time(500), time(4000));
    // Eight times the work; a quadratic build would take 64 times as long.
    assert!(large < small * 24, "{small:?} {large:?}");
}

/// C05: a thousand nested overlays.
#[test]
fn deep_overlays_are_built() {
    let mut files = Memory::new();
    const DEPTH: usize = 1000;
    for i in 0..DEPTH {
        let dir = if i == 0 { "app".to_owned() } else { format!("k{i}") };
        let text = format!("resources: [../k{}]\ncommonAnnotations: {{a{}: b}}\n", i + 1, i % 7);
        files.add(format!("/w/{dir}/kustomization.yaml"), text);
    }
    files
        .add(format!("/w/k{DEPTH}/kustomization.yaml"), "resources: [r.yaml]\n")
        .add(format!("/w/k{DEPTH}/r.yaml"), CONFIG_MAP);
    let built = std::thread::Builder::new()
        .stack_size(64 << 20)
        .spawn(move || {
            let options = Options { max_depth: Some(1100), ..Options::default() };
            run(&files, &options).map(|o| o.objects.len()).map_err(|e| e.to_string())
        })
        .expect("a thread")
        .join()
        .expect("no panic");
    assert_eq!(built, Ok(1));
}

/// C06: malicious regular expressions are rejected or run in linear time.
#[test]
fn malicious_selectors_run_in_linear_time() {
    let name = "a".repeat(50_000);
    for expression in ["(a+)+$x", "(a|aa)*b", "((a{0,100}){0,100}){0,100}", "(?:a?){300}a{300}"] {
        let mut files = Memory::new();
        files
            .add(
                "/w/app/kustomization.yaml",
                format!("resources: [r.yaml]\npatches:\n- target: {{name: '{expression}'}}\n  patch: '[{{\"op\":\"add\",\"path\":\"/x\",\"value\":1}}]'\n"),
            )
            .add("/w/app/r.yaml", format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n"));
        let start = Instant::now();
        let _ = run(&files, &Options::default());
        assert!(start.elapsed() < Duration::from_secs(5), "{expression} took {:?}", start.elapsed());
    }
}

/// C08: a target namespace moves objects, does not rename cluster-scoped ones, and Namespaces only as
/// kustomize does.
#[test]
fn namespace_is_not_set_on_cluster_scoped_objects() {
    let mut files = Memory::new();
    files.add("/w/app/kustomization.yaml", "namespace: target\nresources: [r.yaml]\n").add(
        "/w/app/r.yaml",
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: r}\n---\n\
         apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: s}\n---\n\
         apiVersion: example.com/v1\nkind: Namespace\nmetadata: {name: theirs}\n---\n\
         apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n",
    );
    let yaml = run(&files, &Options::default()).expect("valid").to_yaml().expect("valid");
    for kept in ["kind: ClusterRole\nmetadata:\n  name: r\n", "metadata:\n  name: s\n", "name: theirs\n"] {
        assert!(yaml.contains(kept), "{yaml}");
    }
    assert!(yaml.contains("name: c\n  namespace: target\n"), "{yaml}");
}

/// C09: the same input gives the same bytes, repeatedly and on many threads.
#[test]
fn builds_are_deterministic() {
    let mut files = patched_tree(20);
    files.add("/w/app/kustomization.yaml", "namePrefix: p-\ncommonLabels: {a: b, c: d}\nresources: [r.yaml]\nconfigMapGenerator: [{name: g, literals: [a=1, b=2]}]\n");
    let once = |files: &Memory| {
        let options = Options { reorder: Reorder::None, ..Options::default() };
        run(files, &options).expect("valid").to_yaml().expect("valid")
    };
    let want = once(&files);
    std::thread::scope(|scope| {
        for _ in 0..64 {
            scope.spawn(|| {
                for _ in 0..16 {
                    assert_eq!(once(&files), want);
                }
            });
        }
    });
}

/// B05: errors of invalid JSON patches name operation and path.
#[test]
fn invalid_json_patches_name_operation_and_path() {
    for (operation, path) in [
        ("{op: replace, path: /data/none/deep, value: 1}", "/data/none/deep"),
        ("{op: add, path: /data/18446744073709551616, value: {}}", ""),
        ("{op: remove, path: /metadata/name/x}", "/metadata/name/x"),
        ("{op: test, path: /data/k, value: w}", "/data/k"),
        ("{op: move, from: /data/none, path: /data/x}", "/data/x"),
    ] {
        let mut files = Memory::new();
        files.add("/w/app/r.yaml", CONFIG_MAP).add(
            "/w/app/kustomization.yaml",
            format!("resources: [r.yaml]\npatches:\n- target: {{kind: ConfigMap}}\n  patch: |\n    - {operation}\n"),
        );
        match run(&files, &Options::default()) {
            Ok(_) => assert!(path.is_empty(), "{operation}"),
            Err(error) => {
                let text = error.to_string();
                assert!(text.contains(path) && text.contains("operation 0"), "{text}");
                assert!(text.starts_with("/w/app/kustomization.yaml:3"), "{text}");
            }
        }
    }
}

/// Errors name the kustomization file and the line.
#[test]
fn errors_name_file_and_line() {
    for (kustomization, line, words) in [
        ("namePrefix: a\nresources:\n- none.yaml\n", 3, "none.yaml"),
        ("resources: [r.yaml]\nresourcez: []\n", 2, "resourcez"),
        (
            "resources: [r.yaml]\npatches:\n- patch: |\n    apiVersion: v1\n    kind: ConfigMap\n    metadata: {name: z}\n",
            3,
            "no matches",
        ),
        ("resources:\n- r.yaml\n- r2.yaml\n", 3, "already registered"),
        ("resources: [r.yaml]\nconfigMapGenerator:\n- name: x\n  files:\n  - none.txt\n", 5, "none.txt"),
    ] {
        let mut files = Memory::new();
        files
            .add("/w/app/kustomization.yaml", kustomization)
            .add("/w/app/r.yaml", CONFIG_MAP)
            .add("/w/app/r2.yaml", CONFIG_MAP);
        let error = run(&files, &Options::default()).expect_err(kustomization);
        let text = error.to_string();
        assert!(
            text.starts_with(&format!("/w/app/kustomization.yaml:{line}")) && text.contains(words),
            "{text}"
        );
    }
}
