//! A commit's files on disk.

use std::collections::BTreeMap;
use std::io::{Read, copy};
use std::path::{Component, Path};

use fl_git::ObjectId;
use fl_gitfetch::{
    Address, Auth, Checkout, Error, Failure, FetchOptions, Kind, Reference, Remote, RemoteOptions, Resolved,
    Scheme,
};
use fl_kustomize::Repository;

use crate::bases::Left;

/// Fetches a repository and writes it to `place`; answers how many bytes and entries that were.
pub(crate) async fn check_out(
    repository: &Repository,
    options: RemoteOptions,
    left: &Left,
    place: &Path,
) -> Result<(u64, usize), String> {
    if repository.url.starts_with("file://") {
        return Err("repositories of this machine are not fetched; name the directory".to_owned());
    }
    let address = Address::parse(&repository.url).map_err(|e| e.to_string())?;
    if address.scheme == Scheme::Ssh {
        return Err(
            "it is reached over SSH, for which bases have no key; use its address with https".to_owned()
        );
    }
    let auth = Auth::from_secret(&address, &BTreeMap::new()).map_err(|e| e.to_string())?;
    let timeout = repository.timeout.min(left.time);
    let options = RemoteOptions { timeout, ..options };
    let remote = Remote::new(&repository.url, auth, options).map_err(|e| e.to_string())?;
    let fetched = tokio::time::timeout(timeout, fetch(&remote, repository)).await;
    let checkout = fetched.map_err(|_| format!("it took longer than {timeout:?}"))??;
    write(checkout, left, place)
}

async fn fetch(remote: &Remote, repository: &Repository) -> Result<Checkout, String> {
    let mut problem = Error::NoSuchRef(repository.reference.clone());
    let options = FetchOptions { recurse_submodules: repository.submodules, ..FetchOptions::default() };
    if let Ok(commit) = repository.reference.parse::<ObjectId>() {
        return remote.fetch(&Resolved::commit(commit), &options).await.map_err(|e| e.to_string());
    }
    for reference in candidates(&repository.reference) {
        match remote.resolve(&reference, false).await {
            Ok(Some(resolved)) => return remote.fetch(&resolved, &options).await.map_err(|e| e.to_string()),
            Ok(None) => return Err("the repository is empty".to_owned()),
            // Another kind of reference may have the name; a server that is away has none.
            Err(error @ (Error::NoSuchRef(_) | Error::Clone { failure: Failure::NoRef(_), .. })) => {
                problem = error;
            }
            Err(error) => return Err(error.to_string()),
        }
    }
    Err(problem.to_string())
}

/// What `git fetch` takes a name for, in its order.
fn candidates(reference: &str) -> Vec<Reference> {
    if reference.is_empty() || reference == "HEAD" {
        return vec![Reference::Name("HEAD".to_owned())];
    }
    if reference.starts_with("refs/") {
        return vec![Reference::Name(reference.to_owned())];
    }
    let mut all = Vec::new();
    if ["heads/", "tags/"].iter().any(|kind| reference.starts_with(kind)) {
        all.push(Reference::Name(format!("refs/{reference}")));
    }
    all.push(Reference::Tag(reference.to_owned()));
    all.push(Reference::Branch(reference.to_owned()));
    all
}

/// Links are not among the entries.
fn write(mut checkout: Checkout, left: &Left, place: &Path) -> Result<(u64, usize), String> {
    let text = |e: std::io::Error| e.to_string();
    std::fs::create_dir_all(place).map_err(text)?;
    let entries = checkout.snapshot.entries().to_vec();
    if entries.len() > left.entries {
        return Err(format!("it has {} files, more than a build may fetch", entries.len()));
    }
    let mut bytes = 0;
    for entry in &entries {
        let inside = Path::new(&entry.path).components().all(|c| matches!(c, Component::Normal(_)));
        if !inside {
            return Err(format!("it has a file named {:?}", entry.path));
        }
        let path = place.join(&entry.path);
        if entry.kind == Kind::Directory {
            std::fs::create_dir_all(&path).map_err(text)?;
            continue;
        }
        let (size, content) = checkout.snapshot.open_file(entry).map_err(|e| e.to_string())?;
        bytes += size;
        if bytes > left.bytes {
            return Err(format!("it has more than the {} bytes that a build may fetch", left.bytes));
        }
        let mut file = std::fs::File::create_new(&path).map_err(text)?;
        copy(&mut content.take(size), &mut file).map_err(text)?;
    }
    Ok((bytes, entries.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_looked_for_as_git_does() {
        let name = |text: &str| Reference::Name(text.to_owned());
        assert_eq!(candidates(""), [name("HEAD")]);
        assert_eq!(candidates("refs/pull/1/head"), [name("refs/pull/1/head")]);
        assert_eq!(candidates("v1"), [Reference::Tag("v1".to_owned()), Reference::Branch("v1".to_owned())]);
        assert_eq!(candidates("heads/main")[0], name("refs/heads/main"));
    }
}
