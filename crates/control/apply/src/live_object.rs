//! A live object as the server has just sent it, read as far as it is wanted.
//!
//! About half of an object are its managed fields. Reading them takes as long as reading the rest, and of what was written a moment
//! ago only the expressions of users may want them.

use bytes::Bytes;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value};

/// A live object that was seen.
#[derive(Clone, Debug)]
pub struct LiveObject {
    object: Value,
    /// Everything the server sent, where `object` is without the managed fields.
    text: Option<Bytes>,
}

impl LiveObject {
    pub(crate) fn read(text: Bytes) -> Result<Self, serde_json::Error> {
        read_lean(&text).map(|object| LiveObject { object, text: Some(text) })
    }

    /// The object; managed fields may be missing.
    #[must_use]
    pub fn object(&self) -> &Value {
        &self.object
    }

    pub(crate) fn into_object(self) -> Value {
        self.object
    }

    /// The object with everything the server sent.
    pub(crate) fn into_whole(self) -> Value {
        match self.text.and_then(|text| serde_json::from_slice(&text).ok()) {
            Some(whole) => whole,
            None => self.object,
        }
    }
}

impl From<Value> for LiveObject {
    fn from(object: Value) -> Self {
        LiveObject { object, text: None }
    }
}

/// An object without its managed fields.
pub(crate) fn read_lean(text: &[u8]) -> Result<Value, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let object = Members::OfObject.deserialize(&mut reader)?;
    reader.end()?;
    Ok(object)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Members {
    OfObject,
    OfMetadata,
}

impl<'de> DeserializeSeed<'de> for Members {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Members {
    type Value = Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let value = match (self, name.as_str()) {
                (Members::OfObject, "metadata") => members.next_value_seed(Members::OfMetadata)?,
                (Members::OfMetadata, "managedFields") => {
                    members.next_value::<IgnoredAny>()?;
                    continue;
                }
                _ => members.next_value()?,
            };
            map.insert(name, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_the_managed_fields_of_the_object_itself_are_left_out() {
        let whole = json!({"kind": "A", "managedFields": 1, "spec": {"metadata": {"managedFields": [2]}},
            "metadata": {"name": "a\"b", "labels": {"managedFields": "3"}, "managedFields": [{"manager": "m"}]}});
        let mut lean = whole.clone();
        lean["metadata"].as_object_mut().expect("an object").remove("managedFields");
        let sight = LiveObject::read(Bytes::from(whole.to_string())).expect("JSON");
        assert_eq!(*sight.object(), lean);
        assert_eq!(sight.clone().into_object(), lean);
        assert_eq!(sight.into_whole(), whole);
        assert_eq!(LiveObject::from(whole.clone()).into_whole(), whole);
        for bad in ["", "[]", "{", "{}x", r#"{"metadata": 1}"#] {
            assert!(read_lean(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
