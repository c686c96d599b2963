//! Results recorded from Flux's library, one per line of `tests/golden/cases.txt`: text, tab, result.
//!
//! A result starts with `=`, an error message with `!`. See `lookup` for the variables. To record more, run
//! the texts through the Go module `github.com/fluxcd/pkg/envsubst` (v1.8.0) with the same variables.

use fl_envsubst::{Error, Missing, expand, expand_bytes};

fn lookup(name: &str) -> Option<String> {
    let value = match name {
        "x" => "abc/def.tar.gz",
        "e" => "",
        "n" => "5",
        "u" => "h\u{e9}llo \u{df}",
        "M" => "MiXed Case",
        "star" => "a*b?c[d",
        _ => return None,
    };
    Some(value.to_owned())
}

#[test]
fn results_match_flux() {
    let cases = include_str!("golden/cases.txt");
    let mut wrong = Vec::new();
    for case in cases.lines() {
        let (text, want) = case.split_once('\t').unwrap();
        let text = text.replace("\\n", "\n");
        let got = match expand_bytes(&text, Missing::Empty, lookup) {
            Ok(bytes) => format!("={}", bytes.escape_ascii()),
            Err(error) => format!("!{}", error.flux_text()),
        };
        if got != want {
            wrong.push(format!("{text:?}: got {got}, want {want}"));
        }
    }
    assert!(cases.lines().count() > 200, "the table was not found");
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), cases.lines().count(), wrong.join("\n"));
}

// C07
#[test]
fn strict_mode_names_every_variable_with_its_line() {
    let error = expand("a: ${x}\nb: ${no} ${no}\n\nc: ${#gone} ${d:=${deep}}\n", Missing::Refuse, lookup)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "variable not set (strict mode): \"no\" (line 2), \"gone\" (line 4), \"deep\" (line 4)"
    );
    assert_eq!(error.flux_text(), "variable not set (strict mode): \"no\"");
    assert_eq!(expand("${no:=d}${no=d}${no:-d}${no:+d}${no:?d}", Missing::Refuse, lookup).unwrap(), "ddddd");
}

#[test]
fn errors_name_the_line() {
    assert_eq!(
        expand("\n\n${x", Missing::Empty, lookup).unwrap_err(),
        Error::MissingClosingBrace { line: 3 }
    );
}

#[test]
fn nesting_is_bounded() {
    let text = "${m:=".repeat(100_000);
    assert!(matches!(expand(&text, Missing::Empty, lookup), Err(Error::TooDeep { line: 1, .. })));
}

#[test]
fn name_validation_matches_flux() {
    for (name, valid) in [
        ("a", true),
        ("_", true),
        ("A1_b", true),
        ("1a", false),
        ("", false),
        ("my-var", false),
        ("\u{e9}", false),
    ] {
        assert_eq!(fl_envsubst::is_valid_name(name), valid, "{name}");
    }
}
