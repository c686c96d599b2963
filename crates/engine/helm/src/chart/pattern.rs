//! Shell patterns with the rules of Go's `filepath.Match`, which `.helmignore` and `--show-only` use.

/// Syntax error in a pattern, for example an unclosed `[`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("syntax error in pattern")]
pub struct BadPattern;

#[derive(Debug, Clone)]
enum Token {
    /// `*`: any sequence without a slash.
    Star,
    /// `?`: any character except a slash.
    Any,
    Class {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
    Literal(char),
}

/// A compiled pattern.
#[derive(Debug, Clone)]
pub struct Pattern(Vec<Token>);

impl Pattern {
    /// Parses a pattern. Unlike in `.gitignore`, `**` and `!` have no special meaning.
    pub fn new(text: &str) -> Result<Self, BadPattern> {
        let mut chars = text.chars().peekable();
        let mut tokens = Vec::new();
        while let Some(c) = chars.next() {
            tokens.push(match c {
                '*' => Token::Star,
                '?' => Token::Any,
                '\\' => Token::Literal(chars.next().ok_or(BadPattern)?),
                '[' => class(&mut chars)?,
                other => Token::Literal(other),
            });
        }
        Ok(Self(tokens))
    }

    /// Whether the whole name matches. A star takes the shortest sequence that lets the next part match, as
    /// in Go.
    pub fn matches(&self, name: &str) -> bool {
        let name: Vec<char> = name.chars().collect();
        let (mut t, mut n) = (0, 0);
        let mut retry: Option<(usize, usize)> = None;
        loop {
            match self.0.get(t) {
                Some(Token::Star) => {
                    retry = Some((t + 1, n));
                    t += 1;
                    continue;
                }
                Some(token) if name.get(n).is_some_and(|c| fits(token, *c)) => {
                    t += 1;
                    n += 1;
                    continue;
                }
                None if n == name.len() => return true,
                _ => {}
            }
            match retry {
                Some((token, from)) if from < name.len() && name[from] != '/' => {
                    retry = Some((token, from + 1));
                    (t, n) = (token, from + 1);
                }
                _ => return false,
            }
        }
    }
}

fn fits(token: &Token, c: char) -> bool {
    match token {
        Token::Star => false,
        Token::Any => c != '/',
        Token::Literal(want) => c == *want,
        Token::Class { negated, ranges } => {
            ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)) != *negated
        }
    }
}

fn class(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Result<Token, BadPattern> {
    let negated = chars.next_if_eq(&'^').is_some();
    let mut ranges = Vec::new();
    loop {
        if !ranges.is_empty() && chars.next_if_eq(&']').is_some() {
            return Ok(Token::Class { negated, ranges });
        }
        let low = class_char(chars)?;
        let high = if chars.next_if_eq(&'-').is_some() { class_char(chars)? } else { low };
        ranges.push((low, high));
    }
}

fn class_char(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Result<char, BadPattern> {
    let c = match chars.next().ok_or(BadPattern)? {
        '-' | ']' => return Err(BadPattern),
        '\\' => chars.next().ok_or(BadPattern)?,
        c => c,
    };
    // A class must still be closed after its last character.
    chars.peek().map(|_| c).ok_or(BadPattern)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_go() {
        for (pattern, name, want) in [
            ("abc", "abc", true),
            ("*", "a/b", false),
            ("*c", "abc", true),
            ("a*/b", "abc/b", true),
            ("a*/b", "a/c/b", false),
            ("a*b*c*d*e*", "axbxcxdxexxx", true),
            ("a*b?c*x", "abxbbxdbxebxczzx", true),
            ("ab[c]", "abc", true),
            ("ab[^b-d]", "abc", false),
            ("a\\*b", "a*b", true),
            ("a???b", "abcdbb", false),
            ("[a-ζ]*", "α", true),
            ("templates/.?*", "templates/.x", true),
            ("templates/.?*", "templates/.x/y", false),
            ("", "", true),
            ("*", "", true),
        ] {
            assert_eq!(Pattern::new(pattern).expect("fine").matches(name), want, "{pattern} on {name}");
        }
    }

    #[test]
    fn malformed_patterns_are_rejected() {
        for bad in ["[", "[a", "[]a]", "[-]", "[x-]", "[a-b-c]", "a\\", "[^", "[\\"] {
            assert!(Pattern::new(bad).is_err(), "{bad}");
        }
    }
}
