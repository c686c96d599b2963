//! Checks that many kinds share.

use fl_types::NameError;

/// The complaints of a name check, none when it passed.
pub(super) fn messages(result: Result<(), NameError>) -> Vec<String> {
    result.err().map(|error| error.messages().to_vec()).unwrap_or_default()
}
