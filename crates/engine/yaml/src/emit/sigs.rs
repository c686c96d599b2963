//! The output of `sigs.k8s.io/yaml`: what `kustomize build`, Helm's `toYaml` and kubectl print.
//!
//! Those tools go from values to JSON, read that JSON as YAML and print the result with sorted keys. The detour
//! shows: floats become integers where they can, line breaks outside ASCII fold, some characters are refused.

use std::borrow::Cow;

use super::analyze::analyze;
use super::scalar::Writer;
use crate::chars::{CLASS, PLAIN_START};
use crate::error::Error;
use crate::json::{self, JsonStyle, key_text};
use crate::map::Map;
use crate::node::{Node, Style, Tag, Value};
use crate::options::Options;
use crate::resolve::{Dialect, Scalar, resolve_node, resolve_plain, tag_of};
use crate::{number, read, sort};

/// The YAML of a tree that was read in `dialect`, as `sigs.k8s.io/yaml` prints it.
///
/// # Errors
/// A value that JSON cannot hold, or a text with characters that Go's YAML reader refuses.
pub fn to_sigs_yaml(node: &Node, dialect: Dialect) -> Result<String, Error> {
    let mut out = String::new();
    write_sigs_yaml(&mut out, node, dialect)?;
    Ok(out)
}

/// As [`to_sigs_yaml`], behind what is already in `out` (which must end a line).
///
/// # Errors
/// As [`to_sigs_yaml`]; `out` is then as it was.
pub fn write_sigs_yaml(out: &mut String, node: &Node, dialect: Dialect) -> Result<(), Error> {
    write(out, node, dialect, KeyOrder::Sorted)
}

