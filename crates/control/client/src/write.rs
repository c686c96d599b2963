//! Options of writes.

use serde_json::{Value, json};

/// The format of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patch {
    /// JSON merge patch (RFC 7396).
    Merge,
    /// JSON patch (RFC 6902).
    Json,
    /// Strategic merge patch, for built-in kinds.
    Strategic,
    /// Server-side apply.
    Apply,
}

impl Patch {
    pub fn content_type(self) -> &'static str {
        match self {
            Patch::Merge => "application/merge-patch+json",
            Patch::Json => "application/json-patch+json",
            Patch::Strategic => "application/strategic-merge-patch+json",
            Patch::Apply => "application/apply-patch+yaml",
        }
    }
}

/// Options of a write.
#[derive(Clone, Debug, Default)]
pub struct Write<'a> {
    /// The field manager; the server derives one from the user agent when empty.
    pub manager: &'a str,
    /// Take over fields of other managers (server-side apply).
    pub force: bool,
    pub dry_run: bool,
    /// `status`, `scale`, …; the object itself when empty.
    pub subresource: &'a str,
    /// `Strict`, `Warn` or `Ignore`; the server's default when empty.
    pub field_validation: &'a str,
}

impl<'a> Write<'a> {
    /// A write of a typed object under a manager's name. Unknown fields are ignored: a server with an older definition drops what
    /// it does not know, and its warnings would help no user.
    pub fn by(manager: &'a str) -> Self {
        Write { manager, field_validation: "Ignore", ..Write::default() }
    }

    /// The same, to a subresource.
    #[must_use]
    pub fn to(self, subresource: &'a str) -> Self {
        Write { subresource, ..self }
    }

    /// The query of the request.
    pub fn query(&self) -> Vec<(&'static str, String)> {
        crate::path::query(&[
            ("fieldManager", self.manager),
            ("force", if self.force { "true" } else { "" }),
            ("dryRun", if self.dry_run { "All" } else { "" }),
            ("fieldValidation", self.field_validation),
        ])
    }
}

/// Options of a deletion.
#[derive(Clone, Debug, Default)]
pub struct Delete<'a> {
    /// Only this object, and no later one of the same name.
    pub uid: Option<&'a str>,
    pub resource_version: Option<&'a str>,
    /// `Background`, `Foreground` or `Orphan`; the server's default when empty.
    pub propagation: &'a str,
    pub dry_run: bool,
}

impl Delete<'_> {
    /// The `DeleteOptions` of the request.
    pub fn body(&self) -> Value {
        let mut body = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
        let conditions = [("uid", self.uid), ("resourceVersion", self.resource_version)];
        for (field, value) in conditions {
            if let Some(value) = value {
                body["preconditions"][field] = value.into();
            }
        }
        if !self.propagation.is_empty() {
            body["propagationPolicy"] = self.propagation.into();
        }
        if self.dry_run {
            body["dryRun"] = json!(["All"]);
        }
        body
    }
}
