//! All keys of a bucket with their etags.
//!
//! The revision is the sum over the lines `<key> <etag>`, in byte order of the keys. Stores list in that order, and then the sum is
//! known when the listing ends; where one does not, the keys are sorted through a file.

use std::collections::BTreeMap;
use std::io;

use sha2::{Digest as _, Sha256};

use crate::external_sort::Sorter;
pub use crate::external_sort::Spool;
use crate::{Key, KeyError};

/// Objects of a bucket.
const MAX_KEYS: u64 = 2_000_000;
/// Bytes of all keys and etags together.
const MAX_BYTES: u64 = 1 << 30;
/// An etag is a sum.
const LONGEST_ETAG: usize = 1024;

/// Why a bucket cannot be indexed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    #[error("the bucket has more than {MAX_KEYS} objects; set spec.prefix or spec.ignore to take fewer")]
    TooMany,
    #[error(
        "the names of all objects together are longer than {MAX_BYTES} bytes; set spec.prefix or spec.ignore to take fewer"
    )]
    TooLong,
    #[error("the etag of '{0}' is longer than {LONGEST_ETAG} bytes")]
    Etag(String),
    #[error("failed to get '{key}' object: {problem}")]
    Key { key: String, problem: KeyError },
    #[error("failed to get '{key}' object: fileName is a directory.")]
    Directory { key: String },
    #[error(
        "failed to get '{key}' object: '{other}' becomes the same file; rename one of them or leave it out with spec.ignore"
    )]
    Twice { key: String, other: String },
    #[error("cannot keep the index: {0}")]
    Spool(#[from] io::Error),
}

/// What turned out differently while objects were read: another etag, or none when the object was gone.
pub type Changes = BTreeMap<String, Option<String>>;

/// The index of a bucket.
#[derive(Debug)]
pub struct Index<S> {
    sorter: Sorter<S>,
    count: u64,
    bytes: u64,
    /// As long as keys come in order.
    running: Option<Sha256>,
    last: Vec<u8>,
}

impl<S: Spool> Index<S> {
    /// An empty index that sorts through `spool`, if it must.
    pub fn new(spool: S) -> Self {
        Self {
            sorter: Sorter::new(spool),
            count: 0,
            bytes: 0,
            running: Some(Sha256::new()),
            last: Vec::new(),
        }
    }

    /// Adds an object; of one that comes twice the last counts.
    ///
    /// # Errors
    /// A limit, or the file.
    pub fn add(&mut self, key: &str, etag: &str) -> Result<(), IndexError> {
        self.count += 1;
        self.bytes += (key.len() + etag.len()) as u64;
        if self.count > MAX_KEYS {
            return Err(IndexError::TooMany);
        }
        if self.bytes > MAX_BYTES {
            return Err(IndexError::TooLong);
        }
        if etag.len() > LONGEST_ETAG {
            return Err(IndexError::Etag(key.to_owned()));
        }
        if self.count > 1 && key.as_bytes() <= self.last.as_slice() {
            self.running = None;
        }
        if let Some(sum) = &mut self.running {
            line(sum, key.as_bytes(), etag.as_bytes());
            self.last.clear();
            self.last.extend_from_slice(key.as_bytes());
        }
        Ok(self.sorter.add(key.as_bytes(), etag.as_bytes())?)
    }

    /// `sha256:…` of the index as it was listed, and how many objects it has.
    ///
    /// # Errors
    /// The file.
    pub fn revision(&mut self) -> Result<(String, u64), IndexError> {
        match &self.running {
            Some(sum) => Ok((written(sum.clone()), self.count)),
            None => self.revision_with(&Changes::new()),
        }
    }

