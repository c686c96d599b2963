//! Release records.

use super::Target;

pub(crate) const TARGETS: &[Target] = &[("release-record", record)];

/// Reading a record never panics, and what was read can be written and read again.
fn record(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(release) = fl_helm_storage::decode(text)
        && let Ok(again) = fl_helm_storage::encode(&release)
    {
        assert!(fl_helm_storage::decode(&again).is_ok(), "a written record is readable");
    }
}
