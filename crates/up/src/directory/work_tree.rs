//! The files of a work tree, with the ids that Git would compute.

use std::collections::{BTreeMap, HashMap};
use std::fs::Metadata;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use anyhow::{Context as _, bail};
use fl_git::{EntryKind, HashKind, Hasher, ObjectId, ObjectKind};
use fl_git_client::DiskEntry;
use fl_ignore::Rules;

/// Limits of a work tree, which a home directory named by mistake exceeds.
const MAX_FILES: usize = 50_000;
const MAX_BYTES: u64 = 1 << 30;
const MAX_DEPTH: usize = 64;
/// Two writes within one tick of the file system's clock have equal stamps; a file modified this recently is read again.
const RECENT_NANOSECONDS: i128 = 2_000_000_000;

/// A file of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WorkTreeFile {
    pub(super) executable: bool,
    pub(super) id: ObjectId,
}

/// Result of a scan.
#[derive(Clone, Debug, Default)]
pub(super) struct Scan {
    pub(super) files: BTreeMap<String, WorkTreeFile>,
    /// Relative paths of all directories that were entered; the root is the empty one.
    pub(super) directories: Vec<String>,
    /// Whether the files equal the commit.
    pub(super) clean: bool,
}

/// Scans a work tree. Ids of unchanged files are cached.
#[derive(Debug, Default)]
pub(super) struct Scanner {
    known: HashMap<String, (FileStamp, ObjectId)>,
}

/// Metadata that changes when the content of a file changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileStamp {
    inode: u64,
    size: u64,
    modified: i128,
    changed: i128,
}

impl FileStamp {
    fn of(meta: &Metadata) -> Self {
        let nanoseconds = |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
        FileStamp {
            inode: meta.ino(),
            size: meta.size(),
            modified: nanoseconds(meta.mtime(), meta.mtime_nsec()),
            changed: nanoseconds(meta.ctime(), meta.ctime_nsec()),
        }
    }

    fn is_recent(&self) -> bool {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let now = i128::try_from(now.as_nanos()).unwrap_or(i128::MAX);
        now - self.modified.max(self.changed) < RECENT_NANOSECONDS
    }
}

impl Scanner {
    /// Scans the tree: committed files, and files that are neither committed nor ignored.
    pub(super) fn scan(
        &mut self,
        root: &Path,
        excluded: &str,
        committed: BTreeMap<String, DiskEntry>,
    ) -> anyhow::Result<Scan> {
        let hash = committed.values().next().map_or(HashKind::Sha1, |e| e.id.kind());
        let mut walk = Walk {
            root,
            committed: &committed,
            ignore_files: vec![(String::new(), excluded.to_owned())],
            hash,
            bytes: 0,
            known: &mut self.known,
            found: Scan::default(),
        };
        walk.directory("", 0)?;
        let mut found = walk.found;
        self.known.retain(|path, _| found.files.contains_key(path));
        let real =
            committed.iter().filter(|(_, e)| matches!(e.kind, EntryKind::File | EntryKind::Executable));
        found.clean = !committed.is_empty()
            && real.clone().count() == found.files.len()
            && real.zip(&found.files).all(|((path, entry), (other, saved))| {
                path == other
                    && entry.id == saved.id
                    && (entry.kind == EntryKind::Executable) == saved.executable
            });
        Ok(found)
    }
}

struct Walk<'a> {
    root: &'a Path,
    committed: &'a BTreeMap<String, DiskEntry>,
    /// Directory and text of each `.gitignore` above, parents first.
    ignore_files: Vec<(String, String)>,
    hash: HashKind,
    bytes: u64,
    known: &'a mut HashMap<String, (FileStamp, ObjectId)>,
    found: Scan,
}

