//! `fluorite up` and `fluorite down` as a person runs them: the binary, a folder, loopback.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Generous, for busy machines.
const TIMEOUT: Duration = Duration::from_secs(120);

fn fluorite() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fluorite"));
    command.env_remove("KUBECONFIG").stdin(Stdio::null());
    command
}

fn up(state: &Path, args: &[&str]) -> Output {
    fluorite().arg("up").args(args).arg("--state-dir").arg(state).output().expect("the binary runs")
}

fn delivered(state: &Path, args: &[&str]) -> (bool, Value, String) {
    let mut all = args.to_vec();
    all.extend(["--exit-when-ready", "--timeout", "90s", "-o", "json"]);
    let out = up(state, &all);
    let output = String::from_utf8_lossy(&out.stderr).into_owned();
    let summary =
        serde_json::from_slice(&out.stdout).unwrap_or_else(|e| panic!("no summary ({e}): {output}"));
    (out.status.success(), summary, output)
}

fn object<'a>(summary: &'a Value, kind: &str, name: &str) -> &'a Value {
    let all = summary["objects"].as_array().expect("objects");
    all.iter()
        .find(|o| o["kind"] == kind && o["name"] == name)
        .unwrap_or_else(|| panic!("{kind} {name} is not in {summary:#}"))
}

/// A running `up`; ended when dropped.
struct Running {
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
}

impl Running {
    fn start(state: &Path, args: &[&str]) -> Self {
        let mut child = fluorite()
            .arg("up")
            .args(args)
            .arg("--state-dir")
            .arg(state)
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("the binary runs");
        let stderr = child.stderr.take().expect("piped");
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Running { child, lines, seen: Vec::new() }
    }

