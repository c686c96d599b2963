//! A cached object: the last state the API server reported.

use std::collections::BTreeMap;

use fl_api::ObjectMeta;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use fl_client::{Key, Kind};

/// Metadata is parsed; the rest is kept as text and parsed on demand.
#[derive(Clone, Debug)]
pub struct CachedObject {
    kind: Kind,
    meta: ObjectMeta,
    /// Empty when only metadata is watched.
    json: Box<str>,
}

/// The part of an object that is always parsed; other fields are skipped.
#[derive(Deserialize)]
struct Head {
    metadata: ObjectMeta,
}

type Members<'a> = BTreeMap<&'a str, &'a RawValue>;

impl CachedObject {
    /// From the JSON text of a watch event.
    pub fn read(kind: &Kind, object: &RawValue, keep_content: bool) -> Result<Self, serde_json::Error> {
        Self::read_on(kind, Self::read_meta(object)?, object, keep_content)
    }

    /// The metadata part of [`CachedObject::read`].
    pub(super) fn read_meta(object: &RawValue) -> Result<ObjectMeta, serde_json::Error> {
        serde_json::from_str(object.get()).map(|Head { metadata }| metadata)
    }

    /// The rest of [`CachedObject::read`].
    pub(super) fn read_on(
        kind: &Kind,
        meta: ObjectMeta,
        object: &RawValue,
        keep_content: bool,
    ) -> Result<Self, serde_json::Error> {
        if !keep_content {
            return Ok(CachedObject { kind: kind.clone(), meta, json: Box::default() });
        }
        match without_managed_fields(object) {
            Ok(json) => Ok(CachedObject { kind: kind.clone(), meta, json: json.into_boxed_str() }),
            // A name with an escape sequence cannot be borrowed from the text.
            Err(_) => CachedObject::new(kind, serde_json::from_str(object.get())?, true),
        }
    }

    /// From an API object. `managedFields` are dropped: no controller reads them, and they are half of the
    /// size.
    pub fn new(kind: &Kind, mut object: Value, keep_content: bool) -> Result<Self, serde_json::Error> {
        if let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            meta.remove("managedFields");
        }
        let meta = serde::Deserialize::deserialize(&object["metadata"])?;
        let json = if keep_content { object.to_string().into_boxed_str() } else { Box::default() };
        Ok(CachedObject { kind: kind.clone(), meta, json })
    }

    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    pub fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    pub fn key(&self) -> Key {
        self.kind.key(self.namespace(), &self.meta.name)
    }

    pub fn namespace(&self) -> &str {
        self.meta.namespace.as_deref().unwrap_or_default()
    }

    pub fn name(&self) -> &str {
        &self.meta.name
    }

    pub fn uid(&self) -> &str {
        self.meta.uid.as_deref().unwrap_or_default()
    }

    pub fn resource_version(&self) -> &str {
        self.meta.resource_version.as_deref().unwrap_or_default()
    }

    pub fn generation(&self) -> i64 {
        self.meta.generation.unwrap_or_default()
    }

    pub fn deleting(&self) -> bool {
        self.meta.deletion_timestamp.is_some()
    }

    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.meta.annotations.as_ref()?.get(key).map(String::as_str)
    }

    pub fn label(&self, key: &str) -> Option<&str> {
        self.meta.labels.as_ref()?.get(key).map(String::as_str)
    }

    /// The whole object; `null` when only metadata is watched.
    pub fn value(&self) -> Value {
        serde_json::from_str(&self.json).unwrap_or(Value::Null)
    }

    /// Deserializes a part of the object, if it has the right type.
    pub(crate) fn parse_part<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_str(&self.json).ok()
    }

    /// Deserializes the object.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, fl_types::FieldError> {
        fl_types::from_json(self.json.as_bytes())
    }
}

/// The JSON text of an object without `managedFields`; other values are not parsed.
fn without_managed_fields(object: &RawValue) -> Result<String, serde_json::Error> {
    let mut members: Members<'_> = serde_json::from_str(object.get())?;
    let mut kept = members.get("metadata").map_or(Ok(Members::new()), |m| serde_json::from_str(m.get()))?;
    kept.remove("managedFields");
    let metadata = to_raw_value(&kept)?;
    members.insert("metadata", &metadata);
    serde_json::to_string(&members)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_and_value_give_the_same_object() {
        let kind = Kind::new("", "v1", "ConfigMap", "configmaps", true);
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a\"b": "é\n", "n": "1"},
            "metadata": {"name": "a", "namespace": "x", "uid": "u", "resourceVersion": "7", "generation": 2,
                "labels": {"l": "1"}, "managedFields": [{"manager": "m", "fieldsV1": {"f:data": {}}}]}});
        for name in ["plain", "with \"quotes\""] {
            let mut object = object.clone();
            object[name] = json!(1.5);
            let raw = to_raw_value(&object).unwrap();
            for keep in [true, false] {
                let read = CachedObject::read(&kind, &raw, keep).unwrap();
                let made = CachedObject::new(&kind, object.clone(), keep).unwrap();
                assert_eq!(read.value(), made.value());
                assert_eq!((read.uid(), read.resource_version(), read.generation()), ("u", "7", 2));
                assert_eq!((read.label("l"), read.name(), read.namespace()), (Some("1"), "a", "x"));
            }
            let kept = CachedObject::read(&kind, &raw, true).unwrap().value();
            assert!(kept.pointer("/metadata/managedFields").is_none());
            assert_eq!((&kept["data"], &kept[name]), (&object["data"], &object[name]));
        }
    }

    #[test]
    fn invalid_objects_are_rejected() {
        let kind = Kind::new("", "v1", "ConfigMap", "configmaps", true);
        for text in ["null", "[]", "{}", "{\"metadata\": 1}", "{\"metadata\": {\"name\": 1}}"] {
            let raw: &RawValue = serde_json::from_str(text).unwrap();
            assert!(CachedObject::read(&kind, raw, true).is_err(), "{text}");
        }
    }
}
