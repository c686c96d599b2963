//! The `watch` verb: a stream of events.
//!
//! A watch holds a revision and a receiver that reports changes of its table; events are read from the shared
//! history. Ten thousand idle watches cost ten thousand small futures. Events are encoded when the client has
//! read the previous ones, so that a client that does not read holds references to objects and not copies of
//! them.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fl_schema::FieldError;
use futures::StreamExt as _;
use http_body_util::{BodyExt as _, StreamBody};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::read::{self, Selection};
use crate::body::{ByteQueue, MAX_FRAME_BYTES};
use crate::crd::convert;
use crate::negotiate::{Accept, Form, View};
use crate::resource_type::ResourceType;
use crate::response::{self, ApiResponse};
use crate::server::{Inner, RequestContext, Target};
use crate::status::{ApiError, ApiResult};
use crate::store::{Entry, Event, EventKind, StoreError};

/// Maximum number of events in one read of the history, and maximum bytes of their objects.
const BATCH_EVENTS: usize = 100;
const BATCH_BYTES: usize = 256 << 10;

/// Initial objects processed before the task yields.
const MAX_OBJECTS_PER_POLL: usize = 64;

/// Duration of a watch without `timeoutSeconds`.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(3600);

fn check_options(ctx: &RequestContext) -> ApiResult<()> {
    let query = &ctx.query;
    let mut errors = Vec::new();
    let matching = query.get("resourceVersionMatch");
    if query.has("sendInitialEvents") {
        if matching != "NotOlderThan" {
            errors.push(FieldError::forbidden(
                "resourceVersionMatch",
                "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
            ));
            if !matching.is_empty() {
                let supported = ["NotOlderThan"];
                errors.push(FieldError::not_supported("resourceVersionMatch", &json!(matching), &supported));
            }
        }
    } else if !matching.is_empty() {
        errors.push(FieldError::forbidden(
            "resourceVersionMatch",
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        ));
        if matching != "NotOlderThan" {
            let supported = ["NotOlderThan"];
            errors.push(FieldError::not_supported("resourceVersionMatch", &json!(matching), &supported));
        }
    }
    if !query.get("continue").is_empty() {
        errors.push(FieldError::forbidden(
            "resourceVersionMatch",
            "resourceVersionMatch is forbidden when continue is provided",
        ));
    }
    if errors.is_empty() {
        Ok(())
    } else {
        Err(ApiError::invalid_kind("meta.k8s.io", "ListOptions", "", &errors))
    }
}

struct Stream {
    inner: Arc<Inner>,
    rt: Arc<ResourceType>,
    namespace: String,
    selection: Selection,
    accept: Accept,
    include: String,
    changed: tokio::sync::watch::Receiver<u64>,
    ending: tokio::sync::watch::Receiver<bool>,
    revision: u64,
    bookmarks: bool,
    next_bookmark: Instant,
    until: Instant,
    last_bookmark_sent: bool,
    first_table: bool,
    /// Initial objects that are not encoded yet, and whether a bookmark follows them.
    initial: std::collections::VecDeque<Arc<Entry>>,
    mark_initial_end: bool,
    /// Events up to `revision` that are not encoded yet.
    events: std::collections::VecDeque<Arc<Event>>,
    ready: ByteQueue,
    ended: bool,
}

