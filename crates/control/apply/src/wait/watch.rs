//! Following objects: one watch per kind and namespace, of their own where all objects may not be watched, requests in turn where
//! watching is not allowed.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use fl_client::{Event, EventType};
use fl_types::LabelSelector;
use futures::StreamExt as _;
use serde_json::Value;
use tokio::sync::mpsc;

use super::shared_watch::WatchEnd;
use super::{News, WaitState};
use crate::object_ref::PartialObject;
use crate::{Cluster, Error, ObjectRef};

/// How often objects are read where they cannot be watched.
const POLL: Duration = Duration::from_secs(2);
/// Pause after a watch broke.
const RETRY: Duration = Duration::from_secs(1);

/// Objects of one kind in one namespace.
pub(super) struct Group {
    members: Vec<(usize, ObjectRef)>,
}

impl Group {
    /// The oldest version in which the members were seen; none when one was not seen. A watch from there misses nothing.
    pub(super) fn oldest(&self, version: impl Fn(usize) -> Option<u64>) -> Option<String> {
        let versions: Option<Vec<u64>> = self.members.iter().map(|(at, _)| version(*at)).collect();
        Some(versions?.into_iter().min()?.to_string())
    }

    pub(super) fn any(&self, member: impl Fn(usize) -> bool) -> bool {
        self.members.iter().any(|(at, _)| member(*at))
    }

    pub(super) fn any_object(&self, object: impl Fn(&ObjectRef) -> bool) -> bool {
        self.members.iter().any(|(_, member)| object(member))
    }

    fn query(&self) -> Vec<(&'static str, String)> {
        match self.members.as_slice() {
            [(_, only)] => vec![("fieldSelector", format!("metadata.name={}", only.id.name))],
            _ => Vec::new(),
        }
    }
}

/// The targets that are wanted, by kind and namespace.
pub(super) fn groups(targets: &[ObjectRef], wanted: impl Fn(usize) -> bool) -> Vec<Group> {
    let mut groups: BTreeMap<_, Vec<(usize, ObjectRef)>> = BTreeMap::new();
    for (at, target) in targets.iter().enumerate().filter(|(at, _)| wanted(*at)) {
        let id = &target.id;
        let key = (id.group.clone(), id.kind.clone(), target.version.clone(), id.namespace.clone());
        groups.entry(key).or_default().push((at, target.clone()));
    }
    groups.into_values().map(|members| Group { members }).collect()
}

/// Reports the state of the members until nobody listens, `whole` with their managed fields. They were reported as of `since`, if
/// there is one.
pub(super) async fn follow(
    cluster: Cluster,
    group: Group,
    whole: bool,
    mut since: Option<String>,
    news: mpsc::Sender<News>,
) {
    let mut shares = true;
    loop {
        let known = since.is_some();
        let version = match since.take() {
            Some(version) => Ok(version),
            None => match look(&cluster, &group).await {
                Ok((found, version)) => {
                    for one in found {
                        if news.send(one).await.is_err() {
                            return;
                        }
                    }
                    Ok(version)
                }
                Err(error) => Err(error),
            },
        };
        let ended = match version {
            Ok(version) if shares => listen(&cluster, &group, whole, &version, &news).await,
            Ok(version) => watch(&cluster, &group, whole, version, &news).await,
            Err(error) => Err(error),
        };
        match ended {
            Ok(Ended::Expired) if known => continue,
            Ok(Ended::NotShared(version)) => {
                shares = false;
                since = Some(version);
                continue;
            }
            Ok(_) => {}
            Err(Error::Client(error)) if error.is_forbidden() => return poll(&cluster, &group, &news).await,
            Err(error) => {
                for (at, _) in &group.members {
                    let seen = WaitState::Unreadable(unreadable(&error));
                    if news.send(News { target: *at, seen }).await.is_err() {
                        return;
                    }
                }
            }
        }
        if news.is_closed() {
            return;
        }
        tokio::time::sleep(RETRY).await;
    }
}

/// The members as they are now, and the version to watch from.
pub(super) async fn look(cluster: &Cluster, group: &Group) -> Result<(Vec<News>, String), Error> {
    let Some((at, first)) = group.members.first() else { return Ok((Vec::new(), String::new())) };
    if group.members.len() == 1
        && let Some(live) = cluster.get(first).await?
    {
        let version = version(&live).to_owned();
        return Ok((vec![News { target: *at, seen: WaitState::Found(live) }], version));
    }
    let query = group.query();
    let mut list = cluster.list(&first.api_version(), &first.id.kind, &first.id.namespace, &query).await?;
    let since = version(&list).to_owned();
    let mut found: HashMap<String, Value> = HashMap::new();
    for mut item in list["items"].as_array_mut().map(std::mem::take).into_iter().flatten() {
        if let Some(name) = item.pointer("/metadata/name").and_then(Value::as_str).map(str::to_owned) {
            // Items of a list do not repeat what they are.
            item["apiVersion"] = Value::from(first.api_version());
            item["kind"] = Value::from(first.id.kind.clone());
            found.insert(name, item);
        }
    }
    let mut seen =
        |member: &ObjectRef| found.remove(&member.id.name).map_or(WaitState::NotFound, WaitState::Found);
    let news = group.members.iter().map(|(at, member)| News { target: *at, seen: seen(member) }).collect();
    Ok((news, since))
}

/// Why an object cannot be read, in the words of Flux, which looks kinds up without their version when it waits.
fn unreadable(error: &Error) -> String {
    match error {
        Error::Client(fl_client::Error::NoKind { kind, api_version }) => {
            let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
            format!("no matches for kind {kind:?} in group {group:?}")
        }
        other => other.to_string(),
    }
}

