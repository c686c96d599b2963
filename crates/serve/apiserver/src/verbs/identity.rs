//! Name and namespace of an object against those of its request.

use serde_json::Value;

use crate::object;
use crate::server::Target;
use crate::status::{ApiError, Outcome};

/// An object that is written by name carries that name.
pub(crate) fn check_name(name: &str, target: &Target) -> Outcome<()> {
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
pub(crate) fn check_namespace(object: &mut Value, target: &Target) -> Outcome<()> {
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

/// Refuses an object that names another namespace than the request.
pub(crate) fn refuse_other_namespace(object: &Value, target: &Target) -> Outcome<()> {
    let own = object::namespace(object);
    if target.rt.namespaced && !own.is_empty() && own != target.namespace {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(())
}