/// As [`to_sigs_yaml`] with the keys in the order of the tree, as Go prints a `yaml.MapSlice`. A tree that has to be
/// read again has its keys sorted by bytes then.
///
/// # Errors
/// As [`to_sigs_yaml`].
pub fn to_sigs_yaml_in_order(node: &Node, dialect: Dialect) -> Result<String, Error> {
    let mut out = String::new();
    write(&mut out, node, dialect, KeyOrder::Kept)?;
    Ok(out)
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum KeyOrder {
    Sorted,
    Kept,
}

fn write(out: &mut String, node: &Node, dialect: Dialect, order: KeyOrder) -> Result<(), Error> {
    let begin = out.len();
    let mut result = Emitter::new(out, dialect, Detour::WhereNeeded, order).document(node);
    if let Err(Stop::NeedsDetour) = result {
        out.truncate(begin);
        let text = json::to_json(node, dialect, JsonStyle::GO)?;
        let again = read::parse_first(text.as_bytes(), &Options::sigs())?.unwrap_or_default();
        result = Emitter::new(out, Dialect::Sigs, Detour::Done, order).document(&again);
    }
    result.map_err(|stop| {
        out.truncate(begin);
        match stop {
            Stop::Error(error) => error,
            Stop::NeedsDetour => json::at(node, "the text changes each time it is read"),
        }
    })
}

enum Stop {
    Error(Error),
    /// A text that the JSON detour changes or refuses: go the long way.
    NeedsDetour,
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Stop::Error(error)
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Detour {
    WhereNeeded,
    Done,
}

#[derive(Debug)]
struct Emitter<'o> {
    writer: Writer<'o>,
    dialect: Dialect,
    detour: Detour,
    /// Inside brackets kustomize's own copy of the text holds an empty value as `''`, which is a string.
    in_flow: bool,
    order: KeyOrder,
}

/// Mappings up to this size are sorted without asking for memory.
const FEW_KEYS: usize = 16;
/// Keys up to this length (in bytes) can be simple ones; beyond it they are written with `?`.
const LONGEST_SIMPLE_KEY: usize = 128;
/// From this length on a key may be too long for the JSON detour.
const LONGEST_SAFE_KEY: usize = 160;

impl<'o> Emitter<'o> {
    fn new(out: &'o mut String, dialect: Dialect, detour: Detour, order: KeyOrder) -> Self {
        Self { writer: Writer::new(out, 2), dialect, detour, in_flow: false, order }
    }

    fn document(&mut self, node: &Node) -> Result<(), Stop> {
        self.node(node, true, false)?;
        self.writer.write_indent();
        Ok(())
    }

    fn node(&mut self, node: &Node, root: bool, in_mapping: bool) -> Result<(), Stop> {
        let outer = self.in_flow;
        self.in_flow |= node.style == Style::Flow && self.dialect == Dialect::V3;
        let result = self.content(node, root, in_mapping);
        self.in_flow = outer;
        result
    }

    fn content(&mut self, node: &Node, root: bool, in_mapping: bool) -> Result<(), Stop> {
        match &node.value {
            Value::Scalar(text) if text.is_empty() && self.in_flow => self.string("", false),
            Value::Scalar(text)
                if node.style == Style::Folded && self.dialect == Dialect::V3 && !self.in_flow =>
            {
                self.string(&refolded(text), false)
            }
            Value::Scalar(_) => self.scalar(node),
            Value::Seq(items) if items.is_empty() => {
                self.writer.indicator("[", true, true, false);
                self.writer.indicator("]", false, false, false);
                Ok(())
            }
            Value::Map(map) if map.is_empty() => {
                self.writer.indicator("{", true, true, false);
                self.writer.indicator("}", false, false, false);
                Ok(())
            }
            Value::Seq(items) => {
                let indentless = in_mapping && !self.writer.indention;
                let before = self.writer.deeper(false, indentless);
                for item in items {
                    self.writer.write_indent();
                    self.writer.indicator("-", true, false, true);
                    self.node(item, false, false)?;
                }
                self.writer.indent = before;
                Ok(())
            }
            Value::Map(map) => self.mapping(map, root),
        }
    }

    fn mapping(&mut self, map: &Map, root: bool) -> Result<(), Stop> {
        let before = self.writer.deeper(false, false);
        let mut few = [""; FEW_KEYS];
        let mut many = Vec::new();
        let keys = if map.len() <= FEW_KEYS {
            &mut few[..map.len()]
        } else {
            many.resize(map.len(), "");
            &mut many[..]
        };
        for (slot, entry) in keys.iter_mut().zip(map) {
            *slot = key_text(&entry.key, self.dialect, root)?;
        }
        if self.order == KeyOrder::Kept || keys.windows(2).all(|pair| !sort::less(pair[1], pair[0])) {
            for (key, entry) in keys.iter().zip(map) {
                self.entry(key, &entry.value)?;
            }
        } else {
            for at in sort::sorted_indexes(keys) {
                self.entry(keys[at as usize], &map.entries()[at as usize].value)?;
            }
        }
        self.writer.indent = before;
        Ok(())
    }

    fn entry(&mut self, key: &str, value: &Node) -> Result<(), Stop> {
        self.writer.write_indent();
        if key.len() > LONGEST_SAFE_KEY && self.detour == Detour::WhereNeeded {
            return Err(Stop::NeedsDetour);
        }
        let simple = key.len() <= LONGEST_SIMPLE_KEY
            && (plainness(key) != Plainness::Unknown || !analyze(key, false).multiline);
        if simple {
            self.string(key, true)?;
            self.writer.indicator(":", false, false, false);
        } else {
            self.writer.indicator("?", true, false, true);
            self.string(key, false)?;
            self.writer.write_indent();
            self.writer.indicator(":", true, false, true);
        }
        self.node(value, false, true)
    }

    fn scalar(&mut self, node: &Node) -> Result<(), Stop> {
        let mut text = String::new();
        match resolve_node(node, self.dialect)? {
            Scalar::Str(s) => return self.string(s, false),
            Scalar::Timestamp(t) => return self.string(&t, false),
            Scalar::Binary(bytes) => return self.string(&String::from_utf8_lossy(&bytes), false),
            Scalar::Null => self.writer.bare("null"),
            Scalar::Bool(b) => self.writer.bare(if b { "true" } else { "false" }),
            Scalar::Int(i) => self.writer.bare(smol_str::format_smolstr!("{i}").as_str()),
            Scalar::Uint(u) => self.writer.bare(smol_str::format_smolstr!("{u}").as_str()),
            Scalar::Float(f) if !f.is_finite() => return Err(json::unsupported_float(node, f).into()),
            Scalar::Float(f) => {
                number::push_json_float(&mut text, f);
                // The JSON text is read again, so a whole number comes out as an integer.
                if let Scalar::Float(f) = resolve_plain(&text, Dialect::Sigs) {
                    text.clear();
                    number::push_g_float(&mut text, f);
                } else if text == "-0" {
                    text.clear();
                    text.push('0');
                }
                self.writer.bare(&text);
            }
        }
        Ok(())
    }

    fn string(&mut self, text: &str, simple_key: bool) -> Result<(), Stop> {
        let short = || simple_key || self.writer.column + text.len() < FOLDING_STARTS;
        let plain = match plainness(text) {
            Plainness::OneWord => true,
            Plainness::Words => short(),
            Plainness::Unknown => false,
        };
        if plain && tag_of(text, Dialect::Sigs) == Tag::Str && !is_base60(text) {
            self.writer.bare(text);
            return Ok(());
        }
        if self.detour == Detour::WhereNeeded && !survives_json(text) {
            return Err(Stop::NeedsDetour);
        }
        let analysis = analyze(text, false);
        let before = self.writer.deeper(true, false);
        let may_fold = !simple_key;
        if text.contains('\n') {
            if analysis.block && !simple_key {
                self.writer.literal(text);
            } else {
                self.writer.double_quoted(text, may_fold);
            }
        } else if tag_of(text, Dialect::Sigs) != Tag::Str
            || is_base60(text)
            || (simple_key && analysis.multiline)
        {
            self.writer.double_quoted(text, may_fold);
        } else if analysis.block_plain {
            self.writer.plain(text, may_fold);
        } else if analysis.single_quoted {
            self.writer.single_quoted(text, may_fold);
        } else {
            self.writer.double_quoted(text, may_fold);
        }
        self.writer.indent = before;
        Ok(())
    }
}

/// What a folded scalar becomes when `yaml.v3` writes and reads it again, as kustomize does on its way to JSON: lines
/// that are indented more than the first one gain empty lines around them.
#[must_use]
pub fn refolded(text: &str) -> Cow<'_, str> {
    if !text.contains('\n') || !analyze(text, true).block {
        return Cow::Borrowed(text);
    }
    let mut copy = String::from("-");
    let mut writer = Writer::new(&mut copy, 2);
    (writer.column, writer.whitespace, writer.indent) = (1, false, 2);
    writer.folded(text);
    let again = read::parse_first(copy.as_bytes(), &Options::v3()).ok().flatten();
    match again.as_ref().and_then(|list| list.as_seq()?.first()?.as_text()) {
        Some(again) => Cow::Owned(again.to_owned()),
        None => Cow::Borrowed(text),
    }
}

