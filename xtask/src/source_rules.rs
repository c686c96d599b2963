//! Rules for what sources may name: engines use no environment, files, clock or processes, and only the client crate names
//! the Kubernetes client.
//!
//! The sources are read as tokens, not compiled: comments, literals and `#[cfg(test)]` items are left out, and `use` trees are
//! expanded. Paths behind a renamed parent module (`use std as s`) are not found.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// Paths that engines may not name.
const IMPURE: &[&str] = &[
    "std::env",
    "std::fs",
    "std::net::TcpListener",
    "std::net::TcpStream",
    "std::net::UdpSocket",
    "std::process",
];

/// Functions of clocks that engines may not call, whatever path leads to them.
const CLOCKS: &[[&str; 2]] =
    &[["Instant", "now"], ["SystemTime", "now"], ["Timestamp", "now"], ["Zoned", "now"]];

/// Files of engines that may name `std::fs`, and why.
const ALLOWED_FILES: &[(&str, &str)] = &[
    ("crates/engine/kustomize/src/files.rs", "the implementation of its trait `Files` for the disk"),
    ("crates/engine/helm/src/files.rs", "the implementation of its trait `Files` for the disk"),
    ("crates/engine/helm/src/chart/content.rs", "reads an open file that the caller passes in"),
    ("crates/engine/helm/src/chart/lazy_file.rs", "reads an open file that the caller passes in"),
];

/// The crate that holds the Kubernetes client.
const CLIENT: &str = "crates/control/client/";

/// A path in a source, with the line it is on.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Named {
    path: String,
    line: usize,
}

/// Every offence of the checkout as a sentence.
///
/// # Errors
/// A source cannot be read.
pub(crate) fn offences(checkout: &Path) -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    for file in sources(checkout)? {
        let source = std::fs::read_to_string(checkout.join(&file)).with_context(|| file.clone())?;
        found.extend(offences_in(&file, &source));
    }
    Ok(found)
}

fn offences_in(file: &str, source: &str) -> Vec<String> {
    let is_engine = file.starts_with("crates/engine/");
    let is_client = file.starts_with(CLIENT);
    let mut found = Vec::new();
    for Named { path, line } in paths(source) {
        let parts: Vec<&str> = path.split("::").collect();
        if !is_client && parts.len() > 1 && matches!(parts[0], "kube" | "kube_client") {
            found.push(format!("{file}:{line}: `{path}`: only {CLIENT} names the Kubernetes client"));
        }
        if !is_engine {
            continue;
        }
        let is_clock = parts.windows(2).any(|pair| CLOCKS.iter().any(|clock| pair == clock));
        let is_within = |prefix: &&str| {
            path.strip_prefix(*prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
        };
        let impure = IMPURE.iter().find(|prefix| is_within(prefix));
        let is_allowed =
            |prefix: &&str| **prefix == *"std::fs" && ALLOWED_FILES.iter().any(|(f, _)| *f == file);
        if is_clock || impure.is_some_and(|prefix| !is_allowed(prefix)) {
            found.push(format!(
                "{file}:{line}: `{path}`: engines are pure; ask through a trait or a parameter"
            ));
        }
    }
    found
}

/// Sources of the program, relative to the checkout: neither tests nor examples nor build scripts.
fn sources(checkout: &Path) -> anyhow::Result<Vec<String>> {
    let (mut found, mut todo) = (Vec::new(), vec![PathBuf::from("crates")]);
    let mut test_files = BTreeSet::new();
    while let Some(folder) = todo.pop() {
        for entry in
            std::fs::read_dir(checkout.join(&folder)).with_context(|| folder.display().to_string())?
        {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.file_type()?.is_dir() {
                let is_left_out =
                    matches!(name.as_str(), "tests" | "examples" | "benches" | "testing" | "target");
                if !is_left_out || path.components().any(|c| c.as_os_str() == "src") {
                    todo.push(path);
                }
            } else if name.ends_with(".rs") && name != "build.rs" {
                let source = std::fs::read_to_string(checkout.join(&path))?;
                let parent = match name.as_str() {
                    "mod.rs" | "lib.rs" | "main.rs" => folder.clone(),
                    _ => path.with_extension(""),
                };
                for module in test_modules(&source) {
                    test_files.insert(parent.join(format!("{module}.rs")));
                    test_files.insert(parent.join(&module));
                }
                found.push(path);
            }
        }
    }
    let is_test = |path: &PathBuf| path.ancestors().any(|p| test_files.contains(p));
    let mut found: Vec<String> =
        found.into_iter().filter(|p| !is_test(p)).map(|p| p.to_string_lossy().into_owned()).collect();
    found.sort();
    Ok(found)
}

/// A token of Rust as far as paths need it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    /// `::`
    Join,
    Sign(char),
}

