//! The pairs of generators: literals, files, lines of environment files.

use crate::decode::Located;
use crate::kustomization::GeneratorArgs;

/// Why the pairs of a generator cannot be had.
#[derive(Debug)]
pub(crate) enum PairError {
    /// An entry is wrong; where it stands.
    Entry { at: (u32, u32), reason: String },
    /// A file cannot be loaded.
    Load(crate::error::Error),
}

/// All pairs in kustomize's order: environment files, literals, files. A key may come once.
pub(crate) fn load(
    args: &GeneratorArgs,
    mut read: impl FnMut(&Located<String>) -> Result<std::rc::Rc<[u8]>, crate::error::Error>,
) -> Result<Vec<(String, Vec<u8>)>, PairError> {
    let mut pairs: Vec<(String, Vec<u8>)> = Vec::new();
    let mut put = |key: String, value: Vec<u8>, at: (u32, u32)| {
        if pairs.iter().any(|(k, _)| *k == key) {
            let reason = format!("`{}` repeats the key `{key}`", args.name);
            return Err(PairError::Entry { at, reason });
        }
        pairs.push((key, value));
        Ok(())
    };
    for env in &args.envs {
        let content = read(env).map_err(PairError::Load)?;
        for (key, value) in env_lines(&content).map_err(|reason| PairError::Entry { at: env.at, reason })? {
            put(key, value.into_bytes(), env.at)?;
        }
    }
    for literal in &args.literals {
        let (key, value) = split_literal(&literal.value).ok_or_else(|| PairError::Entry {
            at: literal.at,
            reason: format!("invalid literal source `{}`, expected key=value", literal.value),
        })?;
        put(key.to_owned(), value.as_bytes().to_vec(), literal.at)?;
    }
    for file in &args.files {
        let (key, path) =
            split_file(&file.value).map_err(|reason| PairError::Entry { at: file.at, reason })?;
        let content = read(&Located { value: path.to_owned(), at: file.at }).map_err(PairError::Load)?;
        put(key.to_owned(), content.to_vec(), file.at)?;
    }
    Ok(pairs)
}

/// The pairs of an environment file: one a line, `#` comments, no quotes taken off.
fn env_lines(content: &[u8]) -> Result<Vec<(String, String)>, String> {
    let mut pairs = Vec::new();
    let content = content.strip_suffix(b"\n").unwrap_or(content);
    for (number, line) in content.split(|b| *b == b'\n').enumerate() {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let mut line =
            std::str::from_utf8(line).map_err(|_| format!("line {} has invalid utf8 bytes", number + 1))?;
        if number == 0 {
            line = line.strip_prefix('\u{feff}').unwrap_or(line);
        }
        let line = line.trim_start();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        if !key.is_empty() {
            pairs.push((key.to_owned(), value.to_owned()));
        }
    }
    Ok(pairs)
}

fn split_literal(literal: &str) -> Option<(&str, &str)> {
    let (key, value) = literal.split_once('=').filter(|(key, _)| !key.is_empty())?;
    let quoted = |quote: char| value.len() >= 2 && value.starts_with(quote) && value.ends_with(quote);
    Some((key, if quoted('"') || quoted('\'') { &value[1..value.len() - 1] } else { value }))
}

fn split_file(source: &str) -> Result<(&str, &str), String> {
    match source.split_once('=') {
        None => Ok((source.trim_end_matches('/').rsplit('/').next().unwrap_or(source), source)),
        Some((_, rest)) if rest.contains('=') => {
            Err(format!("source `{source}` key name or file path contains '='"))
        }
        Some(("", _)) => Err(format!("missing key name for file path in source `{source}`")),
        Some((_, "")) => Err(format!("missing file path for key name in source `{source}`")),
        Some(pair) => Ok(pair),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals() {
        assert_eq!(split_literal("a=b=c"), Some(("a", "b=c")));
        assert_eq!(split_literal("a='b'"), Some(("a", "b")));
        assert_eq!(split_literal("a=\"b'"), Some(("a", "\"b'")));
        assert_eq!(split_literal("a="), Some(("a", "")));
        assert_eq!(split_literal("=b"), None);
        assert_eq!(split_literal("a"), None);
    }

    #[test]
    fn files() {
        assert_eq!(split_file("dir/a.txt"), Ok(("a.txt", "dir/a.txt")));
        assert_eq!(split_file("k=dir/a.txt"), Ok(("k", "dir/a.txt")));
        assert!(split_file("=a").is_err() && split_file("a=").is_err() && split_file("a=b=c").is_err());
    }

    #[test]
    fn lines() {
        let pairs = env_lines(b"\xef\xbb\xbfA=1\n# no\n\n  B='2' \r\nC\n=x\n").expect("valid");
        let pairs: Vec<_> = pairs.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(pairs, [("A", "1"), ("B", "'2' "), ("C", "")]);
        assert!(env_lines(b"\xff").is_err());
    }
}
