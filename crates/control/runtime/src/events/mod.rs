//! Events: Kubernetes events, and notifications to an event sink.

mod correlate;
mod sink;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

pub use sink::HttpSink;

use crate::load::Load;
use crate::log::Log;
use crate::resource::Reconciled;
use crate::result::EventKind;
use correlate::{Correlator, Decision};
use fl_client::Kind;
use fl_client::MaskedText;
use fl_client::Shutdown;
use fl_client::{Client, Patch, Write};

/// Annotations with this prefix are copied into each event of the object.
const COPIED: &str = "event.toolkit.fluxcd.io/";
/// Number of writers; events of one object always use the same one, in order.
const EVENT_WRITERS: usize = 4;
/// Capacity of a writer's queue. Events are best effort: beyond it they are dropped.
const BACKLOG: usize = 1024;
/// Maximum delay of a normal event under load.
const LATEST: Duration = Duration::from_secs(20);
/// How long a shutdown waits for queued events.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// The object an event is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InvolvedObject {
    pub kind: String,
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub api_version: String,
    pub resource_version: String,
    /// Annotations of the object that its events carry.
    #[serde(skip)]
    pub annotations: BTreeMap<String, String>,
}

impl InvolvedObject {
    pub fn of<T: Reconciled>(object: &T) -> Self {
        let meta = object.meta();
        let copied = meta.annotations.iter().flatten().filter(|(k, _)| k.starts_with(COPIED));
        InvolvedObject {
            kind: T::KIND.to_owned(),
            namespace: object.namespace().to_owned(),
            name: meta.name.clone(),
            uid: object.uid().to_owned(),
            api_version: T::api_version(),
            resource_version: meta.resource_version.clone().unwrap_or_default(),
            annotations: copied.map(|(k, v)| (k.clone(), v.clone())).collect(),
        }
    }
}

/// A notification.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Notification {
    pub involved_object: InvolvedObject,
    /// `info` or `error`
    pub severity: &'static str,
    /// RFC 3339
    pub timestamp: String,
    pub message: String,
    pub reason: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    pub reporting_controller: String,
    pub reporting_instance: String,
}

/// Receives notifications: a notification controller in this process or behind a URL. Must not block.
pub trait EventSink: Send + Sync {
    fn deliver(&self, notification: Notification);
}

struct Job {
    component: &'static str,
    about: InvolvedObject,
    warning: bool,
    reason: String,
    message: String,
    annotations: BTreeMap<String, String>,
    /// Time of the event, which may be some time before it is written.
    at: jiff::Timestamp,
    since: Instant,
}

struct Shared {
    writers: Vec<mpsc::Sender<Job>>,
    /// Number of queued events.
    unwritten: watch::Sender<usize>,
    sinks: Mutex<Vec<Arc<dyn EventSink>>>,
    host: String,
    log: Log,
}

/// Records the events of a controller. Clones share the writers.
#[derive(Clone)]
pub struct Recorder {
    shared: Arc<Shared>,
    component: &'static str,
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").field("component", &self.component).finish_non_exhaustive()
    }
}

impl Recorder {
    /// Starts the writers; they end with the last clone.
    pub(crate) fn start(cluster: &Client, load: &Load, stop: &Shutdown, log: Log) -> Self {
        let unwritten = watch::Sender::new(0);
        let writers = (0..EVENT_WRITERS)
            .map(|_| {
                let (sender, jobs) = mpsc::channel(BACKLOG);
                let writer = EventWriter {
                    cluster: cluster.clone(),
                    jobs,
                    unwritten: unwritten.clone(),
                    load: load.clone(),
                    stop: stop.clone(),
                    log: log.clone(),
                };
                tokio::spawn(writer.run());
                sender
            })
            .collect();
        let shared = Shared { writers, unwritten, sinks: Mutex::default(), host: hostname(), log };
        Recorder { shared: Arc::new(shared), component: "fluorite" }
    }

    /// The same writers for another controller.
    #[must_use]
    pub fn named(&self, component: &'static str) -> Self {
        Recorder { shared: self.shared.clone(), component }
    }

    pub fn add_sink(&self, sink: Arc<dyn EventSink>) {
        self.shared.sinks.lock().unwrap_or_else(PoisonError::into_inner).push(sink);
    }

    /// Waits for queued events to be written, for a bounded time.
    pub(crate) async fn flush(&self) {
        let mut unwritten = self.shared.unwritten.subscribe();
        let written = unwritten.wait_for(|count| *count == 0);
        if tokio::time::timeout(FLUSH_TIMEOUT, written).await.is_err() {
            self.shared.log.error("time is up", "some events are not written");
        }
    }

