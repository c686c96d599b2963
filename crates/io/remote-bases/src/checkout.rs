//! Writes the files of a commit to disk.

use std::collections::BTreeMap;
use std::io::{Read, copy};
use std::path::{Component, Path};

use fl_git::ObjectId;
use fl_git_client::{
    Address, Auth, Checkout, Error, Failure, FetchOptions, Kind, Reference, Remote, RemoteOptions, Resolved,
    Scheme,
};
use fl_http::HeldBytes;
use fl_kustomize::Repository;

use crate::error::BaseError;
use crate::fetcher::RemainingBudget;

/// A repository that was written to disk.
pub(crate) struct Written {
    pub(crate) bytes: u64,
    pub(crate) entries: usize,
    /// Counts the bytes.
    pub(crate) held: HeldBytes,
}

/// Fetches a repository and writes it to `place`.
pub(crate) async fn check_out(
    repository: &Repository,
    options: RemoteOptions,
    left: &RemainingBudget,
    place: &Path,
) -> Result<Written, BaseError> {
    if repository.url.starts_with("file://") {
        return Err(BaseError::LocalRepository);
    }
    let address = Address::parse(&repository.url)?;
    if address.scheme == Scheme::Ssh {
        return Err(BaseError::Ssh);
    }
    let auth = Auth::from_secret(&address, &BTreeMap::new())?;
    let timeout = repository.timeout.min(left.time);
    let held = options.lease.hold();
    let options = RemoteOptions { timeout, ..options };
    let remote = Remote::new(&repository.url, auth, options)?;
    let fetched = tokio::time::timeout(timeout, fetch(&remote, repository)).await;
    let checkout = fetched.map_err(|_| BaseError::Timeout(timeout))??;
    write(checkout, left, place, held).await
}

async fn fetch(remote: &Remote, repository: &Repository) -> Result<Checkout, BaseError> {
    let mut problem = Error::NoSuchRef(repository.reference.clone());
    let options = FetchOptions { recurse_submodules: repository.submodules, ..FetchOptions::default() };
    if let Ok(commit) = repository.reference.parse::<ObjectId>() {
        return Ok(remote.fetch(&Resolved::commit(commit), &options).await?);
    }
    for reference in candidates(&repository.reference) {
        match remote.resolve(&reference, false).await {
            Ok(Some(resolved)) => return Ok(remote.fetch(&resolved, &options).await?),
            Ok(None) => return Err(BaseError::Empty),
            // Another kind of reference may have the name.
            Err(error @ (Error::NoSuchRef(_) | Error::Clone { failure: Failure::NoRef(_), .. })) => {
                problem = error;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(problem.into())
}

/// The references that `git fetch` tries for a name, in its order.
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

/// Writes all entries; links are not among them.
async fn write(
    mut checkout: Checkout,
    left: &RemainingBudget,
    place: &Path,
    mut held: HeldBytes,
) -> Result<Written, BaseError> {
    std::fs::create_dir_all(place)?;
    let entries = checkout.snapshot.entries().to_vec();
    if entries.len() > left.entries {
        return Err(BaseError::TooManyFiles(entries.len()));
    }
    let mut bytes = 0;
    for entry in &entries {
        let inside = Path::new(&entry.path).components().all(|c| matches!(c, Component::Normal(_)));
        if !inside {
            return Err(BaseError::Name(entry.path.clone()));
        }
        let path = place.join(&entry.path);
        if entry.kind == Kind::Directory {
            std::fs::create_dir_all(&path)?;
            continue;
        }
        let (size, content) = checkout.snapshot.open_file(entry)?;
        bytes += size;
        if bytes > left.bytes {
            return Err(BaseError::TooLarge(left.bytes));
        }
        held.add(size).await?;
        let mut file = std::fs::File::create_new(&path)?;
        copy(&mut content.take(size), &mut file)?;
    }
    Ok(Written { bytes, entries: entries.len(), held })
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