/// A text that ends before this column is not folded.
const FOLDING_STARTS: usize = 78;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Plainness {
    /// No blanks, nothing that block YAML cares about.
    OneWord,
    /// The same with blanks between words.
    Words,
    /// Needs a full look.
    Unknown,
}

/// A quick look that settles most texts: printable ASCII that begins harmlessly, without `: ` and ` #`.
fn plainness(text: &str) -> Plainness {
    let b = text.as_bytes();
    let harmless = |c: &u8| CLASS[*c as usize] & PLAIN_START != 0 && *c < 0x7F;
    if !b.first().is_some_and(harmless) {
        return Plainness::Unknown;
    }
    let mut words = false;
    let mut before = 0;
    for &c in b {
        match c {
            b' ' if before == b':' => return Plainness::Unknown,
            b' ' => words = true,
            b'#' if before == b' ' => return Plainness::Unknown,
            0x21..=0x7E => {}
            _ => return Plainness::Unknown,
        }
        before = c;
    }
    match before {
        b' ' | b':' => Plainness::Unknown,
        _ if words => Plainness::Words,
        _ => Plainness::OneWord,
    }
}

/// Whether Go's YAML reader gives a text back unchanged out of a JSON string.
fn survives_json(text: &str) -> bool {
    text.bytes().all(|b| b < 0x7F)
        || !text.chars().any(|c| matches!(c, '\u{7f}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}'))
}

/// `190:20:30` and its like: base 60 numbers of YAML 1.1, quoted for other readers.
pub(super) fn is_base60(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    // Nearly every text leaves here.
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return false;
    }
    let mut parts = digits.split(':');
    let whole = |part: &str| part.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    let sixty = |part: &str| match part.as_bytes() {
        [d] => d.is_ascii_digit(),
        [t, d] => (b'0'..=b'5').contains(t) && d.is_ascii_digit(),
        _ => false,
    };
    if !parts.next().is_some_and(whole) {
        return false;
    }
    let rest: Vec<&str> = parts.collect();
    let Some((last, middle)) = rest.split_last() else { return false };
    let (last, fraction) = last.split_once('.').unwrap_or((last, ""));
    middle.iter().all(|part| sixty(part)) && sixty(last) && whole(fraction)
}
