//! Results of Go's libraries for thousands of texts, recorded in `tests/golden/*.jsonl`; see the README
//! there.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

#[path = "../examples/oracle.rs"]
#[expect(dead_code, reason = "the example's main is not used here")]
mod oracle;

fn check(name: &str, cases: &str) {
    let mut wrong = Vec::new();
    let mut count = 0;
    for case in cases.lines() {
        count += 1;
        let case = fl_yaml::from_json(case).unwrap();
        let field = |i: usize| case.as_seq().unwrap()[i].as_text().unwrap();
        let (mode, input, outcome, want) = (field(0), field(1), field(2), field(3));
        let got = oracle::run(mode, input.as_bytes());
        let same = match &got {
            Ok(text) => outcome == "ok" && text == want,
            Err(_) => outcome == "error",
        };
        if !same {
            wrong.push(format!("{mode} {input:?}\n  got  {got:?}\n  want {outcome} {want:?}"));
        }
    }
    assert!(count > 100, "{name}: only {count} cases");
    assert!(wrong.is_empty(), "{name}: {} of {count} differ\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn strings_are_printed_as_go_does() {
    check("emit", include_str!("golden/emit.jsonl"));
}

// B03, together with the next test: unusual scalars, merge keys and duplicates.
#[test]
fn json_matches_sigs_yaml() {
    check("json", include_str!("golden/json.jsonl"));
}

#[test]
fn nodes_match_yaml_v3() {
    check("tree", include_str!("golden/tree.jsonl"));
}

#[test]
fn resources_are_printed_as_kustomize_does() {
    check("kust", include_str!("golden/kust.jsonl"));
}
