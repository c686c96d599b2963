//! What is delivered: the example, a directory, or a repository somewhere else.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use fl_gitfetch::{Auth, Reference, Remote, RemoteOptions};
use serde_json::json;

use super::choose::{self, Chosen};
use super::directory::{Content, Directory, Served};
use super::example;
use super::objects::Delivered;

/// How the example is called, to people and in the state.
pub(super) const EXAMPLE: &str = "the example";
/// For one request to a remote repository before anything is started.
const REACH_TIMEOUT: Duration = Duration::from_secs(30);

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Example,
    Directory(PathBuf, Content),
    Address(String),
}

/// The same, opened.
#[derive(Debug)]
pub(super) enum Source {
    Example(Arc<Directory>),
    Directory {
        directory: Arc<Directory>,
        /// The directory of the repository that was named.
        below: String,
    },
    Address(String),
}

impl Source {
    /// Reads the argument. A directory is opened, so that what is none is told before anything is made.
    pub(super) fn parse(text: Option<&str>, dirty: bool) -> anyhow::Result<Asked> {
        let content = if dirty { Content::Files } else { Content::Commits };
        let Some(text) = text else { return Ok(Asked::Example) };
        if let Some(path) = text.strip_prefix("file://") {
            return directory(Path::new(path), content);
        }
        if let Some((scheme, _)) = text.split_once("://") {
            if dirty {
                bail!("--dirty is for directories; {text} is an address");
            }
            if !matches!(scheme, "http" | "https" | "ssh") {
                bail!("{text} cannot be fetched; addresses begin with https://, http:// or ssh://");
            }
            return Ok(Asked::Address(text.to_owned()));
        }
        // git@host:path, as long as no such directory exists.
        if let Some((host, path)) = text.split_once(':').filter(|(h, _)| h.contains('@') && !h.contains('/'))
            && !Path::new(text).exists()
        {
            return Ok(Asked::Address(format!("ssh://{host}/{}", path.trim_start_matches('/'))));
        }
        directory(Path::new(text), content)
    }

    /// How people are told of it, and how it is recognised the next time.
    pub(super) fn id(&self) -> String {
        match self {
            Source::Example(_) => EXAMPLE.to_owned(),
            Source::Directory { directory, .. } => format!("the directory {}", directory.root().display()),
            Source::Address(url) => format!("the repository {}", without_credentials(url)),
        }
    }

    pub(super) fn directory(&self) -> Option<&Arc<Directory>> {
        match self {
            Source::Example(directory) | Source::Directory { directory, .. } => Some(directory),
            Source::Address(_) => None,
        }
    }

    /// Which part of it is delivered.
    pub(super) fn choose(&self, asked: Option<&str>) -> anyhow::Result<Chosen> {
        match self {
            Source::Example(directory) => {
                choose::path(&directory.paths()?, asked.or(Some(example::PATH)), "")
            }
            Source::Directory { directory, below } => choose::path(&directory.paths()?, asked, below),
            Source::Address(_) => {
                let path = asked.map(fl_source::tree::confined).unwrap_or_default();
                let why = if asked.is_some() { "as asked" } else { "all of it; narrow it down with --path" };
                Ok(Chosen { path, why: why.to_owned() })
            }
        }
    }

    /// Checks that a remote repository can be read, and returns the branch to deliver: the given one, or the default one. Flux does
    /// not resolve `HEAD` itself. None for a directory, which knows its own reference.
    pub(super) async fn reach(&self, branch: Option<&str>) -> anyhow::Result<Option<String>> {
        let Source::Address(url) = self else { return Ok(None) };
        let options =
            RemoteOptions { timeout: REACH_TIMEOUT, ..RemoteOptions::new(fl_http::Owner::engine()) };
        let shown = without_credentials(url);
        let unreadable = || {
            format!(
                "{shown} cannot be read; if it needs credentials, clone it and give the directory instead"
            )
        };
        let remote = Remote::new(url, Auth::none(), options).with_context(unreadable)?;
        let empty = || anyhow::anyhow!("{shown} is an empty repository; push a commit first");
        let branch = match branch {
            Some(branch) => branch.to_owned(),
            None => match remote.default_branch().await.with_context(unreadable)? {
                Some(branch) => branch,
                None => {
                    let head = Reference::Name("HEAD".to_owned());
                    remote.resolve(&head, false).await.with_context(unreadable)?.ok_or_else(empty)?;
                    bail!("{shown} has no default branch; name one with --branch");
                }
            },
        };
        let reference = Reference::Branch(branch.clone());
        remote.resolve(&reference, false).await.with_context(unreadable)?.ok_or_else(empty)?;
        Ok(Some(branch))
    }

