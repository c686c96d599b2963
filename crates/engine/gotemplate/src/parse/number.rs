//! Number constants: one text can be an int, a uint, a float and a complex at once.

use crate::parse::lex::Tok;
use crate::parse::node::Number;
use crate::strconv::{parse_float, parse_int, parse_uint, unquote_char_constant};

/// Error of parsing a number constant, with Go's message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NumberError {
    #[error("invalid syntax")]
    CharSyntax,
    #[error("malformed character constant: {0}")]
    CharConstant(String),
    #[error("syntax error scanning complex number")]
    Complex,
    #[error("integer overflow: {0}")]
    Overflow(String),
    #[error("illegal number syntax: {0}")]
    Syntax(String),
}

/// Parses a number token.
pub(crate) fn parse_number(text: &[u8], tok: Tok) -> Result<Number, NumberError> {
    let shown = String::from_utf8_lossy(text).into_owned();
    let mut n = Number { text: shown.clone(), ..Number::default() };
    match tok {
        Tok::CharConstant => {
            let (rune, whole) = unquote_char_constant(text).ok_or(NumberError::CharSyntax)?;
            if !whole {
                return Err(NumberError::CharConstant(shown));
            }
            n.int = Some(i64::from(rune));
            n.uint = Some(u64::from(rune));
            n.float = Some(f64::from(rune));
            return Ok(n);
        }
        Tok::Complex => {
            let (re, im) = parse_complex(&shown).ok_or(NumberError::Complex)?;
            n.complex = Some((re, im));
            simplify(&mut n);
            return Ok(n);
        }
        _ => {}
    }
    if let Some(body) = text.strip_suffix(b"i")
        && let Ok(im) = parse_float(body)
    {
        n.complex = Some((0.0, im));
        simplify(&mut n);
        return Ok(n);
    }
    n.uint = parse_uint(text, 0).ok();
    n.int = parse_int(text, 0).ok();
    if n.int == Some(0) {
        n.uint = Some(0);
    }
    if let Some(i) = n.int {
        n.float = Some(i as f64);
    } else if let Some(u) = n.uint {
        n.float = Some(u as f64);
    } else if let Ok(f) = parse_float(text) {
        if !text.iter().any(|b| b".eEpP".contains(b)) {
            return Err(NumberError::Overflow(crate::fmt::quoted(text)));
        }
        n.float = Some(f);
        whole_parts(&mut n, f);
    }
    if n.int.is_none() && n.uint.is_none() && n.float.is_none() {
        return Err(NumberError::Syntax(crate::fmt::quoted(text)));
    }
    Ok(n)
}

/// A whole float is also an int and a uint.
fn whole_parts(n: &mut Number, f: f64) {
    if f.fract() == 0.0 {
        if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&f) {
            n.int = Some(f as i64);
        }
        if (0.0..1.844_674_407_370_955_2e19).contains(&f) {
            n.uint = Some(f as u64);
        }
    }
}

fn simplify(n: &mut Number) {
    if let Some((re, im)) = n.complex
        && im == 0.0
    {
        n.float = Some(re);
        whole_parts(n, re);
    }
}

/// `1+2i`
fn parse_complex(text: &str) -> Option<(f64, f64)> {
    let body = text.strip_suffix('i')?;
    let split = body
        .char_indices()
        .skip(1)
        .filter(|&(i, c)| {
            (c == '+' || c == '-') && !matches!(body.as_bytes()[i - 1], b'e' | b'E' | b'p' | b'P')
        })
        .last()?
        .0;
    Some((parse_float(&body.as_bytes()[..split]).ok()?, parse_float(&body.as_bytes()[split..]).ok()?))
}
