//! The output of `sigs.k8s.io/yaml`, as printed by `kustomize build`, Helm's `toYaml` and kubectl.
//!
//! That library marshals to JSON, parses that JSON as YAML and prints the result with sorted keys. Hence
//! integral floats become integers, Unicode line breaks are folded, and some characters are rejected.

use std::borrow::Cow;

use super::analyze::analyze;
use super::scalar::Writer;
use crate::character_class::{CLASS, PLAIN_START};
use crate::error::Error;
use crate::json::{self, JsonStyle, key_text};
use crate::map::Map;
use crate::node::{Node, Style, Tag, Value};
use crate::options::Options;
use crate::resolve::{Dialect, Scalar, resolve_node, resolve_plain, tag_of};
use crate::{number, read, sort};

/// Prints a tree that was parsed in `dialect` as `sigs.k8s.io/yaml` does.
///
/// # Errors
/// A value that JSON cannot represent, or a text with characters that Go's YAML parser rejects.
pub fn to_sigs_yaml(node: &Node, dialect: Dialect) -> Result<String, Error> {
    let mut out = String::new();
    write_sigs_yaml(&mut out, node, dialect)?;
    Ok(out)
}

/// Appends [`to_sigs_yaml`] to `out`, which must be at the start of a line.
///
/// # Errors
/// See [`to_sigs_yaml`]; `out` is not changed then.
pub fn write_sigs_yaml(out: &mut String, node: &Node, dialect: Dialect) -> Result<(), Error> {
    write(out, node, dialect, KeyOrder::Sorted)
}

/// [`to_sigs_yaml`] with the keys in the order of the tree, as Go prints a `yaml.MapSlice`. If the tree has
/// to be parsed again, its keys are sorted by bytes.
///
/// # Errors
/// See [`to_sigs_yaml`].
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
    let mut result = Emitter::new(out, dialect, JsonRoundTrip::WhereNeeded, order).document(node);
    if let Err(Stop::NeedsJsonRoundTrip) = result {
        out.truncate(begin);
        let text = json::to_json(node, dialect, JsonStyle::GO)?;
        let again = read::parse_first(text.as_bytes(), &Options::sigs())?.unwrap_or_default();
        result = Emitter::new(out, Dialect::Sigs, JsonRoundTrip::Done, order).document(&again);
    }
    result.map_err(|stop| {
        out.truncate(begin);
        match stop {
            Stop::Error(error) => error,
            Stop::NeedsJsonRoundTrip => json::at(node, "the text changes each time it is read"),
        }
    })
}

enum Stop {
    Error(Error),
    /// A text that the conversion to JSON changes or rejects.
    NeedsJsonRoundTrip,
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Stop::Error(error)
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum JsonRoundTrip {
    WhereNeeded,
    Done,
}

#[derive(Debug)]
struct Emitter<'o> {
    writer: Writer<'o>,
    dialect: Dialect,
    json_round_trip: JsonRoundTrip,
    /// Inside of flow collections kustomize has an empty value as `''`, which is a string.
    in_flow: bool,
    order: KeyOrder,
}

/// Mappings up to this size are sorted without allocation.
const MAX_STACK_KEYS: usize = 16;
/// Maximum length in bytes of a simple key; longer ones are written with `?`.
const MAX_SIMPLE_KEY_LENGTH: usize = 128;
/// From this length on a key may be too long for the conversion to JSON.
const MAX_SAFE_KEY_LENGTH: usize = 160;

impl<'o> Emitter<'o> {
    fn new(out: &'o mut String, dialect: Dialect, json_round_trip: JsonRoundTrip, order: KeyOrder) -> Self {
        Self { writer: Writer::new(out, 2), dialect, json_round_trip, in_flow: false, order }
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
        let mut few = [""; MAX_STACK_KEYS];
        let mut many = Vec::new();
        let keys = if map.len() <= MAX_STACK_KEYS {
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
        if key.len() > MAX_SAFE_KEY_LENGTH && self.json_round_trip == JsonRoundTrip::WhereNeeded {
            return Err(Stop::NeedsJsonRoundTrip);
        }
        let simple = key.len() <= MAX_SIMPLE_KEY_LENGTH
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
                fl_go::float::push_json(&mut text, f);
                // The JSON is parsed again, so an integral float becomes an integer.
                if let Scalar::Float(f) = resolve_plain(&text, Dialect::Sigs) {
                    text.clear();
                    number::push_float(&mut text, f);
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
        let short = || simple_key || self.writer.column + text.len() < MIN_FOLD_COLUMN;
        let plain = match plainness(text) {
            Plainness::OneWord => true,
            Plainness::Words => short(),
            Plainness::Unknown => false,
        };
        if plain && tag_of(text, Dialect::Sigs) == Tag::Str && !is_base60(text) {
            self.writer.bare(text);
            return Ok(());
        }
        if self.json_round_trip == JsonRoundTrip::WhereNeeded && !round_trips_through_json(text) {
            return Err(Stop::NeedsJsonRoundTrip);
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

/// The value of a folded scalar after `yaml.v3` has written and parsed it, as kustomize does on its way to
/// JSON: empty lines are added around lines that are indented more than the first one.
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

/// Scalars that end before this column are not folded.
const MIN_FOLD_COLUMN: usize = 78;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Plainness {
    /// No blanks and no characters that are special in block style.
    OneWord,
    /// The same with blanks between words.
    Words,
    /// Needs the full analysis.
    Unknown,
}

/// A fast check that decides for most texts: printable ASCII that begins with an ordinary character, without
/// `: ` and ` #`.
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

/// Whether Go's YAML parser returns a text unchanged from a JSON string.
fn round_trips_through_json(text: &str) -> bool {
    text.bytes().all(|b| b < 0x7F)
        || !text.chars().any(|c| matches!(c, '\u{7f}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}'))
}

/// Whether a text is a base 60 number of YAML 1.1, such as `190:20:30`; these are quoted.
pub(super) fn is_base60(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    // Fast path for nearly all texts.
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