    /// What the objects say.
    pub(super) fn delivered(
        &self,
        path: &str,
        branch: Option<&str>,
        interval: &str,
    ) -> anyhow::Result<Delivered> {
        let interval: fl_types::Duration = interval.parse().context("--interval is no duration")?;
        let (url, reference) = match (self.directory(), self) {
            (Some(directory), _) => (directory.address(), directory.now()?.0.reference),
            (None, Source::Address(url)) => {
                let branch = branch.context("no branch of the repository is known")?;
                (url.clone(), json!({"branch": branch}))
            }
            (None, _) => bail!("there is nothing to deliver"),
        };
        Ok(Delivered { url, reference, path: path.to_owned(), interval: interval.to_string() })
    }

    /// The directories that stand in for addresses: this one under its own and its remotes', and those of `--serve`.
    pub(super) fn served(&self, more: &[String]) -> anyhow::Result<Served> {
        let mut served = Served::new();
        for pair in more {
            let (address, path) =
                pair.rsplit_once('=').with_context(|| format!("--serve {pair} is not GIT-URL=DIRECTORY"))?;
            let content = self.directory().map_or(Content::Commits, |d| d.content());
            let (directory, _) = Directory::open(Path::new(path), content)?;
            served.push((address.to_owned(), Arc::new(directory)));
        }
        if let Some(directory) = self.directory() {
            served.push((directory.address(), directory.clone()));
            served.extend(directory.remotes().into_iter().map(|r| (r, directory.clone())));
        }
        Ok(served)
    }
}

fn directory(path: &Path, content: Content) -> anyhow::Result<Asked> {
    let (opened, _) = Directory::open(path, content)?;
    drop(opened);
    Ok(Asked::Directory(path.to_owned(), content))
}

impl Asked {
    /// Opens it; the example is written to its folder first.
    pub(super) fn open(self, example_folder: &Path) -> anyhow::Result<Source> {
        match self {
            Asked::Example => {
                example::write(example_folder)?;
                let (directory, _) = Directory::open(example_folder, Content::Files)?;
                Ok(Source::Example(Arc::new(directory)))
            }
            Asked::Directory(path, content) => {
                let (directory, below) = Directory::open(&path, content)?;
                Ok(Source::Directory { directory: Arc::new(directory), below })
            }
            Asked::Address(url) => Ok(Source::Address(url)),
        }
    }
}

/// An address as it may be shown and kept.
fn without_credentials(address: &str) -> String {
    match url::Url::parse(address) {
        Ok(mut url) if !url.username().is_empty() || url.password().is_some() => {
            let _ = url.set_password(None);
            url.to_string()
        }
        _ => address.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments() {
        let parse = |text: Option<&str>| Source::parse(text, false);
        assert_eq!(parse(None).unwrap(), Asked::Example);
        assert_eq!(parse(Some("https://h/r")).unwrap(), Asked::Address("https://h/r".to_owned()));
        assert_eq!(parse(Some("git@h:o/r.git")).unwrap(), Asked::Address("ssh://git@h/o/r.git".to_owned()));
        let says = |text: &str, dirty| format!("{:#}", Source::parse(Some(text), dirty).unwrap_err());
        assert!(says("ftp://h/r", false).contains("cannot be fetched"));
        assert!(says("https://h/r", true).contains("--dirty is for directories"));
        assert!(says("/no/such/place", true).contains("neither a directory nor an address"));
        assert_eq!(without_credentials("https://u:geheim@h/r"), "https://u@h/r");
    }
}
