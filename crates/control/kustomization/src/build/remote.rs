//! Remote bases of a build.

use std::path::PathBuf;

use fl_http::{AddressPolicy, Owner};
use fl_kustomize::{Fetcher, Files, HostError, Repository};
use fl_remote_bases::{FilesWithBases, Limits};

/// Bases that are fetched during one build.
#[derive(Debug)]
pub(super) struct FetchedBases(fl_remote_bases::RemoteBases);

impl FetchedBases {
    pub(super) fn new(namespace: &str, policy: AddressPolicy) -> Self {
        let owner = Owner::namespace(namespace);
        FetchedBases(fl_remote_bases::RemoteBases::new(owner, policy, Limits::default()))
    }
}

impl Fetcher for FetchedBases {
    fn file(&self, url: &str) -> Result<Vec<u8>, HostError> {
        self.0.file(url)
    }

    fn checkout(&self, repository: &Repository) -> Result<PathBuf, HostError> {
        self.0.checkout(repository)
    }
}

impl fl_kustomize_build::RemoteBases for FetchedBases {
    fn with_checkouts(&self, files: &dyn Files, build: &mut dyn FnMut(&dyn Files)) {
        build(&FilesWithBases { own: files, bases: &self.0 });
    }

    fn used(&self) -> bool {
        self.0.used()
    }
}
