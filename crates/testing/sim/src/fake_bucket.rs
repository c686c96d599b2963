//! An object store in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use fl_bucket::{BucketOptions, Budget, Content, Error, Key, Login, Object};
use fl_source::bucket::{BucketClient, NetworkBucket, ObjectStore, Visit};
use futures::FutureExt;
use futures::future::BoxFuture;

#[derive(Debug, Default)]
struct State {
    /// By bucket, then key: how often it was written, and the content.
    buckets: BTreeMap<String, BTreeMap<String, (u64, Vec<u8>)>>,
    /// Listed, but not found on download.
    fleeting: BTreeSet<String>,
    failure: Option<(u16, String, String)>,
    listings: u64,
    fetches: u64,
    /// The credentials of the last request.
    login: String,
    /// Whether the network client is used instead.
    outside: bool,
}

/// A fake object store.
#[derive(Clone, Debug, Default)]
pub struct FakeBucket {
    state: Arc<Mutex<State>>,
}

impl FakeBucket {
    fn with<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        act(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Creates a bucket.
    pub fn make(&self, bucket: &str) {
        self.with(|s| {
            s.buckets.entry(bucket.to_owned()).or_default();
        });
    }

    /// Writes an object; creates the bucket if missing. Every write changes the ETag.
    pub fn put(&self, bucket: &str, key: &str, content: impl Into<Vec<u8>>) {
        self.with(|s| {
            let objects = s.buckets.entry(bucket.to_owned()).or_default();
            let writes = objects.get(key).map_or(0, |(writes, _)| *writes);
            objects.insert(key.to_owned(), (writes + 1, content.into()));
        });
    }

    /// Removes an object.
    pub fn remove(&self, bucket: &str, key: &str) {
        self.with(|s| s.buckets.entry(bucket.to_owned()).or_default().remove(key));
    }

    /// From now on this object is listed, but its download is not found.
    pub fn vanish(&self, key: &str) {
        self.with(|s| s.fleeting.insert(key.to_owned()));
    }

    /// From now on every request is rejected with this status, code and text; `None` ends that.
    pub fn fail(&self, refusal: Option<(u16, &str, &str)>) {
        self.with(|s| s.failure = refusal.map(|(n, c, t)| (n, c.to_owned(), t.to_owned())));
    }

    /// From now on the network client is used, for servers on loopback. Needs the real clock.
    pub fn reach_out(&self) {
        self.with(|s| s.outside = true);
    }

    /// How many listings there were, and how many objects were fetched.
    pub fn counts(&self) -> (u64, u64) {
        self.with(|s| (s.listings, s.fetches))
    }

    /// The credentials of the last request: `anonymous`, or the access key ID.
    pub fn login(&self) -> String {
        self.with(|s| s.login.clone())
    }
}

impl BucketClient for FakeBucket {
    fn open(&self, options: BucketOptions) -> Result<Arc<dyn ObjectStore>, Error> {
        if self.with(|s| s.outside) {
            return NetworkBucket.open(options);
        }
        self.with(|s| {
            s.login = match &options.login {
                Login::Aws(keys) => keys.access_key_id.clone(),
                _ => "anonymous".to_owned(),
            };
        });
        Ok(Arc::new(OpenedBucket { fake: self.clone(), bucket: options.bucket }))
    }
}

struct OpenedBucket {
    fake: FakeBucket,
    bucket: String,
}

impl OpenedBucket {
    fn ask<R>(&self, act: impl FnOnce(&mut State) -> R) -> Result<R, Error> {
        self.fake.with(|s| match &s.failure {
            Some((status, code, message)) => Err(Error::Refused {
                status: *status,
                code: code.clone(),
                message: message.clone(),
                region: String::new(),
            }),
            None => Ok(act(s)),
        })
    }
}

fn etag(writes: u64, content: &[u8]) -> String {
    format!("{}-{writes}", content.len())
}

impl ObjectStore for OpenedBucket {
    fn exists(&self) -> BoxFuture<'_, Result<bool, Error>> {
        async move { self.ask(|s| s.buckets.contains_key(&self.bucket)) }.boxed()
    }

    fn list<'a>(&'a self, prefix: &'a str, visit: &'a mut Visit<'_>) -> BoxFuture<'a, Result<(), Error>> {
        async move {
            let listed: Vec<(String, String)> = self.ask(|s| {
                s.listings += 1;
                let objects = s.buckets.get(&self.bucket).into_iter().flatten();
                let wanted = objects.filter(|(key, _)| key.starts_with(prefix));
                wanted.map(|(key, (writes, content))| (key.clone(), etag(*writes, content))).collect()
            })?;
            for (key, etag) in listed {
                visit(&key, &etag)?;
            }
            Ok(())
        }
        .boxed()
    }

    fn get<'a>(
        &'a self,
        key: &'a Key,
        budget: &'a Arc<Budget>,
    ) -> BoxFuture<'a, Result<Option<Object>, Error>> {
        async move {
            let found = self.ask(|s| {
                s.fetches += 1;
                let found = s.buckets.get(&self.bucket).and_then(|objects| objects.get(key.key())).cloned();
                found.filter(|_| !s.fleeting.contains(key.key()))
            })?;
            let Some((writes, content)) = found else { return Ok(None) };
            let size = content.len() as u64;
            budget.take(size)?;
            Ok(Some(Object { etag: etag(writes, &content), size, content: Content::of(content) }))
        }
        .boxed()
    }
}