pub(crate) async fn start(
    inner: &Arc<Inner>,
    ctx: &RequestContext,
    target: &Target,
) -> ApiResult<ApiResponse> {
    if ctx.accept.form == Form::Yaml {
        let message = "only the following media types are accepted: application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";
        return Err(ApiError::new(406, "NotAcceptable", message));
    }
    check_options(ctx)?;
    let selection = Selection::read(ctx, target)?;
    let given = ctx.query.get("resourceVersion");
    let Ok(wanted) = (if given.is_empty() { Ok(0) } else { given.parse::<u64>() }) else {
        let why = read::revision_of(given).err().unwrap_or_default();
        return Err(ApiError::new(500, "", why));
    };
    // `limit` has no effect on a watch, but it is validated.
    read::integer(ctx, "limit")?;
    let seconds = match u64::try_from(read::integer(ctx, "timeoutSeconds")?) {
        Ok(seconds) if seconds > 0 => seconds.min(DEFAULT_TIMEOUT.as_secs() * 24),
        _ => DEFAULT_TIMEOUT.as_secs(),
    };
    let newest = inner.store.revision();
    let initial = ctx.query.flag("sendInitialEvents");
    if wanted > newest {
        return Err(ApiError::too_large_revision(wanted, newest));
    }
    let now = Instant::now();
    let mut stream = Stream {
        rt: target.rt.clone(),
        namespace: target.namespace.clone(),
        selection,
        accept: ctx.accept.clone(),
        include: ctx.query.get("includeObject").to_owned(),
        changed: inner.store.subscribe(target.table()),
        ending: inner.ending.subscribe(),
        revision: wanted,
        bookmarks: ctx.query.flag("allowWatchBookmarks"),
        next_bookmark: now + inner.options.bookmark_every,
        until: now + Duration::from_secs(seconds),
        last_bookmark_sent: false,
        first_table: true,
        initial: std::collections::VecDeque::new(),
        mark_initial_end: false,
        events: std::collections::VecDeque::new(),
        ready: ByteQueue::default(),
        ended: false,
        inner: inner.clone(),
    };
    if initial || (wanted == 0 && !ctx.query.has("sendInitialEvents")) {
        stream.begin_with_everything(target, initial).await?;
    } else if wanted == 0 {
        stream.revision = newest;
    } else if let Err(error) = inner.store.events(target.table(), wanted, 1) {
        stream.fail(&gone(&error));
    }
    let body = futures::stream::unfold(stream, |mut s| async move { s.next().await.map(|chunk| (chunk, s)) })
        .map(|chunk| Ok::<_, Infallible>(http_body::Frame::data(chunk)));
    let mut response = response::respond(200, "application/json", Bytes::new());
    *response.body_mut() = StreamBody::new(body).boxed_unsync();
    Ok(ApiResponse::Raw(response))
}

fn gone(error: &StoreError) -> ApiError {
    match error {
        StoreError::Compacted { wanted, oldest } => {
            ApiError::expired(format!("too old resource version: {wanted} ({oldest})"))
        }
        other => ApiError::internal(other.to_string()),
    }
}

impl Stream {
    async fn begin_with_everything(&mut self, target: &Target, mark_end: bool) -> ApiResult<()> {
        let prefix = self.prefix();
        let (revision, items, _) = self.inner.store.list(target.table(), &prefix, None, 0);
        self.revision = revision;
        let entries = items.into_iter().map(|(_, entry)| entry).collect();
        self.initial = convert::entries(&self.inner, &self.rt, entries).await?.into();
        self.mark_initial_end = mark_end && self.bookmarks;
        Ok(())
    }

