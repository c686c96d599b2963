//! Streaming reader for an index in YAML.
//!
//! Indexes are written by a handful of programs, all in block style: fields at column 0, charts below
//! `entries`, versions as list items. The lines of one item are cut out and parsed on their own. Any other
//! layout is left to the parser of whole documents.

use std::io::{BufRead, Read, Seek, Write};

use fl_yaml::{Dialect, Node};

use super::{IndexError, RepositoryIndex, parse};

/// Maximum bytes of a line or an item.
const MAX_ITEM_BYTES: usize = 8 << 20;

pub(super) enum Stop {
    Unsupported,
    Failed(IndexError),
}

impl From<IndexError> for Stop {
    fn from(error: IndexError) -> Self {
        Stop::Failed(error)
    }
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Self {
        Stop::Failed(error.into())
    }
}

pub(super) fn read<F: Read + Write + Seek>(
    input: &mut impl BufRead,
    index: &mut RepositoryIndex<F>,
) -> Result<(), Stop> {
    let mut fields = String::new();
    let mut entries: Option<Entries> = None;
    let mut inside = false;
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = input.by_ref().take(MAX_ITEM_BYTES as u64).read_until(b'\n', &mut line)?;
        if read == 0 {
            break;
        }
        if read == MAX_ITEM_BYTES || line.contains(&b'\t') {
            return Err(Stop::Unsupported);
        }
        let text = std::str::from_utf8(&line).map_err(|_| Stop::Unsupported)?;
        let trimmed = text.trim();
        let margin = text.len() - text.trim_start_matches(' ').len();
        let blank = trimmed.is_empty() || (margin == 0 && trimmed.starts_with('#'));
        if margin == 0 && !blank {
            if trimmed == "---" && fields.is_empty() && entries.is_none() {
                continue;
            }
            if let Some(ended) = entries.as_mut().filter(|_| inside) {
                ended.flush(index)?;
            }
            inside = without_comment(trimmed) == "entries:";
            if inside {
                if entries.is_some() {
                    return Err(Stop::Unsupported);
                }
                index.begin_entries();
                entries = Some(Entries::default());
                continue;
            }
        }
        match entries.as_mut().filter(|_| inside) {
            Some(entries) => entries.line(text, margin, trimmed, index)?,
            None => {
                fields.push_str(text);
                if fields.len() > MAX_ITEM_BYTES {
                    return Err(Stop::Unsupported);
                }
            }
        }
    }
    if let Some(entries) = entries.as_mut().filter(|_| inside) {
        entries.flush(index)?;
    }
    read_fields(&fields, index)
}

fn read_fields<F: Read + Write + Seek>(text: &str, index: &mut RepositoryIndex<F>) -> Result<(), Stop> {
    let document = parse(text.as_bytes())?;
    if document.is_null(Dialect::Sigs) {
        return Ok(());
    }
    let Some(map) = document.as_map() else { return Err(Stop::Unsupported) };
    if map.contains("entries") && index.entries.is_some() {
        return Err(Stop::Unsupported);
    }
    let inline = |e: &Node| e.as_map().map_or(!e.is_null(Dialect::Sigs), |m| !m.is_empty());
    if map.get("entries").is_some_and(inline) {
        // Charts on the line of the key itself, or a value that is not a mapping.
        return Err(Stop::Unsupported);
    }
    for item in map.iter() {
        let name = item.name().unwrap_or_default();
        if name == "entries" && item.value.is_null(Dialect::Sigs) {
            continue;
        }
        index.field(name, &item.value)?;
    }
    Ok(())
}

/// A comment starts after a blank.
fn without_comment(text: &str) -> &str {
    text.split(" #").next().unwrap_or_default().trim_end()
}

/// The charts below `entries`.
#[derive(Default)]
struct Entries {
    /// Indentation of chart names, known from the first one.
    name_margin: Option<usize>,
    chart: Option<String>,
    /// Indentation of the items of the current chart.
    item_margin: Option<usize>,
    item: String,
}

impl Entries {
    fn line<F: Read + Write + Seek>(
        &mut self,
        text: &str,
        margin: usize,
        trimmed: &str,
        index: &mut RepositoryIndex<F>,
    ) -> Result<(), Stop> {
        if trimmed.is_empty() {
            // Blank lines within a string are significant.
            if !self.item.is_empty() {
                self.item.push('\n');
            }
            return Ok(());
        }
        let names = *self.name_margin.get_or_insert(margin);
        let dash = trimmed == "-" || trimmed.starts_with("- ");
        if margin < names || (margin == names && self.chart.is_none() && dash) {
            return Err(Stop::Unsupported);
        }
        if self.chart.is_some() && dash {
            let items = *self.item_margin.get_or_insert(margin);
            if margin == items {
                self.flush_item(index)?;
                self.item.push_str(text);
                return Ok(());
            }
        }
        if margin == names {
            self.flush_item(index)?;
            return self.begin_chart(trimmed, index);
        }
        if self.item.is_empty() {
            return if trimmed.starts_with('#') { Ok(()) } else { Err(Stop::Unsupported) };
        }
        self.item.push_str(text);
        if self.item.len() > MAX_ITEM_BYTES { Err(Stop::Unsupported) } else { Ok(()) }
    }

    fn begin_chart<F: Read + Write + Seek>(
        &mut self,
        line: &str,
        index: &mut RepositoryIndex<F>,
    ) -> Result<(), Stop> {
        if line.starts_with('#') {
            return Ok(());
        }
        let document = parse(line.as_bytes())?;
        let Some([entry]) = document.as_map().map(fl_yaml::Map::entries) else {
            return Err(Stop::Unsupported);
        };
        let empty = |n: &Node| n.is_null(Dialect::Sigs) || n.as_seq().is_some_and(<[Node]>::is_empty);
        let known = index.entries.as_ref().is_some_and(|e| e.contains_key(entry.name().unwrap_or_default()));
        if !empty(&entry.value) || known {
            return Err(Stop::Unsupported);
        }
        let name = entry.name().unwrap_or_default().to_owned();
        index.begin_chart(&name);
        if entry.value.as_seq().is_some() {
            index.versions(&name);
        }
        self.chart = Some(name);
        self.item_margin = None;
        Ok(())
    }

    fn flush_item<F: Read + Write + Seek>(&mut self, index: &mut RepositoryIndex<F>) -> Result<(), Stop> {
        if self.item.is_empty() {
            return Ok(());
        }
        let document = parse(self.item.as_bytes())?;
        let Some([version]) = document.as_seq() else { return Err(Stop::Unsupported) };
        index.add(self.chart.as_deref().unwrap_or_default(), version)?;
        self.item.clear();
        Ok(())
    }

    fn flush<F: Read + Write + Seek>(&mut self, index: &mut RepositoryIndex<F>) -> Result<(), Stop> {
        self.flush_item(index)
    }
}
