//! The last column of `docs/threats.md`: which tests cite which threat.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::paths;

/// File, and the test in it; no test when the whole file is about the threat.
type Citations = BTreeMap<String, BTreeSet<(String, Option<String>)>>;

fn document() -> PathBuf {
    paths::checkout().join("docs/threats.md")
}

/// Writes the column anew.
pub(crate) fn write() -> anyhow::Result<()> {
    let path = document();
    let text = std::fs::read_to_string(&path).context("cannot read docs/threats.md")?;
    let rendered = render(&text, &citations(&paths::checkout())?)?;
    std::fs::write(&path, rendered).context("cannot write docs/threats.md")
}

/// The document with the column of tests filled in. A number that a test cites and the document does not have is an error.
fn render(text: &str, citations: &Citations) -> anyhow::Result<String> {
    let mut known = BTreeSet::new();
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        match cells.as_slice() {
            ["", number, threat, required, _, ""] if is_number(number) => {
                known.insert((*number).to_owned());
                let tests = citations.get(*number).map_or_else(|| "none yet".to_owned(), show);
                out.push_str(&format!("| {number} | {threat} | {required} | {tests} |"));
            }
            _ => out.push_str(line),
        }
        out.push('\n');
    }
    if let Some((number, places)) = citations.iter().find(|(number, _)| !known.contains(*number)) {
        bail!("docs/threats.md has no {number}, which is cited in {}", show(places));
    }
    Ok(out)
}

fn show(places: &BTreeSet<(String, Option<String>)>) -> String {
    let mut files: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (file, test) in places {
        files.entry(file).or_default().extend(test.as_deref());
    }
    let show = |(file, tests): (&str, Vec<&str>)| {
        let tests: Vec<String> = tests.iter().map(|test| format!("`{test}`")).collect();
        if tests.is_empty() { format!("`{file}`") } else { format!("`{file}`: {}", tests.join(", ")) }
    };
    files.into_iter().map(show).collect::<Vec<_>>().join("; ")
}

fn citations(checkout: &Path) -> anyhow::Result<Citations> {
    let mut found = Citations::new();
    let mut folders = vec![checkout.join("crates")];
    while let Some(folder) = folders.pop() {
        let entries =
            std::fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = std::fs::read_to_string(&path)
                    .with_context(|| format!("cannot read {}", path.display()))?;
                let name = path.strip_prefix(checkout.join("crates")).unwrap_or(&path);
                cite(&name.to_string_lossy(), &text, &mut found);
            }
        }
    }
    Ok(found)
}

/// Numbers in the comments and test names of one file. Those above or inside of a test belong to it, those at the head of a test
/// file to the file.
fn cite(file: &str, text: &str, found: &mut Citations) {
    let lines: Vec<&str> = text.lines().collect();
    let tests = tests(&lines);
    for (at, line) in lines.iter().enumerate() {
        let Some((_, comment)) = line.split_once("//") else { continue };
        for number in numbers(comment) {
            let test = tests.iter().find(|test| test.lines.contains(&at));
            let head = comment.starts_with('!') && file.contains("/tests/");
            if test.is_some() || head {
                found.entry(number).or_default().insert((file.to_owned(), test.map(|t| t.name.clone())));
            }
        }
    }
    for test in &tests {
        let number = test.name.split('_').next().unwrap_or_default().to_uppercase();
        if is_number(&number) {
            found.entry(number).or_default().insert((file.to_owned(), Some(test.name.clone())));
        }
    }
    // A test that is named makes the mention of its number at the head of the file redundant.
    for places in found.values_mut() {
        if places.iter().any(|(f, test)| f == file && test.is_some()) {
            places.remove(&(file.to_owned(), None));
        }
    }
}

struct Test {
    name: String,
    /// Its comments and attributes, and its body.
    lines: std::ops::RangeInclusive<usize>,
}

