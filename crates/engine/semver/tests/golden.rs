//! Every line of `golden/table.jsonl` was recorded from Masterminds/semver; see `golden/README.md`.

use fl_semver::{Constraints, Error, Version};
use serde_json::{Value, json};

fn version_row(text: &str) -> Value {
    let describe = |parsed: Result<Version, Error>| match parsed {
        Ok(v) => {
            let next =
                [v.inc_patch(), v.inc_minor(), v.inc_major()].map(|n| n.map(|n| n.original().to_owned()));
            json!([
                v.to_string(),
                v.original(),
                v.prerelease(),
                v.metadata(),
                next.map(Result::unwrap_or_default)
            ])
        }
        Err(error) => json!(error.to_string()),
    };
    json!({ "version": text, "lenient": describe(Version::parse(text)), "strict": describe(Version::parse_strict(text)) })
}

fn constraint_row(text: &str, versions: &[Value]) -> Value {
    let range = match Constraints::parse(text) {
        Ok(range) => range,
        Err(error) => return json!({ "constraint": text, "error": error.to_string() }),
    };
    let open = range.clone().include_prereleases();
    let verdicts: Vec<Value> = versions
        .iter()
        .map(|v| {
            let version = Version::parse(v.as_str().expect("text")).expect("a version");
            let reasons = match range.validate(&version) {
                Ok(()) => json!([]),
                Err(why) => json!(why.iter().map(ToString::to_string).collect::<Vec<_>>()),
            };
            assert_eq!(
                range.check(&version),
                reasons == json!([]),
                "check and validate of {text} on {version}"
            );
            json!([v, open.check(&version), reasons])
        })
        .collect();
    json!({ "constraint": text, "string": range.to_string(), "verdicts": verdicts })
}

fn order_row(left: &str, right: &str) -> Value {
    let order = Version::parse(left).expect("a version").cmp(&Version::parse(right).expect("a version"));
    json!({ "left": left, "right": right, "order": order as i8 })
}

#[test]
fn results_match_masterminds() {
    // The variable allows comparing much larger, generated tables that are not in the repository.
    let path = std::env::var("FL_SEMVER_TABLE")
        .unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/table.jsonl").into());
    let table = std::fs::read_to_string(path).expect("the golden table");
    let (mut rows, mut wrong) = (0, Vec::new());
    for line in table.lines() {
        let want: Value = serde_json::from_str(line).expect("a JSON line");
        let field = |name: &str| want[name].as_str().expect("text");
        let got = if want.get("version").is_some() {
            version_row(field("version"))
        } else if want.get("left").is_some() {
            order_row(field("left"), field("right"))
        } else {
            let versions: Vec<Value> =
                want["verdicts"].as_array().into_iter().flatten().map(|row| row[0].clone()).collect();
            constraint_row(field("constraint"), &versions)
        };
        rows += 1;
        if got != want {
            wrong.push(format!("want {want}\n got {got}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {rows} rows differ, first ones:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(5)].join("\n")
    );
}
