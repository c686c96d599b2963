//! Whole runs of commands against the embedded API server, compared with transcripts.
//!
//! `tests/golden/*.txt` hold lines `$ ARGUMENTS`, then what was printed (`> ` stdout, `! ` stderr) and `= CODE`. The state of
//! the cluster is `tests/golden/cluster.yaml`. The answers were recorded from flux itself; `tests/golden/README.md` says how.

use std::path::{Path, PathBuf};
use std::process::Command;

use fl_apiserver::store::Store;
use fl_apiserver::{ApiServer, Listener, Options, User, kubeconfig};
use serde_json::Value;

const TOKEN: &str = "transcripts";

fn golden(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(file)
}

fn documents(text: &str) -> Vec<Value> {
    let nodes = fl_yaml::parse_all(text.as_bytes(), &fl_yaml::Options::sigs()).expect("the fixture is YAML");
    let json = |n: &fl_yaml::Node| fl_yaml::to_json(n, fl_yaml::Dialect::Sigs, fl_yaml::JsonStyle::default());
    nodes
        .iter()
        .map(|n| serde_json::from_str(&json(n).expect("the fixture fits JSON")).expect("JSON"))
        .collect()
}

async fn send(method: reqwest::Method, url: &str, content: &str, body: &Value) -> (u16, Value) {
    let request =
        reqwest::Client::new().request(method, url).bearer_auth(TOKEN).header("Content-Type", content);
    let answer = request.body(body.to_string()).send().await.expect("the server answers");
    let status = answer.status().as_u16();
    let bytes = answer.bytes().await.expect("an answer has a body");
    (status, serde_json::from_slice(&bytes).unwrap_or_default())
}

/// Applies an object and then its status, as a controller would.
async fn apply(url: &str, mut object: Value) {
    let (api, kind) =
        (object["apiVersion"].as_str().expect("apiVersion"), object["kind"].as_str().expect("kind"));
    let plural = match kind {
        "GitRepository" | "HelmRepository" | "OCIRepository" => {
            format!("{}ies", kind.to_lowercase().trim_end_matches('y'))
        }
        _ => format!("{}s", kind.to_lowercase()),
    };
    let base = if api.contains('/') { format!("{url}/apis/{api}") } else { format!("{url}/api/{api}") };
    let place = match object["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("{base}/namespaces/{namespace}"),
        None => base,
    };
    let path = format!("{place}/{plural}/{}", object["metadata"]["name"].as_str().expect("a name"));
    let status = object.as_object_mut().expect("an object").remove("status");
    let target = format!("{path}?fieldManager=test&force=true");
    let (code, answer) = send(reqwest::Method::PATCH, &target, "application/apply-patch+yaml", &object).await;
    assert!(code < 300, "{path}: {code} {answer}");
    if let Some(status) = status {
        let body = serde_json::json!({"status": status});
        let target = format!("{path}/status?fieldManager=test");
        let (code, answer) =
            send(reqwest::Method::PATCH, &target, "application/merge-patch+json", &body).await;
        assert!(code < 300, "{path}: {code} {answer}");
    }
}

/// Runs every `$` line of a transcript and gives the transcript as it would be now.
fn replay(text: &str, config: &Path) -> String {
    let mut out = String::new();
    for line in text.lines() {
        if line.is_empty() || line.starts_with('#') {
            out.push_str(line);
            out.push('\n');
        }
        let Some(arguments) = line.strip_prefix("$ ") else { continue };
        let run = Command::new(env!("CARGO_BIN_EXE_flux"))
            .args(arguments.split(' '))
            .env("KUBECONFIG", config)
            .env("TZ", "UTC")
            .env_remove("FLUX_SYSTEM_NAMESPACE")
            .env_remove("ACTIONS_ID_TOKEN_REQUEST_URL")
            .output()
            .expect("the program is built with the tests");
        out.push_str(&format!("{line}\n"));
        for (sign, bytes) in [('>', run.stdout), ('!', run.stderr)] {
            String::from_utf8_lossy(&bytes).lines().for_each(|l| out.push_str(&format!("{sign} {l}\n")));
        }
        out.push_str(&format!("= {}\n", run.status.code().unwrap_or(-1)));
    }
    out
}

#[test]
fn output_matches_the_transcripts() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("kubeconfig");
    let url = runtime.block_on(async {
        let listener = Listener::bind(([127, 0, 0, 1], 0).into(), None).await.expect("a port");
        let url = listener.url();
        let tokens = [(TOKEN.to_owned(), User::superuser("test"))].into();
        let server = ApiServer::new(Store::in_memory(), Options { tokens, ..Options::default() })
            .await
            .expect("a server");
        tokio::spawn(listener.serve(server));
        for crd in fl_install::crds(&fl_install::Component::ALL.into()) {
            apply(&url, crd).await;
        }
        for object in documents(&std::fs::read_to_string(golden("cluster.yaml")).expect("the fixture")) {
            apply(&url, object).await;
        }
        url
    });
    std::fs::write(&config, kubeconfig(&url, None, TOKEN, None)).expect("a kubeconfig");
    // Those that only ask come before those that change something.
    for file in ["usage.txt", "verbs.txt", "create.txt"] {
        let expected = std::fs::read_to_string(golden(file)).expect("the transcript");
        let actual = replay(&expected, &config);
        assert_eq!(expected, actual, "{file}");
    }
}
