//! Patterns of `.Files.Glob`: `*` and `?` stop at slashes, `**` does not, `[a-z]`, `[!ab]` and `{x,y}` as in shells.

/// A compiled pattern.
#[derive(Debug)]
pub(crate) struct Glob(Vec<Part>);

#[derive(Debug)]
enum Part {
    Text(Vec<char>),
    /// `*`
    Star,
    /// `**`
    Everything,
    /// `?`
    One,
    Class {
        negated: bool,
        kind: Class,
    },
    Either(Vec<Vec<Part>>),
}

#[derive(Debug)]
enum Class {
    Range(char, char),
    List(Vec<char>),
}

/// Maximum nesting of alternatives. Deeper patterns are malformed and so match everything.
const MAX_DEPTH: usize = 32;

impl Glob {
    /// Parses a pattern; a malformed one matches everything, as in Helm.
    pub(crate) fn new(text: &str) -> Self {
        let mut parser = Parser { chars: text.chars().collect(), at: 0 };
        match parser.parts(0) {
            Some(parts) => Self(parts),
            None => Self(vec![Part::Everything]),
        }
    }

    /// Whether the whole name matches.
    pub(crate) fn matches(&self, name: &str) -> bool {
        let name: Vec<char> = name.chars().collect();
        let mut ends = vec![0];
        step_all(&self.0, &name, &mut ends);
        ends.contains(&name.len())
    }
}

/// Advances a set of positions over all parts. Tracking sets avoids exponential backtracking.
fn step_all(parts: &[Part], name: &[char], positions: &mut Vec<usize>) {
    for part in parts {
        let mut next = Vec::new();
        for &at in positions.iter() {
            step(part, name, at, &mut next);
        }
        next.sort_unstable();
        next.dedup();
        *positions = next;
    }
}

fn step(part: &Part, name: &[char], at: usize, next: &mut Vec<usize>) {
    match part {
        Part::Text(text) => {
            if name[at..].starts_with(text) {
                next.push(at + text.len());
            }
        }
        Part::Everything => next.extend(at..=name.len()),
        Part::Star => {
            let run = name[at..].iter().take_while(|c| **c != '/').count();
            next.extend(at..=at + run);
        }
        Part::One => next.extend(name.get(at).filter(|c| **c != '/').map(|_| at + 1)),
        Part::Class { negated, kind } => {
            let inside = |c: &char| match kind {
                Class::Range(low, high) => (*low..=*high).contains(c),
                Class::List(list) => list.contains(c),
            };
            next.extend(name.get(at).filter(|c| inside(c) != *negated).map(|_| at + 1));
        }
        Part::Either(choices) => {
            for choice in choices {
                let mut ends = vec![at];
                step_all(choice, name, &mut ends);
                next.extend(ends);
            }
        }
    }
}

struct Parser {
    chars: Vec<char>,
    at: usize,
}

impl Parser {
    fn take(&mut self) -> Option<char> {
        let c = self.chars.get(self.at).copied();
        self.at += 1;
        c
    }

    /// Parses parts up to the end, or up to the comma or brace that ends an alternative.
    fn parts(&mut self, depth: usize) -> Option<Vec<Part>> {
        if depth > MAX_DEPTH {
            return None;
        }
        let mut parts = Vec::new();
        while let Some(&c) = self.chars.get(self.at) {
            match c {
                ',' | '}' if depth > 0 => break,
                '{' => {
                    self.at += 1;
                    parts.push(self.either(depth)?);
                }
                '[' => {
                    self.at += 1;
                    parts.push(self.class()?);
                }
                '?' => {
                    self.at += 1;
                    parts.push(Part::One);
                }
                '*' => {
                    self.at += 1;
                    let double = self.chars.get(self.at) == Some(&'*');
                    self.at += usize::from(double);
                    parts.push(if double { Part::Everything } else { Part::Star });
                }
                _ => {
                    let stops: &[char] =
                        if depth > 0 { &['?', '*', '[', '{', '}', ','] } else { &['?', '*', '[', '{'] };
                    parts.push(Part::Text(self.text(stops)));
                }
            }
        }
        Some(parts)
    }

    /// An alternative that is never closed still counts, as in Helm.
    fn either(&mut self, depth: usize) -> Option<Part> {
        let mut choices = Vec::new();
        loop {
            choices.push(self.parts(depth + 1)?);
            match self.take() {
                Some(',') => {}
                _ => return Some(Part::Either(choices)),
            }
        }
    }

    fn text(&mut self, stops: &[char]) -> Vec<char> {
        let mut text = Vec::new();
        while let Some(&c) = self.chars.get(self.at) {
            if stops.contains(&c) {
                break;
            }
            self.at += 1;
            if c != '\\' {
                text.push(c);
            } else if let Some(escaped) = self.take() {
                text.push(escaped);
            }
        }
        text
    }

    /// Parses either one range or one list of characters, never both.
    fn class(&mut self) -> Option<Part> {
        let negated = self.chars.get(self.at) == Some(&'!');
        self.at += usize::from(negated);
        let kind = if self.chars.get(self.at + 1) == Some(&'-') {
            let low = self.take()?;
            self.take()?;
            let high = self.take()?;
            (low <= high).then_some(Class::Range(low, high))?
        } else {
            let list = self.text(&[']']);
            (!list.is_empty()).then_some(Class::List(list))?
        };
        (self.take()? == ']').then_some(Part::Class { negated, kind })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_helm() {
        for (pattern, name, want) in [
            ("*.yaml", "a.yaml", true),
            ("*.yaml", "d/a.yaml", false),
            ("**.yaml", "d/a.yaml", true),
            ("**/*.yaml", "a.yaml", false),
            ("conf/{a,b*}.[ct]f?", "conf/bxx.cfg", true),
            ("conf/{a,b*}.[!ct]f?", "conf/a.cfg", false),
            ("[a-c]x", "bx", true),
            ("a\\*b", "a*b", true),
            ("?", "/", false),
            ("{a,{b,c}}d", "cd", true),
            ("", "", true),
            ("[a-", "anything/at/all", true),
            ("[a-z0-9]", "anything", true),
        ] {
            assert_eq!(Glob::new(pattern).matches(name), want, "{pattern} on {name}");
        }
    }
}
