//! Formats rows as lines and as a tree.

use std::collections::BTreeSet;

use super::diagnostics::SourceLine;
use super::model::{Row, State};

/// Shortens hashes as `flux` does.
fn short(revision: &str) -> String {
    match revision.split_once(':') {
        Some((head, hash)) if hash.len() >= 40 => {
            format!("{head}:{}", hash.chars().take(8).collect::<String>())
        }
        _ => revision.to_owned(),
    }
}

fn counts(row: &Row) -> String {
    match &row.applied {
        Some(applied) if row.kind == "Kustomization" => {
            format!("  {}/{} objects", applied.ready, applied.total)
        }
        _ => String::new(),
    }
}

/// The text of an object: its line, and the further lines of its message.
pub(super) fn text(row: &Row) -> Vec<String> {
    let revision =
        if row.revision.is_empty() { String::new() } else { format!("  {}", short(&row.revision)) };
    let mut message = row.message.lines().map(str::trim_end).filter(|line| !line.is_empty());
    let why = match row.state {
        State::Ready => String::new(),
        state @ State::Suspended => format!("  {}", state.word()),
        state => format!("  {}: {}", state.word(), message.next().unwrap_or_default()),
    };
    let pending = match &row.applied {
        Some(applied) if row.state != State::Ready && !applied.pending.is_empty() => {
            format!("  (not ready: {})", some(&applied.pending))
        }
        _ => String::new(),
    };
    let first = format!("{} {}{revision}{}{why}{pending}", row.state.glyph(), row.id(), counts(row));
    let has_more = !matches!(row.state, State::Ready | State::Suspended);
    let more = message.filter(|_| has_more).map(|line| format!("    {line}"));
    [first].into_iter().chain(more).collect()
}

/// Lines of one object on the terminal; a longer message is folded in the middle, because the cause is at the end.
const MAX_LINES: usize = 8;

/// The text of an object within the width of the terminal. `lead` is the prefix of its first line, `below` of the others.
fn wrapped(row: &Row, lead: &str, below: &str, width: usize) -> Vec<String> {
    let mut out = Vec::new();
    for (i, line) in text(row).iter().enumerate() {
        let first = if i == 0 { lead } else { below };
        wrap(line, first, &format!("{below}    "), width, &mut out);
    }
    if out.len() > MAX_LINES {
        let (head, tail) = (MAX_LINES / 2 - 1, MAX_LINES / 2);
        let hidden = out.len() - head - tail;
        let fold = format!("{below}    … {hidden} lines …");
        out.splice(head..out.len() - tail, [fold]);
    }
    out
}

/// Wraps a line between words, and inside words that are longer than a line.
fn wrap(line: &str, first: &str, rest: &str, width: usize, out: &mut Vec<String>) {
    let columns = |text: &str| text.chars().count();
    // At least eight columns of text, on however narrow a terminal.
    let width = width.max(columns(rest) + 8);
    let (mut current, mut is_new, mut is_first) = (first.to_owned(), true, true);
    for word in line.split_inclusive(' ') {
        let mut word = word;
        loop {
            if !is_first && is_new && word.trim_end().is_empty() {
                break;
            }
            if columns(&current) + columns(word.trim_end()) <= width {
                current.push_str(word);
                is_new &= word.trim_end().is_empty();
                break;
            }
            if is_new {
                let fits = width - columns(&current);
                let cut = word.char_indices().nth(fits).map_or(word.len(), |(at, _)| at);
                current.push_str(&word[..cut]);
                word = &word[cut..];
            }
            out.push(current.trim_end().to_owned());
            (current, is_new, is_first) = (rest.to_owned(), true, false);
        }
    }
    if !is_new {
        out.push(current.trim_end().to_owned());
    }
}

fn some(names: &[String]) -> String {
    match names {
        [a, b, c, rest @ ..] if !rest.is_empty() => format!("{a}, {b}, {c} and {} more", rest.len()),
        names => names.join(", "),
    }
}

/// The size of a terminal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Viewport {
    pub(super) lines: usize,
    pub(super) columns: usize,
}

