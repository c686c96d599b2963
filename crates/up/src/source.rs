//! The source: the example, a directory, or a remote repository.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use fl_git_client::{Auth, Reference, Remote, RemoteOptions};
use serde_json::json;

use super::bootstrap_objects::SourceSpec;
use super::directory::{Content, Directory, DirectoryMap};
use super::example;
use super::path_detection::{self, DetectedPath};

/// Name of the example in messages and in the state.
pub(super) const EXAMPLE: &str = "the example";
/// Timeout of the first request to a remote repository.
const CHECK_TIMEOUT: Duration = Duration::from_secs(30);

/// The argument of `fluorite up`, parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SourceArgument {
    Example,
    Directory(PathBuf, Content),
    Address(String),
}

/// An opened source.
#[derive(Debug)]
pub(super) enum Source {
    Example(Arc<Directory>),
    Directory {
        directory: Arc<Directory>,
        /// Path of the named directory below the root.
        below: String,
    },
    Address(String),
}

impl Source {
    /// Parses the argument. A directory is opened once, so that errors are reported before anything is created.
    pub(super) fn parse(text: Option<&str>, dirty: bool) -> anyhow::Result<SourceArgument> {
        let content = if dirty { Content::Files } else { Content::Commits };
        let Some(text) = text else { return Ok(SourceArgument::Example) };
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
            return Ok(SourceArgument::Address(text.to_owned()));
        }
        // git@host:path, as long as no such directory exists.
        if let Some((host, path)) = text.split_once(':').filter(|(h, _)| h.contains('@') && !h.contains('/'))
            && !Path::new(text).exists()
        {
            return Ok(SourceArgument::Address(format!("ssh://{host}/{}", path.trim_start_matches('/'))));
        }
        directory(Path::new(text), content)
    }

    /// Its name in messages, and in the state to recognise it at the next run.
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

    /// The directory that is delivered.
    pub(super) fn detect_path(&self, asked: Option<&str>) -> anyhow::Result<DetectedPath> {
        match self {
            Source::Example(directory) => {
                path_detection::path(&directory.paths()?, asked.or(Some(example::PATH)), "")
            }
            Source::Directory { directory, below } => path_detection::path(&directory.paths()?, asked, below),
            Source::Address(_) => {
                let path = asked.map(fl_source::tree::confined).unwrap_or_default();
                let why = if asked.is_some() {
                    "as requested"
                } else {
                    "all of it; choose a directory with --path"
                };
                Ok(DetectedPath { path, why: why.to_owned() })
            }
        }
    }

    /// Checks that a remote repository can be read, and returns the branch to deliver: the given one, or the default one. Flux does
    /// not resolve `HEAD` itself. None for a directory, which knows its own reference.
    pub(super) async fn check_remote(&self, branch: Option<&str>) -> anyhow::Result<Option<String>> {
        let Source::Address(url) = self else { return Ok(None) };
        let options =
            RemoteOptions { timeout: CHECK_TIMEOUT, ..RemoteOptions::new(fl_http::Owner::engine()) };
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

    /// The fields of the bootstrap objects.
    pub(super) fn spec(
        &self,
        path: &str,
        branch: Option<&str>,
        interval: &str,
    ) -> anyhow::Result<SourceSpec> {
        let interval: fl_types::Duration = interval.parse().context("--interval is not a duration")?;
        let (url, reference) = match (self.directory(), self) {
            (Some(directory), _) => (directory.address(), directory.state()?.0.reference),
            (None, Source::Address(url)) => {
                let branch = branch.context("no branch of the repository is known")?;
                (url.clone(), json!({"branch": branch}))
            }
            (None, _) => bail!("there is nothing to deliver"),
        };
        Ok(SourceSpec { url, reference, path: path.to_owned(), interval: interval.to_string() })
    }

    /// The directories to serve: this one under its own URL and those of its remotes, and the ones of `--serve`.
    pub(super) fn served(&self, more: &[String]) -> anyhow::Result<DirectoryMap> {
        let mut served = DirectoryMap::new();
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

fn directory(path: &Path, content: Content) -> anyhow::Result<SourceArgument> {
    let (opened, _) = Directory::open(path, content)?;
    drop(opened);
    Ok(SourceArgument::Directory(path.to_owned(), content))
}

impl SourceArgument {
    /// Opens the source; the example is written to `example_folder` first.
    pub(super) fn open(self, example_folder: &Path) -> anyhow::Result<Source> {
        match self {
            SourceArgument::Example => {
                example::write(example_folder)?;
                let (directory, _) = Directory::open(example_folder, Content::Files)?;
                Ok(Source::Example(Arc::new(directory)))
            }
            SourceArgument::Directory(path, content) => {
                let (directory, below) = Directory::open(&path, content)?;
                Ok(Source::Directory { directory: Arc::new(directory), below })
            }
            SourceArgument::Address(url) => Ok(Source::Address(url)),
        }
    }
}

/// A URL without its password, for messages and the state.
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
        assert_eq!(parse(None).unwrap(), SourceArgument::Example);
        assert_eq!(parse(Some("https://h/r")).unwrap(), SourceArgument::Address("https://h/r".to_owned()));
        assert_eq!(
            parse(Some("git@h:o/r.git")).unwrap(),
            SourceArgument::Address("ssh://git@h/o/r.git".to_owned())
        );
        let message = |text: &str, dirty| format!("{:#}", Source::parse(Some(text), dirty).unwrap_err());
        assert!(message("ftp://h/r", false).contains("cannot be fetched"));
        assert!(message("https://h/r", true).contains("--dirty is for directories"));
        assert!(message("/no/such/place", true).contains("neither a directory nor an address"));
        assert_eq!(without_credentials("https://u:geheim@h/r"), "https://u@h/r");
    }
}
