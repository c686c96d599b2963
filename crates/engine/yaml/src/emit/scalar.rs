//! Writes scalars: the low level of libyaml's emitter.

use super::analyze::{is_printable, width};
use crate::character_class::{break_len, byte, is_blank};

/// Lines are folded at the first blank after this column.
const BEST_WIDTH: usize = 80;

/// The output, with the state of the emitter at its end.
#[derive(Debug)]
pub(super) struct Writer<'o> {
    pub(super) out: &'o mut String,
    pub(super) column: usize,
    /// The indentation of the current collection; -1 outside of any.
    pub(super) indent: isize,
    /// Whether the last character was a blank, or the output is empty.
    pub(super) whitespace: bool,
    /// Whether the line has only indentation and block indicators so far.
    pub(super) indention: bool,
    pub(super) best_indent: usize,
}

impl<'o> Writer<'o> {
    pub(super) fn new(out: &'o mut String, best_indent: usize) -> Self {
        Self { out, column: 0, indent: -1, whitespace: true, indention: true, best_indent }
    }

    /// Enters a collection, or a scalar (which counts as flow); returns the indentation to restore.
    pub(super) fn deeper(&mut self, flow: bool, indentless: bool) -> isize {
        let before = self.indent;
        if before < 0 {
            self.indent = if flow { self.best_indent as isize } else { 0 };
        } else if !indentless {
            self.indent += self.best_indent as isize;
        }
        before
    }

    pub(super) fn put_break(&mut self) {
        self.out.push('\n');
        self.column = 0;
    }

    fn put(&mut self, c: char) {
        self.out.push(c);
        self.column += 1;
    }

    /// Writes text of one line that is ASCII, or whose width is irrelevant.
    pub(super) fn put_str(&mut self, text: &str) {
        self.out.push_str(text);
        self.column += if text.is_ascii() { text.len() } else { text.chars().count() };
    }

    pub(super) fn write_indent(&mut self) {
        const BLANKS: &str = "                                                                ";
        let indent = self.indent.max(0) as usize;
        if !self.indention || self.column > indent || (self.column == indent && !self.whitespace) {
            self.put_break();
        }
        while self.column < indent {
            let n = (indent - self.column).min(BLANKS.len());
            self.out.push_str(&BLANKS[..n]);
            self.column += n;
        }
        (self.whitespace, self.indention) = (true, true);
    }

    pub(super) fn indicator(&mut self, text: &str, need_blank: bool, is_blank: bool, keeps_indention: bool) {
        if need_blank && !self.whitespace {
            self.put(' ');
        }
        self.put_str(text);
        self.whitespace = is_blank;
        self.indention &= keeps_indention;
    }

    /// Writes a plain scalar that needs neither folding nor quotes.
    #[inline]
    pub(super) fn bare(&mut self, text: &str) {
        if !self.whitespace {
            self.put(' ');
        }
        self.out.push_str(text);
        self.column += text.len();
        (self.whitespace, self.indention) = (false, false);
    }

    /// Copies the character of `text` at `i`; returns the position of the next one.
    fn copy(&mut self, text: &str, i: usize) -> usize {
        let w = width(text.as_bytes()[i]);
        self.out.push_str(&text[i..i + w]);
        self.column += 1;
        i + w
    }

    /// Copies the line break of `text` at `i`.
    fn copy_break(&mut self, text: &str, i: usize) -> usize {
        if text.as_bytes()[i] == b'\n' {
            self.put_break();
            return i + 1;
        }
        let next = self.copy(text, i);
        self.column = 0;
        next
    }

    pub(super) fn plain(&mut self, text: &str, may_fold: bool) {
        if !self.whitespace {
            self.put(' ');
        }
        self.folding_run(text, may_fold, false);
        (self.whitespace, self.indention) = (false, false);
    }

    pub(super) fn single_quoted(&mut self, text: &str, may_fold: bool) {
        self.indicator("'", true, false, false);
        self.folding_run(text, may_fold, true);
        self.indicator("'", false, false, false);
        (self.whitespace, self.indention) = (false, false);
    }

    /// Common part of plain and single-quoted scalars: folds at blanks, doubles line feeds.
    fn folding_run(&mut self, text: &str, may_fold: bool, quoted: bool) {
        let b = text.as_bytes();
        let (mut spaces, mut breaks) = (false, false);
        let mut i = 0;
        while i < b.len() {
            if b[i] == b' ' {
                let inside = !quoted || (i > 0 && i < b.len() - 1);
                if may_fold && !spaces && self.column > BEST_WIDTH && inside && byte(b, i + 1) != b' ' {
                    self.write_indent();
                    i += 1;
                } else {
                    i = self.copy(text, i);
                }
                spaces = true;
            } else if b[i] < 0x80 && b[i] != b'\n' && b[i] != b'\r' || break_len(b, i) == 0 {
                if breaks {
                    self.write_indent();
                }
                if quoted && b[i] == b'\'' {
                    self.put('\'');
                }
                i = self.copy(text, i);
                self.indention = false;
                (spaces, breaks) = (false, false);
            } else {
                if !breaks && b[i] == b'\n' {
                    self.put_break();
                }
                i = self.copy_break(text, i);
                self.indention = true;
                breaks = true;
            }
        }
    }