/// The tree within the viewport; ready objects are omitted first.
pub(super) fn lines(rows: &[Row], place: &dyn Fn(&Row) -> Option<SourceLine>, room: Viewport) -> Vec<String> {
    let Viewport { lines: room, columns } = room;
    let all = build(rows, place, columns, |_| true);
    if all.len() <= room {
        return all;
    }
    let ready = rows.iter().filter(|r| r.state == State::Ready).count();
    let mut rest = build(rows, place, columns, |row| row.state != State::Ready);
    rest.insert(0, format!("✔ {ready} ready"));
    if rest.len() > room {
        let hidden = rest.len() - room + 1;
        rest.truncate(room - 1);
        rest.push(format!("… and {hidden} more lines; `fluorite get all -A` shows them"));
    }
    rest
}

fn build(
    rows: &[Row],
    place: &dyn Fn(&Row) -> Option<SourceLine>,
    columns: usize,
    shown: impl Fn(&Row) -> bool,
) -> Vec<String> {
    let shown: Vec<&Row> = rows.iter().filter(|r| shown(r)).collect();
    let applies = |row: &Row| matches!(row.kind.as_str(), "Kustomization" | "HelmRelease");
    let mut out = Vec::new();
    for row in shown.iter().filter(|r| !applies(r)) {
        out.extend(wrapped(row, "", "", columns));
    }
    let key = |row: &Row| (row.namespace.clone(), row.name.clone());
    let is_here =
        |parent: &(String, String)| shown.iter().any(|r| r.kind == "Kustomization" && key(r) == *parent);
    let top = |row: &&&Row| {
        applies(row)
            && row
                .parent
                .as_ref()
                .is_none_or(|p| !is_here(p) || (row.kind == "Kustomization" && *p == key(row)))
    };
    let mut drawing = TreeBuilder { rows: &shown, place, columns, seen: BTreeSet::new(), out };
    for row in shown.iter().filter(top) {
        drawing.branch(row, "", "");
    }
    // Members of a cycle have no root.
    for row in shown.iter().filter(|r| applies(r)) {
        if !drawing.seen.contains(&row.id()) {
            drawing.branch(row, "", "");
        }
    }
    drawing.out
}

/// Builds the lines of the tree.
struct TreeBuilder<'a> {
    rows: &'a [&'a Row],
    place: &'a dyn Fn(&Row) -> Option<SourceLine>,
    columns: usize,
    seen: BTreeSet<String>,
    out: Vec<String>,
}

impl TreeBuilder<'_> {
    fn branch(&mut self, row: &Row, lead: &str, below: &str) {
        if !self.seen.insert(row.id()) {
            return;
        }
        let mine = (row.namespace.clone(), row.name.clone());
        let children: Vec<&Row> = self
            .rows
            .iter()
            .copied()
            .filter(|r| matches!(r.kind.as_str(), "Kustomization" | "HelmRelease"))
            .filter(|r| {
                row.kind == "Kustomization"
                    && r.parent.as_ref() == Some(&mine)
                    && !self.seen.contains(&r.id())
            })
            .collect();
        self.out.extend(wrapped(row, lead, below, self.columns));
        if let Some(place) = (self.place)(row) {
            let text = format!("{}:{}: {}", place.file, place.line, place.text);
            let first = format!("{below}    ");
            wrap(&text, &first, &format!("{first}    "), self.columns, &mut self.out);
        }
        for (i, child) in children.iter().enumerate() {
            let (lead, more) =
                if i + 1 == children.len() { ("└── ", "    ") } else { ("├── ", "│   ") };
            self.branch(child, &format!("{below}{lead}"), &format!("{below}{more}"));
        }
    }
}

/// The last lines: how many objects are ready, and which are not.
pub(super) fn summary_lines(rows: &[Row], columns: usize) -> Vec<String> {
    let mut out = Vec::new();
    wrap(&summary(rows), "", "  ", columns, &mut out);
    out
}

