//! The file layer: all file access of the store goes through these traits, beneath which tests inject faults.

use std::fmt::Debug;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::StoreError;

/// The files of one store, by name in its directory.
pub(crate) trait Files: Debug + Send + Sync {
    /// The full path, for messages.
    fn path(&self, name: &str) -> PathBuf;
    fn list(&self) -> io::Result<Vec<String>>;
    fn read(&self, name: &str) -> io::Result<Vec<u8>>;
    /// Creates an empty file; an existing file of that name is removed first.
    fn create(&self, name: &str) -> io::Result<Box<dyn File>>;
    fn open(&self, name: &str) -> io::Result<Box<dyn File>>;
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Makes created, renamed and removed names durable.
    fn sync_dir(&self) -> io::Result<()>;
}

/// A file that is open for writing.
pub(crate) trait File: Debug + Send {
    /// Writes at an offset; may write less than it was given, as `pwrite` may.
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<usize>;
    /// Makes the written bytes durable. After an error the state of everything written since the last success
    /// is unknown, and a later success does not change that: the kernel may have dropped the pages.
    fn sync(&mut self) -> io::Result<()>;
}

pub(super) fn write_all_at(file: &mut dyn File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write_at(bytes, offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => {
                bytes = &bytes[n..];
                offset += n as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Removes the permissions of group and others. A permission error is ignored: the volume may belong to
/// another user.
fn restrict(path: &Path, mode: u32) -> io::Result<()> {
    match std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        other => other,
    }
}

/// A directory of the file system, locked against other processes.
#[derive(Debug)]
pub(super) struct Directory {
    dir: PathBuf,
    /// Held as long as the store is open.
    _lock: std::fs::File,
}

impl Directory {
    /// Opens the directory, and creates it if it is missing. Only the owner may read its files: they hold
    /// Secrets.
    pub(super) fn open(dir: &Path) -> Result<Self, StoreError> {
        let error = |what: &'static str, path: &Path| {
            let path = path.display().to_string();
            move |source| StoreError::Io { what, path, source }
        };
        if !dir.is_dir() {
            let mut builder = std::fs::DirBuilder::new();
            builder.recursive(true).mode(0o700).create(dir).map_err(error("create", dir))?;
            // Until the parent is synced, a crash can lose the directory with everything in it.
            let parent = dir.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
            std::fs::File::open(parent).and_then(|d| d.sync_all()).map_err(error("sync", parent))?;
        }
        restrict(dir, 0o700).map_err(error("set the permissions of", dir))?;
        let path = dir.join("lock");
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(false).mode(0o600);
        let lock = options.open(&path).map_err(error("create", &path))?;
        if lock.try_lock().is_err() {
            return Err(StoreError::InUse { path: dir.display().to_string() });
        }
        Ok(Self { dir: dir.to_owned(), _lock: lock })
    }
}

impl Files for Directory {
    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.dir)? {
            names.extend(entry?.file_name().into_string());
        }
        names.sort();
        Ok(names)
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        std::fs::read(self.path(name))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn File>> {
        match self.remove(name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(self.path(name))?;
        Ok(Box::new(file))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn File>> {
        let path = self.path(name);
        restrict(&path, 0o600)?;
        let file = OpenOptions::new().write(true).open(path)?;
        Ok(Box::new(file))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.path(from), self.path(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.path(name))
    }

    fn sync_dir(&self) -> io::Result<()> {
        std::fs::File::open(&self.dir)?.sync_all()
    }
}

impl File for std::fs::File {
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::write_at(self, bytes, offset)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}
