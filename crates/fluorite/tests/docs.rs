//! The documentation is held against the program: objects in it are taken by the API server, commands are ones the program
//! knows with the flags they are given, links lead somewhere.

mod server;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use server::Server;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// Pages written by hand; the reference is generated.
fn pages() -> Vec<(PathBuf, String)> {
    let mut files = vec![root().join("deploy/README.md"), root().join("deploy/chart/fluorite/README.md")];
    for folder in [".", "docs", "docs/decisions", "docs/spec"] {
        let entries = std::fs::read_dir(root().join(folder)).expect("a folder").flatten();
        files.extend(entries.map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "md")));
    }
    files.sort();
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).expect("a page");
        (path, text)
    };
    files.into_iter().map(read).collect()
}

/// The blocks of a page in this language.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let (mut found, mut inside) = (Vec::new(), None::<Option<String>>);
    for line in text.lines() {
        let bare = line.trim_start();
        match (&mut inside, bare.strip_prefix("```")) {
            (None, Some(kind)) => inside = Some((kind.trim() == language).then(String::new)),
            (Some(block), Some(_)) => {
                found.extend(block.take());
                inside = None;
            }
            (Some(Some(block)), None) => {
                block.push_str(line);
                block.push('\n');
            }
            _ => {}
        }
    }
    found
}

/// The words of one command as a shell splits them, up to a pipe, a redirection or a remark.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for c in line.chars() {
        match quote {
            Some(q) if c == q => quote = None,
            Some(_) => word.push(c),
            None if c == '\'' || c == '"' => quote = Some(c),
            None if c == ' ' => words.extend((!word.is_empty()).then(|| std::mem::take(&mut word))),
            None => word.push(c),
        }
    }
    words.extend((!word.is_empty()).then_some(word));
    let end = words.iter().position(|w| ["|", ">", "<", "#", "&&", "&"].contains(&w.as_str()));
    words.truncate(end.unwrap_or(words.len()));
    words
}

#[test]
fn documented_commands_exist() {
    let mut seen = 0;
    for (path, text) in pages() {
        for line in blocks(&text, "sh").iter().flat_map(|block| block.lines()) {
            let line = line.trim();
            let line = line
                .strip_prefix("cargo run --release -- ")
                .map_or(line.to_owned(), |l| format!("fluorite {l}"));
            let Some(rest) =
                line.strip_prefix("fluorite ").or_else(|| line.strip_prefix("./target/release/fluorite "))
            else {
                continue;
            };
            // Everything before it is read and checked; nothing is done.
            let mut args = words(rest);
            args.push("--help".to_owned());
            let run =
                Command::new(env!("CARGO_BIN_EXE_fluorite")).args(&args).output().expect("the program runs");
            let error = String::from_utf8_lossy(&run.stderr).into_owned();
            assert!(run.status.success(), "{}: `{line}`: {error}", path.display());
            seen += 1;
        }
    }
    assert!(seen > 20, "only {seen} commands were found");
}

fn documents(text: &str) -> Vec<Value> {
    let nodes = fl_yaml::parse_all(text.as_bytes(), &fl_yaml::Options::sigs()).expect("YAML");
    let json = |n: &fl_yaml::Node| {
        fl_yaml::to_json(n, fl_yaml::Dialect::Sigs, fl_yaml::JsonStyle::default()).expect("JSON")
    };
    nodes.iter().map(|n| serde_json::from_str(&json(n)).expect("JSON")).collect()
}

#[tokio::test]
async fn documented_objects_are_accepted_by_the_api_server() {
    let server = Server::start().await;
    for crd in fl_install::crds(&fl_install::Component::ALL.into()) {
        server.take(&crd).await;
    }
    let mut seen = 0;
    for (path, text) in pages() {
        for object in blocks(&text, "yaml").iter().flat_map(|block| documents(block)) {
            if object.get("kind").is_none() {
                continue;
            }
            let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default");
            let space = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
            server.take(&space).await;
            println!("{}", path.display());
            server.take(&object).await;
            seen += 1;
        }
    }
    assert!(seen >= 5, "only {seen} objects were found");
}

#[test]
fn links_are_valid() {
    for (path, text) in pages() {
        for rest in text.split("](").skip(1) {
            let target = rest.split(')').next().unwrap_or_default().split('#').next().unwrap_or_default();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            let file = path.parent().expect("a folder").join(target);
            assert!(file.exists(), "{}: {target}", path.display());
        }
    }
}
