//! Submodules: other repositories pinned at a path.

use crate::commit_tree::{Kind, Snapshot};
use crate::remote::Remote;
use crate::{Address, Error, Scheme};

/// Submodules inside submodules; Flux's library stops here too.
const DEPTH: usize = 10;
/// Bytes of a `.gitmodules` file.
const MODULES: u64 = 1 << 20;

/// Why a submodule cannot be fetched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SubmoduleError {
    #[error("{0}")]
    Git(#[from] fl_git::Error),
    #[error("submodules are nested too deeply")]
    TooDeep,
    #[error("its name {0:?} is refused")]
    Name(String),
    #[error("its address leaves the server's root")]
    OutsideServer,
    /// Of its address or its repository.
    #[error("{0}")]
    Remote(Box<Error>),
}

/// A section of `.gitmodules`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Module {
    pub(crate) name: String,
    pub(crate) path: String,
    pub(crate) url: String,
}

/// Fetches every submodule named in `.gitmodules` and puts it into the snapshot.
pub(crate) async fn fetch(remote: &Remote, snapshot: &mut Snapshot) -> Result<(), Error> {
    let parent = Parent { depth: 0, directories: 0, git_folder: ".git".to_owned() };
    fetch_below(remote, snapshot, &parent).await.map_err(|error| match error {
        // Flux reports a submodule that cannot be cloned as a failed clone of the repository.
        Error::Clone { failure, .. } | Error::NoRepository { failure, .. } => {
            Error::Clone { url: remote.address().shown().to_owned(), failure }
        }
        other => other,
    })
}

/// The position of a repository in the outermost one.
struct Parent {
    depth: usize,
    directories: usize,
    git_folder: String,
}

async fn fetch_below(remote: &Remote, snapshot: &mut Snapshot, parent: &Parent) -> Result<(), Error> {
    let failed = |path: &str, problem: SubmoduleError| Error::Submodule { path: path.to_owned(), problem };
    let file = snapshot.entries().iter().find(|e| e.path == ".gitmodules").cloned();
    let Some(file) = file.filter(|f| f.kind != Kind::Directory) else { return Ok(()) };
    let text = snapshot.read_file(&file, MODULES).map_err(|e| failed(".gitmodules", e.into()))?;
    let modules = parse(&String::from_utf8_lossy(&text));
    for pinned in snapshot.pinned().to_vec() {
        let Some(module) = modules.iter().find(|m| m.path == pinned.path) else { continue };
        if parent.depth >= DEPTH {
            return Err(failed(&pinned.path, SubmoduleError::TooDeep));
        }
        check_name(&module.name).map_err(|e| failed(&pinned.path, e))?;
        let address = locate(remote.address(), &module.url).map_err(|e| failed(&pinned.path, e))?;
        let inner_remote = remote.beside(address);
        let mut inner = inner_remote.fetch_pinned(pinned.commit).await.map_err(|error| match error {
            gone @ (Error::Clone { .. } | Error::NoRepository { .. }) => gone,
            other => failed(&pinned.path, SubmoduleError::Remote(Box::new(other))),
        })?;
        let below = Parent {
            depth: parent.depth + 1,
            directories: parent.directories + pinned.path.split('/').count(),
            git_folder: format!("{}/modules/{}", parent.git_folder, module.name),
        };
        let pointer = below.pointer();
        // Boxed, because a submodule may have submodules.
        Box::pin(fetch_below(&inner_remote, &mut inner, &below)).await?;
        snapshot.mount(&pinned.path, pointer, inner);
    }
    Ok(())
}

/// The name becomes a folder below `.git/modules` wherever a repository is checked out.
fn check_name(name: &str) -> Result<(), SubmoduleError> {
    let bad = name.is_empty() || name.split(['/', '\\']).any(|part| part == ".." || part.is_empty());
    if bad { Err(SubmoduleError::Name(name.to_owned())) } else { Ok(()) }
}

