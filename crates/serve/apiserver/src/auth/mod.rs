//! Authentication and authorization.

pub(crate) mod authenticate;
pub(crate) mod bootstrap;
pub(crate) mod escalation;
pub(crate) mod impersonate;
pub(crate) mod rbac;
pub(crate) mod token;

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// A user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct User {
    pub name: String,
    pub groups: Vec<String>,
    pub uid: String,
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// A user with all rights.
    #[must_use]
    pub fn superuser(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            groups: vec!["system:masters".to_owned(), "system:authenticated".to_owned()],
            ..Self::default()
        }
    }

    #[must_use]
    pub(crate) fn anonymous() -> Self {
        Self {
            name: "system:anonymous".to_owned(),
            groups: vec!["system:unauthenticated".to_owned()],
            ..Self::default()
        }
    }

    pub(crate) fn in_group(&self, group: &str) -> bool {
        self.groups.iter().any(|g| g == group)
    }

    /// As `userInfo` in JSON.
    pub(crate) fn to_json(&self) -> Value {
        let mut out = json!({});
        if !self.name.is_empty() {
            out["username"] = json!(self.name);
        }
        if !self.uid.is_empty() {
            out["uid"] = json!(self.uid);
        }
        if !self.groups.is_empty() {
            out["groups"] = json!(self.groups);
        }
        if !self.extra.is_empty() {
            out["extra"] = json!(self.extra);
        }
        out
    }
}

/// The attributes of a request for authorization.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Attributes {
    pub(crate) verb: String,
    pub(crate) group: String,
    pub(crate) resource: String,
    pub(crate) subresource: String,
    pub(crate) name: String,
    pub(crate) namespace: String,
    /// A path outside the API groups; the fields above except the verb are then empty.
    pub(crate) path: String,
}

impl Attributes {
    /// `deployments/status`.
    pub(crate) fn combined(&self) -> String {
        if self.subresource.is_empty() {
            self.resource.clone()
        } else {
            format!("{}/{}", self.resource, self.subresource)
        }
    }
}
