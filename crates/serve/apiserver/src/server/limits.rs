//! Limits per user on requests, watches and body bytes, so that one user cannot exhaust the server.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::auth::User;
use crate::status::{ApiError, ApiResult};

/// Limits and deadlines of connections and requests.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Connections in total; further ones are closed at once.
    pub connections: usize,
    /// Concurrent requests of one user other than watches. Further ones wait for `queue_timeout` and are then
    /// rejected with 429.
    pub requests_per_user: usize,
    /// Open watches of one user. Further ones are rejected with 429.
    pub watches_per_user: usize,
    /// Request body bytes in memory at a time, per user and in total.
    pub body_bytes_per_user: usize,
    pub body_bytes: usize,
    pub queue_timeout: Duration,
    /// From the end of one request to the end of the headers of the next on a connection.
    pub header_timeout: Duration,
    /// From the headers of a request to the end of its body.
    pub body_timeout: Duration,
    /// How long a response may wait for a client that does not read.
    pub write_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 4096,
            requests_per_user: 400,
            watches_per_user: 10_000,
            body_bytes_per_user: 16 << 20,
            body_bytes: 64 << 20,
            queue_timeout: Duration::from_secs(10),
            header_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(30),
        }
    }
}

/// Bodies up to this size are limited only by the number of requests.
const SMALL_BODY: usize = 64 << 10;

/// Running requests by user.
#[derive(Debug)]
pub(crate) struct InFlight {
    limits: Limits,
    users: Mutex<HashMap<String, Weak<UserPermits>>>,
    bodies: Arc<Semaphore>,
}

/// The semaphores of one user; dropped with the last request that holds a permit.
#[derive(Debug)]
struct UserPermits {
    requests: Arc<Semaphore>,
    watches: Arc<Semaphore>,
    bodies: Arc<Semaphore>,
}

/// The permit of a request, held until its response was sent or dropped.
#[derive(Debug)]
pub(crate) struct RequestPermit {
    user: Arc<UserPermits>,
    _permit: OwnedSemaphorePermit,
}

/// The permit for the bytes of a request body, held while the request runs.
#[derive(Debug, Default)]
pub(crate) struct BodyPermit {
    _permits: Option<(OwnedSemaphorePermit, OwnedSemaphorePermit)>,
}

fn semaphore(permits: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(permits.min(Semaphore::MAX_PERMITS)))
}

fn too_many() -> ApiError {
    let message = "too many requests of this user are under way, please try again later";
    ApiError::new(429, "TooManyRequests", message).with_details(serde_json::json!({"retryAfterSeconds": 1}))
}