/// The test functions of a file, as rustfmt lays them out: a function ends at the first closing brace with its own indentation.
fn tests(lines: &[&str]) -> Vec<Test> {
    let mut tests = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let attribute = line.trim();
        if !(attribute == "#[test]" || attribute.starts_with("#[tokio::test")) {
            continue;
        }
        let belongs = |line: &&&str| line.trim().starts_with("//") || line.trim().starts_with("#[");
        let begin = at - lines[..at].iter().rev().take_while(belongs).count();
        let Some(head) = lines[at..].iter().position(|line| line.contains("fn ")).map(|n| at + n) else {
            continue;
        };
        let name =
            lines[head].split("fn ").nth(1).and_then(|rest| rest.split('(').next()).unwrap_or_default();
        let indent = lines[head].len() - lines[head].trim_start().len();
        let closing = format!("{}}}", " ".repeat(indent));
        let end = lines[head..].iter().position(|line| *line == closing).map_or(lines.len(), |n| head + n);
        tests.push(Test { name: name.to_owned(), lines: begin..=end });
    }
    tests
}

fn is_number(word: &str) -> bool {
    matches!(word.as_bytes(), [b'A'..=b'N', b'0'..=b'9', b'0'..=b'9'])
}

/// The numbers in a comment; `C01–C06` and `B01 to B04` are ranges.
fn numbers(comment: &str) -> Vec<String> {
    let words: Vec<&str> =
        comment.split(|c: char| !c.is_ascii_alphanumeric() && c != '–').filter(|w| !w.is_empty()).collect();
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let range = match word.split_once('–') {
            Some(ends) => Some(ends),
            None if words.get(at + 1) == Some(&"to") => words.get(at + 2).map(|end| (*word, *end)),
            None => None,
        };
        match range {
            Some((first, last)) if is_number(first) && is_number(last) && first[..1] == last[..1] => {
                let number = |text: &str| text[1..].parse::<u8>().unwrap_or_default();
                found.extend((number(first)..=number(last)).map(|n| format!("{}{n:02}", &first[..1])));
            }
            _ if is_number(word) => found.push((*word).to_owned()),
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn document_is_current() {
        let text = std::fs::read_to_string(document()).expect("docs/threats.md");
        let citations = citations(&paths::checkout()).expect("the sources");
        let rendered = render(&text, &citations).expect("known numbers");
        assert!(rendered == text, "docs/threats.md is stale: run `cargo xtask threats`");
    }

    #[test]
    fn numbers_belong_to_the_test_they_stand_above_or_in() {
        let file = "//! Lines A01 and B02 to B04 of the threats, C01–C03.\n\
            // D01 is about something else.\n\
            fn helper() {}\n\
            /// A01: a path.\n\
            #[tokio::test(start_paused = true)]\n\
            async fn paths_are_rejected() {\n    // E05, too\n}\n\
            #[test]\nfn d05_lookup_uses_the_tenant() {\n}\n";
        let mut found = Citations::new();
        cite("x/tests/y.rs", file, &mut found);
        let test = ("x/tests/y.rs".to_owned(), Some("paths_are_rejected".to_owned()));
        let whole = ("x/tests/y.rs".to_owned(), None);
        assert_eq!(found["A01"], BTreeSet::from([test.clone()]));
        assert_eq!(found["E05"], BTreeSet::from([test]));
        for number in ["B02", "B03", "B04", "C01", "C02", "C03"] {
            assert_eq!(found[number], BTreeSet::from([whole.clone()]), "{number}");
        }
        let named = ("x/tests/y.rs".to_owned(), Some("d05_lookup_uses_the_tenant".to_owned()));
        assert_eq!(found["D05"], BTreeSet::from([named]));
        assert!(!found.contains_key("D01"));
    }

    #[test]
    fn an_unknown_number_is_an_error() {
        let citations = Citations::from([("Z99".to_owned(), BTreeSet::from([("f".to_owned(), None)]))]);
        assert!(render("| A01 | x | y | |\n", &citations).is_err());
        let rendered = render("| A01 | x | y | |\n", &Citations::new()).expect("fine");
        assert_eq!(rendered, "| A01 | x | y | none yet |\n");
    }
}
