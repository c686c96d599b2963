//! The differences between two texts as upstream shows them: a unified diff with three lines around each change.
//!
//! Lines are matched the way difflib does: the longest run of equal lines first, then what is left of it and right of
//! it. Lines that are everywhere in a long text do not start a match.

use std::collections::HashMap;

const CONTEXT: usize = 3;

/// A run of equal lines: where it starts in both texts, and its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    old: usize,
    new: usize,
    len: usize,
}

struct Matcher<'a> {
    old: &'a [&'a str],
    new: &'a [&'a str],
    /// Where lines stand in the new text, without those that stand everywhere.
    places: HashMap<&'a str, Vec<usize>>,
}

impl<'a> Matcher<'a> {
    fn new(old: &'a [&'a str], new: &'a [&'a str]) -> Self {
        let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
        for (at, line) in new.iter().enumerate() {
            places.entry(line).or_default().push(at);
        }
        if new.len() >= 200 {
            let often = new.len() / 100 + 1;
            places.retain(|_, at| at.len() <= often);
        }
        Self { old, new, places }
    }

    /// The longest run inside two ranges; the first of several.
    fn longest(&self, old: (usize, usize), new: (usize, usize)) -> Run {
        let mut best = Run { old: old.0, new: new.0, len: 0 };
        let mut lengths: HashMap<usize, usize> = HashMap::new();
        for i in old.0..old.1 {
            let mut next = HashMap::new();
            for &j in self.places.get(self.old[i]).into_iter().flatten() {
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
        // Lines that are everywhere may still make a run longer.
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

    /// All runs in order, ended by an empty one behind the texts.
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

/// A stretch of both texts, equal or not.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    equal: bool,
    old: (usize, usize),
    new: (usize, usize),
}

fn stretches(matcher: &Matcher<'_>) -> Vec<Stretch> {
    let mut out: Vec<Stretch> = Vec::new();
    let (mut i, mut j) = (0, 0);
    for run in matcher.runs() {
        if i < run.old || j < run.new {
            out.push(Stretch { equal: false, old: (i, run.old), new: (j, run.new) });
        }
        (i, j) = (run.old + run.len, run.new + run.len);
        if run.len == 0 {
            continue;
        }
        match out.last_mut().filter(|last| last.equal) {
            Some(last) => (last.old.1, last.new.1) = (i, j),
            None => out.push(Stretch { equal: true, old: (run.old, i), new: (run.new, j) }),
        }
    }
    out
}

/// Changes that are near each other, with the lines around them.
fn groups(all: &[Stretch]) -> Vec<Vec<Stretch>> {
    let mut out: Vec<Vec<Stretch>> = Vec::new();
    let mut group: Vec<Stretch> = Vec::new();
    for (at, stretch) in all.iter().enumerate() {
        if !stretch.equal {
            group.push(*stretch);
            continue;
        }
        let len = stretch.old.1 - stretch.old.0;
        let (first, last) = (at == 0, at + 1 == all.len());
        let head = |len: usize| Stretch {
            equal: true,
            old: (stretch.old.0, stretch.old.0 + len),
            new: (stretch.new.0, stretch.new.0 + len),
        };
        let tail = |len: usize| Stretch {
            equal: true,
            old: (stretch.old.1 - len, stretch.old.1),
            new: (stretch.new.1 - len, stretch.new.1),
        };
        if first {
            group.push(tail(len.min(CONTEXT)));
        } else if last {
            group.push(head(len.min(CONTEXT)));
        } else if len > 2 * CONTEXT {
            group.push(head(CONTEXT));
            out.push(std::mem::take(&mut group));
            group.push(tail(CONTEXT));
        } else {
            group.push(*stretch);
        }
    }
    if group.iter().any(|stretch| !stretch.equal) {
        out.push(group);
    }
    out
}

pub(super) fn unified_diff(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let matcher = Matcher::new(&old, &new);
    let mut out = String::new();
    for group in groups(&stretches(&matcher)) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let range = |from: usize, to: usize| match to - from {
            1 => format!("{}", from + 1),
            0 => format!("{from},0"),
            len => format!("{},{len}", from + 1),
        };
        let (was, is) = (range(first.old.0, last.old.1), range(first.new.0, last.new.1));
        out.push_str(&format!("@@ -{was} +{is} @@\n"));
        for stretch in &group {
            let mut lines = |mark: char, lines: &[&str]| {
                for line in lines {
                    out.push(mark);
                    out.push_str(line);
                    out.push('\n');
                }
            };
            if stretch.equal {
                lines(' ', &old[stretch.old.0..stretch.old.1]);
            } else {
                lines('-', &old[stretch.old.0..stretch.old.1]);
                lines('+', &new[stretch.new.0..stretch.new.1]);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_shows_what_changed() {
        assert_eq!(unified_diff("a\nb\nc\n", "a\nx\nc\n"), "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n");
        assert_eq!(unified_diff("a\n", "a\n"), "");
    }

    #[test]
    fn changes_far_apart_stand_apart() {
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
    fn the_longest_run_is_kept() {
        let old = "{\n a: {\n  p\n },\n g,\n n,\n r\n}\n";
        let new = "{\n a,\n g,\n n: {\n  s\n },\n r\n}\n";
        assert_eq!(
            unified_diff(old, new),
            "@@ -1,8 +1,8 @@\n {\n- a: {\n-  p\n+ a,\n+ g,\n+ n: {\n+  s\n  },\n- g,\n- n,\n  r\n }\n"
        );
    }
}