/// Words and signs with their lines, without comments and literals.
fn tokens(source: &str) -> Vec<(Token, usize)> {
    let text: Vec<char> = source.chars().collect();
    let (mut found, mut at, mut line) = (Vec::new(), 0, 1);
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let next = |at: usize| text.get(at + 1).copied().unwrap_or_default();
    while at < text.len() {
        let start = at;
        match text[at] {
            '/' if next(at) == '/' => at = skip_line(&text, at),
            '/' if next(at) == '*' => at = skip_comment(&text, at),
            '"' => at = skip_string(&text, at),
            // A character, unless it is a lifetime.
            '\'' if next(at) == '\\' => at = skip_escaped_char(&text, at),
            '\'' if text.get(at + 2) == Some(&'\'') => at += 3,
            ':' if next(at) == ':' => {
                found.push((Token::Join, line));
                at += 2;
            }
            c if is_word(c) => {
                while at < text.len() && is_word(text[at]) {
                    at += 1;
                }
                let word: String = text[start..at].iter().collect();
                if matches!(word.as_str(), "r" | "br" | "cr") && matches!(text.get(at), Some('"' | '#')) {
                    at = skip_raw_string(&text, at);
                } else {
                    found.push((Token::Word(word), line));
                }
            }
            c if c.is_whitespace() => at += 1,
            c => {
                found.push((Token::Sign(c), line));
                at += 1;
            }
        }
        line += text[start..at.min(text.len())].iter().filter(|c| **c == '\n').count();
    }
    found
}

fn skip_line(text: &[char], at: usize) -> usize {
    text[at..].iter().position(|c| *c == '\n').map_or(text.len(), |end| at + end)
}

