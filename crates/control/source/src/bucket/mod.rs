//! Bucket: the objects of a store become an artifact.
//!
//! A pass: check the store, list the bucket, and, when its keys and etags are not those of the artifact, fetch everything into a
//! new one. An unchanged bucket costs a listing.

mod access;
mod client;
mod fetch;

use std::sync::Arc;

use fl_api::condition::{reasons, types};
use fl_api::source::Bucket;
use fl_runtime::{
    Conditions, Edge, End, EventKind, Failure, Names, Outcome, Pass, Reconciled, Reconciler, Source,
};
use fl_store::Store;
use tokio::time::Instant;

pub use fl_bucket::AwsKeys;

pub use client::{BucketClient, NetworkBucket, ObjectStore, Visit};

use crate::conclude::{self, failed};
use crate::secrets;
use crate::storage::{self, blocking, has_revision};
use fetch::{Ended, Listing, Published, Wanted};

const LATEST: &str = "latest.tar.gz";

/// The controller of Buckets.
pub struct Buckets {
    store: Store,
    client: Arc<dyn BucketClient>,
    engine_keys: Option<AwsKeys>,
}

impl std::fmt::Debug for Buckets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Buckets").finish_non_exhaustive()
    }
}

impl Buckets {
    pub fn new(store: Store, client: Arc<dyn BucketClient>) -> Self {
        Buckets { store, client, engine_keys: None }
    }

    /// The engine's own AWS keys, for Buckets of AWS without a Secret.
    #[must_use]
    pub fn with_engine_keys(self, keys: Option<AwsKeys>) -> Self {
        Buckets { engine_keys: keys, ..self }
    }

    async fn run(&self, pass: &mut Pass<Bucket>) -> Result<(), Failure> {
        conclude::begin(pass);
        let had = pass.object.artifact().is_some();
        storage::check(pass, &self.store).await?;
        let at = storage::location(&pass.object)?;
        let status = pass.object.status.get_or_insert_default();
        if had && status.artifact.is_none() {
            status.url = None;
        } else if status.url.is_some() {
            // The address is made anew each time, so that a changed host heals.
            status.url = at.path(LATEST).ok().map(|path| self.store.url(&path));
        }
        let count = self.fetch(pass).await?;
        let name = &pass.object.spec.bucket_name;
        let message = format!("stored artifact with {count} fetched files from '{name}' bucket");
        conclude::announce(pass, &message);
        Ok(())
    }

    /// Brings the artifact up to date; answers how many objects it has.
    async fn fetch(&self, pass: &mut Pass<Bucket>) -> Result<u64, Failure> {
        let options = match access::options(pass, self.engine_keys.as_ref()).await {
            Ok(options) => options,
            Err(failure) => return Err(failed(pass, types::FETCH_FAILED, failure)),
        };
        let store = self.client.open(options).map_err(|e| {
            let failure = Failure::retry(reasons::source::AUTHENTICATION_FAILED, e.to_string());
            failed(pass, types::FETCH_FAILED, failure)
        })?;
        let spec = &pass.object.spec;
        let timeout = spec.timeout.to_std().unwrap_or_default();
        let wanted = Wanted {
            bucket: spec.bucket_name.clone(),
            prefix: spec.prefix.clone().unwrap_or_default(),
            ignore: spec.ignore.clone(),
        };
        let listed = fetch::list(store.as_ref(), &wanted, Instant::now() + timeout).await;
        let listing = listed.map_err(|message| operation_failed(pass, message))?;
        if has_revision(pass.object.artifact(), &listing.revision) {
            pass.object.remove_condition(types::FETCH_FAILED);
            up_to_date(pass, &listing.revision);
            return Ok(listing.count);
        }
        self.publish(pass, store, listing, Instant::now() + timeout).await
    }

