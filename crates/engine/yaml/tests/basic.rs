//! Ordinary manifests.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

use fl_yaml::{Dialect, Options, parse_all, to_sigs_yaml};

fn round(text: &str) -> String {
    let docs = parse_all(text.as_bytes(), &Options::v3()).unwrap();
    docs.iter().map(|d| to_sigs_yaml(d, Dialect::V3).unwrap()).collect::<Vec<_>>().join("---\n")
}

#[test]
fn manifests_are_printed_sorted() {
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\n  labels: {b: 'yes', a: 1.0}\ndata:\n  k: |\n    line 1\n      line 2\n  list:\n  - a\n  - - b\n    - c: d\n      e: \"f: g\"\n  - []\n  empty:\n";
    let want = "apiVersion: v1\ndata:\n  empty: null\n  k: |\n    line 1\n      line 2\n  list:\n  - a\n  - - b\n    - c: d\n      e: 'f: g'\n  - []\nkind: ConfigMap\nmetadata:\n  labels:\n    a: 1\n    b: \"yes\"\n  name: x\n";
    assert_eq!(round(text), want);
}

#[test]
fn streams_and_errors_are_parsed() {
    let docs = parse_all(b"a: 1\n---\n# nothing\n---\nb: &x [1, 2]\nc: *x\n...\n", &Options::v3()).unwrap();
    assert_eq!(docs.len(), 3);
    assert_eq!(docs[2].get("b"), docs[2].get("c"));
    let e = parse_all(b"a: 1\n  b: 2\n", &Options::v3()).unwrap_err();
    assert_eq!((e.line, e.column), (2, 4), "{e}");
    assert_eq!(e.go_text(Dialect::V3), "yaml: line 2: mapping values are not allowed in this context");
    let e = parse_all(b"a: 1\nb: 1\na: 2\n", &Options::v3()).unwrap_err();
    assert_eq!((e.line, e.column), (3, 1), "{e}");
}
