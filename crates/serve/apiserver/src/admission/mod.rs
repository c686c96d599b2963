//! Admission webhooks.

use std::sync::Arc;

use serde_json::Value;

use crate::server::{Call, Inner, Target};
use crate::status::Outcome;
use crate::store::Store;

/// The configured webhooks.
#[derive(Debug)]
pub(crate) struct Webhooks {
    _store: Store,
}

impl Webhooks {
    pub(crate) fn new(store: &Store) -> Self {
        Self { _store: store.clone() }
    }

    #[expect(clippy::too_many_arguments, reason = "an admission request has this many parts")]
    pub(crate) async fn mutate(
        &self,
        _inner: &Arc<Inner>,
        _call: &Call,
        _target: &Target,
        _operation: &str,
        _object: &mut Value,
        _old: Option<&Value>,
        _dry_run: bool,
    ) -> Outcome<()> {
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "an admission request has this many parts")]
    pub(crate) async fn validate(
        &self,
        _inner: &Arc<Inner>,
        _call: &Call,
        _target: &Target,
        _operation: &str,
        _object: Option<&Value>,
        _old: Option<&Value>,
        _dry_run: bool,
    ) -> Outcome<()> {
        Ok(())
    }

    pub(crate) async fn validate_delete(
        &self,
        _inner: &Arc<Inner>,
        _call: &Call,
        _target: &Target,
        _old: &Value,
        _dry_run: bool,
    ) -> Outcome<()> {
        Ok(())
    }
}
