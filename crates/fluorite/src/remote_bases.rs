//! Remote bases of kustomizations, for the command line: repositories and files on other machines.
//!
//! A repository is fetched without its history into a folder that vanishes with the build.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::copy;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fl_gitfetch::{Auth, FetchOptions, Kind, Reference, Remote, RemoteOptions};
use fl_kustomize::Fetcher;

/// Bytes of one remote file.
const FILE: u64 = 64 << 20;
/// As long as kustomize waits.
const TIMEOUT: Duration = Duration::from_secs(27);

/// Fetches what kustomizations name, each address once.
pub(crate) struct RemoteBases {
    folder: tempfile::TempDir,
    runtime: tokio::runtime::Runtime,
    fetched: RefCell<HashMap<(String, String), PathBuf>>,
}

/// An address as kustomize reads it: the repository, a path inside, a reference.
#[derive(Debug, PartialEq, Eq)]
struct Base {
    url: String,
    path: String,
    reference: String,
    timeout: Option<Duration>,
    submodules: bool,
}

impl RemoteBases {
    pub(crate) fn new() -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { folder: tempfile::tempdir()?, runtime, fetched: RefCell::default() })
    }

    fn fetch(&self, base: &Base) -> Result<PathBuf, String> {
        let key = (base.url.clone(), base.reference.clone());
        if let Some(known) = self.fetched.borrow().get(&key) {
            return Ok(known.clone());
        }
        let place = self.folder.path().join(self.fetched.borrow().len().to_string());
        self.runtime.block_on(check_out(base, &place))?;
        self.fetched.borrow_mut().insert(key, place.clone());
        Ok(place)
    }
}

impl Fetcher for RemoteBases {
    fn file(&self, url: &str) -> Result<Vec<u8>, String> {
        let settings = fl_http::Settings { timeout: TIMEOUT, ..fl_http::Settings::default() };
        self.runtime.block_on(async {
            let client = fl_http::Client::new(settings).map_err(|e| e.to_string())?;
            let request = fl_http::Request::get(url).map_err(|e| e.to_string())?;
            let response = client.send(request).await.map_err(|e| e.to_string())?;
            if !response.status().is_success() {
                return Err(format!("the server answered {}", response.status()));
            }
            let bytes = response.bytes(FILE).await.map_err(|e| e.to_string())?;
            Ok(bytes.to_vec())
        })
    }

    fn directory(&self, url: &str) -> Result<PathBuf, String> {
        let base = parse(url)?;
        let inside = self.fetch(&base)?.join(base.path.trim_matches('/'));
        let root = self.folder.path().canonicalize().map_err(|e| e.to_string())?;
        let inside =
            inside.canonicalize().map_err(|_| format!("'{}' is not in the repository", base.path))?;
        if inside.starts_with(&root) {
            Ok(inside)
        } else {
            Err(format!("'{}' leads out of the repository", base.path))
        }
    }
}

/// Writes a commit's files to disk. Links are left out: a base has no business outside of itself.
async fn check_out(base: &Base, place: &Path) -> Result<(), String> {
    let options = RemoteOptions { timeout: base.timeout.unwrap_or(TIMEOUT), ..RemoteOptions::default() };
    let remote = Remote::new(&base.url, Auth::none(), options).map_err(|e| e.to_string())?;
    let mut problem = String::new();
    for reference in candidates(&base.reference) {
        let resolved = match remote.resolve(&reference, false).await {
            Ok(Some(resolved)) => resolved,
            Ok(None) => return Err("the repository is empty".to_owned()),
            Err(error) => {
                problem = error.to_string();
                continue;
            }
        };
        let options = FetchOptions { recurse_submodules: base.submodules, ..FetchOptions::default() };
        let mut checkout = remote.fetch(&resolved, &options).await.map_err(|e| e.to_string())?;
        std::fs::create_dir_all(place).map_err(|e| e.to_string())?;
        for entry in checkout.snapshot.entries().to_vec() {
            let path = place.join(&entry.path);
            if entry.kind == Kind::Directory {
                std::fs::create_dir_all(&path).map_err(|e| e.to_string())?;
                continue;
            }
            let (_, mut content) = checkout.snapshot.open_file(&entry).map_err(|e| e.to_string())?;
            let mut file = std::fs::File::create(&path).map_err(|e| e.to_string())?;
            copy(&mut content, &mut file).map_err(|e| e.to_string())?;
        }
        return Ok(());
    }
    Err(problem)
}

