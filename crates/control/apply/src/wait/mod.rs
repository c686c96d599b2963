//! Waiting for objects: to be healthy, or to be gone.

pub(crate) mod health;
pub(crate) mod shared_watch;
mod watch;

use std::collections::HashSet;
use std::time::Duration;

use fl_kstatus::State;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior};

use crate::live_object::read_lean;
use crate::{Action, ChangeSet, Cluster, LiveObject, ObjectId, ObjectRef};
use health::{HealthRules, HealthStatus};

/// How often the Pods behind an unfinished workload are looked at: they may have failed for good.
const POD_LOOK: Duration = Duration::from_secs(5);
/// Age changes a verdict too (an unschedulable Pod), so objects are judged again without an event.
const JUDGE_AGAIN: Duration = Duration::from_secs(5);

/// How to wait.
#[derive(Clone, Debug)]
pub struct WaitOptions {
    /// How long.
    pub timeout: Duration,
    /// End as soon as one object failed.
    pub fail_fast: bool,
    /// Jobs that vanish when they are done.
    pub jobs_with_ttl: HashSet<ObjectId>,
}

impl Default for WaitOptions {
    fn default() -> Self {
        WaitOptions { timeout: Duration::from_secs(60), fail_fast: false, jobs_with_ttl: HashSet::new() }
    }
}

/// A wait that did not end well. Prints as Flux does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitError {
    /// Whether time ran out; otherwise objects failed.
    pub timed_out: bool,
    /// The objects that are not healthy, and why.
    pub unhealthy: Vec<(ObjectId, HealthStatus)>,
    /// How many are healthy.
    pub ready: usize,
    /// How many were waited for.
    pub total: usize,
}

impl std::fmt::Display for WaitError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let what =
            if self.timed_out { "timeout waiting for" } else { "failed early due to stalled resources" };
        write!(f, "{what}: [")?;
        for (i, (object, verdict)) in self.unhealthy.iter().enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            write!(f, "{comma}{object} status: '{}'", verdict.word())?;
            if let HealthStatus::Error(error) = verdict {
                write!(f, ": {error}")?;
            }
        }
        f.write_str("]")
    }
}

impl std::error::Error for WaitError {}

/// Waits on one cluster.
#[derive(Clone, Debug)]
pub struct Waiter {
    cluster: Cluster,
    rules: HealthRules,
}

/// News about one object.
#[derive(Debug)]
pub(crate) struct News {
    pub(crate) target: usize,
    pub(crate) seen: WaitState,
}

#[derive(Clone, Debug)]
pub(crate) enum WaitState {
    Found(Value),
    NotFound,
    Unreadable(String),
}

impl WaitState {
    /// From the text of an object; `whole` with its managed fields.
    fn read(object: &RawValue, whole: bool) -> Self {
        let text = object.get();
        let read = if whole { serde_json::from_str(text) } else { read_lean(text.as_bytes()) };
        match read {
            Ok(object) => WaitState::Found(object),
            Err(error) => WaitState::Unreadable(error.to_string()),
        }
    }
}

impl Waiter {
    /// Waits with these rules.
    #[must_use]
    pub fn new(cluster: Cluster, rules: HealthRules) -> Self {
        Waiter { cluster, rules }
    }

    /// What is wrong with the first target that lives in a namespace and names none: it can never be found.
    pub async fn unplaced(&self, targets: &[ObjectRef]) -> Option<String> {
        for target in targets.iter().filter(|t| t.id.namespace.is_empty()) {
            // A kind that is not served (yet) is for the wait to tell.
            if self.cluster.resource(target).await.is_ok_and(|kind| kind.namespaced()) {
                let (kind, name) = (&target.id.kind, &target.id.name);
                return Some(format!("resource {kind} {name} is namespace scoped, but namespace is not set"));
            }
        }
        None
    }