impl Parent {
    /// What Git writes into a submodule's `.git` file.
    fn pointer(&self) -> String {
        format!("gitdir: {}{}\n", "../".repeat(self.directories), self.git_folder)
    }
}

/// A relative address counts from the repository that names it.
fn locate(parent: &Address, url: &str) -> Result<Address, SubmoduleError> {
    let invalid = |error: Error| SubmoduleError::Remote(Box::new(error));
    if !(url.starts_with("./") || url.starts_with("../")) {
        return Address::parse(url).map_err(invalid);
    }
    let mut path: Vec<&str> = parent.path.split('/').filter(|p| !p.is_empty()).collect();
    for part in url.split('/') {
        match part {
            "" | "." => {}
            ".." if path.pop().is_none() => return Err(SubmoduleError::OutsideServer),
            ".." => {}
            other => path.push(other),
        }
    }
    let port = parent.port.map(|p| format!(":{p}")).unwrap_or_default();
    let user = match (parent.scheme, &parent.user) {
        (Scheme::Ssh, Some(user)) => format!("{user}@"),
        _ => String::new(),
    };
    let text = format!("{}://{user}{}{port}/{}", parent.scheme.as_str(), parent.host, path.join("/"));
    Address::parse(&text).map_err(invalid)
}

/// Reads a file in Git's configuration format, as far as submodules go.
pub(crate) fn parse(text: &str) -> Vec<Module> {
    let mut modules: Vec<Module> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(section) = line.strip_prefix('[') {
            let section = section.split(']').next().unwrap_or_default();
            let name = section.trim().strip_prefix("submodule").map(|n| n.trim().trim_matches('"'));
            inside = name.is_some();
            if let Some(name) = name {
                modules.push(Module {
                    name: name.replace("\\\"", "\"").replace("\\\\", "\\"),
                    ..Module::default()
                });
            }
        } else if let (true, Some(module), Some((key, value))) =
            (inside, modules.last_mut(), line.split_once('='))
        {
            let value = value.trim().trim_matches('"').to_owned();
            match key.trim().to_ascii_lowercase().as_str() {
                "path" => module.path = value.trim_end_matches('/').to_owned(),
                "url" => module.url = value,
                _ => {}
            }
        }
    }
    modules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections() {
        let text = "# c\n[submodule \"lib/a\"]\n\tpath = lib/a\n\turl = ../a.git\n[core]\n path = x\n[submodule \"b\"]\n url=\"https://h/b\"\npath=b/\n";
        let modules = parse(text);
        assert_eq!(modules.len(), 2);
        assert_eq!(modules[0], Module { name: "lib/a".into(), path: "lib/a".into(), url: "../a.git".into() });
        assert_eq!(modules[1], Module { name: "b".into(), path: "b".into(), url: "https://h/b".into() });
        let below = Parent { depth: 1, directories: 2, git_folder: ".git/modules/lib/a".to_owned() };
        assert_eq!(below.pointer(), "gitdir: ../../.git/modules/lib/a\n");
    }

    #[test]
    fn relative_addresses() {
        let parent = Address::parse("https://u:p@h:1/org/app.git").unwrap();
        assert_eq!(locate(&parent, "../lib.git").unwrap().shown(), "https://h:1/org/lib.git");
        assert_eq!(locate(&parent, "./sub").unwrap().shown(), "https://h:1/org/app.git/sub");
        let ssh = Address::parse("ssh://git@h/org/app.git").unwrap();
        assert_eq!(locate(&ssh, "../../x/y").unwrap().shown(), "ssh://git@h/x/y");
        assert!(locate(&parent, "../../../../x").is_err());
        assert!(locate(&parent, "/etc").is_err() && locate(&parent, "file:///etc").is_err());
    }

    #[test]
    fn names_that_would_leave_the_modules_folder() {
        for bad in ["", "..", "../x", "a/../../b", "a//b", "x\\..\\y"] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }
}
