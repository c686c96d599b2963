//! An object as the server last reported it.

use fl_api::ObjectMeta;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::kind::{Key, Kind};

/// Metadata parsed, the rest as text until somebody needs it.
#[derive(Clone, Debug)]
pub struct Live {
    kind: Kind,
    meta: ObjectMeta,
    /// Empty when only metadata is watched.
    json: Box<str>,
}

impl Live {
    /// From an object of the API. `managedFields` are dropped: nobody here reads them, and they are half the size.
    pub fn new(kind: &Kind, mut object: Value, keep_content: bool) -> Result<Self, serde_json::Error> {
        if let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            meta.remove("managedFields");
        }
        let meta = serde::Deserialize::deserialize(&object["metadata"])?;
        let json = if keep_content { object.to_string().into_boxed_str() } else { Box::default() };
        Ok(Live { kind: kind.clone(), meta, json })
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

    /// The object as a type.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, fl_types::FieldError> {
        fl_types::from_json(self.json.as_bytes())
    }
}
