//! Progress as it happens: a tree that is drawn again on a terminal, a line per change elsewhere.

mod explain;
mod model;
mod tree;

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fl_runtime::Runtime;
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::objects;
pub(super) use model::{Row, State, judge, kinds};

/// How often it is drawn at most.
const BETWEEN: Duration = Duration::from_millis(120);
/// Readiness must last this long to count: an object that was just applied is seen a moment later.
const STEADY: Duration = Duration::from_millis(250);
/// Without any change for this long, what has failed is not about to heal.
const SETTLED: Duration = Duration::from_secs(8);

/// When to leave.
#[derive(Clone, Copy, Debug)]
pub(super) enum Until {
    Stopped,
    /// All is ready, or this time is over.
    Ready(Duration),
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Stopped,
    Ready,
    /// Nothing moves any more, and not all is ready.
    Stuck,
    TimedOut,
}

/// Where the source is, for pointing at lines.
pub(super) struct Watched {
    pub(super) runtime: Runtime,
    pub(super) objects: fl_apply::Cluster,
    /// The directory that is served, if it is one.
    pub(super) root: Option<PathBuf>,
    /// The commit that is wanted now, once it is known.
    pub(super) wanted: watch::Receiver<Option<String>>,
    pub(super) notes: Notes,
}

/// Lines of other tasks that stand above the tree, which would be torn by a line in between.
#[derive(Clone, Debug, Default)]
pub(super) struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    pub(super) fn add(&self, text: String) {
        self.lock().push(text);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.lock())
    }

    fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watched {
    /// The rows as they are now.
    pub(super) async fn rows(&self) -> Vec<Row> {
        let mut rows = model::gather(&self.runtime, &self.objects).await;
        let wanted = self.wanted.borrow().clone();
        for row in &mut rows {
            let ours = row.kind == "GitRepository"
                && row.namespace == objects::NAMESPACE
                && row.name == objects::NAME;
            if let Some(commit) = wanted.as_ref().filter(|_| ours && row.state == State::Ready)
                && !row.revision.ends_with(commit.as_str())
            {
                row.state = State::Progressing;
                "a change is being fetched".clone_into(&mut row.message);
            }
        }
        rows
    }

    fn place(&self, row: &Row) -> Option<explain::Place> {
        if row.state != State::Failed || row.kind != "Kustomization" {
            return None;
        }
        explain::place(&row.message, &row.path, self.root.as_deref()?)
    }
}

/// Shows what happens until it is time to leave.
pub(super) async fn show(watched: &Watched, until: Until) -> (Outcome, Vec<Row>) {
    let changed = Arc::new(Notify::new());
    let told = changed.clone();
    watched.runtime.hub().listen(Arc::new(move |_| told.notify_one()));
    let start = Instant::now();
    let mut screen = Screen::new();
    let (mut last, mut moved): (Vec<Row>, _) = (Vec::new(), Instant::now());
    let mut wanted = watched.wanted.clone();
    loop {
        let rows = watched.rows().await;
        if rows != last || !watched.notes.is_empty() {
            screen.draw(&rows, watched);
            last.clone_from(&rows);
            moved = Instant::now();
        }
        let stop = watched.runtime.stop();
        if stop.is_stopped() {
            return (Outcome::Stopped, rows);
        }
        if let Until::Ready(limit) = until {
            let rests = !rows.iter().any(|r| r.state == State::Progressing);
            if delivered(&rows) && moved.elapsed() >= STEADY {
                return (Outcome::Ready, rows);
            }
            if rests && !rows.is_empty() && moved.elapsed() >= SETTLED {
                return (Outcome::Stuck, rows);
            }
            if start.elapsed() >= limit {
                return (Outcome::TimedOut, rows);
            }
        }
        // Objects that are applied and not waited for may be of kinds that nobody watches.
        let pending = |row: &Row| row.applied.as_ref().is_some_and(|a| !a.pending.is_empty());
        let look_again = match until {
            Until::Ready(_) => STEADY,
            Until::Stopped if rows.iter().any(pending) => Duration::from_secs(1),
            Until::Stopped => Duration::from_secs(3600),
        };
        tokio::select! {
            () = changed.notified() => tokio::time::sleep(BETWEEN).await,
            _ = wanted.changed() => {}
            () = tokio::time::sleep(look_again) => {}
            () = stop.stopped() => {}
        }
    }
}