    /// The same with what changed since.
    ///
    /// # Errors
    /// The file.
    pub fn revision_with(&mut self, changes: &Changes) -> Result<(String, u64), IndexError> {
        let (mut sum, mut count) = (Sha256::new(), 0);
        self.each(|key, etag| {
            let changed = std::str::from_utf8(key).ok().and_then(|key| changes.get(key));
            match changed {
                Some(None) => return Ok(()),
                Some(Some(new)) => line(&mut sum, key, new.as_bytes()),
                None => line(&mut sum, key, etag),
            }
            count += 1;
            Ok::<_, IndexError>(())
        })?;
        Ok((written(sum), count))
    }

    /// The objects as files, in the order of an archive.
    ///
    /// # Errors
    /// A key that cannot become a file, or the file.
    pub fn files<T: Spool>(&mut self, spool: T) -> Result<Files<T>, IndexError> {
        let mut sorter = Sorter::new(spool);
        let (mut name, mut value) = (Vec::new(), Vec::new());
        self.each(|key, etag| {
            let text = String::from_utf8_lossy(key);
            let checked =
                Key::check(&text).map_err(|problem| IndexError::Key { key: shown(&text), problem })?;
            // Within each directory by name: a slash before every other character.
            name.clear();
            name.extend(checked.path().bytes().map(|b| if b == b'/' { 0 } else { b }));
            // No key has a NUL.
            value.clear();
            value.extend_from_slice(key);
            value.push(0);
            value.extend_from_slice(etag);
            sorter.add(&name, &value)?;
            Ok::<_, IndexError>(())
        })?;
        Ok(Files(sorter))
    }

