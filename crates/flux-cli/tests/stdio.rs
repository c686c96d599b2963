//! Commands between two pipes: what goes in, what comes out, and how it ends.

use std::io::Write;
use std::process::{Command, Stdio};

/// Standard output, standard error and exit code of a run with this input.
fn run(arguments: &[&str], input: &str) -> (String, String, i32) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_flux"))
        .args(arguments)
        .env("A", "1")
        .env("HOME", env!("CARGO_MANIFEST_DIR"))
        .env_remove("KUBECONFIG")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program is built with the tests");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("it reads");
    let done = child.wait_with_output().expect("it ends");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (text(done.stdout), text(done.stderr), done.status.code().unwrap_or(-1))
}

#[test]
fn envsubst_stops_at_the_first_error() {
    let strict = run(&["envsubst", "--strict"], "a ${A}\n${FL_NONE} ${FL_OTHER}\n${FL_THIRD}\nend\n");
    let refused = "✗ variable not set (strict mode): \"FL_NONE\"\n";
    assert_eq!(strict, ("a 1\n".to_owned(), refused.to_owned(), 1));
    assert_eq!(run(&["envsubst"], "x${FL_NONE}\r\ny"), ("x\ny\n".to_owned(), String::new(), 0));
}

#[test]
fn help_on_an_unknown_command_succeeds() {
    let (out, err, code) = run(&["help", "nope"], "");
    assert!(out.starts_with("Unknown help topic [`nope`]\n"), "{out}");
    assert_eq!((err.as_str(), code), ("", 0));
    assert!(run(&["help", "get", "ks"], "").0.contains("flux get kustomizations"));
    assert_eq!(run(&[""], "").2, 0);
}

#[test]
fn unreachable_cluster_is_named() {
    let (_, err, code) = run(&["get", "ks", "--server", "http://127.0.0.1:1"], "");
    let refused = "✗ failed to get server groups: Get \"http://127.0.0.1:1/api\": dial tcp 127.0.0.1:1: connect: connection refused\n";
    assert_eq!((err.as_str(), code), (refused, 1));
    let (_, err, _) = run(&["get", "ks", "--kubeconfig", "nope.yaml"], "");
    assert_eq!(err, "✗ stat nope.yaml: no such file or directory\n");
}