    /// Waits for a line that holds all of these.
    fn until(&mut self, parts: &[&str]) -> Duration {
        let start = Instant::now();
        while start.elapsed() < TIMEOUT {
            if let Ok(line) = self.lines.recv_timeout(Duration::from_millis(200)) {
                let found = parts.iter().all(|p| line.contains(p));
                self.seen.push(line);
                if found {
                    return start.elapsed();
                }
            }
        }
        panic!("{parts:?} was not printed; output:\n{}", self.seen.join("\n"));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn write(root: &Path, path: &str, text: &str) {
    let place = root.join(path);
    std::fs::create_dir_all(place.parent().expect("a parent")).expect("a directory");
    std::fs::write(place, text).expect("a file");
}

fn git(directory: &Path, args: &[&str]) {
    let done = Command::new("git")
        .args(["-c", "user.name=T", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false", "-C"])
        .arg(directory)
        .args(args)
        .output()
        .expect("git runs");
    assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
}

const MAP: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: words\n  namespace: default\ndata:\n  word: ";

/// A repository with one commit.
fn repository() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    git(dir.path(), &["init", "--quiet", "--initial-branch=main"]);
    write(dir.path(), "words.yaml", &format!("{MAP}one\n"));
    git(dir.path(), &["add", "-A"]);
    git(dir.path(), &["commit", "--quiet", "-m", "first"]);
    dir
}

#[test]
fn example_reports_its_error_and_recovers() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let (ok, summary, output) = delivered(&state, &[]);
    assert!(!ok, "the error is reported: {output}");
    for name in ["flux-system", "platform", "staging", "production"] {
        assert_eq!(object(&summary, "Kustomization", name)["state"], "ready", "{summary:#}");
    }
    assert_eq!(object(&summary, "HelmRelease", "cache")["state"], "ready");
    let broken = object(&summary, "Kustomization", "newsletter");
    assert_eq!(broken["state"], "failed");
    assert_eq!(broken["place"]["file"], "newsletter/sender.yaml");
    assert_eq!(broken["place"]["line"], 18);
    let message = broken["message"].as_str().unwrap();
    assert!(message.contains("newsletter/sender.yaml:18:25: malformed YAML"), "{message}");
    assert!(output.contains("newsletter/sender.yaml:18: image: busybox: 1.37"), "{output}");

    let file = state.join("example/newsletter/sender.yaml");
    let healed = std::fs::read_to_string(&file).unwrap().replace("busybox: 1.37", "busybox:1.37");
    std::fs::write(&file, healed).unwrap();
    let (ok, summary, output) = delivered(&state, &[]);
    assert!(ok, "{output}\n{summary:#}");
    assert!(output.contains("resuming from the state in"), "{output}");
    assert_eq!(object(&summary, "Kustomization", "newsletter")["objects"]["ready"], 1);

    let down = fluorite().args(["down", "--purge", "--state-dir"]).arg(&state).output().unwrap();
    assert!(down.status.success() && !state.exists());
}

#[test]
fn saved_file_is_delivered_at_once_and_the_state_is_locked() {
    let (dir, repo) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let state = dir.path().join("state");
    write(repo.path(), "words.yaml", &format!("{MAP}: one\n"));
    let source = repo.path().to_str().unwrap();
    let mut running = Running::start(&state, &[source, "--dirty"]);
    running.until(&["✗ Kustomization/flux-system/flux-system", "failed"]);
    write(repo.path(), "words.yaml", &format!("{MAP}one\n"));
    let healed = running.until(&["✔ Kustomization/flux-system/flux-system"]);
    assert!(healed < Duration::from_secs(20), "{healed:?}");

    let kubeconfig = state.join("kubeconfig");
    for command in ["check", "version"] {
        let asked = fluorite().arg(command).arg("--kubeconfig").arg(&kubeconfig).output().unwrap();
        let output = String::from_utf8_lossy(&asked.stderr) + String::from_utf8_lossy(&asked.stdout);
        assert!(asked.status.success() && output.contains("distribution: flux-v"), "{output}");
    }

    let second = up(&state, &[source, "--dirty"]);
    assert!(!second.status.success());
    let output = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(output.contains("already runs") && output.contains(&running.child.id().to_string()), "{output}");

    let down = fluorite().args(["down", "--state-dir"]).arg(&state).output().unwrap();
    let output = String::from_utf8_lossy(&down.stderr).into_owned();
    assert!(down.status.success() && output.contains("stopped process"), "{output}");
    assert!(running.child.wait().unwrap().success());
    assert!(state.join("kubeconfig").exists(), "the state stays");
}

#[test]
fn only_commits_are_delivered_without_dirty() {
    let (dir, repo) = (tempfile::tempdir().unwrap(), repository());
    let state = dir.path().join("state");
    let source = repo.path().to_str().unwrap();
    let mut running = Running::start(&state, &[source]);
    running.until(&["✔ Kustomization/flux-system/flux-system", "main@sha1:"]);
    write(repo.path(), "more.yaml", &MAP.replace("words", "more").replace("word: ", "word: two\n"));
    git(repo.path(), &["add", "-A"]);
    git(repo.path(), &["commit", "--quiet", "-m", "second"]);
    running.until(&["✔ Kustomization/flux-system/flux-system", "2/2 objects"]);
    git(repo.path(), &["checkout", "--quiet", "-b", "feature/x"]);
    running.until(&["✔ GitRepository/flux-system/flux-system", "feature/x@sha1:"]);
}

/// Invalid input fails with a message and creates no state directory.
#[test]
fn invalid_sources_are_rejected() {
    let dir = tempfile::tempdir().unwrap();
    let fails = |state: &Path, args: &[&str]| {
        let out = up(state, args);
        let output = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(1), "{args:?}: {output}");
        assert!(output.lines().any(|l| l.starts_with('✗')), "{output}");
        output
    };
    let plain = dir.path().join("plain");
    write(&plain, "readme.md", "nothing to see");
    let state = dir.path().join("state");
    let plain = plain.to_str().unwrap();
    assert!(fails(&state, &[plain]).contains("is not a Git repository; make it one"));
    assert!(fails(&state, &[plain, "--dirty"]).contains("neither a kustomization.yaml nor any manifest"));
    assert!(fails(&state, &["/no/such/directory"]).contains("neither a directory nor an address"));
    let empty = dir.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    git(&empty, &["init", "--quiet", "--initial-branch=main"]);
    assert!(fails(&state, &[empty.to_str().unwrap()]).contains("is an empty repository"));
    assert!(fails(&state, &["http://127.0.0.1:1/nobody/home"]).contains("cannot be read"));

    let repo = repository();
    let source = repo.path().to_str().unwrap();
    assert!(fails(&state, &[source, "--path", "nowhere"]).contains("`nowhere` is not a directory"));
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    assert!(fails(&state, &[source, "--listen", &address]).contains("is taken by another program"));

    let kubeconfig = dir.path().join("kubeconfig");
    let config = r#"{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":"http://127.0.0.1:1"}}],
        "users":[{"name":"u","user":{"token":"t"}}],"contexts":[{"name":"there","context":{"cluster":"c","user":"u"}}]}"#;
    std::fs::write(&kubeconfig, config).unwrap();
    let kubeconfig = kubeconfig.to_str().unwrap();
    let other = dir.path().join("other");
    let real = |context| fails(&other, &[source, "--kubeconfig", kubeconfig, "--yes", "--context", context]);
    assert!(real("nowhere").contains("the context `nowhere` cannot be used"));
    assert!(real("there").contains("cannot be reached; is it running? nothing was changed"));
}

