//! Where an object's artifacts are: `<kind>/<namespace>/<name>/<file>`.

use std::path::PathBuf;

use crate::Error;

/// The directory of one object's artifacts, and files in it. Every part is checked: none can leave the store.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Location {
    kind: String,
    namespace: String,
    name: String,
}

impl Location {
    pub fn new(kind: &str, namespace: &str, name: &str) -> Result<Self, Error> {
        let kind = kind.to_lowercase();
        for part in [kind.as_str(), namespace, name] {
            check(part)?;
        }
        Ok(Self { kind, namespace: namespace.to_owned(), name: name.to_owned() })
    }

    /// Path of the directory, relative to the store.
    pub fn directory(&self) -> PathBuf {
        [&self.kind, &self.namespace, &self.name].iter().collect()
    }

    /// Path of a file as consumers write it, with slashes.
    pub fn path(&self, file: &str) -> Result<String, Error> {
        check(file)?;
        Ok(format!("{}/{}/{}/{file}", self.kind, self.namespace, self.name))
    }
}

pub(crate) fn check(part: &str) -> Result<(), Error> {
    let bad = part.is_empty() || part == "." || part == ".." || part.contains(['/', '\\', '\0']);
    if bad { Err(Error::Path { part: part.to_owned() }) } else { Ok(()) }
}
