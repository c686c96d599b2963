//! The options of a write: dryRun, fieldManager, fieldValidation.

use fl_schema::FieldError;
use serde_json::json;

use crate::server::RequestContext;
use crate::status::{ApiError, ApiResult};

/// Handling of unknown and duplicate fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

/// The validated options of a write.
#[derive(Debug, Clone)]
pub(crate) struct WriteOptions {
    pub(crate) dry_run: bool,
    pub(crate) manager: String,
    pub(crate) validation: FieldValidation,
    pub(crate) force: bool,
}

/// Validates `dryRun`.
pub(crate) fn check_dry_run(values: &[String]) -> Vec<FieldError> {
    if values.iter().all(|v| v == "All") {
        return Vec::new();
    }
    vec![FieldError::not_supported("dryRun", &json!(values), &["All"])]
}

fn check_manager(name: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if name.len() > 128 {
        errors.push(FieldError::too_long("fieldManager", 128));
    }
    // Go's unicode.IsPrint: letters, marks, numbers, punctuation, symbols and the plain space.
    if let Some((i, c)) =
        name.char_indices().find(|(_, c)| c.is_control() || (c.is_whitespace() && *c != ' '))
    {
        let detail = format!("invalid character U+{:04X} (at position {i})", c as u32);
        errors.push(FieldError::invalid("fieldManager", &json!(name), detail));
    }
    errors
}

/// Reads the options. `kind` is their name in error messages (`CreateOptions`); `apply` requires a field
/// manager.
pub(crate) fn read(ctx: &RequestContext, kind: &str, apply: bool) -> ApiResult<WriteOptions> {
    let mut errors = Vec::new();
    let name = ctx.query.get("fieldManager");
    if kind == "PatchOptions" {
        if apply && name.is_empty() {
            errors.push(FieldError::required("fieldManager", "is required for apply patch"));
        }
        if !apply && ctx.query.has("force") {
            errors.push(FieldError::forbidden("force", "may not be specified for non-apply patch"));
        }
    }
    errors.extend(check_manager(name));
    errors.extend(check_dry_run(ctx.query.all("dryRun")));
    let validation = match ctx.query.get("fieldValidation") {
        "" | "Warn" => FieldValidation::Warn,
        "Strict" => FieldValidation::Strict,
        "Ignore" => FieldValidation::Ignore,
        other => {
            errors.push(FieldError::not_supported(
                "fieldValidation",
                &json!(other),
                &["", "Ignore", "Strict", "Warn"],
            ));
            FieldValidation::Warn
        }
    };
    if !errors.is_empty() {
        return Err(ApiError::invalid_kind("meta.k8s.io", kind, "", &errors));
    }
    Ok(WriteOptions {
        dry_run: ctx.query.get("dryRun") == "All",
        manager: ctx.manager(),
        validation,
        force: ctx.query.flag("force"),
    })
}
