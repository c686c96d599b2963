//! Rows as text.

use std::collections::BTreeSet;

use super::explain::Place;
use super::model::{Row, State};

/// Hashes are cut as `flux` cuts them.
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

/// One line for an object.
pub(super) fn line(row: &Row) -> String {
    let revision =
        if row.revision.is_empty() { String::new() } else { format!("  {}", short(&row.revision)) };
    let why = match row.state {
        State::Ready => String::new(),
        // The word says it all.
        state @ State::Suspended => format!("  {}", state.word()),
        state => format!("  {}: {}", state.word(), first_line(&row.message)),
    };
    let pending = match &row.applied {
        Some(applied) if row.state != State::Ready && !applied.pending.is_empty() => {
            format!("  (not ready: {})", some(&applied.pending))
        }
        _ => String::new(),
    };
    format!("{} {}{revision}{}{why}{pending}", row.state.glyph(), row.id(), counts(row))
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

fn some(names: &[String]) -> String {
    match names {
        [a, b, c, rest @ ..] if !rest.is_empty() => format!("{a}, {b}, {c} and {} more", rest.len()),
        names => names.join(", "),
    }
}

/// The whole tree in at most `room` lines; what is ready is left out first.
pub(super) fn lines(rows: &[Row], place: &dyn Fn(&Row) -> Option<Place>, room: usize) -> Vec<String> {
    let all = build(rows, place, |_| true);
    if all.len() <= room {
        return all;
    }
    let ready = rows.iter().filter(|r| r.state == State::Ready).count();
    let mut rest = build(rows, place, |row| row.state != State::Ready);
    rest.insert(0, format!("✔ {ready} ready"));
    if rest.len() > room {
        let hidden = rest.len() - room + 1;
        rest.truncate(room - 1);
        rest.push(format!("… and {hidden} more lines; `fluorite get all -A` has them"));
    }
    rest
}

fn build(rows: &[Row], place: &dyn Fn(&Row) -> Option<Place>, shown: impl Fn(&Row) -> bool) -> Vec<String> {
    let shown: Vec<&Row> = rows.iter().filter(|r| shown(r)).collect();
    let applies = |row: &Row| matches!(row.kind.as_str(), "Kustomization" | "HelmRelease");
    let mut out = Vec::new();
    for row in shown.iter().filter(|r| !applies(r)) {
        out.push(line(row));
    }
    let key = |row: &Row| (row.namespace.clone(), row.name.clone());
    let is_here =
        |parent: &(String, String)| shown.iter().any(|r| r.kind == "Kustomization" && key(r) == *parent);
    let mut seen = BTreeSet::new();
    let top = |row: &&&Row| {
        applies(row)
            && row
                .parent
                .as_ref()
                .is_none_or(|p| !is_here(p) || (row.kind == "Kustomization" && *p == key(row)))
    };
    for row in shown.iter().filter(top) {
        branch(row, "", "", &shown, place, &mut seen, &mut out);
    }
    // Members of a ring have no top.
    for row in shown.iter().filter(|r| applies(r)) {
        if !seen.contains(&row.id()) {
            branch(row, "", "", &shown, place, &mut seen, &mut out);
        }
    }
    out
}

fn branch(
    row: &Row,
    lead: &str,
    below: &str,
    rows: &[&Row],
    place: &dyn Fn(&Row) -> Option<Place>,
    seen: &mut BTreeSet<String>,
    out: &mut Vec<String>,
) {
    if !seen.insert(row.id()) {
        return;
    }
    out.push(format!("{lead}{}", line(row)));
    if let Some(place) = place(row) {
        out.push(format!("{below}    {}:{}: {}", place.file, place.line, place.text));
    }
    let mine = (row.namespace.clone(), row.name.clone());
    let children: Vec<&&Row> = rows
        .iter()
        .filter(|r| matches!(r.kind.as_str(), "Kustomization" | "HelmRelease"))
        .filter(|r| {
            row.kind == "Kustomization" && r.parent.as_ref() == Some(&mine) && !seen.contains(&r.id())
        })
        .collect();
    for (i, child) in children.iter().enumerate() {
        let (lead, more) =
            if i + 1 == children.len() { ("└── ", "    ") } else { ("├── ", "│   ") };
        branch(child, &format!("{below}{lead}"), &format!("{below}{more}"), rows, place, seen, out);
    }
}

/// The last line: how far it is, and what is waited for.
pub(super) fn verdict(rows: &[Row]) -> String {
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
    use super::super::model::Applied;
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
            applied: (kind == "Kustomization").then(|| Applied {
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
    fn a_tree() {
        let place = |row: &Row| {
            (row.name == "staging").then(|| Place { file: "a.yaml".into(), line: 3, text: "x: y: z".into() })
        };
        assert_eq!(
            lines(&rows(), &place, 40),
            [
                "✔ GitRepository/flux-system/flux-system  main@sha1:abababab",
                "✔ Kustomization/flux-system/flux-system  main@sha1:abababab  1/2 objects",
                "├── ◎ Kustomization/flux-system/platform  main@sha1:abababab  1/2 objects  progressing: why  (not ready: Pod/a/b)",
                "│   └── ✔ HelmRelease/flux-system/cache  main@sha1:abababab",
                "└── ✗ Kustomization/flux-system/staging  main@sha1:abababab  1/2 objects  failed: why  (not ready: Pod/a/b)",
                "        a.yaml:3: x: y: z",
            ]
        );
        let text = verdict(&rows());
        assert_eq!(
            text,
            "3 of 5 ready; waiting for Kustomization/flux-system/platform; failed: Kustomization/flux-system/staging"
        );
    }

    #[test]
    fn a_suspended_object_is_named_once() {
        let shown = line(&row("Kustomization", "staging", State::Suspended, None));
        assert!(
            shown.starts_with("⏸ Kustomization/flux-system/staging") && shown.contains("  suspended"),
            "{shown}"
        );
        assert!(!shown.contains("suspended:"), "{shown}");
    }

    #[test]
    fn little_room_shows_what_is_not_ready() {
        let shown = lines(&rows(), &|_| None, 4);
        assert_eq!(shown[0], "✔ 3 ready");
        assert_eq!(shown.len(), 3);
        let ring = [
            row("Kustomization", "a", State::Ready, Some("b")),
            row("Kustomization", "b", State::Ready, Some("a")),
        ];
        assert_eq!(lines(&ring, &|_| None, 9).len(), 2);
    }
}
