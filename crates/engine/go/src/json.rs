//! JSON as Go's `encoding/json` writes it, byte for byte: digests are computed over it.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

/// Compact JSON with Go's escapes and number format. Maps must be sorted (`serde_json::Map` is).
pub fn to_go_json<T: Serialize + ?Sized>(value: &T) -> serde_json::Result<Vec<u8>> {
    let mut out = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut out, GoFormatter))?;
    Ok(out)
}

/// Largest whole number that a float represents exactly; Go decodes all JSON numbers as floats.
const EXACT: u64 = 1 << 53;

struct GoFormatter;

impl Formatter for GoFormatter {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(['<', '>', '&', '\u{2028}', '\u{2029}']) {
            out.write_all(&rest.as_bytes()[..at])?;
            let found = rest[at..].chars().next().unwrap_or_default();
            write!(out, "\\u{:04x}", u32::from(found))?;
            rest = &rest[at + found.len_utf8()..];
        }
        out.write_all(rest.as_bytes())
    }

    fn write_f64<W: ?Sized + Write>(&mut self, out: &mut W, value: f64) -> io::Result<()> {
        let size = value.abs();
        if size != 0.0 && !(1e-6..1e21).contains(&size) {
            // Rust prints `1e21` and `1e-9`, Go `1e+21` and `1e-9`.
            let text = format!("{value:e}");
            return match text.split_once('e') {
                Some((mantissa, exponent)) if !exponent.starts_with('-') => {
                    write!(out, "{mantissa}e+{exponent}")
                }
                _ => out.write_all(text.as_bytes()),
            };
        }
        write!(out, "{value}")
    }

    fn write_i64<W: ?Sized + Write>(&mut self, out: &mut W, value: i64) -> io::Result<()> {
        if value.unsigned_abs() > EXACT {
            return self.write_f64(out, value as f64);
        }
        write!(out, "{value}")
    }

    fn write_u64<W: ?Sized + Write>(&mut self, out: &mut W, value: u64) -> io::Result<()> {
        if value > EXACT {
            return self.write_f64(out, value as f64);
        }
        write!(out, "{value}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_matches_go() {
        let value = serde_json::json!({"a<b": "x&y\u{2028}", "f": 1.0, "g": 1e21, "h": 1.5e-7, "i": 12345678, "j": 0.1});
        let text = String::from_utf8(to_go_json(&value).expect("JSON")).expect("text");
        assert_eq!(text, r#"{"a\u003cb":"x\u0026y\u2028","f":1,"g":1e+21,"h":1.5e-7,"i":12345678,"j":0.1}"#);
    }
}
