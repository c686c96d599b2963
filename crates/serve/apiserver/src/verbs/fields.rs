//! Who manages which field: the glue to the merge engine.

use serde_json::Value;

use super::options::WriteOptions;
use crate::object;
use crate::resource::ResourceType;

/// Gives all fields of a new object to the caller.
pub(crate) fn track_create(_rt: &ResourceType, _object: &mut Value, _options: &WriteOptions, _now: &str) {}

/// Gives the changed fields to the caller.
pub(crate) fn track_update(
    _rt: &ResourceType,
    _old: &Value,
    _object: &mut Value,
    _options: &WriteOptions,
    _subresource: &str,
    _now: &str,
) {
}

/// A dry run has no revision.
pub(crate) fn drop_timestamps_of_dry_run(object: &mut Value) {
    object::remove_meta(object, "resourceVersion");
}

/// Whether two objects are the same but for the times in managedFields.
pub(crate) fn same(object: &Value, old: &Value) -> bool {
    object == old
}