impl InFlight {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { bodies: semaphore(limits.body_bytes), limits, users: Mutex::default() }
    }

    fn permits(&self, user: &User) -> Arc<UserPermits> {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(permits) = users.get(&user.name).and_then(Weak::upgrade) {
            return permits;
        }
        if users.len() >= 1024 {
            users.retain(|_, permits| permits.strong_count() > 0);
        }
        let permits = Arc::new(UserPermits {
            requests: semaphore(self.limits.requests_per_user),
            watches: semaphore(self.limits.watches_per_user),
            bodies: semaphore(self.limits.body_bytes_per_user),
        });
        users.insert(user.name.clone(), Arc::downgrade(&permits));
        permits
    }

    /// Acquires a permit for a request; waits up to `queue_timeout`.
    pub(crate) async fn request(&self, user: &User) -> ApiResult<RequestPermit> {
        let permits = self.permits(user);
        let acquired = match permits.requests.clone().try_acquire_owned() {
            Ok(permit) => Some(permit),
            Err(_) => {
                let waiting = permits.requests.clone().acquire_owned();
                tokio::time::timeout(self.limits.queue_timeout, waiting).await.ok().and_then(Result::ok)
            }
        };
        acquired.map(|permit| RequestPermit { user: permits, _permit: permit }).ok_or_else(too_many)
    }

    /// Acquires a permit for a watch.
    pub(crate) fn watch(&self, user: &User) -> ApiResult<RequestPermit> {
        let permits = self.permits(user);
        let permit = permits.watches.clone().try_acquire_owned().map_err(|_| too_many())?;
        Ok(RequestPermit { user: permits, _permit: permit })
    }

    /// Reads a body of at most `limit` bytes, within the user's limits of time and memory.
    pub(crate) async fn read_body<B>(
        &self,
        body: B,
        limit: usize,
        permit: &RequestPermit,
    ) -> ApiResult<(Bytes, BodyPermit)>
    where
        B: http_body::Body<Data: Send> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let hint = body.size_hint();
        if hint.lower() > limit as u64 {
            return Err(ApiError::too_large(&format!("limit is {limit}")));
        }
        let expected = hint.upper().and_then(|n| usize::try_from(n).ok()).unwrap_or(limit).min(limit);
        let reading = async {
            let held = if expected > SMALL_BODY { Some(self.reserve(permit, expected).await?) } else { None };
            let bytes = Limited::new(body, limit).collect().await.map_err(|error| {
                if error.downcast_ref::<LengthLimitError>().is_some() {
                    return ApiError::too_large(&format!("limit is {limit}"));
                }
                ApiError::bad_request(format!("cannot read the request body: {error}"))
            })?;
            Ok((bytes.to_bytes(), BodyPermit { _permits: held }))
        };
        match tokio::time::timeout(self.limits.body_timeout, reading).await {
            Ok(read) => read,
            Err(_) => Err(ApiError::new(408, "Timeout", "the request body did not arrive in time")),
        }
    }

    async fn reserve(
        &self,
        permit: &RequestPermit,
        bytes: usize,
    ) -> ApiResult<(OwnedSemaphorePermit, OwnedSemaphorePermit)> {
        let most = self.limits.body_bytes_per_user.min(self.limits.body_bytes);
        let permits = u32::try_from(bytes.min(most)).unwrap_or(u32::MAX);
        let closed = |_| ApiError::internal("the server is shutting down");
        let own = permit.user.bodies.clone().acquire_many_owned(permits).await.map_err(closed)?;
        let all = self.bodies.clone().acquire_many_owned(permits).await.map_err(closed)?;
        Ok((own, all))
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::Full;

    use super::*;

    fn user(name: &str) -> User {
        User { name: name.to_owned(), ..User::default() }
    }

    fn limits() -> Limits {
        Limits {
            requests_per_user: 2,
            watches_per_user: 1,
            body_bytes_per_user: 300 << 10,
            queue_timeout: Duration::from_secs(5),
            ..Limits::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn request_limits_are_per_user() {
        let flight = InFlight::new(limits());
        let held = [
            flight.request(&user("a")).await.expect("a slot"),
            flight.request(&user("a")).await.expect("a slot"),
        ];
        assert_eq!(flight.request(&user("a")).await.expect_err("refused").code, 429);
        flight.request(&user("b")).await.expect("another user is not concerned");
        let _watch = flight.watch(&user("a")).expect("watches count for themselves");
        assert_eq!(flight.watch(&user("a")).expect_err("refused").code, 429);
        let a = user("a");
        let (waiting, ()) = tokio::join!(flight.request(&a), async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            drop(held);
        });
        waiting.expect("a slot became free");
    }

    #[tokio::test(start_paused = true)]
    async fn large_bodies_of_one_user_are_read_sequentially() {
        let flight = InFlight::new(limits());
        let permit = flight.request(&user("a")).await.expect("a slot");
        let large = || Full::new(Bytes::from(vec![b' '; 200 << 10]));
        let first = flight.read_body(large(), 1 << 20, &permit).await.expect("read");
        assert_eq!(flight.read_body(large(), 1 << 20, &permit).await.expect_err("no room").code, 408);
        flight
            .read_body(Full::new(Bytes::from_static(b"{}")), 1 << 20, &permit)
            .await
            .expect("small ones pass");
        let other = flight.request(&user("b")).await.expect("a slot");
        flight.read_body(large(), 1 << 20, &other).await.expect("another user has room");
        drop(first);
        flight.read_body(large(), 1 << 20, &permit).await.expect("there is room again");
        assert_eq!(flight.read_body(large(), 1000, &permit).await.expect_err("too large").code, 413);
    }
}
