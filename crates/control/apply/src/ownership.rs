//! Proof that an object is ours to delete.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{Error, ObjectRef, label};

/// Something whose ownership was proven on the live object. The only thing a delete accepts.
#[derive(Clone, Debug)]
pub struct Owned<T> {
    object: T,
    /// The delete names it, so an object that was recreated under the name in between survives.
    uid: String,
}

impl Owned<ObjectRef> {
    /// Proven by labels that name the owner on the live object. None when another owner or none is named.
    ///
    /// # Errors
    /// When the live object lacks what every object has.
    pub fn by_labels(live: &Value, labels: &BTreeMap<String, String>) -> Result<Option<Self>, Error> {
        let ours = !labels.is_empty() && labels.iter().all(|(k, v)| label(live, k) == Some(v));
        if ours { Self::of_live(live).map(Some) } else { Ok(None) }
    }

    /// Proven by a check of the caller on the live object, such as a record that names it.
    ///
    /// # Errors
    /// When the live object lacks what every object has.
    pub fn by_check(live: &Value, check: impl FnOnce(&Value) -> bool) -> Result<Option<Self>, Error> {
        if check(live) { Self::of_live(live).map(Some) } else { Ok(None) }
    }

    /// An object that is recreated at once with what its source asks for.
    pub(crate) fn to_recreate(live: &Value) -> Result<Self, Error> {
        Self::of_live(live)
    }

    fn of_live(live: &Value) -> Result<Self, Error> {
        let uid = live.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default();
        if uid.is_empty() {
            return Err(Error::Incomplete { missing: "metadata.uid" });
        }
        Ok(Owned { object: ObjectRef::of(live)?, uid: uid.to_owned() })
    }

    /// The object.
    #[must_use]
    pub fn object(&self) -> &ObjectRef {
        &self.object
    }

    /// Its identity over time.
    #[must_use]
    pub fn uid(&self) -> &str {
        &self.uid
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_the_named_owner() {
        let live = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "ns", "uid": "1",
            "labels": {"x/name": "app", "x/namespace": "ns"}}});
        let labels = |name: &str| {
            BTreeMap::from([
                ("x/name".to_owned(), name.to_owned()),
                ("x/namespace".to_owned(), "ns".to_owned()),
            ])
        };
        assert!(Owned::by_labels(&live, &labels("app")).expect("complete").is_some());
        assert!(Owned::by_labels(&live, &labels("other")).expect("complete").is_none());
        assert!(Owned::by_labels(&live, &BTreeMap::new()).expect("complete").is_none());
    }
}
