//! Index of a chart repository, read in constant memory.
//!
//! An index can have a hundred thousand chart versions. They are read one at a time, validated and sanitized
//! as Helm does, and written to a spool file in their output form. Only the sort keys stay in memory. The
//! result is the JSON that Flux stores.

mod entry;
mod indent;
mod json_stream;
mod lookup;
mod yaml_stream;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::io::{self, BufRead, Read, Seek, SeekFrom, Write};

use fl_semver::Version;
use fl_yaml::{Dialect, JsonStyle, Node, Options, Scalar};

pub(crate) use entry::{Fields, metadata_fields};
pub use lookup::{ListedVersion, find_versions};

/// Maximum size of an index whose YAML cannot be streamed and has to be parsed as a whole.
const MAX_WHOLE_BYTES: u64 = 64 << 20;
const STYLE: JsonStyle = JsonStyle { escape_html: true, keep_order: true };

/// Error of reading an index; the messages are Helm's.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    #[error("empty index.yaml file")]
    Empty,
    #[error("no API version specified")]
    NoApiVersion,
    #[error("error converting YAML to JSON: {0}")]
    Yaml(String),
    #[error("error unmarshaling JSON: while decoding JSON: json: {0}")]
    Shape(String),
    /// The text is JSON, which Helm does not convert from YAML.
    #[error("json: {0}")]
    JsonShape(String),
    /// source-controller panics when it sorts a null among other versions.
    #[error("chart {0:?} has a version that is null beside others")]
    NullVersion(String),
    #[error("the index is of an unusual form and larger than {MAX_WHOLE_BYTES} bytes")]
    Unsupported,
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// A chart version in the spool file with its sort key.
#[derive(Debug)]
struct SpooledVersion {
    /// `None` if the version is not valid semver; such versions are sorted last.
    numbers: Option<(u64, u64, u64)>,
    prerelease: Box<str>,
    offset: u64,
    length: u32,
}

