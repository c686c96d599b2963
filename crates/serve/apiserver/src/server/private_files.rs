//! Files and directories that only their owner can read, also if they existed before.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;

fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn refused(path: &Path, why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, format!("{} {why}", path.display()))
}

/// Opens a file for writing that only its owner can read. An existing file must be a regular file of this
/// user: a link could lead to a file that others read, and the owner of a file can always open it.
fn open_private(path: &Path) -> io::Result<File> {
    let flags = i32::try_from(OFlags::NOFOLLOW.bits()).map_err(io::Error::other)?;
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600).custom_flags(flags);
    let file = match options.open(path) {
        Ok(file) => file,
        Err(_) if path.is_symlink() => {
            return Err(refused(path, "is a symbolic link, and private data is not written through one"));
        }
        Err(error) => return Err(error),
    };
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(refused(path, "is not a regular file"));
    }
    if meta.uid() != own_user() {
        return Err(refused(path, "belongs to another user"));
    }
    file.set_permissions(Permissions::from_mode(0o600))?;
    Ok(file)
}

/// Writes a file that only its owner can read.
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = open_private(path)?;
    file.set_len(0)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Replaces a private file atomically.
pub(super) fn replace_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let new = Path::new(&new);
    write_private(new, bytes)?;
    std::fs::rename(new, path)
}

/// Creates a directory that only its owner can enter, and removes the permissions of others from its content.
/// Symbolic links in it are not followed. Fails for a directory of another user; one owned by root (a mounted
/// volume) is used as it is.
pub fn private_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    let meta = std::fs::metadata(path)?;
    if meta.uid() == own_user() {
        std::fs::set_permissions(path, Permissions::from_mode(0o700))?;
    } else if meta.uid() != 0 {
        return Err(refused(path, "belongs to another user; choose another directory or correct its owner"));
    }
    tighten(path)
}

fn tighten(dir: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        let meta = std::fs::symlink_metadata(&path)?;
        let wanted = if meta.is_dir() {
            0o700
        } else if meta.is_file() {
            0o600
        } else {
            continue;
        };
        if meta.uid() != own_user() {
            return Err(refused(&path, "belongs to another user"));
        }
        if meta.mode() & 0o7777 != wanted {
            std::fs::set_permissions(&path, Permissions::from_mode(wanted))?;
        }
        if meta.is_dir() {
            tighten(&path)?;
        }
    }
    Ok(())
}

/// Sets the umask, so that all files this process creates from now on are private.
pub fn create_private_files() {
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::symlink_metadata(path).expect("there").mode() & 0o7777
    }

    fn open_to_all(path: &Path, content: &str) {
        std::fs::write(path, content).expect("written");
        std::fs::set_permissions(path, Permissions::from_mode(0o666)).expect("changed");
    }

    #[test]
    fn existing_file_becomes_private() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("kubeconfig");
        open_to_all(&path, "something longer than the secret");
        write_private(&path, b"secret").expect("written");
        assert_eq!((mode(&path), std::fs::read(&path).expect("read")), (0o600, b"secret".to_vec()));
        open_to_all(&path, "old");
        replace_private(&path, b"new").expect("replaced");
        assert_eq!((mode(&path), std::fs::read(&path).expect("read")), (0o600, b"new".to_vec()));
    }

    #[test]
    fn symbolic_links_are_not_followed() {
        let dir = tempfile::tempdir().expect("a directory");
        let (target, link) = (dir.path().join("target"), dir.path().join("link"));
        open_to_all(&target, "mine");
        std::os::unix::fs::symlink(&target, &link).expect("linked");
        let error = write_private(&link, b"secret").expect_err("refused");
        assert!(error.to_string().contains("symbolic link"), "{error}");
        assert_eq!(std::fs::read(&target).expect("read"), b"mine");
        std::fs::remove_file(&target).expect("removed");
        write_private(&link, b"secret").expect_err("a dangling link is refused too");
        assert!(!target.exists());
    }

    #[test]
    fn existing_directory_becomes_private_with_its_content() {
        let dir = tempfile::tempdir().expect("a directory");
        let (root, outside) = (dir.path().join("state"), dir.path().join("outside"));
        std::fs::create_dir_all(root.join("store")).expect("made");
        for path in [&root, &root.join("store")] {
            std::fs::set_permissions(path, Permissions::from_mode(0o755)).expect("changed");
        }
        open_to_all(&root.join("store/wal-1"), "log");
        open_to_all(&outside, "");
        std::os::unix::fs::symlink(&outside, root.join("link")).expect("linked");
        private_dir(&root).expect("tightened");
        assert_eq!((mode(&root), mode(&root.join("store"))), (0o700, 0o700));
        assert_eq!((mode(&root.join("store/wal-1")), mode(&outside)), (0o600, 0o666));
        let deep = dir.path().join("a/b");
        private_dir(&deep).expect("made");
        assert_eq!(mode(&deep), 0o700);
    }
}