    /// Every key once.
    fn each<E: From<io::Error>>(
        &mut self,
        mut see: impl FnMut(&[u8], &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut held: Option<(Vec<u8>, Vec<u8>)> = None;
        self.sorter.visit(|key, etag| {
            if let Some((last, old)) = &mut held {
                if last.as_slice() != key {
                    see(last, old)?;
                    last.clear();
                    last.extend_from_slice(key);
                }
                old.clear();
                old.extend_from_slice(etag);
            } else {
                held = Some((key.to_vec(), etag.to_vec()));
            }
            Ok::<_, E>(())
        })?;
        match held {
            Some((key, etag)) => see(&key, &etag),
            None => Ok(()),
        }
    }
}

fn line(sum: &mut Sha256, key: &[u8], etag: &[u8]) {
    sum.update(key);
    sum.update(b" ");
    sum.update(etag);
    sum.update(b"\n");
}

fn written(sum: Sha256) -> String {
    format!("sha256:{}", fl_cloud::hex(&sum.finalize()))
}

/// A key as it may be shown in a message.
fn shown(key: &str) -> String {
    let text: String = key.chars().take(200).flat_map(char::escape_debug).collect();
    if key.chars().nth(200).is_some() { format!("{text}…") } else { text }
}

/// The files of a bucket, directories before what is in them.
#[derive(Debug)]
pub struct Files<S>(Sorter<S>);

impl<S: Spool> Files<S> {
    /// Shows each file: its key, and the etag it was listed with.
    ///
    /// # Errors
    /// Two objects that cannot both be files, the file, or an error of `see`.
    pub fn visit<E: From<IndexError>>(
        &mut self,
        mut see: impl FnMut(Key, &str) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut last: Option<Key> = None;
        let result = self.0.visit(|_, value| {
            let text = String::from_utf8_lossy(value);
            let (key, etag) = text.split_once('\0').unwrap_or((&text, ""));
            let bad = |problem| IndexError::Key { key: shown(key), problem };
            let checked = Key::check(key).map_err(|p| Stop::Own(E::from(bad(p))))?;
            if let Some(before) = &last {
                let other = || shown(before.key());
                if before.path() == checked.path() {
                    let error = IndexError::Twice { key: shown(key), other: other() };
                    return Err(Stop::Own(error.into()));
                }
                let below = checked.path().strip_prefix(before.path());
                if below.is_some_and(|rest| rest.starts_with('/')) {
                    return Err(Stop::Own(IndexError::Directory { key: other() }.into()));
                }
            }
            last = Some(checked.clone());
            see(checked, etag).map_err(Stop::Own)
        });
        result.map_err(|stop| match stop {
            Stop::Own(error) => error,
            Stop::File(error) => IndexError::Spool(error).into(),
        })
    }
}

enum Stop<E> {
    Own(E),
    File(io::Error),
}

impl<E> From<io::Error> for Stop<E> {
    fn from(error: io::Error) -> Self {
        Stop::File(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(pairs: &[(&str, &str)]) -> Index<io::Cursor<Vec<u8>>> {
        let mut index = Index::new(io::Cursor::new(Vec::new()));
        for (key, etag) in pairs {
            index.add(key, etag).expect("fits");
        }
        index
    }

    const GOLDEN: &str = "sha256:dda5143b9cd400d7d8fa689615f24f35d3a149c7c99e472a527491ed03f81ec6";

    #[test]
    fn the_revision_does_not_depend_on_the_order() {
        let pairs = [("a.yaml", "etag1"), ("b/c.yaml", "etag2")];
        assert_eq!(index(&pairs).revision().expect("known"), (GOLDEN.to_owned(), 2));
        let mixed = [("b/c.yaml", "etag2"), ("a.yaml", "old"), ("a.yaml", "etag1")];
        assert_eq!(index(&mixed).revision().expect("known"), (GOLDEN.to_owned(), 2));
        let empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(index(&[]).revision().expect("known"), (empty.to_owned(), 0));
    }

    #[test]
    fn changes_count() {
        let mut index = index(&[("a.yaml", "old"), ("b/c.yaml", "etag2"), ("gone", "x")]);
        let changes =
            Changes::from([("a.yaml".to_owned(), Some("etag1".to_owned())), ("gone".to_owned(), None)]);
        assert_eq!(index.revision_with(&changes).expect("known"), (GOLDEN.to_owned(), 2));
    }

    fn files(pairs: &[(&str, &str)]) -> Result<Vec<String>, IndexError> {
        let mut seen = Vec::new();
        index(pairs).files(io::Cursor::new(Vec::new()))?.visit(|key, etag| {
            seen.push(format!("{}={etag}", key.path()));
            Ok::<_, IndexError>(())
        })?;
        Ok(seen)
    }

    #[test]
    fn files_come_in_the_order_of_an_archive() {
        let got = files(&[("a-b", "1"), ("a/x", "2"), ("/a/b/c", "3"), ("b", "4")]).expect("fine");
        assert_eq!(got, ["a/b/c=3", "a/x=2", "a-b=1", "b=4"]);
    }

    /// E09: what cannot be a tree of files is refused, and the object is named.
    #[test]
    fn keys_that_form_no_tree_are_rejected() {
        let error = |pairs: &[(&str, &str)]| files(pairs).expect_err("refused").to_string();
        assert_eq!(error(&[("a", "1"), ("a/b", "2")]), "failed to get 'a' object: fileName is a directory.");
        assert!(error(&[("a", "1"), ("/a", "2")]).contains("becomes the same file"));
        assert!(
            error(&[("../etc/passwd", "1")])
                .starts_with("failed to get '../etc/passwd' object: the name has a step '..'")
        );
        assert!(error(&[("x\n/../\u{7}", "1")]).contains("'x\\n/../\\u{7}'"));
    }

    /// E09: more than a bucket may have.
    #[test]
    fn limits() {
        let mut index = Index::new(io::Cursor::new(Vec::new()));
        index.count = MAX_KEYS;
        assert!(matches!(index.add("a", "b"), Err(IndexError::TooMany)));
        let mut index = Index::new(io::Cursor::new(Vec::new()));
        index.bytes = MAX_BYTES;
        assert!(matches!(index.add("a", "b"), Err(IndexError::TooLong)));
        let mut index = Index::new(io::Cursor::new(Vec::new()));
        assert!(matches!(index.add("a", &"b".repeat(2000)), Err(IndexError::Etag(_))));
    }
}