/// A validated index.
#[derive(Debug)]
pub struct RepositoryIndex<F> {
    spool: F,
    spooled: u64,
    head: Vec<(&'static str, Node)>,
    tail: Vec<(&'static str, Node)>,
    /// A chart without a list of versions is `None` and written as null.
    entries: Option<BTreeMap<String, Option<Vec<SpooledVersion>>>>,
    /// Number of null versions per chart.
    nulls: BTreeMap<String, usize>,
}

impl<F: Read + Write + Seek> RepositoryIndex<F> {
    /// Reads an index, YAML or JSON, from its start. `spool` is an empty temporary file.
    pub fn read<R: Read + Seek>(mut input: R, spool: F) -> Result<Self, IndexError> {
        let size = input.seek(SeekFrom::End(0))?;
        input.rewind()?;
        if size == 0 {
            return Err(IndexError::Empty);
        }
        let mut buffered = io::BufReader::with_capacity(64 * 1024, input);
        let first = first_character(&mut buffered)?;
        buffered.rewind()?;
        let mut index = Self {
            spool,
            spooled: 0,
            head: Vec::new(),
            tail: Vec::new(),
            entries: None,
            nulls: BTreeMap::new(),
        };
        if first == Some(b'{') && json_stream::read(&mut buffered, &mut index)? {
            return index.checked();
        }
        buffered.rewind()?;
        index.reset()?;
        match yaml_stream::read(&mut buffered, &mut index) {
            Ok(()) => index.checked(),
            // The streaming reader cannot handle the text or cannot locate an error in it: parse the whole
            // document.
            Err(yaml_stream::Stop::Unsupported | yaml_stream::Stop::Failed(IndexError::Yaml(_))) => {
                if size > MAX_WHOLE_BYTES {
                    return Err(IndexError::Unsupported);
                }
                buffered.rewind()?;
                index.reset()?;
                let mut text = Vec::new();
                buffered.read_to_end(&mut text)?;
                index.whole(&text)?;
                index.checked()
            }
            Err(yaml_stream::Stop::Failed(error)) => Err(error),
        }
    }

    fn reset(&mut self) -> Result<(), IndexError> {
        self.spool.rewind()?;
        self.spooled = 0;
        self.head.clear();
        self.tail.clear();
        self.entries = None;
        self.nulls.clear();
        Ok(())
    }

    /// Parses the whole document in memory.
    fn whole(&mut self, text: &[u8]) -> Result<(), IndexError> {
        let document = parse(text)?;
        if document.is_null(Dialect::Sigs) {
            return Ok(());
        }
        let Some(map) = document.as_map() else {
            let found = match document.scalar(Dialect::Sigs) {
                None => "array",
                Some(Scalar::Bool(_)) => "bool",
                Some(Scalar::Int(_) | Scalar::Uint(_) | Scalar::Float(_)) => "number",
                Some(_) => "string",
            };
            let why = format!("cannot unmarshal {found} into Go value of type repo.IndexFile");
            let json = serde_json::from_slice::<serde::de::IgnoredAny>(text).is_ok();
            return Err(if json { IndexError::JsonShape(why) } else { IndexError::Shape(why) });
        };
        for item in map.iter() {
            let name = item.name().unwrap_or_default();
            if name != "entries" {
                self.field(name, &item.value)?;
                continue;
            }
            let fits = |value: &Node, shape: bool, go: &str| {
                let why =
                    format!("cannot unmarshal value into Go struct field IndexFile.entries of type {go}");
                if shape || value.is_null(Dialect::Sigs) { Ok(()) } else { Err(IndexError::Shape(why)) }
            };
            fits(&item.value, item.value.as_map().is_some(), "map[string]repo.ChartVersions")?;
            self.begin_entries();
            let charts = item.value.as_map().map(|m| m.iter().collect::<Vec<_>>()).unwrap_or_default();
            for chart in charts {
                let chart_name = chart.name().unwrap_or_default();
                fits(&chart.value, chart.value.as_seq().is_some(), "repo.ChartVersions")?;
                self.begin_chart(chart_name);
                let Some(versions) = chart.value.as_seq() else { continue };
                self.versions(chart_name);
                for version in versions {
                    self.add(chart_name, version)?;
                }
            }
        }
        Ok(())
    }

    /// Sets a field other than `entries`.
    fn field(&mut self, name: &str, value: &Node) -> Result<(), IndexError> {
        let bad = |go: &str| {
            Err(IndexError::Shape(format!(
                "cannot unmarshal value into Go struct field IndexFile.{name} of type {go}"
            )))
        };
        let null = value.is_null(Dialect::Sigs);
        match name {
            "apiVersion" => match value
                .as_str(Dialect::Sigs)
                .map(str::to_owned)
                .or_else(|| value.as_text().map(str::to_owned))
            {
                Some(text) if !null => self.head.push(("apiVersion", Node::string(text))),
                _ if null => {}
                _ => return bad("string"),
            },
            "generated" => self.head.push(("generated", entry::time(Some(value), "IndexFile.generated")?)),
            "serverInfo" if !null => self.head.push(("serverInfo", sorted(value))),
            "publicKeys" if !null => self.tail.push(("publicKeys", value.clone())),
            "annotations" if !null => self.tail.push(("annotations", sorted(value))),
            "serverInfo" | "publicKeys" | "annotations" => {}
            "entries" => self.begin_entries(),
            other => return Err(IndexError::Shape(format!("unknown field {other:?}"))),
        }
        Ok(())
    }

    fn begin_entries(&mut self) {
        self.entries.get_or_insert_default();
    }

    fn begin_chart(&mut self, name: &str) {
        let entries = self.entries.get_or_insert_default();
        if !entries.contains_key(name) {
            entries.insert(name.to_owned(), None);
        }
    }

    /// The versions of a chart that has a list of them, even an empty one.
    fn versions(&mut self, chart: &str) -> Option<&mut Vec<SpooledVersion>> {
        self.entries.get_or_insert_default().get_mut(chart).map(Option::get_or_insert_default)
    }

    /// Adds one chart version. Versions that Helm does not accept are skipped, as in Helm.
    fn add(&mut self, chart: &str, node: &Node) -> Result<(), IndexError> {
        self.versions(chart);
        if node.is_null(Dialect::Sigs) {
            *self.nulls.entry(chart.to_owned()).or_default() += 1;
            return Ok(());
        }
        let Some(found) = entry::read(node)? else { return Ok(()) };
        let compact = fl_yaml::to_json(&found.json, Dialect::Sigs, STYLE)
            .map_err(|e| IndexError::Yaml(e.go_text(Dialect::Sigs)))?;
        let text = indent::indented(&compact, 3);
        self.spool.write_all(text.as_bytes())?;
        let parsed = Version::parse(&found.version).ok();
        let slot = SpooledVersion {
            numbers: parsed.as_ref().map(|v| (v.major(), v.minor(), v.patch())),
            prerelease: parsed.as_ref().map_or("", |v| v.prerelease()).into(),
            offset: self.spooled,
            length: u32::try_from(text.len()).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?,
        };
        self.spooled += u64::from(slot.length);
        if let Some(slots) = self.versions(chart) {
            slots.push(slot);
        }
        Ok(())
    }

    fn checked(mut self) -> Result<Self, IndexError> {
        let has_version = self.head.iter().any(|(name, value)| {
            *name == "apiVersion" && value.as_text().is_some_and(|text| !text.is_empty())
        });
        if !has_version {
            return Err(IndexError::NoApiVersion);
        }
        let others = |chart: &String| {
            let slots = self.entries.as_ref().and_then(|e| e.get(chart)).and_then(Option::as_ref);
            slots.map_or(0, Vec::len)
        };
        if let Some((chart, _)) = self.nulls.iter().find(|(chart, nulls)| *nulls + others(chart) > 1) {
            return Err(IndexError::NullVersion(chart.clone()));
        }
        for slots in self.entries.iter_mut().flat_map(BTreeMap::values_mut).flatten() {
            slots.sort_by(|a, b| compare(b, a));
        }
        Ok(self)
    }

    /// Writes the index as Go's JSON encoder does, with two blanks per level.
    pub fn write_json(&mut self, out: &mut dyn Write) -> Result<(), IndexError> {
        let head = |name: &str| self.head.iter().rev().find(|(n, _)| *n == name).map(|(_, v)| v);
        write!(out, "{{")?;
        if let Some(info) = head("serverInfo") {
            write!(out, "\n  \"serverInfo\": {},", printed(info)?)?;
        }
        write!(out, "\n  \"apiVersion\": {},", printed(head("apiVersion").unwrap_or(&Node::null()))?)?;
        let never = Node::string(entry::ZERO_TIME);
        write!(out, "\n  \"generated\": {},", printed(head("generated").unwrap_or(&never))?)?;
        write!(out, "\n  \"entries\": ")?;
        match &self.entries {
            None => write!(out, "null")?,
            Some(entries) if entries.is_empty() => write!(out, "{{}}")?,
            Some(entries) => {
                write!(out, "{{")?;
                for (at, (name, slots)) in entries.iter().enumerate() {
                    write!(out, "{}\n    {}: ", comma(at), printed(&Node::string(name.as_str()))?)?;
                    match slots {
                        // A null is the only entry of its list.
                        Some(_) if self.nulls.contains_key(name) => write!(out, "[\n      null\n    ]")?,
                        Some(slots) => write_versions(&mut self.spool, slots, out)?,
                        None => write!(out, "null")?,
                    }
                }
                write!(out, "\n  }}")?;
            }
        }
        for (name, value) in &self.tail {
            write!(out, ",\n  \"{name}\": {}", printed(value)?)?;
        }
        Ok(write!(out, "\n}}")?)
    }
}

fn write_versions(
    spool: &mut (impl Read + Seek),
    slots: &[SpooledVersion],
    out: &mut dyn Write,
) -> Result<(), IndexError> {
    if slots.is_empty() {
        return Ok(write!(out, "[]")?);
    }
    write!(out, "[")?;
    for (at, slot) in slots.iter().enumerate() {
        write!(out, "{}\n      ", comma(at))?;
        spool.seek(SeekFrom::Start(slot.offset))?;
        let copied = io::copy(&mut spool.take(u64::from(slot.length)), out)?;
        if copied != u64::from(slot.length) {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
    }
    Ok(write!(out, "\n    ]")?)
}

fn comma(at: usize) -> &'static str {
    if at == 0 { "" } else { "," }
}

fn printed(node: &Node) -> Result<String, IndexError> {
    let compact = fl_yaml::to_json(node, Dialect::Sigs, STYLE)
        .map_err(|e| IndexError::Yaml(e.go_text(Dialect::Sigs)))?;
    Ok(indent::indented(&compact, 1))
}

/// Newer versions first; invalid versions last.
fn compare(a: &SpooledVersion, b: &SpooledVersion) -> Ordering {
    match (&a.numbers, &b.numbers) {
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Less,
        (Some(_), None) => Ordering::Greater,
        (Some(left), Some(right)) => left.cmp(right).then_with(|| {
            let version = |pre: &str| Version::new(0, 0, 0, pre, "");
            version(&a.prerelease).cmp(&version(&b.prerelease))
        }),
    }
}

/// Sorts the keys of a mapping, as Go prints it.
fn sorted(node: &Node) -> Node {
    let Some(map) = node.as_map() else { return node.clone() };
    let mut entries: Vec<(&str, &Node)> = map.iter().filter_map(|e| Some((e.name()?, &e.value))).collect();
    entries.sort_by(|a, b| a.0.cmp(b.0));
    let mut out = Node::map();
    if let Some(target) = out.as_map_mut() {
        for (name, value) in entries {
            target.insert(name, sorted(value));
        }
    }
    out
}

fn parse(text: &[u8]) -> Result<Node, IndexError> {
    fl_yaml::parse_first(text, &Options::sigs_strict())
        .map(Option::unwrap_or_default)
        .map_err(|e| IndexError::Yaml(e.go_text(Dialect::Sigs)))
}

fn first_character(input: &mut impl BufRead) -> Result<Option<u8>, IndexError> {
    loop {
        let piece = input.fill_buf()?;
        if piece.is_empty() {
            return Ok(None);
        }
        if let Some(found) = piece.iter().find(|b| !b.is_ascii_whitespace()) {
            return Ok(Some(*found));
        }
        let length = piece.len();
        input.consume(length);
    }
}

#[cfg(test)]
mod tests;
