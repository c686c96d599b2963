//! What is stored of an object.

use bytes::Bytes;
use serde_json::Value;

/// The text of an object that has no revision yet.
pub(super) struct Unnumbered {
    text: Vec<u8>,
    /// Where the revision belongs; nowhere in something without metadata.
    at: Option<usize>,
}

impl Unnumbered {
    pub(super) fn write(value: &Value) -> Self {
        let (text, at) = crate::answer::write_without_revision(value);
        Self { text, at }
    }

    /// The bytes, as many as are needed: they are kept.
    pub(super) fn number(&self, revision: u64) -> Bytes {
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
    fn the_revision_goes_into_the_metadata() {
        let text = |value: Value| Unnumbered::write(&value).number(42);
        let object = json!({"kind": "A", "apiVersion": "v1", "data": {"resourceVersion": "x"}, "metadata": {
            "name": "\"resourceVersion\":\"", "resourceVersion": "7", "labels": {"resourceVersion": ""}}});
        let mut wanted = object.clone();
        wanted["metadata"]["resourceVersion"] = json!("42");
        assert_eq!(text(object), crate::answer::to_bytes(&wanted));
        let fresh = text(json!({"metadata": {}, "resourceVersion": ""}));
        assert_eq!(fresh, r#"{"metadata":{"resourceVersion":"42"},"resourceVersion":""}"#);
        assert_eq!(text(json!({"resourceVersion": ""})), r#"{"resourceVersion":""}"#);
    }
}
