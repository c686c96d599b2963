//! An index in YAML, taken apart line by line.
//!
//! Indexes are written by a handful of programs, all in block style: fields at the margin, charts below `entries`, versions as list
//! items. The lines of one item are cut out and parsed on their own. Whatever does not look like that is left to the
//! parser of whole documents.

use std::io::{BufRead, Read, Seek, Write};

use fl_yaml::{Dialect, Node};

use super::{IndexError, RepositoryIndex, parse};

/// A line, or an item, longer than this is none.
const ITEM: usize = 8 << 20;

pub(super) enum Stop {
    Unusual,
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
        let read = input.by_ref().take(ITEM as u64).read_until(b'\n', &mut line)?;
        if read == 0 {
            break;
        }
        if read == ITEM || line.contains(&b'\t') {
            return Err(Stop::Unusual);
        }
        let text = std::str::from_utf8(&line).map_err(|_| Stop::Unusual)?;
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
                    return Err(Stop::Unusual);
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
                if fields.len() > ITEM {
                    return Err(Stop::Unusual);
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
    let Some(map) = document.as_map() else { return Err(Stop::Unusual) };
    if map.contains("entries") && index.entries.is_some() {
        return Err(Stop::Unusual);
    }
    let inline = |e: &Node| e.as_map().map_or(!e.is_null(Dialect::Sigs), |m| !m.is_empty());
    if map.get("entries").is_some_and(inline) {
        // Charts on the line of the key itself, or what is no chart at all.
        return Err(Stop::Unusual);
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

/// A comment begins after a blank.
fn without_comment(text: &str) -> &str {
    text.split(" #").next().unwrap_or_default().trim_end()
}

/// The charts below `entries`.
#[derive(Default)]
struct Entries {
    /// How far chart names are indented; known from the first.
    name_margin: Option<usize>,
    chart: Option<String>,
    /// How far the items of the chart at hand are indented.
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
            // Inside a text it may count.
            if !self.item.is_empty() {
                self.item.push('\n');
            }
            return Ok(());
        }
        let names = *self.name_margin.get_or_insert(margin);
        let dash = trimmed == "-" || trimmed.starts_with("- ");
        if margin < names || (margin == names && self.chart.is_none() && dash) {
            return Err(Stop::Unusual);
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
            return if trimmed.starts_with('#') { Ok(()) } else { Err(Stop::Unusual) };
        }
        self.item.push_str(text);
        if self.item.len() > ITEM { Err(Stop::Unusual) } else { Ok(()) }
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
        let Some([entry]) = document.as_map().map(fl_yaml::Map::entries) else { return Err(Stop::Unusual) };
        let empty = |n: &Node| n.is_null(Dialect::Sigs) || n.as_seq().is_some_and(<[Node]>::is_empty);
        let known = index.entries.as_ref().is_some_and(|e| e.contains_key(entry.name().unwrap_or_default()));
        if !empty(&entry.value) || known {
            return Err(Stop::Unusual);
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
        let Some([version]) = document.as_seq() else { return Err(Stop::Unusual) };
        index.add(self.chart.as_deref().unwrap_or_default(), version)?;
        self.item.clear();
        Ok(())
    }

    fn flush<F: Read + Write + Seek>(&mut self, index: &mut RepositoryIndex<F>) -> Result<(), Stop> {
        self.flush_item(index)
    }
}
