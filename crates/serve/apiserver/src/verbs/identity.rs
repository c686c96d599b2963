//! Name and namespace of an object compared with those of its request.

use serde_json::Value;

use crate::object;
use crate::server::Target;
use crate::status::{ApiError, ApiResult};

/// Checks that the object has the name of the request.
pub(crate) fn check_name(name: &str, target: &Target) -> ApiResult<()> {
    if name.is_empty() {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            target.name
        )));
    }
    if name != target.name {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            target.name
        )));
    }
    Ok(())
}

/// Checks and completes the namespace of an object against the request's.
pub(crate) fn check_namespace(object: &mut Value, target: &Target) -> ApiResult<()> {
    refuse_other_namespace(object, target)?;
    let own = object::namespace(object);
    if !target.rt.namespaced {
        if !own.is_empty() {
            object::remove_meta(object, "namespace");
        }
    } else if own.is_empty() {
        object::set_meta(object, "namespace", target.namespace.as_str());
    }
    Ok(())
}

/// Rejects an object that names another namespace than the request.
pub(crate) fn refuse_other_namespace(object: &Value, target: &Target) -> ApiResult<()> {
    let own = object::namespace(object);
    if target.rt.namespaced && !own.is_empty() && own != target.namespace {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(())
}
