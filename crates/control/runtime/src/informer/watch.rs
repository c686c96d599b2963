//! The list and watch loop of one kind.
//!
//! The initial list is streamed (`sendInitialEvents`) where the server supports it, else paged. Objects stay
//! cached until a new list is complete, so a lost connection never looks like a deletion.

use std::collections::HashSet;
use std::time::Duration;

use futures::StreamExt;
use http::Method;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{CachedObject, Content, Informers, Store, WatchSpec};
use crate::backoff::Backoff;
use fl_client::{ApiError, Error as ClientError, Request, query};

/// Watch timeout in seconds; each watch adds a random part, so that they do not all end at once.
const SERVER_TIMEOUT: u64 = 290;
const PAGE: &str = "500";
/// Retry interval for a kind that is not served.
const UNSERVED: Duration = Duration::from_secs(5);

enum End {
    /// Ended or disconnected: resume from the last resourceVersion.
    Resume,
    /// The resourceVersion is too old: list again.
    Relist,
}

/// A watch event.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(borrow)]
    object: &'a RawValue,
}

/// Runs until dropped.
pub(super) async fn run(informers: &Informers, spec: &WatchSpec, store: &Store) {
    let log = informers.inner.log.with([("kind", spec.kind.kind().into())]);
    let mut backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(30));
    let mut streaming = true;
    let mut version: Option<String> = None;
    let mut told = false;
    loop {
        let result = match &version {
            Some(from) => follow(informers, spec, store, from.clone(), None).await,
            None if streaming => follow(informers, spec, store, String::new(), Some(HashSet::new())).await,
            None => pages(informers, spec, store).await.map(|from| (End::Resume, Some(from))),
        };
        match result {
            Ok((End::Resume, from)) => {
                backoff.reset();
                told = false;
                // An interrupted streamed list has no resourceVersion to resume from.
                version = from;
                if version.is_none() {
                    tokio::time::sleep(backoff.next_delay()).await;
                }
            }
            Ok((End::Relist, _)) => version = None,
            Err(error) if error.is_gone() => version = None,
            // 422 and 400: a server (or feature gate) without streamed lists.
            Err(error) if version.is_none() && streaming && matches!(error.code(), Some(400 | 422)) => {
                streaming = false;
            }
            // The kind is not served; its CRD may be created later. Cached objects stay: a CRD that is being
            // replaced looks the same for a moment.
            Err(error) if error.is_not_found() => {
                store.mark_synced();
                if !told {
                    log.info("the kind is not served by this cluster");
                    told = true;
                }
                version = None;
                tokio::time::sleep(UNSERVED).await;
            }
            Err(error) => {
                if !told {
                    log.error(&error.to_string(), "cannot watch, trying again");
                    told = true;
                }
                tokio::time::sleep(backoff.next_delay()).await;
            }
        }
    }
}

fn accept(spec: &WatchSpec) -> &'static str {
    match spec.content {
        Content::Full => "application/json",
        Content::Metadata => "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
    }
}

fn list_accept(spec: &WatchSpec) -> &'static str {
    match spec.content {
        Content::Full => "application/json",
        Content::Metadata => {
            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
        }
    }
}

/// Lists the kind in pages; returns the resourceVersion to watch from.
async fn pages(informers: &Informers, spec: &WatchSpec, store: &Store) -> Result<String, ClientError> {
    let path = spec.kind.collection_path(informers.inner.namespace.as_deref());
    let full = spec.content == Content::Full;
    let mut seen = HashSet::new();
    let mut next = String::new();
    loop {
        let query = query(&[("limit", PAGE), ("labelSelector", &spec.label_selector), ("continue", &next)]);
        let request = Request::new(Method::GET, &path, &query).accept(list_accept(spec));
        let mut page = informers.inner.cluster.json(&request).await?.body;
        if let Value::Array(items) = page["items"].take() {
            for item in items {
                take(informers, store, CachedObject::new(&spec.kind, item, full), Some(&mut seen));
            }
        }
        match page["metadata"]["continue"].as_str() {
            Some(more) if !more.is_empty() => more.clone_into(&mut next),
            _ => {
                forget_unseen(informers, store, &seen);
                store.mark_synced();
                return Ok(page["metadata"]["resourceVersion"].as_str().unwrap_or("0").to_owned());
            }
        }
    }
}

