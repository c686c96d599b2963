//! Stored encoding of objects.

use bytes::Bytes;
use serde_json::Value;

/// The JSON of an object that has no revision yet.
pub(super) struct UnversionedObject {
    text: Vec<u8>,
    /// Offset of the value of `resourceVersion`; `None` for a document without metadata.
    at: Option<usize>,
}

impl UnversionedObject {
    pub(super) fn write(value: &Value) -> Self {
        let (text, at) = crate::response::write_without_revision(value);
        Self { text, at }
    }

    /// The JSON with its revision, without spare capacity: the bytes stay in memory as long as the object.
    pub(super) fn with_revision(&self, revision: u64) -> Bytes {
        let Some(at) = self.at else { return Bytes::copy_from_slice(&self.text) };
        let (head, tail) = self.text.split_at(at);
        let revision = revision.to_string();
        Bytes::from([head, revision.as_bytes(), tail].concat())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn revision_is_inserted_into_the_metadata() {
        let text = |value: Value| UnversionedObject::write(&value).with_revision(42);
        let object = json!({"kind": "A", "apiVersion": "v1", "data": {"resourceVersion": "x"}, "metadata": {
            "name": "\"resourceVersion\":\"", "resourceVersion": "7", "labels": {"resourceVersion": ""}}});
        let mut wanted = object.clone();
        wanted["metadata"]["resourceVersion"] = json!("42");
        assert_eq!(text(object), crate::response::to_bytes(&wanted));
        let fresh = text(json!({"metadata": {}, "resourceVersion": ""}));
        assert_eq!(fresh, r#"{"metadata":{"resourceVersion":"42"},"resourceVersion":""}"#);
        assert_eq!(text(json!({"resourceVersion": ""})), r#"{"resourceVersion":""}"#);
    }
}