    /// Records an event. `metadata` keys carry the API group of the object as a prefix already.
    pub fn event(
        &self,
        about: &InvolvedObject,
        kind: EventKind,
        reason: &str,
        message: &MaskedText,
        metadata: BTreeMap<String, String>,
    ) {
        let mut annotations = metadata;
        annotations.extend(about.annotations.clone());
        let warning = kind == EventKind::Warning;
        let job = Job {
            component: self.component,
            about: about.clone(),
            warning,
            reason: reason.to_owned(),
            message: message.to_string(),
            annotations: annotations.clone(),
            at: jiff::Timestamp::now(),
            since: Instant::now(),
        };
        let writer = about.uid.bytes().fold(0usize, |sum, b| sum.wrapping_mul(31).wrapping_add(b.into()))
            % EVENT_WRITERS;
        self.shared.unwritten.send_modify(|count| *count += 1);
        if self.shared.writers[writer].try_send(job).is_err() {
            self.shared.unwritten.send_modify(|count| *count -= 1);
            self.shared.log.error("too many events at once", "an event is dropped");
        }
        if kind == EventKind::Trace {
            return;
        }
        let sinks = self.shared.sinks.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for sink in sinks {
            sink.deliver(Notification {
                involved_object: about.clone(),
                severity: if warning { "error" } else { "info" },
                timestamp: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
                message: message.to_string(),
                reason: reason.to_owned(),
                metadata: annotations.clone(),
                reporting_controller: self.component.to_owned(),
                reporting_instance: self.shared.host.clone(),
            });
        }
    }
}

fn hostname() -> String {
    std::env::var("HOSTNAME")
        .ok()
        .filter(|h| !h.is_empty())
        .or_else(|| std::fs::read_to_string("/proc/sys/kernel/hostname").ok().map(|h| h.trim().to_owned()))
        .unwrap_or_else(|| "localhost".to_owned())
}

/// Writes the events of some objects in order.
struct EventWriter {
    cluster: Client,
    jobs: mpsc::Receiver<Job>,
    unwritten: watch::Sender<usize>,
    load: Load,
    stop: Shutdown,
    log: Log,
}

impl EventWriter {
    async fn run(mut self) {
        let mut correlator = Correlator::default();
        while let Some(job) = self.jobs.recv().await {
            // Warnings are not delayed, nor are events of a queue that fills up.
            if !job.warning && self.jobs.len() < BACKLOG / 2 {
                tokio::select! {
                    () = self.load.wait_until_quiet(job.since + LATEST) => {}
                    () = self.stop.stopped() => {}
                }
            }
            // A terminating namespace accepts no events; not an error.
            if let Err(error) = self.write(&mut correlator, &job).await
                && !error.is_forbidden()
                && !error.is_not_found()
            {
                self.log.error(&error.to_string(), "an event cannot be recorded");
            }
            self.unwritten.send_modify(|count| *count -= 1);
        }
    }

    async fn write(&self, correlator: &mut Correlator, job: &Job) -> Result<(), fl_client::Error> {
        let (cluster, kind) = (&self.cluster, Kind::event());
        let decision = correlator.decide(
            job.component,
            &job.about,
            job.warning,
            &job.reason,
            &job.message,
            Instant::now(),
        );
        match decision {
            Decision::Drop => Ok(()),
            Decision::Repeat { name, count, message, id } => {
                let patch = json!({
                    "count": count,
                    "message": message,
                    "lastTimestamp": rfc3339(job.at),
                });
                let write = Write::by(job.component);
                match cluster
                    .patch(&kind, Some(&job.about.namespace), &name, Patch::Strategic, &patch, &write)
                    .await
                {
                    // The API server expires events after an hour.
                    Err(e) if e.is_not_found() => create(cluster, &kind, correlator, id, job, &message).await,
                    other => other.map(drop),
                }
            }
            Decision::New { message, id } => create(cluster, &kind, correlator, id, job, &message).await,
        }
    }
}

async fn create(
    cluster: &Client,
    kind: &Kind,
    correlator: &mut Correlator,
    id: correlate::Id,
    job: &Job,
    message: &str,
) -> Result<(), fl_client::Error> {
    let name = format!("{}.{:x}", job.about.name, job.at.as_nanosecond());
    let event = body(job, &name, message);
    cluster.create_only(kind, Some(&job.about.namespace), &event, &Write::by(job.component)).await?;
    correlator.recorded(id, name);
    Ok(())
}

fn rfc3339(at: jiff::Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn body(job: &Job, name: &str, message: &str) -> Value {
    let at = rfc3339(job.at);
    let mut event = json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": job.about.namespace},
        "involvedObject": job.about,
        "reason": job.reason,
        "message": message,
        "source": {"component": job.component},
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
        "type": if job.warning { "Warning" } else { "Normal" },
        "reportingComponent": job.component,
        "reportingInstance": "",
    });
    if !job.annotations.is_empty() {
        event["metadata"]["annotations"] = json!(job.annotations);
    }
    event
}
