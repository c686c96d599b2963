//! Kustomizations that differ in their variables only, as tenants of one platform do.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use fl_api::kustomize::Kustomization;
use fl_runtime::Reconciled as _;
use serde_json::Value;
use tokio::time::Instant;

use crate::status::Revision;

/// For how long what was accepted speaks for others: policies, quotas and permissions may change.
const LATELY: Duration = Duration::from_secs(60);

/// What all of a crowd have in common: namespace, revision, and the spec but for the values of its variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Template([u8; 32]);

impl Template {
    pub(crate) fn of(object: &Kustomization, revision: &Revision) -> Self {
        let mut spec = serde_json::to_value(&object.spec).unwrap_or_default();
        let variables = spec.pointer_mut("/postBuild/substitute").and_then(Value::as_object_mut);
        for value in variables.into_iter().flat_map(|variables| variables.values_mut()) {
            value.take();
        }
        let mut hasher = blake3::Hasher::new();
        for part in [object.namespace(), &revision.revision, &spec.to_string()] {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
        }
        Template(*hasher.finalize().as_bytes())
    }
}

/// Of which templates all objects were taken a moment ago, tried or not.
#[derive(Debug, Default)]
pub(crate) struct Accepted {
    since: Mutex<HashMap<Template, Instant>>,
}

impl Accepted {
    pub(crate) fn has(&self, template: Template) -> bool {
        self.since().get(&template).is_some_and(|since| since.elapsed() < LATELY)
    }

    /// Takes note of an apply: what made every object new speaks for others, what failed does not.
    pub(crate) fn note(&self, template: Template, all_new: bool) {
        let mut since = self.since();
        since.retain(|_, since| since.elapsed() < LATELY);
        if all_new {
            since.insert(template, Instant::now());
        } else {
            since.remove(&template);
        }
    }

    fn since(&self) -> std::sync::MutexGuard<'_, HashMap<Template, Instant>> {
        self.since.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn template(spec: Value, revision: &str) -> Template {
        let metadata = json!({"name": spec["path"], "namespace": "ns"});
        let object = json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": metadata, "spec": spec});
        let object: Kustomization = serde_json::from_value(object).expect("a Kustomization");
        Template::of(&object, &Revision { revision: revision.to_owned(), ..Revision::default() })
    }

    fn spec(path: &str, substitute: Value) -> Value {
        json!({"interval": "1m", "path": path, "prune": true, "sourceRef": {"kind": "GitRepository", "name": "s"},
            "postBuild": {"substitute": substitute}})
    }

    #[test]
    fn only_the_values_of_variables_may_differ() {
        let one = template(spec("./a", json!({"X": "1"})), "r1");
        assert_eq!(one, template(spec("./a", json!({"X": "2"})), "r1"));
        assert_ne!(one, template(spec("./a", json!({"Y": "1"})), "r1"));
        assert_ne!(one, template(spec("./b", json!({"X": "1"})), "r1"));
        assert_ne!(one, template(spec("./a", json!({"X": "1"})), "r2"));
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_accepted_counts_for_a_while_and_until_the_next_refusal() {
        let accepted = Accepted::default();
        let template = template(spec("./a", json!({})), "r1");
        assert!(!accepted.has(template));
        accepted.note(template, true);
        assert!(accepted.has(template));
        accepted.note(template, false);
        assert!(!accepted.has(template));
        accepted.note(template, true);
        tokio::time::advance(LATELY).await;
        assert!(!accepted.has(template));
    }
}
