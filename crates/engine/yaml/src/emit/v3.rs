//! The output of `gopkg.in/yaml.v3`: keys in order, no folding of long lines, lists indented below their key.

use super::analyze::analyze;
use super::scalar::Writer;
use super::sigs::is_base60;
use crate::error::Error;
use crate::json::key_text;
use crate::node::{Node, Tag, Value};
use crate::number;
use crate::resolve::{Dialect, Scalar, resolve_node, tag_of};

/// Appends a tree to `out`, which must be at the start of a line, as `yaml.v3` prints it with this
/// indentation.
///
/// # Errors
/// A key that is not a string, or a tag that does not match its value; `out` is not changed then.
pub fn write_v3_yaml(out: &mut String, node: &Node, indent: usize) -> Result<(), Error> {
    let begin = out.len();
    let mut emitter = Emitter { writer: Writer::new(out, indent) };
    let result = emitter.node(node, false);
    emitter.writer.write_indent();
    if result.is_err() {
        out.truncate(begin);
    }
    result
}

struct Emitter<'o> {
    writer: Writer<'o>,
}

impl Emitter<'_> {
    /// Inside of a list the first level is indented by `- `; all others go to the next multiple.
    fn deeper(&mut self, in_list: bool) -> isize {
        let before = self.writer.indent;
        let step = self.writer.best_indent as isize;
        self.writer.indent = match (before, in_list) {
            (..0, _) => 0,
            (_, true) => before + 2,
            _ => (before + step) / step * step,
        };
        before
    }

    fn node(&mut self, node: &Node, in_list: bool) -> Result<(), Error> {
        match &node.value {
            Value::Scalar(_) => self.scalar(node, in_list),
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
                let before = self.deeper(in_list);
                for item in items {
                    self.writer.write_indent();
                    self.writer.indicator("-", true, false, true);
                    self.node(item, true)?;
                }
                self.writer.indent = before;
                Ok(())
            }
            Value::Map(map) => {
                let before = self.deeper(in_list);
                for entry in map {
                    let key = key_text(&entry.key, Dialect::V3, false)?;
                    self.writer.write_indent();
                    if key.len() <= 128 && !analyze(key, true).multiline {
                        self.string(key, true, false);
                        self.writer.indicator(":", false, false, false);
                    } else {
                        self.writer.indicator("?", true, false, true);
                        self.string(key, false, false);
                        self.writer.write_indent();
                        self.writer.indicator(":", true, false, true);
                    }
                    self.node(&entry.value, false)?;
                }
                self.writer.indent = before;
                Ok(())
            }
        }
    }

    fn scalar(&mut self, node: &Node, in_list: bool) -> Result<(), Error> {
        match resolve_node(node, Dialect::V3)? {
            Scalar::Str(text) => self.string(text, false, in_list),
            // A timestamp that a program created is written plain; one that was parsed is a string here.
            Scalar::Timestamp(text) if node.tag == Tag::Timestamp && node.line() == 0 => {
                self.writer.bare(&text);
            }
            Scalar::Timestamp(text) => self.string(&text, false, in_list),
            Scalar::Binary(_) if node.line() == 0 => self.binary(node.as_text().unwrap_or_default(), in_list),
            Scalar::Binary(bytes) => self.string(&String::from_utf8_lossy(&bytes), false, in_list),
            Scalar::Null => self.writer.bare("null"),
            Scalar::Bool(value) => self.writer.bare(if value { "true" } else { "false" }),
            Scalar::Int(number) => self.writer.bare(&number.to_string()),
            Scalar::Uint(number) => self.writer.bare(&number.to_string()),
            Scalar::Float(number) if number.is_nan() => self.writer.bare(".nan"),
            Scalar::Float(number) if number.is_infinite() => {
                self.writer.bare(if number > 0.0 { ".inf" } else { "-.inf" });
            }
            Scalar::Float(number) => {
                let mut text = String::new();
                number::push_float(&mut text, number);
                self.writer.bare(&text);
            }
        }
        Ok(())
    }

    fn string(&mut self, text: &str, simple_key: bool, in_list: bool) {
        // Booleans of YAML 1.1 (`y`, `off`) are quoted for older parsers.
        let foreign = tag_of(text, Dialect::V3) != Tag::Str || is_old_bool(text) || is_base60(text);
        self.styled(text, foreign, simple_key, in_list);
    }

    /// Bytes that are not UTF-8: base64 with its tag, in lines if it is long.
    fn binary(&mut self, base64: &str, in_list: bool) {
        const LINE: usize = 70;
        self.writer.bare("!!binary");
        if base64.len() < LINE {
            return self.styled(base64, false, false, in_list);
        }
        let mut lines = String::with_capacity(base64.len() + base64.len() / LINE + 1);
        for line in base64.as_bytes().chunks(LINE) {
            lines.extend(line.iter().map(|b| char::from(*b)));
            lines.push('\n');
        }
        self.styled(&lines, false, false, in_list);
    }

    /// Writes a text in the plainest possible style; a `foreign` one would be parsed as another type.
    fn styled(&mut self, text: &str, foreign: bool, simple_key: bool, in_list: bool) {
        let analysis = analyze(text, true);
        let before = self.deeper(in_list);
        if before < 0 {
            // Also in a text that is the whole document lines are indented.
            self.writer.indent = self.writer.best_indent as isize;
        }
        if text.contains('\n') && analysis.block && !simple_key {
            self.writer.literal(text);
        } else if foreign || text.contains('\n') || (simple_key && analysis.multiline) {
            self.writer.double_quoted(text, false);
        } else if analysis.block_plain {
            self.writer.plain(text, false);
        } else if analysis.single_quoted {
            self.writer.single_quoted(text, false);
        } else {
            self.writer.double_quoted(text, false);
        }
        self.writer.indent = before;
    }
}

fn is_old_bool(text: &str) -> bool {
    const OLD: [&str; 16] =
        ["y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "n", "N", "no", "No", "NO", "off", "Off", "OFF"];
    OLD.contains(&text)
}
