//! Names of objects, and the files they become.

/// Bytes of a name; stores have the same limit.
const MAX_KEY_BYTES: usize = 1024;

/// A key that leads to one file of the artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    key: String,
    path: String,
}

/// Why a key cannot become a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    #[error("Object name cannot be empty")]
    Empty,
    #[error("Object name cannot be longer than {MAX_KEY_BYTES} characters")]
    Long,
    #[error("Object name with non UTF-8 strings are not supported")]
    Encoding,
    #[error(
        "the name has a step '{0}', which would lead to another object; rename it or leave it out with spec.ignore"
    )]
    Step(&'static str),
    #[error(
        "the name has a NUL character, which no file can have; rename it or leave it out with spec.ignore"
    )]
    Nul,
}

impl Key {
    /// Checks a key. Empty steps are dropped, as they are in paths of files.
    ///
    /// # Errors
    /// The key leads elsewhere, or nowhere. In an address `..` means the parent, however it is written: such an object cannot
    /// be requested without requesting another one, so it is refused rather than renamed.
    pub fn check(key: &str) -> Result<Self, KeyError> {
        if key.trim().is_empty() {
            return Err(KeyError::Empty);
        }
        if key.len() > MAX_KEY_BYTES {
            return Err(KeyError::Long);
        }
        if key.contains('\0') {
            return Err(KeyError::Nul);
        }
        let mut path = String::with_capacity(key.len());
        for step in key.split('/').filter(|s| !s.is_empty()) {
            match step {
                "." => return Err(KeyError::Step(".")),
                ".." => return Err(KeyError::Step("..")),
                step => {
                    if !path.is_empty() {
                        path.push('/');
                    }
                    path.push_str(step);
                }
            }
        }
        if path.is_empty() {
            return Err(KeyError::Empty);
        }
        Ok(Self { key: key.to_owned(), path })
    }

    /// As the store calls it.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Where it is in the artifact: relative, no step of it is empty, `.` or `..`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The key as a part of an address: everything but letters, digits and `-._~/` as `%XX`.
    pub fn encoded(&self) -> String {
        let steps: Vec<String> = self.key.split('/').map(fl_cloud::percent).collect();
        steps.join("/")
    }
}

/// `%41+b` is `A b`, as in a form.
pub(crate) fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(b) = bytes.next() {
        match b {
            b'+' => out.push(b' '),
            b'%' => {
                let mut digit = || bytes.next().and_then(|d| char::from(d).to_digit(16));
                let (high, low) = (digit()?, digit()?);
                out.push(u8::try_from(high * 16 + low).ok()?);
            }
            b => out.push(b),
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E09: no key leads out of the artifact, or to another object.
    #[test]
    fn keys_stay_in_their_place() {
        let path = |key: &str| Key::check(key).map(|k| k.path);
        assert_eq!(path("a/b.yaml").as_deref(), Ok("a/b.yaml"));
        assert_eq!(path("//a//b").as_deref(), Ok("a/b"));
        assert_eq!(path("...").as_deref(), Ok("..."));
        assert_eq!(path("a\\..\\b").as_deref(), Ok("a\\..\\b"));
        for key in ["..", "../x", "a/../../etc/passwd", "a/..", "/.."] {
            assert_eq!(path(key), Err(KeyError::Step("..")), "{key}");
        }
        assert_eq!(path("a/./b"), Err(KeyError::Step(".")));
        assert_eq!(path("a\0b"), Err(KeyError::Nul));
        for key in ["", " ", "/", "///"] {
            assert_eq!(path(key), Err(KeyError::Empty), "{key:?}");
        }
        assert_eq!(path(&"x".repeat(1025)), Err(KeyError::Long));
    }

    #[test]
    fn addresses() {
        let encoded = |key: &str| Key::check(key).expect("a key").encoded();
        assert_eq!(encoded("a b/ü+?#%2e%2e\\.yaml"), "a%20b/%C3%BC%2B%3F%23%252e%252e%5C.yaml");
    }

    #[test]
    fn escapes() {
        assert_eq!(unescape("a%2Fb+c%C3%BC").as_deref(), Some("a/b cü".as_bytes()));
        assert_eq!(unescape("%4"), None);
        assert_eq!(unescape("%zz"), None);
    }
}
