//! One path segment against one glob: `*`, `?`, `[a-z]`, `[^a]` and backslash escapes, as Go's
//! `path/filepath` matches.

/// A glob parsed into pieces.
#[derive(Clone, Debug)]
pub(crate) struct Glob(Vec<Piece>);

#[derive(Clone, Debug)]
enum Piece {
    Any,
    One,
    Literal(char),
    Class { negated: bool, ranges: Vec<(char, char)> },
}

impl Glob {
    /// Parses a glob. `None` when it is malformed: such a line matches no path.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut chars = text.chars().peekable();
        let mut pieces = Vec::new();
        while let Some(c) = chars.next() {
            pieces.push(match c {
                '*' => {
                    if matches!(pieces.last(), Some(Piece::Any)) {
                        continue;
                    }
                    Piece::Any
                }
                '?' => Piece::One,
                '\\' => Piece::Literal(chars.next()?),
                '[' => class(&mut chars)?,
                literal => Piece::Literal(literal),
            });
        }
        Some(Self(pieces))
    }

    /// Linear in practice: on a mismatch only the last `*` takes one more character.
    pub(crate) fn matches(&self, name: &str) -> bool {
        let name: Vec<char> = name.chars().collect();
        let (mut piece, mut at) = (0, 0);
        let mut retry: Option<(usize, usize)> = None;
        loop {
            match self.0.get(piece) {
                Some(Piece::Any) => {
                    retry = Some((piece + 1, at));
                    piece += 1;
                    continue;
                }
                Some(other) if at < name.len() && other.accepts(name[at]) => {
                    piece += 1;
                    at += 1;
                    continue;
                }
                None if at == name.len() => return true,
                _ => {}
            }
            match retry {
                Some((after_star, taken)) if taken < name.len() => {
                    retry = Some((after_star, taken + 1));
                    piece = after_star;
                    at = taken + 1;
                }
                _ => return false,
            }
        }
    }
}

impl Piece {
    fn accepts(&self, c: char) -> bool {
        match self {
            Piece::Any => false,
            Piece::One => true,
            Piece::Literal(literal) => *literal == c,
            Piece::Class { negated, ranges } => {
                ranges.iter().any(|(lo, hi)| *lo <= c && c <= *hi) != *negated
            }
        }
    }
}

/// Parses the rest of a character class after its `[`. `None` for an empty, unclosed or dashed-open class.
fn class(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<Piece> {
    let negated = chars.next_if_eq(&'^').is_some();
    let mut ranges = Vec::new();
    loop {
        if !ranges.is_empty() && chars.next_if_eq(&']').is_some() {
            return Some(Piece::Class { negated, ranges });
        }
        let lo = class_char(chars)?;
        let hi = if chars.next_if_eq(&'-').is_some() { class_char(chars)? } else { lo };
        ranges.push((lo, hi));
    }
}

fn class_char(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<char> {
    match chars.next()? {
        '-' | ']' => None,
        '\\' => chars.next(),
        c => Some(c),
    }
}

#[cfg(test)]
mod tests {
    use super::Glob;

    fn hit(glob: &str, name: &str) -> bool {
        Glob::parse(glob).is_some_and(|g| g.matches(name))
    }

    #[test]
    fn stars_match_in_linear_time() {
        assert!(hit("*.y?ml", "a.b.yaml") && !hit("*.yaml", "a.yml"));
        let hostile = "*a".repeat(40) + "b";
        assert!(!hit(&hostile, &"a".repeat(4096)));
    }

    #[test]
    fn malformed_classes_never_match() {
        for bad in ["[", "[]", "[a", "[a-", "[-a]", "[]a]", "a\\"] {
            assert!(Glob::parse(bad).is_none(), "{bad}");
        }
        assert!(hit("[^a-c]x", "dx") && !hit("[^a-c]x", "bx") && hit("[\\]]", "]"));
    }
}
