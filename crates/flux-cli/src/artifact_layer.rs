//! The layer of an artifact: a reproducible tar of a folder or a file, compressed.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use fl_ignore::Rules;
use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{EntryType, Header};

use crate::format::go_io_error;

/// Default of `--ignore-paths`.
pub(crate) const DEFAULT_IGNORE: &str =
    ".git/,.gitignore,.gitmodules,.gitattributes,*.jpg,*.jpeg,*.gif,*.png,*.wmv,*.flv,*.tar.gz,*.zip";

/// The compressed tar of a path: names in order, no owners, no times, modes kept.
///
/// # Errors
/// A file cannot be read.
pub(crate) fn pack(path: &Path, ignore: &[String]) -> anyhow::Result<Vec<u8>> {
    let rules = Rules::for_bucket(None, Some(&ignore.join("\n")));
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    let info = std::fs::metadata(path).with_context(|| path.display().to_string())?;
    if info.is_dir() {
        directory(&mut tar, ".", info.permissions().mode())?;
        folder(&mut tar, path, "", &rules)?;
    } else {
        directory(&mut tar, ".", 0o755)?;
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        if !rules.ignores(&name, false) {
            file(&mut tar, path, &name)?;
        }
    }
    Ok(tar.into_inner()?.finish()?)
}

fn header(kind: EntryType, mode: u32, size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode & 0o7777);
    header.set_size(size);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header
}

type Tar = tar::Builder<GzEncoder<Vec<u8>>>;

fn directory(tar: &mut Tar, name: &str, mode: u32) -> anyhow::Result<()> {
    let mut header = header(EntryType::Directory, mode, 0);
    Ok(tar.append_data(&mut header, name, std::io::empty())?)
}

fn file(tar: &mut Tar, path: &Path, name: &str) -> anyhow::Result<()> {
    let content = std::fs::read(path).with_context(|| path.display().to_string())?;
    let mode = std::fs::metadata(path)?.permissions().mode();
    let mut header = header(EntryType::Regular, mode, content.len() as u64);
    Ok(tar.append_data(&mut header, name, content.as_slice())?)
}

fn folder(tar: &mut Tar, root: &Path, below: &str, rules: &Rules) -> anyhow::Result<()> {
    let mut names: Vec<String> = std::fs::read_dir(root.join(below))?
        .map(|e| e.map(|e| e.file_name().to_string_lossy().into_owned()))
        .collect::<Result<_, _>>()?;
    names.sort();
    for name in names {
        let relative = if below.is_empty() { name } else { format!("{below}/{name}") };
        let path = root.join(&relative);
        let info = std::fs::symlink_metadata(&path)?;
        if rules.ignores(&relative, info.is_dir()) {
            continue;
        }
        if info.is_dir() {
            directory(tar, &relative, info.permissions().mode())?;
            folder(tar, root, &relative, rules)?;
        } else if info.is_file() {
            file(tar, &path, &relative)?;
        }
    }
    Ok(())
}

/// A copy of a path in which links are replaced by what they point to; a link into its own parents becomes an empty folder.
///
/// # Errors
/// A link that leads nowhere.
pub(crate) fn without_links(path: &Path) -> anyhow::Result<(tempfile::TempDir, PathBuf)> {
    let prefix = format!("flux-artifact-{}", rand::random::<u32>());
    let temporary = tempfile::Builder::new().prefix(&prefix).rand_bytes(0).tempdir()?;
    let source = std::fs::canonicalize(path)?;
    let target = if source.is_dir() {
        copy_folder(&source, temporary.path(), &mut vec![source.clone()])?;
        temporary.path().to_owned()
    } else {
        let target = temporary.path().join(path.file_name().unwrap_or_default());
        std::fs::copy(&source, &target)?;
        target
    };
    Ok((temporary, target))
}

fn copy_folder(from: &Path, to: &Path, parents: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let mut entries = std::fs::read_dir(from)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let real = match std::fs::canonicalize(&path) {
            Ok(real) => real,
            Err(error) => bail!("resolving symlink {}: {}", path.display(), lost(&path, &error)),
        };
        let target = to.join(entry.file_name());
        let info = std::fs::metadata(&real)?;
        if info.is_dir() {
            std::fs::create_dir_all(&target)?;
            std::fs::set_permissions(&target, info.permissions())?;
            if parents.contains(&real) {
                continue;
            }
            parents.push(real.clone());
            copy_folder(&real, &target, parents)?;
            parents.pop();
        } else if info.is_file() {
            std::fs::copy(&real, &target)?;
        }
    }
    Ok(())
}

