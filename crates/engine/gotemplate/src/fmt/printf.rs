//! `Sprintf`: formats with flags, widths, `*` and argument indexes.

use super::{Flags, Printer};
use crate::func::CallError;
use crate::runes;
use crate::value::Value;

/// Widths and precisions beyond this are ignored, as in Go.
const MAX_WIDTH: i64 = 1_000_000;

struct Scan<'f> {
    format: &'f [u8],
    at: usize,
    args: &'f [Value],
    arg: usize,
    reordered: bool,
    good_index: bool,
}

/// `fmt.Sprintf`
///
/// # Errors
/// The text is longer than `limit` bytes, or a value is nested too deeply. Invalid formats are shown in the
/// text.
pub fn sprintf(format: &[u8], args: &[Value], limit: u64) -> Result<Vec<u8>, CallError> {
    let mut out = Vec::with_capacity(format.len() + 16);
    let mut printer = Printer::new(&mut out, limit);
    let mut scan = Scan { format, at: 0, args, arg: 0, reordered: false, good_index: true };
    while scan.at < format.len() && !printer.stopped() {
        let rest = &format[scan.at..];
        let plain = memchr::memchr(b'%', rest).unwrap_or(rest.len());
        printer.out.extend_from_slice(&rest[..plain]);
        scan.at += plain;
        if scan.at >= format.len() {
            break;
        }
        scan.at += 1;
        if !verb(&mut printer, &mut scan) {
            break;
        }
    }
    if !scan.reordered && scan.arg < args.len() {
        printer.flags = Flags::default();
        printer.out.extend_from_slice(b"%!(EXTRA ");
        for (i, arg) in args[scan.arg..].iter().enumerate() {
            if i > 0 {
                printer.out.extend_from_slice(b", ");
            }
            if let Value::Nil = arg {
                printer.out.extend_from_slice(b"<nil>");
            } else {
                printer.out.extend_from_slice(arg.type_name().as_bytes());
                printer.out.push(b'=');
                printer.print_arg(arg, 'v');
            }
        }
        printer.out.push(b')');
    }
    printer.finish()?;
    Ok(out)
}

/// Formats one verb and the text before it; returns false at the end of the format.
fn verb(printer: &mut Printer<'_>, scan: &mut Scan<'_>) -> bool {
    printer.flags = Flags::default();
    scan.good_index = true;
    flags(&mut printer.flags, scan);
    let mut after_index = scan.index();
    if scan.peek() == Some(b'*') {
        scan.at += 1;
        match scan.int_from_arg() {
            Some(n) => {
                printer.flags.width = Some(n.unsigned_abs() as usize);
                if n < 0 {
                    printer.flags.minus = true;
                    printer.flags.zero = false;
                }
            }
            None => printer.out.extend_from_slice(b"%!(BADWIDTH)"),
        }
        after_index = false;
    } else {
        printer.flags.width = scan.number();
        if after_index && printer.flags.width.is_some() {
            scan.good_index = false;
        }
    }
    if scan.peek() == Some(b'.') {
        scan.at += 1;
        if after_index {
            scan.good_index = false;
        }
        after_index = scan.index();
        if scan.peek() == Some(b'*') {
            scan.at += 1;
            match scan.int_from_arg().filter(|n| *n >= 0) {
                Some(n) => printer.flags.precision = Some(n as usize),
                None => printer.out.extend_from_slice(b"%!(BADPREC)"),
            }
            after_index = false;
        } else {
            printer.flags.precision = Some(scan.number().unwrap_or(0));
        }
    }
    if !after_index {
        scan.index();
    }
    let Some((verb, width)) = runes::decode(&scan.format[scan.at.min(scan.format.len())..]) else {
        printer.out.extend_from_slice(b"%!(NOVERB)");
        return false;
    };
    scan.at += width;
    if verb == '%' {
        printer.out.push(b'%');
    } else if !scan.good_index {
        note(printer, verb, b"(BADINDEX)");
    } else if scan.arg >= scan.args.len() {
        note(printer, verb, b"(MISSING)");
    } else {
        if matches!(verb, 'v' | 'w') {
            printer.flags.sharp_v = std::mem::take(&mut printer.flags.sharp);
            printer.flags.plus_v = std::mem::take(&mut printer.flags.plus);
        }
        printer.print_arg(&scan.args[scan.arg], verb);
        scan.arg += 1;
    }
    true
}

fn note(printer: &mut Printer<'_>, verb: char, words: &[u8]) {
    printer.out.extend_from_slice(b"%!");
    runes::push(printer.out, verb);
    printer.out.extend_from_slice(words);
}

fn flags(flags: &mut Flags, scan: &mut Scan<'_>) {
    while let Some(c) = scan.peek() {
        match c {
            b'#' => flags.sharp = true,
            b'0' => flags.zero = true,
            b'+' => flags.plus = true,
            b'-' => flags.minus = true,
            b' ' => flags.space = true,
            _ => return,
        }
        scan.at += 1;
    }
}

impl Scan<'_> {
    fn peek(&self) -> Option<u8> {
        self.format.get(self.at).copied()
    }

    /// Parses a decimal number; one that is too large consumes the format, as in Go.
    fn number(&mut self) -> Option<usize> {
        let start = self.at;
        let mut n: i64 = 0;
        while let Some(c @ b'0'..=b'9') = self.peek() {
            n = n * 10 + i64::from(c - b'0');
            self.at += 1;
            if n > MAX_WIDTH {
                self.at = self.format.len();
                return None;
            }
        }
        (self.at > start).then_some(n as usize)
    }

    fn int_from_arg(&mut self) -> Option<i64> {
        let arg = self.args.get(self.arg)?;
        self.arg += 1;
        match arg {
            Value::Int(kind, n) if (kind.signed() || *n >= 0) && (-MAX_WIDTH..=MAX_WIDTH).contains(n) => {
                Some(*n)
            }
            _ => None,
        }
    }

    /// Parses `[n]`, the next argument to use; returns true if it was present and valid.
    fn index(&mut self) -> bool {
        if self.peek() != Some(b'[') {
            return false;
        }
        self.reordered = true;
        let Some(close) = memchr::memchr(b']', &self.format[self.at..]) else {
            self.at += 1;
            self.good_index = false;
            return false;
        };
        let inside = &self.format[self.at + 1..self.at + close];
        self.at += close + 1;
        let n = std::str::from_utf8(inside).ok().filter(|s| s.bytes().all(|b| b.is_ascii_digit()));
        match n.and_then(|s| s.parse::<usize>().ok()) {
            Some(n) if n >= 1 && n <= self.args.len() => {
                self.arg = n - 1;
                true
            }
            Some(_) => {
                self.good_index = false;
                true
            }
            None => {
                self.good_index = false;
                false
            }
        }
    }
}
