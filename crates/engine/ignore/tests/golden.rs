//! Results recorded from go-git 5.19, the matcher Flux uses, for generated lines and paths.

use fl_ignore::Rules;

#[test]
fn results_match_go_git() {
    let recorded = include_str!("golden/matcher.jsonl");
    let mut checked = 0;
    for line in recorded.lines() {
        let case: serde_json::Value = serde_json::from_str(line).expect("recorded lines are JSON");
        let lines: Vec<&str> =
            case["lines"].as_array().into_iter().flatten().filter_map(|l| l.as_str()).collect();
        if lines.is_empty() {
            continue; // Without any line the defaults would apply.
        }
        let text = lines.join("\n");
        let rules = Rules::for_source([(case["domain"].as_str().unwrap(), text.as_str())], None);
        let (path, dir) = (case["path"].as_str().unwrap(), case["dir"].as_bool().unwrap());
        assert_eq!(rules.ignores(path, dir), case["ignored"].as_bool().unwrap(), "{case}");
        checked += 1;
    }
    assert!(checked > 1000, "only {checked} cases were read");
}
