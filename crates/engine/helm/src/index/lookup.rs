//! Finds the versions of one chart in a stored index without loading the others.

use std::io::Read;

use serde::Deserialize;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};

/// The fields of a chart version that are needed to select and download it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ListedVersion {
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub version: String,
    #[serde(default)]
    pub urls: Option<Vec<String>>,
    #[serde(default)]
    pub created: String,
    #[serde(default)]
    pub digest: String,
}

/// Returns the versions of a chart in the order of the index; `None` if the index does not have the chart.
pub fn find_versions(index: impl Read, chart: &str) -> Result<Option<Vec<ListedVersion>>, serde_json::Error> {
    let mut json = serde_json::Deserializer::from_reader(index);
    Top(chart).deserialize(&mut json)
}

struct Top<'a>(&'a str);
struct Charts<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for Top<'_> {
    type Value = Option<Vec<ListedVersion>>;

    fn deserialize<D: serde::Deserializer<'de>>(self, input: D) -> Result<Self::Value, D::Error> {
        input.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Top<'_> {
    type Value = Option<Vec<ListedVersion>>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an index")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(name) = map.next_key::<String>()? {
            if name == "entries" {
                found = map.next_value_seed(Charts(self.0))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

impl<'de> DeserializeSeed<'de> for Charts<'_> {
    type Value = Option<Vec<ListedVersion>>;

    fn deserialize<D: serde::Deserializer<'de>>(self, input: D) -> Result<Self::Value, D::Error> {
        input.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Charts<'_> {
    type Value = Option<Vec<ListedVersion>>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("charts by name")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(name) = map.next_key::<String>()? {
            if name == self.0 {
                let versions = map.next_value::<Option<Vec<Option<ListedVersion>>>>()?.unwrap_or_default();
                found = Some(versions.into_iter().flatten().collect());
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}
