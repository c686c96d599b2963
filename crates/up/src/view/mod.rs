//! Live progress: a tree that is redrawn on a terminal, one line per change otherwise.

mod diagnostics;
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

use super::bootstrap_objects as objects;
pub(super) use model::{Row, State, evaluate, kinds};

/// Shortest time between two redraws.
const MIN_REDRAW_INTERVAL: Duration = Duration::from_millis(120);
/// How long everything must be ready: an object that was just applied appears a little later.
const STABLE_PERIOD: Duration = Duration::from_millis(250);
/// After this time without changes, failed objects are not expected to recover.
const STUCK_TIMEOUT: Duration = Duration::from_secs(8);

/// When [`show`] returns.
#[derive(Clone, Copy, Debug)]
pub(super) enum ExitCondition {
    Stopped,
    /// When everything is ready, or after this time.
    Ready(Duration),
}

/// Why [`show`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ViewResult {
    Stopped,
    Ready,
    /// Nothing is in progress, and not everything is ready.
    Stuck,
    TimedOut,
}

/// What the view shows.
pub(super) struct ViewState {
    pub(super) runtime: Runtime,
    pub(super) objects: fl_apply::Cluster,
    /// The directory of the source, to show lines of its files.
    pub(super) root: Option<PathBuf>,
    /// The commit to deliver, once it is known.
    pub(super) wanted: watch::Receiver<Option<String>>,
    pub(super) notes: Notes,
}

/// Messages of other tasks, which are printed above the tree.
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

impl ViewState {
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
                "fetching a change".clone_into(&mut row.message);
            }
        }
        rows
    }

    fn place(&self, row: &Row) -> Option<diagnostics::SourceLine> {
        if row.state != State::Failed || row.kind != "Kustomization" {
            return None;
        }
        diagnostics::place(&row.message, &row.path, self.root.as_deref()?)
    }
}

/// Shows progress until the exit condition holds or the process is stopped.
pub(super) async fn show(watched: &ViewState, until: ExitCondition) -> (ViewResult, Vec<Row>) {
    let changed = Arc::new(Notify::new());
    let notify = changed.clone();
    watched.runtime.informers().listen(Arc::new(move |_| notify.notify_one()));
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
            return (ViewResult::Stopped, rows);
        }
        if let ExitCondition::Ready(limit) = until {
            let is_idle = !rows.iter().any(|r| r.state == State::Progressing);
            if delivered(&rows) && moved.elapsed() >= STABLE_PERIOD {
                return (ViewResult::Ready, rows);
            }
            if is_idle && !rows.is_empty() && moved.elapsed() >= STUCK_TIMEOUT {
                return (ViewResult::Stuck, rows);
            }
            if start.elapsed() >= limit {
                return (ViewResult::TimedOut, rows);
            }
        }
        // Applied objects may be of kinds that are not watched, so their readiness is polled.
        let pending = |row: &Row| row.applied.as_ref().is_some_and(|a| !a.pending.is_empty());
        let poll_interval = match until {
            ExitCondition::Ready(_) => STABLE_PERIOD,
            ExitCondition::Stopped if rows.iter().any(pending) => Duration::from_secs(1),
            ExitCondition::Stopped => Duration::from_secs(3600),
        };
        tokio::select! {
            () = changed.notified() => tokio::time::sleep(MIN_REDRAW_INTERVAL).await,
            _ = wanted.changed() => {}
            () = tokio::time::sleep(poll_interval) => {}
            () = stop.stopped() => {}
        }
    }
}

/// Whether the bootstrap objects exist and all objects are ready or suspended.
fn delivered(rows: &[Row]) -> bool {
    let ours = |kind: &str| {
        rows.iter().any(|r| r.kind == kind && r.namespace == objects::NAMESPACE && r.name == objects::NAME)
    };
    ours("GitRepository")
        && ours("Kustomization")
        && rows.iter().all(|r| matches!(r.state, State::Ready | State::Suspended))
}

/// The JSON summary.
pub(super) fn summary(watched: &ViewState, rows: &[Row], outcome: ViewResult, elapsed: Duration) -> Value {
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
        "ready": outcome == ViewResult::Ready || delivered(rows),
        "seconds": (elapsed.as_secs_f64() * 1000.0).round() / 1000.0,
        "objects": rows.iter().map(object).collect::<Vec<_>>(),
    })
}

/// Draws to stderr.
struct Screen {
    terminal: bool,
    /// Lines of the tree on the terminal.
    drawn: usize,
    /// The last line of each object.
    printed: BTreeMap<String, String>,
}

impl Screen {
    fn new() -> Self {
        Screen { terminal: std::io::stderr().is_terminal(), drawn: 0, printed: BTreeMap::new() }
    }

    fn draw(&mut self, rows: &[Row], watched: &ViewState) {
        let text = if self.terminal { self.redraw(rows, watched) } else { self.lines(rows, watched) };
        // A closed stderr is not an error.
        let _ = std::io::stderr().lock().write_all(text.as_bytes());
    }

    /// The new tree, which replaces the last one.
    fn redraw(&mut self, rows: &[Row], watched: &ViewState) -> String {
        let size = rustix::termios::tcgetwinsize(std::io::stderr()).ok();
        let width = size.map(|s| usize::from(s.ws_col)).filter(|w| *w > 0).unwrap_or(100);
        let height = size.map(|s| usize::from(s.ws_row)).filter(|h| *h > 0).unwrap_or(40);
        let columns = width.saturating_sub(1);
        let summary_lines = tree::summary_lines(rows, columns);
        let room = tree::Viewport { lines: height.saturating_sub(1 + summary_lines.len()).max(6), columns };
        let mut lines = tree::lines(rows, &|row| watched.place(row), room);
        lines.extend(summary_lines);
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

    /// The changed objects, one after the other.
    fn lines(&mut self, rows: &[Row], watched: &ViewState) -> String {
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
            if self.printed.get(&row.id()) != Some(&line) {
                out.push_str(&line);
                out.push('\n');
            }
            now.insert(row.id(), line);
        }
        for gone in self.printed.keys().filter(|id| !now.contains_key(*id)) {
            out.push_str(&format!("► {gone} was deleted\n"));
        }
        self.printed = now;
        out
    }
}