impl Walk<'_> {
    fn directory(&mut self, at: &str, depth: usize) -> anyhow::Result<()> {
        let place = self.root.join(at);
        if depth > MAX_DEPTH {
            bail!("{} is nested more than {MAX_DEPTH} directories deep", place.display());
        }
        self.found.directories.push(at.to_owned());
        let mut entries = Vec::new();
        let listed = std::fs::read_dir(&place).with_context(|| format!("cannot read {}", place.display()))?;
        for entry in listed {
            let entry = entry.with_context(|| format!("cannot read {}", place.display()))?;
            // Names that are not UTF-8 cannot be in an artifact.
            if let Ok(name) = entry.file_name().into_string() {
                entries.push((name, entry.file_type()?));
            }
        }
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        let before = self.ignore_files.len();
        if entries.iter().any(|(name, kind)| name == ".gitignore" && kind.is_file()) {
            let text = std::fs::read(place.join(".gitignore")).unwrap_or_default();
            self.ignore_files.push((at.to_owned(), String::from_utf8_lossy(&text).into_owned()));
        }
        // These rules replace the default ones of sources, which the source controller applies itself.
        let lines = self.ignore_files.iter().map(|(d, t)| (d.as_str(), t.as_str()));
        let rules = Rules::for_source(lines, Some("!.gitignore\n!.gitmodules\n!.gitattributes\n/.git"));
        for (name, kind) in entries {
            let path = if at.is_empty() { name } else { format!("{at}/{name}") };
            if kind.is_dir() {
                let skipped = path == ".git" || path.ends_with("/.git");
                if !skipped && (!rules.ignores(&path, true) || self.has_committed_below(&path)) {
                    self.directory(&path, depth + 1)?;
                }
            } else if kind.is_file() && (self.committed.contains_key(&path) || !rules.ignores(&path, false)) {
                self.file(path)?;
            }
        }
        self.ignore_files.truncate(before);
        Ok(())
    }

    fn has_committed_below(&self, path: &str) -> bool {
        let below = format!("{path}/");
        self.committed.range(below.clone()..).next().is_some_and(|(p, _)| p.starts_with(&below))
    }

    fn file(&mut self, path: String) -> anyhow::Result<()> {
        let place = self.root.join(&path);
        let meta = match std::fs::symlink_metadata(&place) {
            Ok(meta) => meta,
            // Renamed meanwhile; the next scan finds it.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(e) => return Err(anyhow::Error::new(e).context(format!("cannot read {}", place.display()))),
        };
        self.bytes += meta.len();
        if self.found.files.len() >= MAX_FILES || self.bytes > MAX_BYTES {
            bail!(
                "{} holds more than {MAX_FILES} files or {} GiB; name the directory of the manifests, or commit them and leave --dirty out",
                self.root.display(),
                MAX_BYTES >> 30
            );
        }
        let stamp = FileStamp::of(&meta);
        let executable = meta.permissions().mode() & 0o100 != 0;
        let id = match self.known.get(&path) {
            Some((known, id)) if *known == stamp && !stamp.is_recent() => *id,
            _ => {
                let content = match std::fs::read(&place) {
                    Ok(content) => content,
                    Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
                    Err(e) => {
                        return Err(anyhow::Error::new(e).context(format!("cannot read {}", place.display())));
                    }
                };
                let id = blob_id(&content, self.hash)?;
                self.known.insert(path.clone(), (stamp, id));
                id
            }
        };
        self.found.files.insert(path, WorkTreeFile { executable, id });
        Ok(())
    }
}

/// The blob id of a content.
pub(super) fn blob_id(content: &[u8], hash: HashKind) -> Result<ObjectId, fl_git::Error> {
    let mut hasher = Hasher::for_object(hash, ObjectKind::Blob, content.len() as u64);
    hasher.update(content);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, path: &str, text: &str) {
        let place = root.join(path);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::write(place, text).unwrap();
    }

    fn names(scan: &Scan) -> Vec<&str> {
        scan.files.keys().map(String::as_str).collect()
    }

    #[test]
    fn ignored_files_are_skipped_unless_committed() {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("app.yaml", "a"),
            ("notes.tmp", "n"),
            ("kept.tmp", "k"),
            ("build/out.yaml", "o"),
            ("sub/.gitignore", "x.yaml\n"),
            ("sub/x.yaml", "x"),
            ("x.yaml", "x"),
            (".git/config", "c"),
            ("logo.png", "p"),
        ] {
            write(dir.path(), path, text);
        }
        write(dir.path(), ".gitignore", "*.tmp\n/build/\n");
        std::os::unix::fs::symlink("app.yaml", dir.path().join("link.yaml")).unwrap();
        let committed = DiskEntry { kind: EntryKind::File, id: blob_id(b"k", HashKind::Sha1).unwrap() };
        let committed = BTreeMap::from([("kept.tmp".to_owned(), committed)]);
        let scan = Scanner::default().scan(dir.path(), "", committed).unwrap();
        let want = [".gitignore", "app.yaml", "kept.tmp", "logo.png", "sub/.gitignore", "x.yaml"];
        assert_eq!(names(&scan), want);
        assert_eq!(scan.directories, ["", "sub"]);
        assert!(!scan.clean);
    }

    #[test]
    fn unchanged_files_are_clean() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "a.yaml", "a");
        let entry =
            |text: &[u8]| DiskEntry { kind: EntryKind::File, id: blob_id(text, HashKind::Sha1).unwrap() };
        let mut scanner = Scanner::default();
        let committed = BTreeMap::from([("a.yaml".to_owned(), entry(b"a"))]);
        assert!(scanner.scan(dir.path(), "", committed.clone()).unwrap().clean);
        write(dir.path(), "a.yaml", "b");
        let scan = scanner.scan(dir.path(), "", committed).unwrap();
        assert!(!scan.clean, "a save within the same tick is seen");
        assert_eq!(scan.files["a.yaml"].id, entry(b"b").id);
    }
}