/// A reference may be anything that `git fetch` takes.
fn candidates(reference: &str) -> Vec<Reference> {
    if reference.is_empty() {
        return vec![Reference::Name("HEAD".to_owned())];
    }
    let mut all = Vec::new();
    if reference.starts_with("refs/") {
        all.push(Reference::Name(reference.to_owned()));
    }
    all.push(Reference::Tag(reference.to_owned()));
    all.push(Reference::Branch(reference.to_owned()));
    if reference.len() >= 40 && reference.bytes().all(|b| b.is_ascii_hexdigit()) {
        all.insert(0, Reference::Commit { commit: reference.to_owned(), branch: None, name: None });
    }
    all
}

fn parse(text: &str) -> Result<Base, String> {
    let text = text.strip_prefix("git::").unwrap_or(text);
    let (address, query) = text.split_once('?').unwrap_or((text, ""));
    let mut base = Base {
        url: String::new(),
        path: String::new(),
        reference: String::new(),
        timeout: None,
        submodules: true,
    };
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        match name.as_ref() {
            "ref" | "version" => base.reference = value.into_owned(),
            "timeout" => {
                let seconds = value
                    .trim_end_matches('s')
                    .parse()
                    .map_err(|_| format!("`timeout={value}` is no time"))?;
                base.timeout = Some(Duration::from_secs(seconds));
            }
            "submodules" => base.submodules = value != "false",
            _ => {}
        }
    }
    let (scheme, rest) = address.split_once("://").map_or(("", address), |(s, r)| (s, r));
    if scheme == "file" {
        return Err("repositories of this machine are not fetched; name the directory".to_owned());
    }
    let (repository, path) = split_path(rest, scheme);
    base.path = path.to_owned();
    base.url = match scheme {
        "" if repository.contains('@') => repository.to_owned(),
        "" => format!("https://{repository}"),
        scheme => format!("{scheme}://{repository}"),
    };
    // This host's repositories have two names, and only this one needs no redirect.
    if base.url.starts_with("https://github.com/") && !base.url.ends_with(".git") {
        base.url.push_str(".git");
    }
    Ok(base)
}

/// Where the repository ends and the path inside begins: at `//`, after `.git`, or after two names.
fn split_path<'a>(rest: &'a str, scheme: &str) -> (&'a str, &'a str) {
    if let Some((repository, path)) = rest.split_once("//") {
        return (repository, path);
    }
    if let Some(at) = rest.find(".git/") {
        return (&rest[..at + 4], &rest[at + 5..]);
    }
    if rest.ends_with(".git") {
        return (rest, "");
    }
    // `host/org/repo`, or `user@host:org/repo`.
    let names = if scheme.is_empty() && rest.contains(':') { 2 } else { 3 };
    match rest.match_indices('/').nth(names - 1) {
        Some((at, _)) => (&rest[..at], &rest[at + 1..]),
        None => (rest, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_as_kustomize_reads_them() {
        for (text, url, path, reference) in [
            ("https://github.com/org/repo//dir/a?ref=v1", "https://github.com/org/repo.git", "dir/a", "v1"),
            ("github.com/org/repo/dir", "https://github.com/org/repo.git", "dir", ""),
            ("git@example.com:org/repo/dir", "git@example.com:org/repo", "dir", ""),
            (
                "ssh://git@example.com/org/repo.git/dir?ref=main",
                "ssh://git@example.com/org/repo.git",
                "dir",
                "main",
            ),
            ("git::https://example.com/org/repo.git", "https://example.com/org/repo.git", "", ""),
            ("http://127.0.0.1:8080/a/b.git//c", "http://127.0.0.1:8080/a/b.git", "c", ""),
        ] {
            let base = parse(text).unwrap();
            assert_eq!(
                (base.url.as_str(), base.path.as_str(), base.reference.as_str()),
                (url, path, reference),
                "{text}"
            );
        }
        assert!(parse("file:///srv/repo").is_err());
    }
}
