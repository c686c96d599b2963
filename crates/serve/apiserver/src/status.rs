//! API errors: `Status` objects with Kubernetes' reasons, details and messages.

use fl_schema::FieldError;
use serde_json::{Value, json};

use crate::resource_type::ResourceType;

/// The error of a request.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    pub code: u16,
    pub reason: &'static str,
    pub message: String,
    pub details: Option<Value>,
    /// Whether the response is plain text instead of a Status.
    pub plain: bool,
    /// A complete Status to return instead (of an admission webhook).
    pub whole: Option<Box<Value>>,
}

/// The result of a verb.
pub(crate) type ApiResult<T> = Result<T, ApiError>;

impl ApiError {
    pub fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: None, plain: false, whole: None }
    }

    #[must_use]
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    fn about(self, rt: &ResourceType, name: &str) -> Self {
        let mut details = json!({});
        if !name.is_empty() {
            details["name"] = json!(name);
        }
        if !rt.group.is_empty() {
            details["group"] = json!(rt.group);
        }
        details["kind"] = json!(rt.plural);
        self.with_details(details)
    }

    #[must_use]
    pub fn not_found(rt: &ResourceType, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{} {name:?} not found", rt.group_resource())).about(rt, name)
    }

    #[must_use]
    pub fn already_exists(rt: &ResourceType, name: &str) -> Self {
        Self::new(409, "AlreadyExists", format!("{} {name:?} already exists", rt.group_resource()))
            .about(rt, name)
    }

    #[must_use]
    pub fn conflict(rt: &ResourceType, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} {name:?}: {why}", rt.group_resource());
        Self::new(409, "Conflict", message).about(rt, name)
    }

    /// The object changed since the caller read it.
    #[must_use]
    pub fn modified(rt: &ResourceType, name: &str) -> Self {
        Self::conflict(
            rt,
            name,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    #[must_use]
    pub fn forbidden(rt: &ResourceType, name: &str, why: &str) -> Self {
        let message = if name.is_empty() {
            format!("{} is forbidden: {why}", rt.group_resource())
        } else {
            format!("{} {name:?} is forbidden: {why}", rt.group_resource())
        };
        Self::new(403, "Forbidden", message).about(rt, name)
    }

    #[must_use]
    pub fn invalid(rt: &ResourceType, name: &str, errors: &[FieldError]) -> Self {
        // Events of both groups are one kind of the core group upstream.
        let group = if rt.group == "events.k8s.io" { "" } else { &rt.group };
        Self::invalid_kind(group, &rt.kind, name, errors)
    }

    /// An object without a name, at a path that requires one.
    pub(crate) fn nameless(name: &str) -> Self {
        Self::bad_request(format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        ))
    }

    #[must_use]
    pub fn invalid_kind(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Self {
        let shown = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
        // Duplicate errors are reported once.
        let mut texts: Vec<String> = Vec::new();
        for error in errors {
            let text = error.to_string();
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        let list = if texts.len() == 1 { texts[0].clone() } else { format!("[{}]", texts.join(", ")) };
        let causes: Vec<Value> = errors
            .iter()
            .map(|e| json!({"reason": e.kind.reason(), "message": e.body(), "field": e.field}))
            .collect();
        let mut details = json!({});
        if !kind.is_empty() {
            details["kind"] = json!(kind);
        }
        if !name.is_empty() {
            details["name"] = json!(name);
        }
        if !group.is_empty() {
            details["group"] = json!(group);
        }
        if !causes.is_empty() {
            details["causes"] = json!(causes);
        }
        let message = format!("{shown} {name:?} is invalid: {list}");
        Self::new(422, "Invalid", message).with_details(details)
    }

    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    pub fn internal(message: impl Into<String>) -> Self {
        let message = message.into();
        let details = json!({"causes": [{"message": message}]});
        Self::new(500, "InternalError", format!("Internal error occurred: {message}")).with_details(details)
    }

    #[must_use]
    pub fn no_such_resource() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource").with_details(json!({}))
    }

    #[must_use]
    pub fn page_not_found() -> Self {
        Self { plain: true, ..Self::new(404, "", "404 page not found\n") }
    }

    #[must_use]
    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(405, "MethodNotAllowed", message).with_details(json!({}))
    }

    /// A verb that custom resources do not support.
    #[must_use]
    pub fn method_not_supported(rt: &ResourceType, verb: &str) -> Self {
        let message = format!("{verb} is not supported on resources of kind {:?}", rt.group_resource());
        let details = json!({"group": rt.group, "kind": rt.plural});
        Self::new(405, "MethodNotAllowed", message).with_details(details)
    }

    #[must_use]
    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    /// A list or watch from a compacted revision.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    #[must_use]
    pub fn too_large_revision(wanted: u64, current: u64) -> Self {
        let message = format!("Too large resource version: {wanted}, current: {current}");
        Self::new(504, "Timeout", message).with_details(json!({
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            "retryAfterSeconds": 1
        }))
    }

    /// Adds the message of a server that timed out waiting.
    #[must_use]
    pub(crate) fn after_timeout(mut self) -> Self {
        self.message = format!("Timeout: {}", self.message);
        self
    }

    #[must_use]
    pub fn too_large(message: &str) -> Self {
        Self::new(413, "RequestEntityTooLarge", format!("Request entity too large: {message}"))
    }

    /// The `Status` object.
    #[must_use]
    pub fn to_status(&self) -> Value {
        if let Some(whole) = &self.whole {
            return (**whole).clone();
        }
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code
        });
        if !self.reason.is_empty() {
            status["reason"] = json!(self.reason);
        }
        if let Some(details) = &self.details {
            status["details"] = details.clone();
        }
        status
    }
}

impl From<crate::store::StoreError> for ApiError {
    fn from(error: crate::store::StoreError) -> Self {
        match error {
            crate::store::StoreError::TooLarge => Self::new(500, "", error.to_string()),
            // Nothing was written: the request can be repeated.
            crate::store::StoreError::Unavailable(_) => {
                Self::new(503, "ServiceUnavailable", error.to_string())
            }
            _ => Self::internal(error.to_string()),
        }
    }
}
