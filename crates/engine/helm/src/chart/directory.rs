//! Chart directories: which files belong to the chart, in Helm's order.

use super::ignore::Rules;
use super::{BufferedFile, trim_bom};
use crate::error::LoadError;
use crate::files::{Files, Kind};

/// Maximum depth of directories; stops symlink loops.
const MAX_DEPTH: usize = 64;

/// Reads the files of a chart directory that `.helmignore` does not exclude.
pub(crate) fn read(
    files: &dyn Files,
    limit: u64,
    notices: &mut Vec<String>,
) -> Result<Vec<BufferedFile>, LoadError> {
    let root = files.list("").map_err(|source| LoadError::Read { path: files.shown(""), source })?;
    let ignore = match root.iter().any(|e| e.name == ".helmignore" && matches!(e.kind, Kind::File(_))) {
        true => read_file(files, ".helmignore", limit)?,
        false => Vec::new(),
    };
    let mut walk = Walk {
        files,
        rules: Rules::parse(&String::from_utf8_lossy(&ignore))?,
        limit,
        notices,
        found: Vec::new(),
    };
    walk.directory("", 0)?;
    Ok(walk.found)
}

fn read_file(files: &dyn Files, path: &str, limit: u64) -> Result<Vec<u8>, LoadError> {
    files.read(path, limit).map_err(|source| LoadError::Read { path: path.to_owned(), source })
}

struct Walk<'a> {
    files: &'a dyn Files,
    rules: Rules,
    limit: u64,
    notices: &'a mut Vec<String>,
    found: Vec<BufferedFile>,
}

impl Walk<'_> {
    fn directory(&mut self, path: &str, depth: usize) -> Result<(), LoadError> {
        if depth > MAX_DEPTH {
            return Err(LoadError::TooDeep(MAX_DEPTH));
        }
        let mut entries = self
            .files
            .list(path)
            .map_err(|source| LoadError::Read { path: self.files.shown(path), source })?;
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        for entry in entries {
            let path = if path.is_empty() { entry.name.clone() } else { format!("{path}/{}", entry.name) };
            if let Some(target) = &entry.link {
                self.notices.push(format!(
                    "found symbolic link in path: {} resolves to {}. Contents of linked file included and used",
                    self.files.shown(&path),
                    target.display()
                ));
            }
            if self.rules.ignores(&path, entry.kind == Kind::Directory) {
                continue;
            }
            match entry.kind {
                Kind::Directory => self.directory(&path, depth + 1)?,
                Kind::Special => return Err(LoadError::Irregular(self.files.shown(&path))),
                Kind::File(size) if size > self.limit => {
                    return Err(LoadError::TooLarge { name: entry.name, limit: self.limit });
                }
                Kind::File(_) => {
                    let mut data = read_file(self.files, &path, self.limit)?;
                    trim_bom(&mut data);
                    self.found.push(BufferedFile::new(path, data));
                }
            }
        }
        Ok(())
    }
}
