//! Descriptions of types and fields for `kubectl explain`. Compressed by the build script, and decompressed
//! only while a document is generated.

use std::collections::HashMap;
use std::io::Read;

use flate2::read::DeflateDecoder;

static PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptions.json.deflate"));

/// Descriptions by type, then by field; that of the type itself has the empty name.
#[derive(Debug)]
pub struct Descriptions(HashMap<String, HashMap<String, String>>);

impl Descriptions {
    /// Decompresses them: some milliseconds, about two megabytes.
    #[must_use]
    pub fn unpack() -> Self {
        let mut text = String::new();
        let read = DeflateDecoder::new(PACKED).read_to_string(&mut text);
        debug_assert!(read.is_ok(), "packed by the build script");
        Self(serde_json::from_str(&text).unwrap_or_default())
    }

    pub(crate) fn of_type(&self, name: &str) -> Option<&str> {
        self.of_field(name, "")
    }

    pub(crate) fn of_field(&self, name: &str, field: &str) -> Option<&str> {
        self.0.get(name)?.get(field).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::Descriptions;
    use crate::types::{names, type_named};

    #[test]
    fn most_fields_have_descriptions() {
        let texts = Descriptions::unpack();
        let (mut described, mut bare) = (0, Vec::new());
        for def in names().filter_map(|name| type_named(&name)).filter(|def| !def.name.ends_with("List")) {
            for field in &def.fields {
                match texts.of_field(&def.name, field.name) {
                    Some(_) => described += 1,
                    None => bare.push(format!("{}.{}", def.name, field.name)),
                }
            }
        }
        assert!(described > 2000 && bare.len() < described / 20, "{described} described, not: {bare:?}");
    }
}