/// Whether everything is there: the source, what it brought, and what that brought.
fn delivered(rows: &[Row]) -> bool {
    let ours = |kind: &str| {
        rows.iter().any(|r| r.kind == kind && r.namespace == objects::NAMESPACE && r.name == objects::NAME)
    };
    ours("GitRepository")
        && ours("Kustomization")
        && rows.iter().all(|r| matches!(r.state, State::Ready | State::Suspended))
}

/// What a script wants to know at the end.
pub(super) fn summary(watched: &Watched, rows: &[Row], outcome: Outcome, elapsed: Duration) -> Value {
    let object = |row: &Row| {
        let mut object = json!({
            "kind": row.kind, "namespace": row.namespace, "name": row.name, "state": row.state.word(),
            "revision": row.revision, "message": row.message,
        });
        if let Some(applied) = &row.applied {
            object["objects"] =
                json!({"ready": applied.ready, "total": applied.total, "pending": applied.pending});
        }
        if let Some(place) = watched.place(row) {
            object["place"] = json!({"file": place.file, "line": place.line, "text": place.text});
        }
        object
    };
    json!({
        "ready": outcome == Outcome::Ready || delivered(rows),
        "seconds": (elapsed.as_secs_f64() * 1000.0).round() / 1000.0,
        "objects": rows.iter().map(object).collect::<Vec<_>>(),
    })
}

/// Where it is drawn: stderr, as all that is said to people.
struct Screen {
    terminal: bool,
    /// Lines of the tree that are on the terminal.
    drawn: usize,
    /// What was told of each object.
    told: BTreeMap<String, String>,
}

impl Screen {
    fn new() -> Self {
        Screen { terminal: std::io::stderr().is_terminal(), drawn: 0, told: BTreeMap::new() }
    }

    fn draw(&mut self, rows: &[Row], watched: &Watched) {
        let text = if self.terminal { self.redraw(rows, watched) } else { self.lines(rows, watched) };
        // Nobody to tell when nobody reads.
        let _ = std::io::stderr().lock().write_all(text.as_bytes());
    }

    /// The tree in place of the last one.
    fn redraw(&mut self, rows: &[Row], watched: &Watched) -> String {
        let size = rustix::termios::tcgetwinsize(std::io::stderr()).ok();
        let width = size.map(|s| usize::from(s.ws_col)).filter(|w| *w > 0).unwrap_or(100);
        let height = size.map(|s| usize::from(s.ws_row)).filter(|h| *h > 0).unwrap_or(40);
        let columns = width.saturating_sub(1);
        let verdict = tree::verdict(rows, columns);
        let room = tree::Room { lines: height.saturating_sub(1 + verdict.len()).max(6), columns };
        let mut lines = tree::lines(rows, &|row| watched.place(row), room);
        lines.extend(verdict);
        let mut out = String::new();
        if self.drawn > 0 {
            out.push_str(&format!("\x1b[{}F\x1b[0J", self.drawn));
        }
        for note in watched.notes.take() {
            out.push_str(&format!("► {note}\n"));
        }
        for line in &lines {
            out.push_str(line);
            out.push('\n');
        }
        self.drawn = lines.len();
        out
    }

    /// What is new, object by object.
    fn lines(&mut self, rows: &[Row], watched: &Watched) -> String {
        let mut out = String::new();
        for note in watched.notes.take() {
            out.push_str(&format!("► {note}\n"));
        }
        let mut now = BTreeMap::new();
        for row in rows {
            let mut line = tree::text(row).join("\n");
            if let Some(place) = watched.place(row) {
                line.push_str(&format!("\n    {}:{}: {}", place.file, place.line, place.text));
            }
            if self.told.get(&row.id()) != Some(&line) {
                out.push_str(&line);
                out.push('\n');
            }
            now.insert(row.id(), line);
        }
        for gone in self.told.keys().filter(|id| !now.contains_key(*id)) {
            out.push_str(&format!("► {gone} is gone\n"));
        }
        self.told = now;
        out
    }
}
