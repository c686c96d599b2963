//! The registry client of the controller, as a trait so that tests can use a fake.

use std::io::Read;

use fl_oci::{Descriptor, Error, Manifest, Reference, Registry, RegistryOptions, Repository, Signatures};
use futures::FutureExt;
use futures::future::BoxFuture;

/// Bytes of a layer.
const MAX_LAYER_BYTES: u64 = 4 << 30;

/// One registry as one object uses it.
pub trait OciRegistry: Send + Sync {
    fn tags<'a>(&'a self, repository: &'a Repository) -> BoxFuture<'a, Result<Vec<String>, Error>>;
    /// The digest of a reference.
    fn resolve<'a>(&'a self, reference: &'a Reference) -> BoxFuture<'a, Result<String, Error>>;
    fn manifest<'a>(&'a self, reference: &'a Reference) -> BoxFuture<'a, Result<Manifest, Error>>;
    /// The bytes of a layer. Its digest is checked when the end is read.
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

/// Registries over HTTP.
#[derive(Clone, Copy, Debug, Default)]
pub struct NetworkOci;

impl OciClient for NetworkOci {
    fn open(&self, options: RegistryOptions) -> Result<Box<dyn OciRegistry>, Error> {
        Ok(Box::new(RegistryConnection(Registry::new(options)?)))
    }
}

struct RegistryConnection(Registry);

impl OciRegistry for RegistryConnection {
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
            let blob = self.0.blob(repository, layer, MAX_LAYER_BYTES).await?;
            Ok(Box::new(blob) as Box<dyn Read + Send>)
        }
        .boxed()
    }

    fn signatures<'a>(&'a self, reference: &'a Reference) -> BoxFuture<'a, Result<Signatures, Error>> {
        self.0.signatures(reference.repository(), reference.identifier()).boxed()
    }
}