#[test]
fn unusable_state_dir_is_not_modified() {
    let (dir, repo) = (tempfile::tempdir().unwrap(), repository());
    let state = dir.path().join("state");
    let source = repo.path().to_str().unwrap();
    let (ok, _, output) = delivered(&state, &[source]);
    assert!(ok, "{output}");
    let fails = |args: &[&str]| {
        let out = up(&state, args);
        assert_eq!(out.status.code(), Some(1));
        String::from_utf8_lossy(&out.stderr).into_owned()
    };
    assert!(fails(&[]).contains("delivers the directory"), "another source does not take its place");

    let log = std::fs::read_dir(state.join("server/store"))
        .unwrap()
        .map(|e| e.unwrap().path())
        .find(|p| p.file_name().unwrap().to_str().unwrap().starts_with("wal-"))
        .unwrap();
    let whole = std::fs::read(&log).unwrap();
    std::fs::write(&log, [b"garbage!".as_slice(), &whole[8..]].concat()).unwrap();
    assert!(fails(&[source]).contains("is corrupt"));
    std::fs::write(&log, &whole).unwrap();

    std::fs::write(state.join("format"), "fluorite up 99\n").unwrap();
    assert!(fails(&[source]).contains("a newer fluorite"));
    std::fs::write(state.join("format"), "fluorite up 1\n").unwrap();
    let (ok, _, output) = delivered(&state, &[source]);
    assert!(ok && output.contains("resuming from the state"), "nothing was lost: {output}");
}

/// A repository as `flux bootstrap` leaves it: its own description of the source names a server and a Secret that are
/// not here.
#[test]
fn bootstrapped_repository_is_served_from_its_directory() {
    let (dir, repo) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let sync = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata:\n  name: flux-system\n  \
        namespace: flux-system\nspec:\n  interval: 1m0s\n  ref:\n    branch: production\n  secretRef:\n    name: flux-system\n  \
        url: ssh://git@git.example/org/fleet\n---\napiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\n\
        metadata:\n  name: flux-system\n  namespace: flux-system\nspec:\n  interval: 10m0s\n  path: ./clusters/local\n  \
        prune: true\n  sourceRef:\n    kind: GitRepository\n    name: flux-system\n";
    write(repo.path(), "clusters/local/flux-system/gotk-sync.yaml", sync);
    write(repo.path(), "clusters/local/words.yaml", &format!("{MAP}one\n"));
    let (ok, summary, output) =
        delivered(&dir.path().join("state"), &[repo.path().to_str().unwrap(), "--dirty"]);
    assert!(ok, "{output}\n{summary:#}");
    assert!(output.contains("path: ./clusters/local (the only one in clusters)"), "{output}");
    assert_eq!(object(&summary, "Kustomization", "flux-system")["objects"]["total"], 3);
}