    /// Waits until all objects are healthy. `known` holds live objects that were just seen: when they suffice, nothing is asked.
    ///
    /// # Errors
    /// When time runs out, when an object failed (with `fail_fast`), or when nothing can change any more.
    pub async fn wait(
        &self,
        targets: &[ObjectRef],
        known: Vec<LiveObject>,
        options: &WaitOptions,
    ) -> Result<(), WaitError> {
        let deadline = Instant::now() + options.timeout;
        let mut watched = Watched::new(self, targets, options);
        for live in known {
            if let Ok(seen) = ObjectRef::of(live.object())
                && let Some(at) = targets.iter().position(|t| t.id == seen.id)
            {
                let live = if self.wants_whole(&seen) { live.into_whole() } else { live.into_object() };
                watched.note(News { target: at, seen: WaitState::Found(live) });
            }
        }
        if let Some(end) = watched.end() {
            return end;
        }
        // What was not seen yet is looked at once; only what is not healthy then is watched.
        let groups = watch::groups(targets, |at| !watched.is_current(at));
        let looks = groups.into_iter().map(|group| async {
            match group.oldest(|at| watched.version(at)) {
                Some(version) => (group, Some(version), Vec::new()),
                None => match watch::look(&self.cluster, &group).await {
                    Ok((found, version)) => (group, Some(version), found),
                    // Whoever follows it tries again and reports.
                    Err(_) => (group, None, Vec::new()),
                },
            }
        });
        let looks = futures::future::join_all(looks);
        let looked = match tokio::time::timeout_at(deadline, looks).await {
            Ok(looked) => looked,
            Err(_) => return watched.timed_out(),
        };
        let mut groups = Vec::new();
        for (group, since, found) in looked {
            found.into_iter().for_each(|news| watched.note(news));
            groups.push((group, since));
        }
        if let Some(end) = watched.end() {
            return end;
        }
        let (sender, mut news) = mpsc::channel(256);
        let mut tasks = JoinSet::new();
        for (group, since) in groups {
            if since.is_none() || group.any(|at| !watched.is_current(at)) {
                let whole = group.any_object(|object| self.wants_whole(object));
                tasks.spawn(watch::follow(self.cluster.clone(), group, whole, since, sender.clone()));
            }
        }
        drop(sender);
        let mut judge = tokio::time::interval(JUDGE_AGAIN);
        judge.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut pods = tokio::time::interval_at(Instant::now() + POD_LOOK, POD_LOOK);
        pods.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                arrived = news.recv() => {
                    let Some(arrived) = arrived else { return watched.timed_out() };
                    watched.note(arrived);
                }
                () = tokio::time::sleep_until(deadline) => return watched.timed_out(),
                _ = judge.tick() => watched.judge_again(),
                _ = pods.tick() => watched.look_at_pods().await,
            }
            if news.is_empty()
                && let Some(end) = watched.end()
            {
                return end;
            }
        }
    }

    /// Whether an object is judged by an expression, which may look at everything.
    fn wants_whole(&self, object: &ObjectRef) -> bool {
        self.rules.is_custom(&object.id.group, &object.id.kind)
    }

    /// Waits until what a change set deleted is gone.
    ///
    /// # Errors
    /// The first object that is still there when time runs out, or cannot be read.
    pub async fn wait_for_termination(&self, changes: &ChangeSet, timeout: Duration) -> Result<(), String> {
        let deadline = Instant::now() + timeout;
        for change in changes.entries.iter().filter(|c| c.action == Action::Deleted) {
            let mut pause = Duration::from_millis(50);
            loop {
                match self.cluster.get(&change.object).await {
                    Ok(None) => break,
                    Ok(Some(_)) if Instant::now() + pause < deadline => {}
                    Ok(Some(_)) => {
                        return Err(format!(
                            "{} termination timeout: context deadline exceeded",
                            change.object
                        ));
                    }
                    // Its definition went with it.
                    Err(error) if error.is_no_kind() => break,
                    Err(error) => return Err(format!("{} termination timeout: {error}", change.object)),
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(Duration::from_secs(2));
            }
        }
        Ok(())
    }
}

/// Jobs among the objects that delete themselves when they are done.
#[must_use]
pub fn jobs_with_ttl<'a>(objects: impl Iterator<Item = &'a Value>) -> HashSet<ObjectId> {
    objects
        .filter(|o| o.pointer("/spec/ttlSecondsAfterFinished").is_some_and(Value::is_i64))
        .filter_map(|o| ObjectRef::of(o).ok())
        .filter(|r| r.id.kind == "Job" && r.id.group == "batch")
        .map(|r| r.id)
        .collect()
}

struct Watched<'a> {
    waiter: &'a Waiter,
    targets: &'a [ObjectRef],
    options: &'a WaitOptions,
    seen: Vec<Option<(WaitState, HealthStatus)>>,
}

impl<'a> Watched<'a> {
    fn new(waiter: &'a Waiter, targets: &'a [ObjectRef], options: &'a WaitOptions) -> Self {
        Watched { waiter, targets, options, seen: vec![None; targets.len()] }
    }

    fn note(&mut self, news: News) {
        let verdict = self.judge(&news.seen);
        if let Some(slot) = self.seen.get_mut(news.target) {
            *slot = Some((news.seen, verdict));
        }
    }