    pub(super) fn double_quoted(&mut self, text: &str, may_fold: bool) {
        let b = text.as_bytes();
        self.indicator("\"", true, false, false);
        // Go tests at every character whether the text begins with a byte order mark, so all are escaped
        // then.
        let after_mark = text.starts_with('\u{feff}');
        let mut spaces = false;
        let mut i = 0;
        while i < b.len() {
            let escape =
                after_mark || !is_printable(b, i) || matches!(b[i], b'"' | b'\\') || break_len(b, i) > 0;
            if escape {
                let c = text[i..].chars().next().unwrap_or_default();
                self.escape(c);
                i += c.len_utf8();
                spaces = false;
            } else if b[i] == b' ' {
                if may_fold && !spaces && self.column > BEST_WIDTH && i > 0 && i < b.len() - 1 {
                    self.write_indent();
                    if byte(b, i + 1) == b' ' {
                        self.put('\\');
                    }
                    i += 1;
                } else {
                    i = self.copy(text, i);
                }
                spaces = true;
            } else {
                i = self.copy(text, i);
                spaces = false;
            }
        }
        self.indicator("\"", false, false, false);
        (self.whitespace, self.indention) = (false, false);
    }

    fn escape(&mut self, c: char) {
        self.put('\\');
        let short = match c {
            '\0' => '0',
            '\x07' => 'a',
            '\x08' => 'b',
            '\t' => 't',
            '\n' => 'n',
            '\x0b' => 'v',
            '\x0c' => 'f',
            '\r' => 'r',
            '\x1b' => 'e',
            '"' => '"',
            '\\' => '\\',
            '\u{85}' => 'N',
            '\u{a0}' => '_',
            '\u{2028}' => 'L',
            '\u{2029}' => 'P',
            _ => {
                let code = u32::from(c);
                let text = match code {
                    0..=0xFF => format!("x{code:02X}"),
                    0x100..=0xFFFF => format!("u{code:04X}"),
                    _ => format!("U{code:08X}"),
                };
                return self.put_str(&text);
            }
        };
        self.put(short);
    }

    /// The indentation and chomping indicators of a block scalar.
    fn block_hints(&mut self, text: &str) {
        let b = text.as_bytes();
        if byte(b, 0) == b' ' || break_len(b, 0) > 0 {
            let hint = self.best_indent.to_string();
            self.indicator(&hint, false, false, false);
        }
        let mut back = text.chars().rev();
        let is_break = |c: Option<char>| matches!(c, Some('\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}'));
        if !is_break(back.next()) {
            self.indicator("-", false, false, false);
        } else {
            let before = back.next();
            if before.is_none() || is_break(before) {
                self.indicator("+", false, false, false);
            }
        }
    }

    pub(super) fn literal(&mut self, text: &str) {
        self.indicator("|", true, false, false);
        self.block_hints(text);
        self.put_break();
        (self.whitespace, self.indention) = (true, true);
        let b = text.as_bytes();
        let mut breaks = true;
        let mut i = 0;
        while i < b.len() {
            if break_len(b, i) > 0 {
                i = self.copy_break(text, i);
                self.indention = true;
                breaks = true;
                continue;
            }
            if breaks {
                self.write_indent();
            }
            // Copies the rest of the line at once, except bytes that may begin another kind of line break.
            let run =
                b[i..].iter().position(|c| matches!(c, b'\n' | b'\r' | 0xC2 | 0xE2)).unwrap_or(b.len() - i);
            if run == 0 {
                i = self.copy(text, i);
            } else {
                self.put_str(&text[i..i + run]);
                i += run;
            }
            self.indention = false;
            breaks = false;
        }
    }

    /// Folded style as in `yaml.v3`: without a line width.
    pub(super) fn folded(&mut self, text: &str) {
        self.indicator(">", true, false, false);
        self.block_hints(text);
        self.put_break();
        (self.whitespace, self.indention) = (true, true);
        let b = text.as_bytes();
        let (mut breaks, mut leading_spaces) = (true, true);
        let mut i = 0;
        while i < b.len() {
            if break_len(b, i) > 0 {
                if !breaks && !leading_spaces && b[i] == b'\n' {
                    // Like libyaml, this tests the start of the text, not the current position.
                    let mut k = 0;
                    while k < b.len() && break_len(b, k) > 0 {
                        k += width(b[k]);
                    }
                    if !crate::character_class::is_blankz(b, k) {
                        self.put_break();
                    }
                }
                i = self.copy_break(text, i);
                self.indention = true;
                breaks = true;
            } else {
                if breaks {
                    self.write_indent();
                    leading_spaces = is_blank(b[i]);
                }
                i = self.copy(text, i);
                self.indention = false;
                breaks = false;
            }
        }
    }
}
