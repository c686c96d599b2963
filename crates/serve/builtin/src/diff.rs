//! Unified diffs with three lines of context, as upstream prints them in validation errors.
//!
//! Lines are matched with difflib's algorithm: the longest run of equal lines first, then recursively before
//! and after it. Lines that are frequent in a long text do not start a match.

use std::collections::HashMap;

const CONTEXT_LINES: usize = 3;

/// A run of equal lines: its start in both texts, and its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    old: usize,
    new: usize,
    len: usize,
}

struct Matcher<'a> {
    old: &'a [&'a str],
    new: &'a [&'a str],
    /// Positions of each line in the new text, without frequent lines.
    positions: HashMap<&'a str, Vec<usize>>,
}

impl<'a> Matcher<'a> {
    fn new(old: &'a [&'a str], new: &'a [&'a str]) -> Self {
        let mut positions: HashMap<&str, Vec<usize>> = HashMap::new();
        for (at, line) in new.iter().enumerate() {
            positions.entry(line).or_default().push(at);
        }
        if new.len() >= 200 {
            let max_count = new.len() / 100 + 1;
            positions.retain(|_, at| at.len() <= max_count);
        }
        Self { old, new, positions }
    }

    /// The longest run inside two ranges, the first of equally long ones.
    fn longest(&self, old: (usize, usize), new: (usize, usize)) -> Run {
        let mut best = Run { old: old.0, new: new.0, len: 0 };
        let mut lengths: HashMap<usize, usize> = HashMap::new();
        for i in old.0..old.1 {
            let mut next = HashMap::new();
            for &j in self.positions.get(self.old[i]).into_iter().flatten() {
                if j < new.0 {
                    continue;
                }
                if j >= new.1 {
                    break;
                }
                let len = j.checked_sub(1).and_then(|j| lengths.get(&j)).copied().unwrap_or(0) + 1;
                next.insert(j, len);
                if len > best.len {
                    best = Run { old: i + 1 - len, new: j + 1 - len, len };
                }
            }
            lengths = next;
        }
        // Frequent lines may extend a run.
        while best.old > old.0 && best.new > new.0 && self.old[best.old - 1] == self.new[best.new - 1] {
            best = Run { old: best.old - 1, new: best.new - 1, len: best.len + 1 };
        }
        while best.old + best.len < old.1
            && best.new + best.len < new.1
            && self.old[best.old + best.len] == self.new[best.new + best.len]
        {
            best.len += 1;
        }
        best
    }

    /// All runs in order, and an empty one at the end of the texts.
    fn runs(&self) -> Vec<Run> {
        let mut found = Vec::new();
        let mut open = vec![((0, self.old.len()), (0, self.new.len()))];
        while let Some((old, new)) = open.pop() {
            let run = self.longest(old, new);
            if run.len == 0 {
                continue;
            }
            found.push(run);
            open.push(((old.0, run.old), (new.0, run.new)));
            open.push(((run.old + run.len, old.1), (run.new + run.len, new.1)));
        }
        found.sort_unstable_by_key(|run| (run.old, run.new));
        found.push(Run { old: self.old.len(), new: self.new.len(), len: 0 });
        found
    }
}

/// A range of both texts that is equal or changed.
#[derive(Debug, Clone, Copy)]
struct DiffRange {
    equal: bool,
    old: (usize, usize),
    new: (usize, usize),
}

fn diff_ranges(matcher: &Matcher<'_>) -> Vec<DiffRange> {
    let mut out: Vec<DiffRange> = Vec::new();
    let (mut i, mut j) = (0, 0);
    for run in matcher.runs() {
        if i < run.old || j < run.new {
            out.push(DiffRange { equal: false, old: (i, run.old), new: (j, run.new) });
        }
        (i, j) = (run.old + run.len, run.new + run.len);
        if run.len == 0 {
            continue;
        }
        match out.last_mut().filter(|last| last.equal) {
            Some(last) => (last.old.1, last.new.1) = (i, j),
            None => out.push(DiffRange { equal: true, old: (run.old, i), new: (run.new, j) }),
        }
    }
    out
}

/// Hunks: changes close to each other, with their context lines.
fn hunks(all: &[DiffRange]) -> Vec<Vec<DiffRange>> {
    let mut out: Vec<Vec<DiffRange>> = Vec::new();
    let mut group: Vec<DiffRange> = Vec::new();
    for (at, range) in all.iter().enumerate() {
        if !range.equal {
            group.push(*range);
            continue;
        }
        let len = range.old.1 - range.old.0;
        let (first, last) = (at == 0, at + 1 == all.len());
        let head = |len: usize| DiffRange {
            equal: true,
            old: (range.old.0, range.old.0 + len),
            new: (range.new.0, range.new.0 + len),
        };
        let tail = |len: usize| DiffRange {
            equal: true,
            old: (range.old.1 - len, range.old.1),
            new: (range.new.1 - len, range.new.1),
        };
        if first {
            group.push(tail(len.min(CONTEXT_LINES)));
        } else if last {
            group.push(head(len.min(CONTEXT_LINES)));
        } else if len > 2 * CONTEXT_LINES {
            group.push(head(CONTEXT_LINES));
            out.push(std::mem::take(&mut group));
            group.push(tail(CONTEXT_LINES));
        } else {
            group.push(*range);
        }
    }
    if group.iter().any(|range| !range.equal) {
        out.push(group);
    }
    out
}

pub(crate) fn unified_diff(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let matcher = Matcher::new(&old, &new);
    let mut out = String::new();
    for group in hunks(&diff_ranges(&matcher)) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let range = |from: usize, to: usize| match to - from {
            1 => format!("{}", from + 1),
            0 => format!("{from},0"),
            len => format!("{},{len}", from + 1),
        };
        let (was, is) = (range(first.old.0, last.old.1), range(first.new.0, last.new.1));
        out.push_str(&format!("@@ -{was} +{is} @@\n"));
        for range in &group {
            let mut lines = |mark: char, lines: &[&str]| {
                for line in lines {
                    out.push(mark);
                    out.push_str(line);
                    out.push('\n');
                }
            };
            if range.equal {
                lines(' ', &old[range.old.0..range.old.1]);
            } else {
                lines('-', &old[range.old.0..range.old.1]);
                lines('+', &new[range.new.0..range.new.1]);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diff_shows_changed_lines_with_context() {
        assert_eq!(unified_diff("a\nb\nc\n", "a\nx\nc\n"), "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n");
        assert_eq!(unified_diff("a\n", "a\n"), "");
    }

    #[test]
    fn distant_changes_are_separate_hunks() {
        let text = |first: &str, last: &str| {
            let middle: Vec<String> = (0..9).map(|n| n.to_string()).collect();
            format!("{first}\n{}\n{last}\n", middle.join("\n"))
        };
        assert_eq!(
            unified_diff(&text("a", "y"), &text("b", "z")),
            "@@ -1,4 +1,4 @@\n-a\n+b\n 0\n 1\n 2\n@@ -8,4 +8,4 @@\n 6\n 7\n 8\n-y\n+z\n"
        );
    }

    #[test]
    fn longest_equal_run_is_kept() {
        let old = "{\n a: {\n  p\n },\n g,\n n,\n r\n}\n";
        let new = "{\n a,\n g,\n n: {\n  s\n },\n r\n}\n";
        assert_eq!(
            unified_diff(old, new),
            "@@ -1,8 +1,8 @@\n {\n- a: {\n-  p\n+ a,\n+ g,\n+ n: {\n+  s\n  },\n- g,\n- n,\n  r\n }\n"
        );
    }
}
