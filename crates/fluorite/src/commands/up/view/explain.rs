//! Where a mistake is: file and line out of a message, and the line itself.

use std::path::Path;

/// A place in a file of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::commands::up) struct Place {
    /// Relative to the source.
    pub(in crate::commands::up) file: String,
    pub(in crate::commands::up) line: usize,
    /// What stands there.
    pub(in crate::commands::up) text: String,
}

/// Finds the place a message speaks of. `path` is where the Kustomization begins, `root` the directory that is served.
pub(in crate::commands::up) fn place(message: &str, path: &str, root: &Path) -> Option<Place> {
    let line: usize = number_after(message, "line ")?;
    let begin = fl_source::tree::confined(path);
    // The innermost file is named last.
    let names = message
        .split(|c: char| c.is_whitespace() || matches!(c, '\'' | '"' | '`' | ',' | ':' | ';' | '(' | ')'))
        .filter(|word| [".yaml", ".yml", ".json"].iter().any(|end| word.ends_with(end)));
    let mut tried: Vec<&str> = names.collect();
    tried.reverse();
    for name in tried {
        for base in [begin.as_str(), ""] {
            let joined = format!("{base}/{name}");
            let file = fl_source::tree::confined(&joined);
            let Ok(content) = std::fs::read_to_string(root.join(&file)) else { continue };
            if let Some(text) = content.lines().nth(line.saturating_sub(1)) {
                return Some(Place { file, line, text: text.trim().to_owned() });
            }
        }
    }
    None
}

fn number_after(text: &str, word: &str) -> Option<usize> {
    text.match_indices(word).find_map(|(at, _)| {
        let rest = &text[at + word.len()..];
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_file_and_line() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("newsletter")).unwrap();
        std::fs::write(dir.path().join("newsletter/sender.yaml"), "a: 1\nimage: busybox: 1.37\n").unwrap();
        let message = "kustomize build failed: accumulating resources: accumulating resources from 'sender.yaml': \
            MalformedYAMLError: yaml: line 2: mapping values are not allowed in this context in File: sender.yaml";
        let found = place(message, "./newsletter", dir.path()).unwrap();
        assert_eq!(found.file, "newsletter/sender.yaml");
        assert_eq!((found.line, found.text.as_str()), (2, "image: busybox: 1.37"));
        assert_eq!(place("Ready", "./newsletter", dir.path()), None);
        assert_eq!(place("line 9 of ../../etc/passwd.yaml", "./newsletter", dir.path()), None);
    }
}
