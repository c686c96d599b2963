//! Lexer.

use crate::ast::{Literal, Position};
use crate::error::Issue;

#[derive(Debug, Clone)]
pub(crate) enum Token {
    Ident(String),
    Literal(Literal),
    /// An operator or a bracket.
    Sign(&'static str),
    End,
}

const SIGNS: &[&str] = &[
    "&&", "||", "==", "!=", "<=", ">=", "[?", "{?", ".?", "<", ">", "+", "-", "*", "/", "%", "!", "?", ":",
    ".", ",", "(", ")", "[", "]", "{", "}",
];

/// Tokens with their offsets in characters, and lexer issues.
pub(crate) type Tokens = (Vec<(Token, Position)>, Vec<Issue>);

/// Splits the source into tokens. Invalid characters are reported and skipped.
pub(crate) fn tokens(source: &str) -> Result<Tokens, Issue> {
    let chars: Vec<char> = source.chars().collect();
    let (mut out, mut issues) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < chars.len() {
        let c = chars[at];
        if c.is_whitespace() {
            at += 1;
        } else if c == '/' && chars.get(at + 1) == Some(&'/') {
            while at < chars.len() && chars[at] != '\n' {
                at += 1;
            }
        } else if let Some((literal, end)) = text_literal(&chars, at)? {
            out.push((Token::Literal(literal), at));
            at = end;
        } else if c.is_ascii_digit() || (c == '.' && chars.get(at + 1).is_some_and(char::is_ascii_digit)) {
            let (literal, end) = number(&chars, at)?;
            out.push((Token::Literal(literal), at));
            at = end;
        } else if c.is_ascii_alphabetic() || c == '_' {
            let end = (at..chars.len())
                .find(|i| !(chars[*i].is_ascii_alphanumeric() || chars[*i] == '_'))
                .unwrap_or(chars.len());
            let word: String = chars[at..end].iter().collect();
            let token = match word.as_str() {
                "true" => Token::Literal(Literal::Bool(true)),
                "false" => Token::Literal(Literal::Bool(false)),
                "null" => Token::Literal(Literal::Null),
                "in" => Token::Sign("in"),
                _ => Token::Ident(word),
            };
            out.push((token, at));
            at = end;
        } else if c == '`' {
            let end = (at + 1..chars.len()).find(|i| chars[*i] == '`').ok_or_else(|| unknown("`", at))?;
            out.push((Token::Ident(chars[at + 1..end].iter().collect()), at));
            at = end + 1;
        } else {
            let sign =
                SIGNS.iter().find(|s| s.chars().enumerate().all(|(i, c)| chars.get(at + i) == Some(&c)));
            let Some(sign) = sign else {
                // An incomplete operator consumes the character in place of its second half.
                let len = if matches!(c, '=' | '&' | '|') { 2 } else { 1 };
                let end = (at + len).min(chars.len());
                let text: String = chars[at..end].iter().collect();
                issues.push(unknown(&text, at));
                at = end;
                continue;
            };
            // `a[?b:c]` cannot occur: `?` only starts an optional entry.
            out.push((Token::Sign(sign), at));
            at += sign.len();
        }
    }
    out.push((Token::End, chars.len()));
    Ok((out, issues))
}

fn unknown(text: &str, at: usize) -> Issue {
    Issue { message: format!("Syntax error: token recognition error at: '{text}'"), at }
}

fn number(chars: &[char], start: usize) -> Result<(Literal, usize), Issue> {
    let mut at = start;
    let hex = chars[at] == '0' && matches!(chars.get(at + 1), Some('x' | 'X'));
    let mut float = false;
    if hex {
        at += 2;
        while chars.get(at).is_some_and(char::is_ascii_hexdigit) {
            at += 1;
        }
    } else {
        while let Some(c) = chars.get(at) {
            let digit = c.is_ascii_digit();
            let point = *c == '.' && !float && chars.get(at + 1).is_some_and(char::is_ascii_digit);
            let exponent = matches!(c, 'e' | 'E')
                && (chars.get(at + 1).is_some_and(char::is_ascii_digit)
                    || (matches!(chars.get(at + 1), Some('+' | '-'))
                        && chars.get(at + 2).is_some_and(char::is_ascii_digit)));
            if !(digit || point || exponent) {
                break;
            }
            float |= point || exponent;
            at += if exponent { 2 } else { 1 };
        }
    }
    let text: String = chars[start..at].iter().collect();
    let invalid = |what: &str| Issue { message: format!("invalid {what} literal"), at: start };
    if matches!(chars.get(at), Some('u' | 'U')) && !float {
        let parsed = if hex { u64::from_str_radix(&text[2..], 16) } else { text.parse() };
        return parsed.map(|n| (Literal::Uint(n), at + 1)).map_err(|_| invalid("uint"));
    }
    if float {
        return text.parse().map(|n| (Literal::Double(n), at)).map_err(|_| invalid("double"));
    }
    // One more than the largest int is valid: the parser negates it to the smallest int.
    let parsed = if hex { u64::from_str_radix(&text[2..], 16) } else { text.parse::<u64>() };
    match parsed {
        Ok(n) if n <= i64::MAX as u64 => Ok((Literal::Int(n as i64), at)),
        Ok(n) if n == 1 << 63 => Ok((Literal::Int(i64::MIN), at)),
        _ => Err(invalid("int")),
    }
}

/// Parses a string or bytes literal with its prefixes, if there is one.
fn text_literal(chars: &[char], start: usize) -> Result<Option<(Literal, usize)>, Issue> {
    let mut at = start;
    let (mut raw, mut bytes) = (false, false);
    while let Some(c) = chars.get(at) {
        match c {
            'r' | 'R' if !raw => raw = true,
            'b' | 'B' if !bytes => bytes = true,
            _ => break,
        }
        at += 1;
    }
    let Some(quote) = chars.get(at).copied().filter(|c| matches!(c, '"' | '\'')) else { return Ok(None) };
    let triple = chars.get(at + 1) == Some(&quote) && chars.get(at + 2) == Some(&quote);
    let width = if triple { 3 } else { 1 };
    at += width;
    let mut text = String::new();
    let mut data = Vec::new();
    let unterminated = || Issue {
        message: format!(
            "Syntax error: token recognition error at: '{}'",
            chars[start..].iter().collect::<String>()
        ),
        at: start,
    };
    loop {
        let c = *chars.get(at).ok_or_else(unterminated)?;
        if c == quote && (!triple || (chars.get(at + 1) == Some(&quote) && chars.get(at + 2) == Some(&quote)))
        {
            at += width;
            break;
        }
        if c == '\n' && !triple {
            return Err(unterminated());
        }
        let mut push = |c: char, byte: Option<u8>| match byte {
            Some(b) if bytes => data.push(b),
            _ if bytes => data.extend(c.to_string().bytes()),
            _ => text.push(c),
        };
        if c != '\\' || raw {
            push(c, None);
            at += 1;
            continue;
        }
        let (c, byte, end) = escape(chars, at, start)?;
        push(c, byte);
        at = end;
    }
    let literal = if bytes { Literal::Bytes(data) } else { Literal::Text(text) };
    Ok(Some((literal, at)))
}

/// Parses one escape sequence: the character, the byte if it is one, and the end offset.
fn escape(chars: &[char], at: usize, start: usize) -> Result<(char, Option<u8>, usize), Issue> {
    let invalid = || Issue { message: "Syntax error: invalid escape sequence".to_owned(), at: start };
    let kind = *chars.get(at + 1).ok_or_else(invalid)?;
    let coded = |from: usize, width: usize, radix: u32| -> Result<u32, Issue> {
        let digits: String = chars.get(from..from + width).ok_or_else(invalid)?.iter().collect();
        u32::from_str_radix(&digits, radix).map_err(|_| invalid())
    };
    let simple = match kind {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'a' => '\u{7}',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'v' => '\u{b}',
        '\\' | '"' | '\'' | '`' | '?' => kind,
        'x' | 'X' => {
            let code = coded(at + 2, 2, 16)?;
            return Ok((char::from_u32(code).ok_or_else(invalid)?, u8::try_from(code).ok(), at + 4));
        }
        'u' => return Ok((char::from_u32(coded(at + 2, 4, 16)?).ok_or_else(invalid)?, None, at + 6)),
        'U' => return Ok((char::from_u32(coded(at + 2, 8, 16)?).ok_or_else(invalid)?, None, at + 10)),
        '0'..='3' => {
            let code = coded(at + 1, 3, 8)?;
            return Ok((char::from_u32(code).ok_or_else(invalid)?, u8::try_from(code).ok(), at + 4));
        }
        _ => return Err(invalid()),
    };
    Ok((simple, None, at + 2))
}