/// Watches from a resourceVersion, or with `seen` streams the initial list first.
async fn follow(
    informers: &Informers,
    spec: &WatchSpec,
    store: &Store,
    from: String,
    mut seen: Option<HashSet<(String, String)>>,
) -> Result<(End, Option<String>), ClientError> {
    let spread = spec.kind.kind().bytes().map(u64::from).sum::<u64>() % 30;
    let streamed = |text: &'static str| if seen.is_some() { text } else { "" };
    let query = query(&[
        ("watch", "true"),
        ("allowWatchBookmarks", "true"),
        ("timeoutSeconds", &(SERVER_TIMEOUT + spread).to_string()),
        ("labelSelector", &spec.label_selector),
        ("sendInitialEvents", streamed("true")),
        ("resourceVersionMatch", streamed("NotOlderThan")),
        ("resourceVersion", &from),
    ]);
    let path = spec.kind.collection_path(informers.inner.namespace.as_deref());
    let request = Request::new(Method::GET, &path, &query).accept(accept(spec));
    let mut lines = informers.inner.cluster.lines(&request).await?;
    let full = spec.content == Content::Full;
    let mut version = (!from.is_empty()).then_some(from);
    while let Some(Ok(line)) = lines.next().await {
        if line.is_empty() {
            continue;
        }
        // A line truncated by a lost connection: resume from the last complete one.
        let Ok(Event { kind, object }) = serde_json::from_slice::<Event<'_>>(&line) else { break };
        let object_version = match kind.as_str() {
            "ADDED" | "MODIFIED" => match CachedObject::read_meta(object) {
                // The event of a write of our own; the response has updated the cache already.
                Ok(meta) if store.knows(&meta) => {
                    if let Some(seen) = &mut seen {
                        seen.insert((meta.namespace.unwrap_or_default(), meta.name));
                    }
                    meta.resource_version
                }
                meta => {
                    let live = meta.and_then(|meta| CachedObject::read_on(&spec.kind, meta, object, full));
                    take(informers, store, live, seen.as_mut())
                }
            },
            "DELETED" => CachedObject::read(&spec.kind, object, false).ok().and_then(|live| {
                if let Some(change) = store.remove(live.namespace(), live.name()) {
                    informers.publish(&change);
                }
                live.meta().resource_version.clone()
            }),
            "BOOKMARK" => {
                let bookmark: Value = serde_json::from_str(object.get()).unwrap_or_default();
                let complete = bookmark["metadata"]["annotations"]["k8s.io/initial-events-end"] == "true";
                if complete && let Some(seen) = seen.take() {
                    forget_unseen(informers, store, &seen);
                    store.mark_synced();
                }
                bookmark["metadata"]["resourceVersion"].as_str().map(str::to_owned)
            }
            "ERROR" => {
                let object: Value = serde_json::from_str(object.get()).unwrap_or_default();
                let code = object["code"].as_u64().unwrap_or_default();
                if code == 410 {
                    return Ok((End::Relist, None));
                }
                return Err(ApiError::from_status(u16::try_from(code).unwrap_or(500), &object).into());
            }
            _ => None,
        };
        // resourceVersions of an incomplete initial list cannot be resumed from.
        if seen.is_none() && object_version.is_some() {
            version = object_version;
        }
    }
    Ok((End::Resume, version.filter(|_| seen.is_none())))
}

/// Caches an object; returns its resourceVersion if it can be parsed.
fn take(
    informers: &Informers,
    store: &Store,
    object: Result<CachedObject, serde_json::Error>,
    seen: Option<&mut HashSet<(String, String)>>,
) -> Option<String> {
    let live = match object {
        Ok(live) => live,
        Err(error) => {
            // One invalid object must not stop the watch.
            informers.inner.log.error(&error.to_string(), "an object of a watch cannot be read");
            return None;
        }
    };
    if let Some(seen) = seen {
        seen.insert((live.namespace().to_owned(), live.name().to_owned()));
    }
    let version = live.meta().resource_version.clone();
    if let Some(change) = store.put(live) {
        informers.publish(&change);
    }
    version
}

fn forget_unseen(informers: &Informers, store: &Store, seen: &HashSet<(String, String)>) {
    for (namespace, name) in store.names() {
        if !seen.contains(&(namespace.clone(), name.clone()))
            && let Some(change) = store.remove(&namespace, &name)
        {
            informers.publish(&change);
        }
    }
}
