//! OpenAPI documents, v2 and v3, of built-in and custom types.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::answer::{Answer, respond};
use crate::server::{Call, Inner};
use crate::status::{ApiError, Outcome};

/// Nothing is kept: documents are large and rarely asked for.
#[derive(Debug, Default)]
pub(crate) struct Documents;

pub(crate) fn v2(_inner: &Arc<Inner>, _call: &Call) -> Outcome<Answer> {
    Ok(Answer::document(fl_kubeschema::openapi_v2()))
}

pub(crate) fn index(_inner: &Arc<Inner>, _call: &Call) -> Outcome<Answer> {
    let mut paths = serde_json::Map::new();
    for path in fl_kubeschema::openapi_v3_paths() {
        paths.insert(path.clone(), json!({"serverRelativeURL": format!("/openapi/v3/{path}?hash=0")}));
    }
    Ok(Answer::document(json!({"paths": Value::Object(paths)})))
}

pub(crate) fn v3(_inner: &Arc<Inner>, _call: &Call, path: &str) -> Outcome<Answer> {
    let document = fl_kubeschema::openapi_v3(path).ok_or_else(ApiError::page_not_found)?;
    Ok(Answer::Raw(respond(200, "application/json", document.to_string())))
}
