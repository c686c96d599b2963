//! The commands of the README, run one after the other as a reader would.

#[path = "../../io/git-client/tests/server/mod.rs"]
mod server;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(120);

/// The commands in the order of the page, without remarks and redirections.
fn commands() -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let page = std::fs::read_to_string(page).expect("the README");
    let lines = page.lines().filter_map(|line| line.strip_prefix("cargo run --release -- "));
    let bare = |line: &str| {
        line.split(" > ").next().unwrap_or_default().split('#').next().unwrap_or_default().trim().to_owned()
    };
    lines.map(bare).collect()
}

struct Reader {
    folder: tempfile::TempDir,
}

impl Reader {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, words: &[String]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fluorite"));
        command.args(words).current_dir(self.folder.path()).env("XDG_STATE_HOME", self.path("state"));
        command.env_remove("KUBECONFIG").stdin(Stdio::null());
        command
    }

    /// Runs a command that ends, and returns what it prints.
    fn output(&self, words: &[String]) -> String {
        let run = self.command(words).output().expect("the program runs");
        assert!(run.status.success(), "{words:?}: {}", String::from_utf8_lossy(&run.stderr));
        String::from_utf8(run.stdout).expect("text")
    }

    /// Runs a command that goes on until it is interrupted, and stops it once its output contains `sign`.
    fn until(&self, words: &[String], sign: &str, then: impl FnOnce()) {
        let log = self.path("log");
        let file = File::create(&log).expect("a log");
        let mut command = self.command(words);
        let mut child =
            command.stdout(file.try_clone().expect("a log")).stderr(file).spawn().expect("the program runs");
        let begin = Instant::now();
        let text = loop {
            let text = std::fs::read_to_string(&log).unwrap_or_default();
            let ended = child.try_wait().expect("a process");
            if text.contains(sign) || ended.is_some() || begin.elapsed() > TIMEOUT {
                break text;
            }
            std::thread::sleep(Duration::from_millis(50));
        };
        if text.contains(sign) {
            then();
        }
        let pid = rustix::process::Pid::from_child(&child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::INT);
        let end = Instant::now() + TIMEOUT;
        while child.try_wait().expect("a process").is_none() {
            if Instant::now() > end {
                let _ = child.kill();
                panic!("{words:?} does not stop");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(text.contains(sign), "{words:?} never said {sign:?}:\n{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn readme_commands_work() {
    let repositories = server::Repositories::new();
    let tree = repositories.make("fleet");
    let manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: hello\n  namespace: default\n";
    server::commit(
        &tree,
        &[("hello.yaml", manifest), ("kustomization.yaml", "resources: [hello.yaml]\n")],
        "first",
    );
    let web = server::Web::serve(repositories.root.path(), None, true).await;
    let url = format!("{}/fleet.git", web.address);
    let run = move || run(&tree, &url);
    tokio::task::spawn_blocking(run).await.expect("all commands");
}

fn run(tree: &Path, url: &str) {
    let reader = Reader { folder: tempfile::tempdir().expect("a folder") };
    let chart = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/helm-small");
    let mut done = 0;
    for line in commands() {
        let words: Vec<String> = line
            .split_whitespace()
            .map(|word| match word {
                "DIRECTORY" => tree.display().to_string(),
                "GIT-URL" => url.to_owned(),
                "DIR" if line.starts_with("kustomize") => tree.display().to_string(),
                "DIR" => reader.path("data").display().to_string(),
                "CHART" => chart.display().to_string(),
                "NAME" => "shop".to_owned(),
                // A free port.
                "127.0.0.1:6443" => "127.0.0.1:0".to_owned(),
                "127.0.0.1:9090" => "127.0.0.1:19090".to_owned(),
                word => word.to_owned(),
            })
            .collect();
        match words.first().map(String::as_str).unwrap_or_default() {
            "up" => {
                let example = words.len() == 1;
                let name = if example { "production" } else { "flux-system" };
                reader.until(&words, &format!("✔ Kustomization/flux-system/{name}"), || {});
                reader.output(&["down".to_owned(), "--purge".to_owned()]);
            }
            "install" => assert!(reader.output(&words).contains("\nkind: CustomResourceDefinition\n")),
            "kustomize" => assert_eq!(reader.output(&words), manifest_of(tree)),
            "helm" => assert!(reader.output(&words).contains("kind: ")),
            "apiserver" => continue, // runs below, under the controllers
            "run" => {
                let server = commands().into_iter().find(|c| c.starts_with("apiserver")).expect("a server");
                let server: Vec<String> = server
                    .split_whitespace()
                    .map(|w| if w == "127.0.0.1:6443" { "127.0.0.1:0" } else { w })
                    .map(str::to_owned)
                    .collect();
                let mut controllers = words.clone();
                // The default ports may be taken on the machine that runs the tests.
                let ports = ["--metrics-addr=0", "--health-addr=0", "--storage-addr=127.0.0.1:0"];
                controllers.extend(ports.map(str::to_owned));
                reader.until(&server, "serving the Kubernetes API", || {
                    let second =
                        Reader { folder: tempfile::tempdir_in(reader.folder.path()).expect("a folder") };
                    std::fs::copy(reader.path("kubeconfig"), second.path("kubeconfig"))
                        .expect("a kubeconfig");
                    second.until(&controllers, "\"msg\":\"starting\"", || {});
                });
                done += 1;
            }
            other => panic!("the README has a command that this test does not know: {other}"),
        }
        done += 1;
    }
    assert!(done >= 8, "only {done} commands were run");
}

fn manifest_of(tree: &Path) -> String {
    std::fs::read_to_string(tree.join("hello.yaml")).expect("the manifest")
}