    fn judge(&self, seen: &WaitState) -> HealthStatus {
        match seen {
            WaitState::Found(live) => self.waiter.rules.judge(live, now()),
            WaitState::NotFound => HealthStatus::NotFound,
            WaitState::Unreadable(error) => HealthStatus::Error(error.clone()),
        }
    }

    fn judge_again(&mut self) {
        for at in 0..self.seen.len() {
            // Failed Pods were found by another way; only their end is news.
            let Some((seen, verdict)) = &self.seen[at] else { continue };
            if matches!(verdict, HealthStatus::State(State::InProgress, _)) {
                let again = self.judge(seen);
                if let Some((_, verdict)) = &mut self.seen[at] {
                    *verdict = again;
                }
            }
        }
    }

    fn is_current(&self, at: usize) -> bool {
        let done = |verdict: &HealthStatus| match verdict {
            HealthStatus::NotFound => self.options.jobs_with_ttl.contains(&self.targets[at].id),
            other => other.is_current(),
        };
        self.seen[at].as_ref().is_some_and(|(_, verdict)| done(verdict))
    }

    /// The version in which an object was seen.
    fn version(&self, at: usize) -> Option<u64> {
        let Some((WaitState::Found(live), _)) = &self.seen[at] else { return None };
        live.pointer("/metadata/resourceVersion")?.as_str()?.parse().ok()
    }

    fn is_failed(&self, at: usize) -> bool {
        self.seen[at].as_ref().is_some_and(|(_, verdict)| verdict.is_failed())
    }

    /// Whether the wait is over: all healthy, one failed and that suffices, or all either healthy or failed.
    fn end(&self) -> Option<Result<(), WaitError>> {
        let total = self.targets.len();
        let ready = (0..total).filter(|at| self.is_current(*at)).count();
        if ready == total {
            return Some(Ok(()));
        }
        let failed = (0..total).filter(|at| self.is_failed(*at)).count();
        let over = (self.options.fail_fast && failed > 0) || ready + failed == total;
        over.then(|| Err(self.error(false)))
    }

    fn timed_out(&self) -> Result<(), WaitError> {
        Err(self.error(true))
    }

    fn error(&self, timed_out: bool) -> WaitError {
        let total = self.targets.len();
        let unhealthy = (0..total)
            .filter(|at| if timed_out { !self.is_current(*at) } else { self.is_failed(*at) })
            .map(|at| {
                let verdict = self.seen[at].as_ref().map(|(_, v)| v.clone());
                (self.targets[at].id.clone(), verdict.unwrap_or(HealthStatus::NotFound))
            })
            .collect();
        let ready = (0..total).filter(|at| self.is_current(*at)).count();
        WaitError { timed_out, unhealthy, ready, total }
    }

    /// A workload that is not finished and has a Pod that failed for good will not finish.
    async fn look_at_pods(&mut self) {
        for at in 0..self.targets.len() {
            let id = &self.targets[at].id;
            let workload =
                id.group == "apps" && matches!(id.kind.as_str(), "Deployment" | "StatefulSet" | "ReplicaSet");
            if !workload || self.waiter.rules.is_custom(&id.group, &id.kind) {
                continue;
            }
            let Some((WaitState::Found(live), HealthStatus::State(State::InProgress, _))) = &self.seen[at]
            else {
                continue;
            };
            let failed = watch::failed_pods(&self.waiter.cluster, live, now()).await;
            if failed > 0
                && let Some((_, verdict)) = &mut self.seen[at]
            {
                *verdict = HealthStatus::State(State::Failed, format!("{failed} pods have failed"));
            }
        }
    }
}

fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn errors_print_as_flux_does() {
        let id = ObjectRef::new("apps/v1", "Deployment", "apps", "x").id;
        let mut error = WaitError {
            timed_out: true,
            unhealthy: vec![
                (id.clone(), HealthStatus::State(State::InProgress, String::new())),
                (id, HealthStatus::NotFound),
            ],
            ready: 0,
            total: 2,
        };
        assert_eq!(
            error.to_string(),
            "timeout waiting for: [Deployment/apps/x status: 'InProgress', Deployment/apps/x status: 'NotFound']"
        );
        error.timed_out = false;
        assert!(error.to_string().starts_with("failed early due to stalled resources: ["));
    }

    #[test]
    fn jobs_that_delete_themselves() {
        let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "namespace": "n"}, "spec": {"ttlSecondsAfterFinished": 0}});
        let other = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "k", "namespace": "n"}, "spec": {}});
        let jobs = jobs_with_ttl([&job, &other].into_iter());
        assert_eq!(jobs.len(), 1);
    }
}