    /// Encodes initial objects and events until a frame is full or nothing is left.
    async fn fill(&mut self) {
        let mut scanned = 0;
        while self.ready.len() < MAX_FRAME_BYTES {
            if let Some(entry) = self.initial.pop_front() {
                let bytes = read::served(&self.rt, &entry);
                if self.selection.is_empty() || self.selection.matches(&self.rt, &parse(&bytes)) {
                    self.push("ADDED", &bytes);
                }
                scanned += 1;
                if scanned % MAX_OBJECTS_PER_POLL == 0 {
                    tokio::task::yield_now().await;
                }
            } else if std::mem::take(&mut self.mark_initial_end) {
                let mut object = self.bookmark_object();
                object["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
                self.push_value("BOOKMARK", &object);
            } else if let Some(event) = self.events.pop_front() {
                if self.rt.conversion.is_none() {
                    self.show(&event);
                    continue;
                }
                match self.converted(&event).await {
                    Ok(event) => self.show(&event),
                    Err(error) => {
                        self.events.clear();
                        self.fail(&error);
                    }
                }
            } else {
                return;
            }
        }
    }

    fn prefix(&self) -> String {
        if self.rt.namespaced && !self.namespace.is_empty() {
            format!("{}/", self.namespace)
        } else {
            String::new()
        }
    }

    fn bookmark_object(&self) -> Value {
        match self.accept.view {
            View::Object => json!({
                "kind": self.rt.kind, "apiVersion": self.rt.api_version(),
                "metadata": {"resourceVersion": self.revision.to_string(), "creationTimestamp": null}
            }),
            View::Table => json!({
                "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": self.revision.to_string()},
                "columnDefinitions": null, "rows": [{"cells": null, "object": {"kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": self.revision.to_string(), "creationTimestamp": null}}}]
            }),
            _ => json!({
                "kind": "PartialObjectMetadata", "apiVersion": format!("meta.k8s.io/{}", self.accept.meta_version),
                "metadata": {"resourceVersion": self.revision.to_string(), "creationTimestamp": null}
            }),
        }
    }

    fn push(&mut self, kind: &str, bytes: &Bytes) {
        if self.accept.view == View::Object {
            self.ready.push(format!("{{\"type\":\"{kind}\",\"object\":"));
            self.ready.push(bytes.clone());
            self.ready.push(&b"}\n"[..]);
            return;
        }
        let now = self.inner.now().as_second();
        let shown =
            response::view_of(&self.rt, &parse(bytes), &self.accept, &self.include, now, self.first_table);
        self.first_table = false;
        self.push_value(kind, &shown);
    }

    fn push_value(&mut self, kind: &str, object: &Value) {
        let line = json!({"type": kind, "object": object});
        self.ready.push(format!("{line}\n"));
    }

    fn fail(&mut self, error: &ApiError) {
        self.push_value("ERROR", &error.to_status());
        self.ended = true;
    }

    /// Reads the next batch of events.
    fn read_events(&mut self) {
        match self.inner.store.events(&self.rt.storage.prefix, self.revision, BATCH_EVENTS) {
            Ok((seen, events)) => {
                self.revision = seen;
                let mut bytes = 0;
                for event in events {
                    bytes += event.object.bytes.len();
                    self.events.push_back(event.clone());
                    if bytes > BATCH_BYTES {
                        self.revision = event.revision;
                        break;
                    }
                }
            }
            Err(error) => self.fail(&gone(&error)),
        }
    }

    /// The event in the watched version.
    async fn converted(&self, event: &Event) -> ApiResult<Event> {
        let mut event = event.clone();
        if event.key.starts_with(&self.prefix()) {
            event.object = convert::entry(&self.inner, &self.rt, event.object).await?;
            if let Some(previous) = event.previous.take() {
                event.previous = Some(convert::entry(&self.inner, &self.rt, previous).await?);
            }
        }
        Ok(event)
    }

    fn show(&mut self, event: &Event) {
        if !event.key.starts_with(&self.prefix()) {
            return;
        }
        let bytes = read::served(&self.rt, &event.object);
        let kind = if self.selection.is_empty() {
            match event.kind {
                EventKind::Added => "ADDED",
                EventKind::Modified => "MODIFIED",
                EventKind::Deleted => "DELETED",
            }
        } else {
            // An object that starts or stops matching the selector is reported as added or deleted.
            let now = event.kind != EventKind::Deleted && self.selection.matches(&self.rt, &parse(&bytes));
            let before = event
                .previous
                .as_ref()
                .is_some_and(|p| self.selection.matches(&self.rt, &read::served_value(&self.rt, p)));
            match (before, now) {
                (false, true) => "ADDED",
                (true, true) => "MODIFIED",
                (true, false) => {
                    return self.show_departure(event);
                }
                (false, false) => return,
            }
        };
        self.push(kind, &bytes);
    }

    /// Sends the last state that matched the selector, with the revision of the change that ended it.
    fn show_departure(&mut self, event: &Event) {
        let Some(previous) = &event.previous else { return };
        let mut object = read::served_value(&self.rt, previous);
        crate::object::set_meta(&mut object, "resourceVersion", event.revision.to_string());
        let bytes = response::to_bytes(&object);
        self.push("DELETED", &bytes);
    }

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            self.fill().await;
            if let Some(piece) = self.ready.next_frame() {
                return Some(piece);
            }
            if self.ended {
                return None;
            }
            // Marked as seen before reading, so that a change in between is not missed.
            self.changed.borrow_and_update();
            self.read_events();
            if !self.events.is_empty() || self.ended {
                continue;
            }
            // Sends one more bookmark shortly before the end, from which the client can continue.
            let last = self.until - Duration::from_secs(2);
            let due = if self.last_bookmark_sent { self.next_bookmark } else { self.next_bookmark.min(last) };
            let wake = if self.bookmarks { self.until.min(due) } else { self.until };
            tokio::select! {
                changed = self.changed.changed() => {
                    if changed.is_err() {
                        return None;
                    }
                }
                _ = self.ending.changed() => return None,
                () = tokio::time::sleep_until(wake) => {
                    let now = Instant::now();
                    if now >= self.until {
                        return None;
                    }
                    if self.bookmarks && now >= due {
                        self.read_events();
                        if !self.events.is_empty() || self.ended {
                            // The bookmark covers these events, so it follows them.
                            continue;
                        }
                        let object = self.bookmark_object();
                        self.push_value("BOOKMARK", &object);
                        self.last_bookmark_sent |= now >= last;
                        self.next_bookmark = now + self.inner.options.bookmark_every;
                    }
                }
            }
        }
    }
}

fn parse(bytes: &Bytes) -> Value {
    serde_json::from_slice(bytes).unwrap_or(Value::Null)
}
