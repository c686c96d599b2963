//! How the controller reaches registries: through a trait, so that tests can put a twin in its place.

use std::io::Read;

use fl_oci::{Descriptor, Error, Manifest, Reference, Registry, RegistryOptions, Repository, Signatures};
use futures::FutureExt;
use futures::future::BoxFuture;

/// A layer larger than this is not pulled.
const LARGEST_LAYER: u64 = 4 << 30;

/// One registry as one object uses it.
pub trait OciRegistry: Send + Sync {
    fn tags<'a>(&'a self, repository: &'a Repository) -> BoxFuture<'a, Result<Vec<String>, Error>>;
    /// The digest of a reference.
    fn resolve<'a>(&'a self, reference: &'a Reference) -> BoxFuture<'a, Result<String, Error>>;
    fn manifest<'a>(&'a self, reference: &'a Reference) -> BoxFuture<'a, Result<Manifest, Error>>;
    /// A layer's bytes as they are stored, checked against its digest while they are read.
    fn layer<'a>(
        &'a self,
        repository: &'a Repository,
        layer: &'a Descriptor,
    ) -> BoxFuture<'a, Result<Box<dyn Read + Send>, Error>>;
    /// The signatures of the manifest that a digest names.
    fn signatures<'a>(&'a self, reference: &'a Reference) -> BoxFuture<'a, Result<Signatures, Error>>;
}

/// Opens registries.
pub trait OciClient: Send + Sync {
    fn open(&self, options: RegistryOptions) -> Result<Box<dyn OciRegistry>, Error>;
}

/// The real one.
#[derive(Clone, Copy, Debug, Default)]
pub struct NetworkOci;

impl OciClient for NetworkOci {
    fn open(&self, options: RegistryOptions) -> Result<Box<dyn OciRegistry>, Error> {
        Ok(Box::new(Opened(Registry::new(options)?)))
    }
}

struct Opened(Registry);

impl OciRegistry for Opened {
    fn tags<'a>(&'a self, repository: &'a Repository) -> BoxFuture<'a, Result<Vec<String>, Error>> {
        self.0.tags(repository).boxed()
    }

    fn resolve<'a>(&'a self, reference: &'a Reference) -> BoxFuture<'a, Result<String, Error>> {
        self.0.resolve(reference).boxed()
    }

    fn manifest<'a>(&'a self, reference: &'a Reference) -> BoxFuture<'a, Result<Manifest, Error>> {
        async move { Ok(self.0.image(reference).await?.0) }.boxed()
    }

    fn layer<'a>(
        &'a self,
        repository: &'a Repository,
        layer: &'a Descriptor,
    ) -> BoxFuture<'a, Result<Box<dyn Read + Send>, Error>> {
        async move {
            let blob = self.0.blob(repository, layer, LARGEST_LAYER).await?;
            Ok(Box::new(blob) as Box<dyn Read + Send>)
        }
        .boxed()
    }

    fn signatures<'a>(&'a self, reference: &'a Reference) -> BoxFuture<'a, Result<Signatures, Error>> {
        self.0.signatures(reference.repository(), reference.identifier()).boxed()
    }
}