fn summary(rows: &[Row]) -> String {
    let ready = rows.iter().filter(|r| r.state == State::Ready).count();
    let failed: Vec<String> = rows.iter().filter(|r| r.state == State::Failed).map(Row::id).collect();
    let open: Vec<String> =
        rows.iter().filter(|r| matches!(r.state, State::Progressing | State::Waiting)).map(Row::id).collect();
    let mut text = format!("{ready} of {} ready", rows.len());
    if !open.is_empty() {
        text.push_str(&format!("; waiting for {}", some(&open)));
    }
    if !failed.is_empty() {
        text.push_str(&format!("; failed: {}", some(&failed)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::model::AppliedObjects;
    use super::*;

    fn row(kind: &str, name: &str, state: State, parent: Option<&str>) -> Row {
        Row {
            kind: kind.to_owned(),
            namespace: "flux-system".to_owned(),
            name: name.to_owned(),
            state,
            revision: format!("main@sha1:{}", "ab".repeat(20)),
            message: "why\nand more".to_owned(),
            path: String::new(),
            applied: (kind == "Kustomization").then(|| AppliedObjects {
                ready: 1,
                total: 2,
                pending: vec!["Pod/a/b".into()],
            }),
            parent: parent.map(|p| ("flux-system".to_owned(), p.to_owned())),
        }
    }

    fn rows() -> Vec<Row> {
        vec![
            row("GitRepository", "flux-system", State::Ready, None),
            row("Kustomization", "flux-system", State::Ready, Some("flux-system")),
            row("Kustomization", "platform", State::Progressing, Some("flux-system")),
            row("HelmRelease", "cache", State::Ready, Some("platform")),
            row("Kustomization", "staging", State::Failed, Some("flux-system")),
        ]
    }

    #[test]
    fn tree_shows_parents_and_messages() {
        let place = |row: &Row| {
            (row.name == "staging").then(|| SourceLine {
                file: "a.yaml".into(),
                line: 3,
                text: "x: y: z".into(),
            })
        };
        assert_eq!(
            lines(&rows(), &place, Viewport { lines: 40, columns: 200 }),
            [
                "✔ GitRepository/flux-system/flux-system  main@sha1:abababab",
                "✔ Kustomization/flux-system/flux-system  main@sha1:abababab  1/2 objects",
                "├── ◎ Kustomization/flux-system/platform  main@sha1:abababab  1/2 objects  progressing: why  (not ready: Pod/a/b)",
                "│       and more",
                "│   └── ✔ HelmRelease/flux-system/cache  main@sha1:abababab",
                "└── ✗ Kustomization/flux-system/staging  main@sha1:abababab  1/2 objects  failed: why  (not ready: Pod/a/b)",
                "        and more",
                "        a.yaml:3: x: y: z",
            ]
        );
        let text = summary(&rows());
        assert_eq!(
            text,
            "3 of 5 ready; waiting for Kustomization/flux-system/platform; failed: Kustomization/flux-system/staging"
        );
    }

    #[test]
    fn suspended_state_is_shown_once() {
        let shown = text(&row("Kustomization", "staging", State::Suspended, None)).join("|");
        assert!(
            shown.starts_with("⏸ Kustomization/flux-system/staging") && shown.contains("  suspended"),
            "{shown}"
        );
        assert!(!shown.contains("suspended:"), "{shown}");
    }

    #[test]
    fn small_viewport_omits_ready_objects() {
        let wide = |lines| Viewport { lines, columns: 200 };
        let shown = lines(&rows(), &|_| None, wide(6));
        assert_eq!(shown[0], "✔ 3 ready");
        assert_eq!(shown.len(), 5);
        let ring = [
            row("Kustomization", "a", State::Ready, Some("b")),
            row("Kustomization", "b", State::Ready, Some("a")),
        ];
        assert_eq!(lines(&ring, &|_| None, wide(9)).len(), 2);
    }

    /// The cause of an error is at its end, so the end is never cut.
    #[test]
    fn long_messages_are_wrapped_and_folded() {
        let mut long = row("Kustomization", "staging", State::Failed, None);
        long.applied = None;
        long.message = "one two three four five six seven eight nine ten and the cause".to_owned();
        let narrow = |columns| Viewport { lines: 40, columns };
        let shown = lines(std::slice::from_ref(&long), &|_| None, narrow(40));
        assert_eq!(
            shown,
            [
                "✗ Kustomization/flux-system/staging",
                "    main@sha1:abababab  failed: one two",
                "    three four five six seven eight nine",
                "    ten and the cause",
            ]
        );
        long.message = format!("{}the cause", "x".repeat(1000));
        let shown = lines(std::slice::from_ref(&long), &|_| None, narrow(40));
        assert_eq!(shown.len(), MAX_LINES);
        assert!(shown.iter().all(|line| line.chars().count() <= 40), "{shown:#?}");
        assert!(shown.iter().any(|line| line.contains("lines …")), "{shown:#?}");
        assert!(shown.last().is_some_and(|line| line.ends_with("cause")), "{shown:#?}");
        // A terminal that is too narrow for anything.
        assert!(!lines(&[long], &|_| None, narrow(0)).is_empty());
    }
}
