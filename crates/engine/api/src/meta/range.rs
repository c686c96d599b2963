//! Semver ranges.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use fl_semver::{Constraints, Error, Version};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A semver range that was checked when it was read; it is written back as it was spelled.
#[derive(Clone, Debug)]
pub struct VersionRange {
    text: String,
    constraints: Constraints,
}

impl VersionRange {
    /// Whether a version is in the range.
    #[must_use]
    pub fn contains(&self, version: &Version) -> bool {
        self.constraints.check(version)
    }

    /// The parsed range.
    #[must_use]
    pub fn constraints(&self) -> &Constraints {
        &self.constraints
    }

    /// The range as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl FromStr for VersionRange {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(VersionRange { text: text.to_owned(), constraints: Constraints::parse(text)? })
    }
}

impl fmt::Display for VersionRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PartialEq for VersionRange {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for VersionRange {}

impl Serialize for VersionRange {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for VersionRange {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for VersionRange {
    fn schema_name() -> Cow<'static, str> {
        "VersionRange".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string"})
    }
}
