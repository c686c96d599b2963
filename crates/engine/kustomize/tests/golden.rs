//! Every directory of `tests/golden` builds to the recorded output of kustomize. See the README there.

use std::path::Path;

use fl_kustomize::{Disk, LoadRestrictor, Options, Reorder, build};

#[test]
fn golden() {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut failed = Vec::new();
    let mut count = 0;
    for case in std::fs::read_dir(all).expect("the cases").map(|entry| entry.expect("a case").path()) {
        if !case.join("in").is_dir() {
            continue;
        }
        count += 1;
        let args = std::fs::read_to_string(case.join("args")).unwrap_or_else(|_| ".".to_owned());
        let options = Options {
            reorder: if args.contains("--reorder none") { Reorder::None } else { Reorder::Legacy },
            load_restrictor: if args.contains("LoadRestrictionsNone") {
                LoadRestrictor::None
            } else {
                LoadRestrictor::RootOnly
            },
            ..Options::default()
        };
        let root = case.join("in").join(args.split_whitespace().last().unwrap_or("."));
        let got = build(&Disk, &root, &options)
            .map_err(|e| e.to_string())
            .and_then(|o| o.to_yaml().map_err(|e| e.to_string()));
        match (std::fs::read_to_string(case.join("want.yaml")), got) {
            (Ok(want), Ok(got)) if want == got => {}
            (Err(_), Err(_)) => {}
            (want, got) => failed.push(format!("{}:\nwant {want:?}\ngot {got:?}", case.display())),
        }
    }
    assert!(count > 50, "only {count} cases found");
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}