#[test]
fn killed_process_is_resumed() {
    let dir = tempfile::tempdir().unwrap();
    let state: PathBuf = dir.path().join("state");
    for pause in [40, 250, 900] {
        let mut running = Running::start(&state, &[]);
        std::thread::sleep(Duration::from_millis(pause));
        running.child.kill().unwrap();
        running.child.wait().unwrap();
    }
    let (_, summary, output) = delivered(&state, &[]);
    for name in ["flux-system", "platform", "staging", "production"] {
        assert_eq!(object(&summary, "Kustomization", name)["state"], "ready", "{output}");
    }
}

/// A repository like those on a cluster that `flux install` prepared: it acts as an account of Flux, and has objects of kinds whose
/// definitions come from elsewhere.
#[test]
fn flux_service_accounts_and_undefined_kinds_are_supported() {
    let (dir, repo) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let state = dir.path().join("state");
    let secret = "apiVersion: external-secrets.io/v1\nkind: ExternalSecret\nmetadata:\n  name: db\n  namespace: default\nspec:\n  anything: [goes]\n";
    write(repo.path(), "cluster/kustomization.yaml", "resources: [apps.yaml]\n");
    write(
        repo.path(),
        "cluster/apps.yaml",
        "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: apps, namespace: flux-system}\nspec:\n  interval: 1h\n  prune: true\n  path: ./apps\n  serviceAccountName: kustomize-controller\n  sourceRef: {kind: GitRepository, name: flux-system}\n",
    );
    write(repo.path(), "apps/secret.yaml", secret);
    write(
        repo.path(),
        "apps/issuer.yaml",
        "apiVersion: cert-manager.io/v1\nkind: ClusterIssuer\nmetadata: {name: le}\n",
    );
    let source = repo.path().to_str().unwrap();
    let (ok, summary, output) = delivered(&state, &[source, "--dirty", "--path", "cluster"]);
    assert!(ok, "{output}\n{summary:#}");
    assert_eq!(object(&summary, "Kustomization", "apps")["objects"]["ready"], 2, "{summary:#}");
    for (kind, scope) in [("ExternalSecret", "namespaced"), ("ClusterIssuer", "cluster-scoped")] {
        let notes: Vec<&str> = output.lines().filter(|l| l.starts_with("► ") && l.contains(kind)).collect();
        assert_eq!(notes.len(), 1, "{output}");
        assert!(notes[0].contains(scope) && notes[0].contains("--strict-kinds"), "{}", notes[0]);
    }

    // The definition comes: the object stays, and is checked from now on.
    write(
        repo.path(),
        "cluster/crd.yaml",
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: externalsecrets.external-secrets.io}\nspec:\n  group: external-secrets.io\n  scope: Namespaced\n  names: {plural: externalsecrets, kind: ExternalSecret}\n  versions:\n  - name: v1\n    served: true\n    storage: true\n    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}\n",
    );
    write(repo.path(), "cluster/kustomization.yaml", "resources: [apps.yaml, crd.yaml]\n");
    let (ok, summary, output) = delivered(&state, &[source, "--dirty", "--path", "cluster"]);
    assert!(ok, "{output}\n{summary:#}");
    assert!(!output.contains("► ExternalSecret"), "{output}");
    assert_eq!(object(&summary, "Kustomization", "apps")["objects"]["ready"], 2, "{summary:#}");

    let strict = dir.path().join("strict");
    write(repo.path(), "cluster/kustomization.yaml", "resources: [apps.yaml]\n");
    let (ok, summary, output) =
        delivered(&strict, &[source, "--dirty", "--path", "cluster", "--strict-kinds"]);
    assert!(!ok, "{output}");
    let message = object(&summary, "Kustomization", "apps")["message"].to_string();
    assert!(message.contains("no matches for kind"), "{message}");
}
