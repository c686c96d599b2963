//! Finds file and line of an error in its message.

use std::path::Path;

/// A line of a file of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceLine {
    /// Relative to the source.
    pub(crate) file: String,
    pub(crate) line: usize,
    /// The text of the line.
    pub(crate) text: String,
}

const MANIFESTS: [&str; 3] = [".yaml", ".yml", ".json"];

/// Finds the line that a message refers to. `path` is `spec.path` of the Kustomization, `root` the directory of the source.
pub(crate) fn place(message: &str, path: &str, root: &Path) -> Option<SourceLine> {
    let begin = fl_source::tree::confined(path);
    let words = || {
        message.split(|c: char| c.is_whitespace() || matches!(c, '\'' | '"' | '`' | ',' | ';' | '(' | ')'))
    };
    // `dir/file.yaml:18:25: …`: the error comes first, how it was reached after it.
    for word in words() {
        let mut parts = word.split(':');
        let (Some(file), Some(Ok(line))) = (parts.next(), parts.next().map(str::parse)) else { continue };
        if let Some(found) = read(file, line, &begin, root) {
            return Some(found);
        }
    }
    // `yaml: line 18: … in File: file.yaml`: the innermost file is named last.
    let line: usize = number_after(message, "line ")?;
    let names: Vec<&str> = words().map(|w| w.trim_end_matches(':')).collect();
    names.into_iter().rev().find_map(|name| read(name, line, &begin, root))
}

/// A line of a file; the name may be absolute, since messages contain the directory of the build.
fn read(name: &str, line: usize, begin: &str, root: &Path) -> Option<SourceLine> {
    if !MANIFESTS.iter().any(|end| name.ends_with(end)) {
        return None;
    }
    let below = fl_source::tree::confined(&format!("{begin}/{name}"));
    let whole = fl_source::tree::confined(name);
    let suffixes = whole.match_indices('/').map(|(at, _)| whole[at + 1..].to_owned());
    let candidates = [below].into_iter().chain([whole.clone()]).chain(suffixes);
    for file in candidates {
        let Ok(content) = std::fs::read_to_string(root.join(&file)) else { continue };
        // An unexpected end of file is shown at the last line.
        let last = content.lines().count();
        let line = if line == last + 1 { last } else { line };
        if let Some(text) = content.lines().nth(line.saturating_sub(1)) {
            return Some(SourceLine { file, line, text: text.trim().to_owned() });
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
    fn file_and_line_are_found() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("newsletter")).unwrap();
        std::fs::write(dir.path().join("newsletter/sender.yaml"), "a: 1\nimage: busybox: 1.37\n").unwrap();
        let message = "kustomize build failed: accumulating resources: accumulating resources from 'sender.yaml': \
            MalformedYAMLError: yaml: line 2: mapping values are not allowed in this context in File: sender.yaml";
        let found = place(message, "./newsletter", dir.path()).unwrap();
        assert_eq!(found.file, "newsletter/sender.yaml");
        assert_eq!((found.line, found.text.as_str()), (2, "image: busybox: 1.37"));
        let own = "kustomize build failed: /tmp/kustomization-00a5/newsletter/sender.yaml:2:15: malformed YAML: mapping values \
            are not allowed (reached through /tmp/kustomization-00a5/newsletter/kustomization.yaml:5:5)";
        assert_eq!(place(own, "./newsletter", dir.path()), Some(found));
        let cut_off =
            place("newsletter/sender.yaml:3:1: did not find expected node content", ".", dir.path());
        assert_eq!(cut_off.map(|p| p.line), Some(2));
        assert_eq!(place("newsletter/sender.yaml:4:1: elsewhere", ".", dir.path()), None);
        assert_eq!(place("Ready", "./newsletter", dir.path()), None);
        assert_eq!(place("line 9 of ../../etc/passwd.yaml", "./newsletter", dir.path()), None);
    }
}
