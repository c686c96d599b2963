//! Bucket: the objects of a bucket become an artifact.
//!
//! The bucket is listed, and fetched only when its keys and etags are not those of the artifact. An unchanged bucket costs
//! a listing.

mod auth;
mod client;
mod fetch;

use std::sync::Arc;
use std::time::Duration;

use fl_api::condition::{reasons, types};
use fl_api::source::Bucket;
use fl_artifact_store::Store;
use fl_http::Lease;
use fl_runtime::{Conditions, Context, Edge, ReconcileError, Reconciled, Source};
use tokio::time::Instant;

pub use fl_bucket::AwsKeys;

pub use client::{BucketClient, NetworkBucket, ObjectStore, Visit};

use crate::conditions;
use crate::driver::{Change, Fetched, Fetcher, SourceReconciler, SourceResult, Storage};
use crate::secrets;
use crate::storage::{self, blocking, has_revision};
use fetch::{ListOptions, Listing, PublishError, PublishedBucket};

/// The controller of Buckets.
pub type Buckets = SourceReconciler<BucketFetcher>;

impl Buckets {
    pub fn new(store: Store, client: Arc<dyn BucketClient>) -> Self {
        Self::with_fetcher(store, BucketFetcher { client, engine_keys: None })
    }

    /// The engine's own AWS keys, for Buckets of AWS without a Secret.
    #[must_use]
    pub fn with_engine_keys(mut self, keys: Option<AwsKeys>) -> Self {
        self.fetcher.engine_keys = keys;
        self
    }
}

/// Fetches buckets.
pub struct BucketFetcher {
    client: Arc<dyn BucketClient>,
    engine_keys: Option<AwsKeys>,
}

impl std::fmt::Debug for BucketFetcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BucketFetcher").finish_non_exhaustive()
    }
}

/// A bucket that was listed. Its objects are fetched while they are written to storage.
pub struct BucketContent {
    store: Arc<dyn ObjectStore>,
    listing: Listing,
    lease: Lease,
}

impl std::fmt::Debug for BucketContent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BucketContent").finish_non_exhaustive()
    }
}

fn result(object: &Bucket, revision: &str, count: u64, change: Change) -> SourceResult {
    let name = &object.spec.bucket_name;
    SourceResult {
        revision: revision.to_owned(),
        condition: (reasons::SUCCEEDED, format!("stored artifact: revision '{revision}'")),
        event: format!("stored artifact with {count} fetched files from '{name}' bucket"),
        event_reason: None,
        change,
    }
}

impl Fetcher for BucketFetcher {
    type Object = Bucket;
    type Content = BucketContent;

    const CONTROLLER: &'static str = "bucket";
    const LINK: Option<&'static str> = Some(storage::LATEST);

    fn edges(&self, object: &Bucket) -> Vec<Edge> {
        let spec = &object.spec;
        let sts = spec.sts.as_ref();
        let secrets = [
            spec.secret_ref.as_ref(),
            spec.cert_secret_ref.as_ref(),
            spec.proxy_secret_ref.as_ref(),
            sts.and_then(|s| s.secret_ref.as_ref()),
            sts.and_then(|s| s.cert_secret_ref.as_ref()),
        ];
        secrets::edges(object.namespace(), secrets)
    }

    fn timeout(&self, object: &Bucket) -> Duration {
        object.spec.timeout.to_std().unwrap_or_default()
    }

    fn status_url<'a>(&self, object: &'a mut Bucket) -> Option<&'a mut Option<String>> {
        Some(&mut object.status.get_or_insert_default().url)
    }

    async fn fetch(
        &self,
        cx: &mut Context<Bucket>,
        _storage: &Storage<'_>,
        lease: &Lease,
    ) -> Result<Fetched<BucketContent>, ReconcileError> {
        let options = auth::options(cx, self.engine_keys.as_ref())
            .await
            .map_err(|error| error.on(types::FETCH_FAILED))?;
        let store = self.client.open(options).map_err(|e| {
            ReconcileError::backoff(reasons::source::AUTHENTICATION_FAILED, e.to_string())
                .on(types::FETCH_FAILED)
        })?;
        let spec = &cx.object.spec;
        let options = ListOptions {
            bucket: spec.bucket_name.clone(),
            prefix: spec.prefix.clone().unwrap_or_default(),
            ignore: spec.ignore.clone(),
        };
        let deadline = Instant::now() + self.timeout(&cx.object);
        let listing = fetch::list(store.as_ref(), &options, deadline, lease)
            .await
            .map_err(|error| operation_failed(error.to_string()))?;
        if has_revision(cx.object.artifact(), &listing.revision) {
            cx.object.remove_condition(types::FETCH_FAILED);
            let current = result(&cx.object, &listing.revision, listing.count, Change::UpToDate);
            return Ok(Fetched::Current(current));
        }
        Ok(Fetched::New(BucketContent { store, listing, lease: lease.clone() }))
    }

    async fn store(
        &self,
        cx: &mut Context<Bucket>,
        storage: &Storage<'_>,
        content: BucketContent,
    ) -> Result<SourceResult, ReconcileError> {
        let BucketContent { store, listing, lease } = content;
        let deadline = Instant::now() + self.timeout(&cx.object);
        let listed = listing.revision.clone();
        let current = cx.object.artifact().map(|a| a.revision.clone());
        let (disk, at) = (storage.store.clone(), storage.location.clone());
        let published = {
            let _waits = lease.cancel_on_drop();
            let lease = lease.clone();
            let publish =
                move || fetch::publish(&disk, &at, store, listing, current.as_deref(), deadline, &lease);
            blocking(publish).await?
        };
        let name = cx.object.spec.bucket_name.clone();
        let PublishedBucket { artifact, file, revision, count, gone } = match published {
            Ok(published) => published,
            Err(PublishError::Unchanged { revision, count }) => {
                cx.object.remove_condition(types::FETCH_FAILED);
                return Ok(result(&cx.object, &revision, count, Change::UpToDate));
            }
            Err(PublishError::Fetch(error)) => {
                return Err(operation_failed(format!("fetch from bucket '{name}' failed: {error}")));
            }
            Err(PublishError::Archive(problem)) => {
                cx.object.remove_condition(types::FETCH_FAILED);
                let message = format!("new upstream revision '{listed}'");
                conditions::mark_outdated(cx, reasons::source::NEW_REVISION, &message);
                let message = format!("unable to archive artifact to storage: {problem}");
                return Err(storage::archive_failed(message));
            }
        };
        for key in gone {
            cx.log.info(&format!("indexed object '{key}' disappeared from '{name}' bucket"));
        }
        cx.object.remove_condition(types::FETCH_FAILED);
        let ignore = cx.object.spec.ignore.clone();
        let status = cx.object.status.get_or_insert_default();
        status.artifact = Some(storage::artifact(artifact, &revision));
        status.observed_ignore = ignore;
        storage.link(self, cx, file).await?;
        Ok(result(&cx.object, &revision, count, Change::Stored))
    }
}

fn operation_failed(message: String) -> ReconcileError {
    ReconcileError::backoff(reasons::source::BUCKET_OPERATION_FAILED, message).on(types::FETCH_FAILED)
}