    async fn publish(
        &self,
        pass: &mut Pass<Bucket>,
        store: Arc<dyn ObjectStore>,
        listing: Listing,
        deadline: Instant,
    ) -> Result<u64, Failure> {
        let at = storage::location(&pass.object)?;
        let listed = listing.revision.clone();
        let current = pass.object.artifact().map(|a| a.revision.clone());
        let (disk, place) = (self.store.clone(), at.clone());
        let published =
            blocking(move || fetch::publish(&disk, &place, store, listing, current.as_deref(), deadline))
                .await?;
        let name = pass.object.spec.bucket_name.clone();
        let Published { artifact, file, revision, count, gone } = match published {
            Ok(published) => published,
            Err(Ended::Same { revision, count }) => {
                pass.object.remove_condition(types::FETCH_FAILED);
                up_to_date(pass, &revision);
                return Ok(count);
            }
            Err(Ended::Fetch(problem)) => {
                return Err(operation_failed(pass, format!("fetch from bucket '{name}' failed: {problem}")));
            }
            Err(Ended::Archive(problem)) => {
                pass.object.remove_condition(types::FETCH_FAILED);
                let message = format!("new upstream revision '{listed}'");
                if pass.object.artifact().is_some() {
                    pass.object.mark_true(types::ARTIFACT_OUTDATED, reasons::source::NEW_REVISION, &message);
                }
                pass.object.mark_progressing(true, &format!("building artifact: {message}"));
                let message = format!("unable to archive artifact to storage: {problem}");
                let failure = Failure::retry(reasons::source::ARCHIVE_OPERATION_FAILED, message);
                return Err(failed(pass, types::STORAGE_OPERATION_FAILED, failure));
            }
        };
        for key in gone {
            pass.log.info(&format!("indexed object '{key}' disappeared from '{name}' bucket"));
        }
        pass.object.remove_condition(types::FETCH_FAILED);
        let ignore = pass.object.spec.ignore.clone();
        let status = pass.object.status.get_or_insert_default();
        status.artifact = Some(storage::artifact(artifact, &revision));
        status.observed_ignore = ignore;
        let disk = self.store.clone();
        match blocking(move || disk.link(&at, &file, LATEST)).await? {
            Ok(url) => pass.object.status.get_or_insert_default().url = Some(url),
            Err(error) => {
                let message = format!("failed to update status URL symlink: {}", storage::chain(&error));
                pass.event(EventKind::Trace, reasons::source::SYMLINK_UPDATE_FAILED, &message);
            }
        }
        pass.object.remove_condition(types::STORAGE_OPERATION_FAILED);
        stored(pass, &revision);
        Ok(count)
    }
}

fn operation_failed(pass: &mut Pass<Bucket>, message: String) -> Failure {
    failed(pass, types::FETCH_FAILED, Failure::retry(reasons::source::BUCKET_OPERATION_FAILED, message))
}

fn up_to_date(pass: &mut Pass<Bucket>, revision: &str) {
    let message = format!("artifact up-to-date with remote revision: '{revision}'");
    pass.log.info(&message);
    pass.event(EventKind::Trace, "ArtifactUpToDate", &message);
    stored(pass, revision);
}

fn stored(pass: &mut Pass<Bucket>, revision: &str) {
    pass.object.remove_condition(types::ARTIFACT_OUTDATED);
    let message = format!("stored artifact: revision '{revision}'");
    pass.object.mark_true(types::ARTIFACT_IN_STORAGE, reasons::SUCCEEDED, &message);
}

impl Reconciler for Buckets {
    type Object = Bucket;

    fn names(&self) -> Names {
        Names { controller: "bucket", component: "source-controller", field_manager: "source-controller" }
    }

    fn owned_conditions(&self) -> &'static [&'static str] {
        conclude::CONDITIONS
    }

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

    async fn reconcile(&self, pass: &mut Pass<Bucket>) -> Outcome {
        let result = self.run(pass).await;
        conclude::conclude(pass, &result.into())
    }

    async fn delete(&self, pass: &mut Pass<Bucket>) -> Result<(), Outcome> {
        storage::remove(pass, &self.store).await
    }

    fn finish(&self, pass: &mut Pass<Bucket>, end: End, _outcome: &mut Outcome) {
        conclude::finish(pass, end);
    }
}