fn skip_comment(text: &[char], mut at: usize) -> usize {
    let mut depth = 0;
    while at < text.len() {
        match text.get(at..at + 2) {
            Some(['/', '*']) => (depth, at) = (depth + 1, at + 2),
            Some(['*', '/']) => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

fn skip_string(text: &[char], mut at: usize) -> usize {
    at += 1;
    while at < text.len() && text[at] != '"' {
        at += if text[at] == '\\' { 2 } else { 1 };
    }
    at + 1
}

fn skip_escaped_char(text: &[char], at: usize) -> usize {
    // The character behind the backslash may be a quote itself.
    text[at + 3..].iter().position(|c| *c == '\'').map_or(text.len(), |end| at + 3 + end + 1)
}

/// `at` is behind the `r`. A raw identifier (`r#type`) is no string.
fn skip_raw_string(text: &[char], at: usize) -> usize {
    let hashes = text[at..].iter().take_while(|c| **c == '#').count();
    if text.get(at + hashes) != Some(&'"') {
        return at + hashes;
    }
    let mut end = at + hashes + 1;
    while end < text.len() {
        if text[end] == '"' && text[end + 1..].iter().take(hashes).filter(|c| **c == '#').count() == hashes {
            return end + 1 + hashes;
        }
        end += 1;
    }
    end
}

/// Where the item ends that begins at `at`: behind its `;` or its braces.
fn item_end(tokens: &[(Token, usize)], mut at: usize) -> usize {
    let mut depth = 0;
    while at < tokens.len() {
        match tokens[at].0 {
            Token::Sign('{' | '(' | '[') => depth += 1,
            Token::Sign(')' | ']') => depth -= 1,
            Token::Sign('}') => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            Token::Sign(';') if depth == 0 => return at + 1,
            _ => {}
        }
        at += 1;
    }
    at
}

fn is_cfg_test(tokens: &[(Token, usize)]) -> bool {
    let word = |text: &str| Token::Word(text.to_owned());
    let wanted = [
        Token::Sign('#'),
        Token::Sign('['),
        word("cfg"),
        Token::Sign('('),
        word("test"),
        Token::Sign(')'),
        Token::Sign(']'),
    ];
    tokens.len() >= wanted.len() && tokens.iter().zip(&wanted).all(|((token, _), wanted)| token == wanted)
}

/// The tokens without `#[cfg(test)]` items, and the modules in files among those.
fn without_tests(source: &str) -> (Vec<(Token, usize)>, Vec<String>) {
    let all = tokens(source);
    let (mut kept, mut modules, mut at) = (Vec::new(), Vec::new(), 0);
    while at < all.len() {
        if !is_cfg_test(&all[at..]) {
            kept.push(all[at].clone());
            at += 1;
            continue;
        }
        let end = item_end(&all, at + 7);
        let item = &all[at + 7..end];
        let name = item.windows(3).find_map(|w| match w {
            [(Token::Word(word), _), (Token::Word(name), _), (Token::Sign(';'), _)] if word == "mod" => {
                Some(name)
            }
            _ => None,
        });
        modules.extend(name.cloned());
        at = end;
    }
    (kept, modules)
}

fn test_modules(source: &str) -> Vec<String> {
    without_tests(source).1
}

/// The paths that a source names outside of tests, imports expanded.
fn paths(source: &str) -> BTreeSet<Named> {
    let tokens = without_tests(source).0;
    let (mut found, mut at) = (BTreeSet::new(), 0);
    while at < tokens.len() {
        match &tokens[at].0 {
            Token::Word(word) if word == "use" => {
                at = import(&tokens, at + 1, "", &mut found);
            }
            Token::Word(word) => {
                let line = tokens[at].1;
                let mut path = word.clone();
                while let (Some((Token::Join, _)), Some((Token::Word(next), _))) =
                    (tokens.get(at + 1), tokens.get(at + 2))
                {
                    path = format!("{path}::{next}");
                    at += 2;
                }
                found.insert(Named { path, line });
                at += 1;
            }
            _ => at += 1,
        }
    }
    found
}

/// Adds the paths of a `use` tree that begins at `at`; returns where it ends.
fn import(tokens: &[(Token, usize)], mut at: usize, prefix: &str, found: &mut BTreeSet<Named>) -> usize {
    let mut path = prefix.to_owned();
    let add = |path: &mut String, part: &str| {
        if !path.is_empty() {
            path.push_str("::");
        }
        path.push_str(part);
    };
    while let Some((token, line)) = tokens.get(at) {
        match token {
            Token::Word(word) if word == "as" => at += 2,
            Token::Word(word) => {
                // `use std::fs::{self}` names the parent.
                if word != "self" || path.is_empty() {
                    add(&mut path, word);
                }
                at += 1;
            }
            Token::Sign('*') => {
                add(&mut path, "*");
                at += 1;
            }
            Token::Join => at += 1,
            Token::Sign('{') => {
                at += 1;
                while !matches!(tokens.get(at), Some((Token::Sign('}'), _)) | None) {
                    at = import(tokens, at, &path, found);
                    if matches!(tokens.get(at), Some((Token::Sign(','), _))) {
                        at += 1;
                    }
                }
                return at + 1;
            }
            // The end of this branch.
            Token::Sign(_) => {
                found.insert(Named { path, line: *line });
                return at;
            }
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(source: &str) -> Vec<String> {
        paths(source).into_iter().map(|n| n.path).filter(|p| p.contains("::")).collect()
    }

    fn count(file: &str, source: &str) -> usize {
        offences_in(file, source).len()
    }

    #[test]
    fn sources_of_the_checkout_follow_the_rules() {
        let checkout = crate::paths::checkout();
        let files = sources(&checkout).unwrap();
        assert!(files.iter().any(|f| f == "crates/engine/yaml/src/lib.rs"), "the sources were not found");
        assert!(!files.iter().any(|f| f.ends_with("tests.rs")), "{files:?}");
        assert_eq!(offences(&checkout).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn imports_are_expanded_and_literals_are_skipped() {
        let source = r##"
            use std::{collections::BTreeMap, fs::{self, File}, io};
            // std::env::var
            /* std::env /* nested */ std::env */
            fn f<'a>(c: &'a str) { let _ = ("std::env::var", r#"std::env " "#, 'x', '\'', b'"'); std::process::exit(1) }
        "##;
        assert_eq!(
            named(source),
            ["std::collections::BTreeMap", "std::fs", "std::fs::File", "std::io", "std::process::exit"]
        );
    }

    #[test]
    fn test_items_are_exempt() {
        let source = "
            #[cfg(test)]
            mod golden_tests;
            #[cfg(test)]
            mod tests { fn f() { std::env::var(\"X\"); } }
            fn g() { std::time::Instant::now(); }";
        assert_eq!(named(source), ["std::time::Instant::now"]);
        assert_eq!(test_modules(source), ["golden_tests"]);
    }

    #[test]
    fn impure_engines_are_found() {
        let engine = "crates/engine/a/src/lib.rs";
        for source in [
            "use std::env;",
            "use std::{io, fs::File};",
            "fn f() { std::process::id(); }",
            "use std::time::Instant; fn f() { let t = Instant::now(); }",
            "fn f() { std::time::SystemTime::now(); }",
            "fn f() { jiff::Timestamp::now(); }",
        ] {
            assert_eq!(count(engine, source), 1, "{source}");
            assert_eq!(count("crates/io/a/src/lib.rs", source), 0, "{source}");
        }
        assert_eq!(count(engine, "use std::env_not; use std::net::IpAddr; use std::time::Duration;"), 0);
        assert_eq!(count("crates/engine/kustomize/src/files.rs", "fn f() { std::fs::read(p); }"), 0);
        assert_eq!(count("crates/engine/kustomize/src/files.rs", "fn f() { std::env::vars(); }"), 1);
    }

    #[test]
    fn second_kubernetes_client_is_found() {
        for source in ["use kube::Client;", "use kube::{Api, Config};", "fn f() { kube::Client::new(s); }"] {
            assert!(count("crates/control/apply/src/lib.rs", source) > 0, "{source}");
            assert_eq!(count("crates/control/client/src/client.rs", source), 0, "{source}");
        }
        assert_eq!(count("crates/control/apply/src/lib.rs", "fn f(kube: u8) { g(kube); }"), 0);
    }
}