fn version(object: &Value) -> &str {
    object.pointer("/metadata/resourceVersion").and_then(Value::as_str).unwrap_or_default()
}

/// How a watch ended.
enum Ended {
    /// The version is too old to go on from.
    Expired,
    /// The connection, or nobody listens any more.
    Broken,
    /// There is no watch of all objects; a watch from this version may be allowed.
    NotShared(String),
}

/// Reports what changes after a version, from the watch that all who wait share.
async fn listen(
    cluster: &Cluster,
    group: &Group,
    whole: bool,
    since: &str,
    news: &mpsc::Sender<News>,
) -> Result<Ended, Error> {
    let Ok(seen) = since.parse::<u64>() else { return Ok(Ended::NotShared(since.to_owned())) };
    let members = group.members.iter().map(|(_, member)| member);
    let Some(listener) = cluster.watches().listen(cluster, members, seen) else { return Ok(Ended::Broken) };
    if !listener.complete {
        // Who listens already and looks then misses nothing.
        for one in look(cluster, group).await?.0 {
            if news.send(one).await.is_err() {
                return Ok(Ended::Broken);
            }
        }
    }
    loop {
        let change = tokio::select! {
            () = news.closed() => return Ok(Ended::Broken),
            change = listener.next() => change,
        };
        let change = match change {
            Ok(change) => change,
            Err(WatchEnd::Forbidden) => return Ok(Ended::NotShared(since.to_owned())),
            Err(WatchEnd::Broken) => return Ok(Ended::Expired),
        };
        let Some((at, _)) = group.members.iter().find(|(_, o)| o.id.name == change.name) else { continue };
        if news.send(News { target: *at, seen: change.seen(whole) }).await.is_err() {
            return Ok(Ended::Broken);
        }
    }
}

/// Reports what changes after a version.
async fn watch(
    cluster: &Cluster,
    group: &Group,
    whole: bool,
    since: String,
    news: &mpsc::Sender<News>,
) -> Result<Ended, Error> {
    let Some((_, first)) = group.members.first() else { return Ok(Ended::Broken) };
    let by_name: HashMap<&str, usize> =
        group.members.iter().map(|(at, o)| (o.id.name.as_str(), *at)).collect();
    let mut query = group.query();
    query.push(("resourceVersion", since));
    let mut events = match cluster.watch(first, query).await {
        Err(Error::Client(error)) if error.is_gone() => return Ok(Ended::Expired),
        other => other?,
    };
    loop {
        let event = tokio::select! {
            () = news.closed() => return Ok(Ended::Broken),
            event = events.next() => event,
        };
        let (object, gone) = match event {
            Some(Ok(Event { event: EventType::Bookmark, .. })) => continue,
            Some(Ok(Event { event, object })) => (object, event == EventType::Deleted),
            Some(Err(error)) if error.is_gone() => return Ok(Ended::Expired),
            Some(Err(_)) | None => return Ok(Ended::Broken),
        };
        let Ok(PartialObject { metadata }) = serde_json::from_str(object.get()) else { continue };
        let Some(at) = by_name.get(metadata.name.as_str()) else { continue };
        let seen = if gone { WaitState::NotFound } else { WaitState::read(&object, whole) };
        if news.send(News { target: *at, seen }).await.is_err() {
            return Ok(Ended::Broken);
        }
    }
}

async fn poll(cluster: &Cluster, group: &Group, news: &mpsc::Sender<News>) {
    loop {
        for (at, object) in &group.members {
            let seen = match cluster.get(object).await {
                Ok(Some(live)) => WaitState::Found(live),
                Ok(None) => WaitState::NotFound,
                Err(error) => WaitState::Unreadable(unreadable(&error)),
            };
            if news.send(News { target: *at, seen }).await.is_err() {
                return;
            }
        }
        tokio::time::sleep(POLL).await;
    }
}

/// How many Pods of a workload have failed for good. One that waits for a place or is being deleted has not.
pub(super) async fn failed_pods(cluster: &Cluster, workload: &Value, now: i64) -> usize {
    let selector = workload.pointer("/spec/selector").cloned().unwrap_or_default();
    let Ok(selector) = serde_json::from_value::<LabelSelector>(selector) else { return 0 };
    let Ok(selector) = selector.to_selector() else { return 0 };
    let namespace = workload.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or_default();
    let query = [("labelSelector", selector.to_string())];
    // Without the right to list Pods nothing is known about them.
    let Ok(list) = cluster.list("v1", "Pod", namespace, &query).await else { return 0 };
    let failed = |pod: &&Value| {
        let mut pod = (*pod).clone();
        pod["apiVersion"] = Value::from("v1");
        pod["kind"] = Value::from("Pod");
        pod.pointer("/metadata/deletionTimestamp").is_none()
            && !is_unschedulable(&pod)
            && fl_kstatus::health(&pod, now).state == fl_kstatus::State::Failed
    };
    list["items"].as_array().into_iter().flatten().filter(failed).count()
}

fn is_unschedulable(pod: &Value) -> bool {
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array);
    conditions
        .into_iter()
        .flatten()
        .any(|c| c["type"] == "PodScheduled" && c["status"] == "False" && c["reason"] == "Unschedulable")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_nobody_serves_is_named_by_its_group() {
        let missing = |api_version: &str| {
            Error::Client(fl_client::Error::NoKind {
                kind: "Nope".to_owned(),
                api_version: api_version.to_owned(),
            })
        };
        assert_eq!(
            unreadable(&missing("a.example/v1")),
            "no matches for kind \"Nope\" in group \"a.example\""
        );
        assert_eq!(unreadable(&missing("v1")), "no matches for kind \"Nope\" in group \"\"");
    }
}
