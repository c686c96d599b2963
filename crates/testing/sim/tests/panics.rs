//! A panic in a reconciler is one more failure: the object stays in the queue, and other objects are reconciled.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fl_api::condition::types;
use fl_api::kustomize::Kustomization;
use fl_runtime::{
    Completed, ConditionPolicy, Conditions, Context, Names, ObservedGeneration, Options, Phase,
    ReconcileError, ReconcileResult, Reconciled, Reconciler,
};
use fl_sim::TestCluster;
use serde_json::json;
use tokio::time::Instant;

/// How often each object panics before it succeeds.
const PANICS: u32 = 3;

/// Panics in the method that the name of the object says.
#[derive(Clone, Default)]
struct Panicking {
    panics: Arc<Mutex<HashMap<String, u32>>>,
}

impl Panicking {
    fn panic_in(&self, method: &str, object: &Kustomization) {
        let due = object.name() == method && {
            let mut panics = self.panics.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let count = panics.entry(method.to_owned()).or_default();
            *count += 1;
            *count <= PANICS
        };
        assert!(!due, "a panic in {method}");
    }
}

impl Reconciler for Panicking {
    type Object = Kustomization;

    fn names(&self) -> Names {
        Names { controller: "kustomization", component: "test", field_manager: "test" }
    }

    fn owned_conditions(&self) -> &'static [&'static str] {
        &[types::READY]
    }

    fn policy(&self, _object: &Kustomization) -> ConditionPolicy {
        ConditionPolicy::Ready {
            progressing_with_retry: false,
            observed_generation: ObservedGeneration::WhenSettled,
        }
    }

    async fn reconcile(&self, cx: &mut Context<Kustomization>) -> ReconcileResult {
        self.panic_in("reconcile", &cx.object);
        cx.object.mark_true(types::READY, "Succeeded", "done");
        Ok(Completed::Done)
    }

    async fn delete(&self, _cx: &mut Context<Kustomization>) -> Result<(), ReconcileError> {
        Ok(())
    }

    fn finish(&self, cx: &mut Context<Kustomization>, _phase: Phase, _result: &ReconcileResult) {
        self.panic_in("finish", &cx.object);
    }
}

#[tokio::test(start_paused = true)]
async fn panics_are_retried_and_other_objects_go_on() {
    let reconciler = Panicking::default();
    let panics = reconciler.panics.clone();
    // One permit: a panic that kept it would stop the others.
    let test_cluster =
        TestCluster::with(90, Options::default(), |test_cluster| test_cluster.runtime.add(reconciler, 1))
            .await;
    let spec =
        json!({"interval": "1h", "prune": true, "sourceRef": {"kind": "GitRepository", "name": "app"}});
    for name in ["reconcile", "finish", "unaffected"] {
        test_cluster.source("Kustomization", name, spec.clone()).await;
    }
    let begin = Instant::now();
    test_cluster.ready("Kustomization", "unaffected").await;
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    for name in ["reconcile", "finish"] {
        test_cluster.ready("Kustomization", name).await;
        assert_eq!(panics.lock().map(|panics| panics[name]).ok(), Some(PANICS + 1), "{name}");
    }
}
