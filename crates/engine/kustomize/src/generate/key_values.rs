//! Keys and values of generators: literals, files, lines of environment files.

use crate::decode::Located;
use crate::kustomization::GeneratorArgs;

/// Why the data of a generator cannot be loaded.
#[derive(Debug)]
pub(crate) enum LoadError {
    /// An entry of the generator at a position of the kustomization is invalid.
    Entry { at: (u32, u32), error: EntryError },
    /// A file cannot be loaded.
    Load(crate::error::Error),
}

/// Why an entry of a generator is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EntryError {
    #[error("`{generator}` repeats the key `{key}`")]
    RepeatedKey { generator: String, key: String },
    #[error("invalid literal source `{0}`, expected key=value")]
    Literal(String),
    #[error("line {line} has invalid utf8 bytes")]
    NotUtf8 { line: usize },
    #[error("source `{0}` key name or file path contains '='")]
    EqualsSign(String),
    #[error("missing key name for file path in source `{0}`")]
    MissingKey(String),
    #[error("missing file path for key name in source `{0}`")]
    MissingPath(String),
}

/// All keys and values in kustomize's order: environment files, literals, files. Keys must be unique.
pub(crate) fn load(
    args: &GeneratorArgs,
    mut read: impl FnMut(&Located<String>) -> Result<std::rc::Rc<[u8]>, crate::error::Error>,
) -> Result<Vec<(String, Vec<u8>)>, LoadError> {
    let mut pairs: Vec<(String, Vec<u8>)> = Vec::new();
    let mut put = |key: String, value: Vec<u8>, at: (u32, u32)| {
        if pairs.iter().any(|(k, _)| *k == key) {
            let error = EntryError::RepeatedKey { generator: args.name.clone(), key };
            return Err(LoadError::Entry { at, error });
        }
        pairs.push((key, value));
        Ok(())
    };
    for env in &args.envs {
        let content = read(env).map_err(LoadError::Load)?;
        for (key, value) in env_lines(&content).map_err(|error| LoadError::Entry { at: env.at, error })? {
            put(key, value.into_bytes(), env.at)?;
        }
    }
    for literal in &args.literals {
        let (key, value) = split_literal(&literal.value).ok_or_else(|| LoadError::Entry {
            at: literal.at,
            error: EntryError::Literal(literal.value.clone()),
        })?;
        put(key.to_owned(), value.as_bytes().to_vec(), literal.at)?;
    }
    for file in &args.files {
        let (key, path) = split_file(&file.value).map_err(|error| LoadError::Entry { at: file.at, error })?;
        let content = read(&Located { value: path.to_owned(), at: file.at }).map_err(LoadError::Load)?;
        put(key.to_owned(), content.to_vec(), file.at)?;
    }
    Ok(pairs)
}

/// Parses an environment file: one key and value per line, `#` comments; quotes are kept.
fn env_lines(content: &[u8]) -> Result<Vec<(String, String)>, EntryError> {
    let mut pairs = Vec::new();
    let content = content.strip_suffix(b"\n").unwrap_or(content);
    for (number, line) in content.split(|b| *b == b'\n').enumerate() {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let mut line = std::str::from_utf8(line).map_err(|_| EntryError::NotUtf8 { line: number + 1 })?;
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

fn split_file(source: &str) -> Result<(&str, &str), EntryError> {
    match source.split_once('=') {
        None => Ok((source.trim_end_matches('/').rsplit('/').next().unwrap_or(source), source)),
        Some((_, rest)) if rest.contains('=') => Err(EntryError::EqualsSign(source.to_owned())),
        Some(("", _)) => Err(EntryError::MissingKey(source.to_owned())),
        Some((_, "")) => Err(EntryError::MissingPath(source.to_owned())),
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