/// Why a link leads nowhere: what it points to, or that it goes in circles.
fn lost(link: &Path, error: &std::io::Error) -> String {
    match std::fs::read_link(link) {
        Ok(target) if error.kind() == std::io::ErrorKind::NotFound => {
            let target = link.parent().unwrap_or(link).join(target);
            go_io_error("lstat", &target.display().to_string(), error)
        }
        Ok(_) if error.raw_os_error() == Some(40) => "EvalSymlinks: too many links".to_owned(),
        _ => error.to_string(),
    }
}

/// Stdin without its last line ends, as a file.
///
/// # Errors
/// Nothing can be read or written.
pub(crate) fn from_stdin() -> anyhow::Result<tempfile::NamedTempFile> {
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut std::io::stdin().lock(), &mut bytes)?;
    while matches!(bytes.last(), Some(b'\n' | b'\r')) {
        bytes.pop();
    }
    // The name is part of the artifact: a number, no hidden file.
    let number = rand::random::<u32>().to_string();
    let mut file = tempfile::Builder::new().prefix(&number).suffix(".yaml").rand_bytes(0).tempfile()?;
    file.write_all(&bytes)?;
    Ok(file)
}

/// Names, kinds and contents of an archive, whatever compressed it.
///
/// # Errors
/// The archive is broken.
pub(crate) fn listing(bytes: &[u8]) -> anyhow::Result<Vec<(String, bool, Vec<u8>)>> {
    let mut out = Vec::new();
    for entry in tar::Archive::new(flate2::read::GzDecoder::new(bytes)).entries()? {
        let mut entry = entry?;
        let (name, is_dir) = (entry.path()?.display().to_string(), entry.header().entry_type().is_dir());
        let mut content = Vec::new();
        std::io::Read::read_to_end(&mut entry, &mut content)?;
        out.push((name, is_dir, content));
    }
    Ok(out)
}

/// Unpacks a compressed tar below a folder; nothing leaves it.
///
/// # Errors
/// The archive is broken, too large, or names a file outside.
pub(crate) fn unpack(bytes: &[u8], folder: &Path) -> anyhow::Result<()> {
    const LIMIT: u64 = 1 << 30;
    let mut total = 0;
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(bytes));
    for entry in archive.entries()? {
        let mut entry = entry?;
        total += entry.size();
        if total > LIMIT {
            bail!("the artifact holds more than {LIMIT} bytes");
        }
        let kind = entry.header().entry_type();
        if kind.is_dir() || kind.is_file() {
            let name = entry.path()?.display().to_string();
            if !entry.unpack_in(folder)? {
                bail!("the artifact holds {name}, which is outside of the folder");
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(bytes: &[u8]) -> Vec<String> {
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(bytes));
        archive.entries().unwrap().map(|e| e.unwrap().path().unwrap().display().to_string()).collect()
    }

    #[test]
    fn the_same_folder_gives_the_same_bytes() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("b")).unwrap();
        for (name, text) in [("b/x.yaml", "x"), ("a.yaml", "a"), ("logo.png", "p"), (".hidden", "h")] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let ignore: Vec<String> = DEFAULT_IGNORE.split(',').map(str::to_owned).collect();
        let first = pack(folder.path(), &ignore).unwrap();
        assert_eq!(first, pack(folder.path(), &ignore).unwrap());
        assert_eq!(names(&first), [".", ".hidden", "a.yaml", "b", "b/x.yaml"]);
        let out = tempfile::tempdir().unwrap();
        unpack(&first, out.path()).unwrap();
        assert_eq!(std::fs::read(out.path().join("b/x.yaml")).unwrap(), b"x");
    }

    #[test]
    fn single_file_can_be_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.yaml");
        std::fs::write(&path, "a").unwrap();
        assert_eq!(names(&pack(&path, &["*.png".to_owned()]).unwrap()), [".", "a.yaml"]);
        assert_eq!(names(&pack(&path, &["*.yaml".to_owned()]).unwrap()), ["."]);
    }

    #[test]
    fn a_link_into_its_own_parents_becomes_an_empty_folder() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("sub")).unwrap();
        std::fs::write(folder.path().join("a.yaml"), "a").unwrap();
        std::os::unix::fs::symlink("..", folder.path().join("sub/up")).unwrap();
        let (_temporary, copy) = without_links(folder.path()).unwrap();
        assert_eq!(names(&pack(&copy, &[]).unwrap()), [".", "a.yaml", "sub", "sub/up"]);
    }

    #[test]
    fn archives_cannot_write_outside() {
        let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
        let mut bad = header(EntryType::Regular, 0o644, 1);
        bad.as_gnu_mut().unwrap().name[..5].copy_from_slice(b"../xy");
        bad.set_cksum();
        tar.append(&bad, &b"x"[..]).unwrap();
        let bytes = tar.into_inner().unwrap().finish().unwrap();
        assert!(unpack(&bytes, tempfile::tempdir().unwrap().path()).is_err());
    }
}
