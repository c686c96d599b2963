//! The bucket client of the controller, as a trait so that tests can use a fake.

use std::sync::Arc;

use fl_bucket::{Bucket, BucketOptions, Budget, Error, IndexError, Key, Object};
use futures::FutureExt;
use futures::future::BoxFuture;

/// Called with each key of a listing and its etag.
pub type Visit<'a> = dyn FnMut(&str, &str) -> Result<(), IndexError> + Send + 'a;

/// One bucket as one object uses it.
pub trait ObjectStore: Send + Sync {
    fn exists(&self) -> BoxFuture<'_, Result<bool, Error>>;
    /// All keys that begin with `prefix`, in any order.
    fn list<'a>(&'a self, prefix: &'a str, visit: &'a mut Visit<'_>) -> BoxFuture<'a, Result<(), Error>>;
    /// An object; `None` when it is not there.
    fn get<'a>(
        &'a self,
        key: &'a Key,
        budget: &'a Arc<Budget>,
    ) -> BoxFuture<'a, Result<Option<Object>, Error>>;
}

/// Opens buckets.
pub trait BucketClient: Send + Sync {
    fn open(&self, options: BucketOptions) -> Result<Arc<dyn ObjectStore>, Error>;
}

/// Buckets over HTTP.
#[derive(Clone, Copy, Debug, Default)]
pub struct NetworkBucket;

impl BucketClient for NetworkBucket {
    fn open(&self, options: BucketOptions) -> Result<Arc<dyn ObjectStore>, Error> {
        Ok(Arc::new(BucketConnection(Bucket::new(options)?)))
    }
}

struct BucketConnection(Bucket);

impl ObjectStore for BucketConnection {
    fn exists(&self) -> BoxFuture<'_, Result<bool, Error>> {
        self.0.exists().boxed()
    }

    fn list<'a>(&'a self, prefix: &'a str, visit: &'a mut Visit<'_>) -> BoxFuture<'a, Result<(), Error>> {
        async move { self.0.list(prefix, &mut |key, etag| visit(key, etag)).await }.boxed()
    }

    fn get<'a>(
        &'a self,
        key: &'a Key,
        budget: &'a Arc<Budget>,
    ) -> BoxFuture<'a, Result<Option<Object>, Error>> {
        self.0.get(key, budget).boxed()
    }
}
