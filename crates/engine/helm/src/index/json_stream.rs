//! Streaming reader for an index in JSON.

use std::io::{BufRead, Read, Seek, Write};

use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::{IndexError, RepositoryIndex};

/// Reads the index; returns `false` if the text is not valid JSON and has to be read as YAML.
pub(super) fn read<F: Read + Write + Seek>(
    input: &mut impl BufRead,
    index: &mut RepositoryIndex<F>,
) -> Result<bool, IndexError> {
    let mut failure = None;
    let mut json = serde_json::Deserializer::from_reader(input);
    let result = Top { index, failure: &mut failure }.deserialize(&mut json).and_then(|()| json.end());
    match (failure, result) {
        (Some(error), _) => Err(error),
        (None, Ok(())) => Ok(true),
        (None, Err(_)) => Ok(false),
    }
}

struct Top<'a, F> {
    index: &'a mut RepositoryIndex<F>,
    /// The first error that did not come from the JSON parser.
    failure: &'a mut Option<IndexError>,
}

impl<'de, F: Read + Write + Seek> DeserializeSeed<'de> for Top<'_, F> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, input: D) -> Result<(), D::Error> {
        input.deserialize_map(self)
    }
}

impl<'de, F: Read + Write + Seek> Visitor<'de> for Top<'_, F> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an index")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            if name == "entries" {
                self.index.begin_entries();
                map.next_value_seed(Charts { index: self.index, failure: self.failure })?;
                continue;
            }
            let raw: Value = map.next_value()?;
            // Helm ignores other fields in JSON.
            let known = ["apiVersion", "generated", "serverInfo", "publicKeys", "annotations"];
            if !known.contains(&name.as_str()) {
                continue;
            }
            let done = node(&raw).and_then(|node| self.index.field(&name, &node));
            keep(done, self.failure)?;
        }
        Ok(())
    }
}

struct Charts<'a, F> {
    index: &'a mut RepositoryIndex<F>,
    failure: &'a mut Option<IndexError>,
}

impl<'de, F: Read + Write + Seek> DeserializeSeed<'de> for Charts<'_, F> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, input: D) -> Result<(), D::Error> {
        input.deserialize_any(self)
    }
}

impl<'de, F: Read + Write + Seek> Visitor<'de> for Charts<'_, F> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("charts by name")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            self.index.begin_chart(&name);
            map.next_value_seed(Versions { index: self.index, failure: self.failure, chart: &name })?;
        }
        Ok(())
    }
}

struct Versions<'a, F> {
    index: &'a mut RepositoryIndex<F>,
    failure: &'a mut Option<IndexError>,
    chart: &'a str,
}

impl<'de, F: Read + Write + Seek> DeserializeSeed<'de> for Versions<'_, F> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, input: D) -> Result<(), D::Error> {
        input.deserialize_any(self)
    }
}

impl<'de, F: Read + Write + Seek> Visitor<'de> for Versions<'_, F> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("versions of a chart")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        self.index.versions(self.chart);
        while let Some(raw) = list.next_element::<Value>()? {
            let done = node(&raw).and_then(|node| self.index.add(self.chart, &node));
            keep(done, self.failure)?;
        }
        Ok(())
    }
}

fn node(raw: &Value) -> Result<fl_yaml::Node, IndexError> {
    super::parse(raw.to_string().as_bytes())
}

/// Stores an error for the caller and stops the parser: `serde_json` can only carry text.
fn keep<E: serde::de::Error>(
    done: Result<(), IndexError>,
    failure: &mut Option<IndexError>,
) -> Result<(), E> {
    done.map_err(|error| {
        let text = error.to_string();
        *failure = Some(error);
        E::custom(text)
    })
}
