//! Verdicts recorded from the matcher Flux uses (go-git 5.19), over generated lines and paths.

use fl_ignore::Rules;

#[test]
fn verdicts_equal_the_recorded_ones() {
    let recorded = include_str!("golden/matcher.jsonl");
    let mut checked = 0;
    for line in recorded.lines() {
        let case: serde_json::Value = serde_json::from_str(line).expect("recorded lines are JSON");
        let lines: Vec<&str> =
            case["lines"].as_array().into_iter().flatten().filter_map(|l| l.as_str()).collect();
        if lines.is_empty() {
            continue; // with no line at all the defaults would apply
        }
        let text = lines.join("\n");
        let rules = Rules::for_source([(case["domain"].as_str().unwrap(), text.as_str())], None);
        let (path, dir) = (case["path"].as_str().unwrap(), case["dir"].as_bool().unwrap());
        assert_eq!(rules.ignores(path, dir), case["ignored"].as_bool().unwrap(), "{case}");
        checked += 1;
    }
    assert!(checked > 1000, "only {checked} cases were read");
}
