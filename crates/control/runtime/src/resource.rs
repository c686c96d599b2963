//! What every reconciled kind provides.

use std::time::Duration;

use fl_api::meta::artifact::Artifact;
use fl_api::meta::condition::Condition;
use fl_api::{ObjectMeta, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Annotation that requests a reconcile; any value that differs from the last one handled.
pub const REQUESTED_AT: &str = "reconcile.fluxcd.io/requestedAt";
/// The finalizer of Flux's own kinds.
pub const FINALIZER: &str = "finalizers.fluxcd.io";

/// The status fields that all kinds share.
#[derive(Debug)]
pub struct StatusHead<'a> {
    pub conditions: &'a mut Option<Vec<Condition>>,
    pub observed_generation: &'a mut Option<i64>,
    pub last_handled: &'a mut Option<String>,
}

/// A kind with conditions, a generation and reconcile requests.
pub trait Reconciled: Resource + Serialize + DeserializeOwned + Clone + Send + Sync + 'static {
    fn meta(&self) -> &ObjectMeta;
    fn meta_mut(&mut self) -> &mut ObjectMeta;
    fn suspended(&self) -> bool;
    /// `spec.interval`; `None` for kinds without.
    fn interval(&self) -> Option<Duration>;
    fn conditions(&self) -> &[Condition];
    fn observed_generation(&self) -> Option<i64>;
    fn last_handled(&self) -> Option<&str>;
    /// The status as JSON; an empty object if there is none.
    fn status_value(&self) -> Value;
    /// The shared status fields; creates an empty status if there is none.
    fn status_head(&mut self) -> StatusHead<'_>;

    fn name(&self) -> &str {
        &self.meta().name
    }

    fn namespace(&self) -> &str {
        self.meta().namespace.as_deref().unwrap_or_default()
    }

    fn generation(&self) -> i64 {
        self.meta().generation.unwrap_or_default()
    }

    fn uid(&self) -> &str {
        self.meta().uid.as_deref().unwrap_or_default()
    }

    fn deleting(&self) -> bool {
        self.meta().deletion_timestamp.is_some()
    }

    fn annotation(&self, key: &str) -> Option<&str> {
        self.meta().annotations.as_ref()?.get(key).map(String::as_str)
    }

    /// The value of the reconcile request, handled or not.
    fn requested_at(&self) -> Option<&str> {
        self.annotation(REQUESTED_AT)
    }

    fn has_finalizer(&self, finalizer: &str) -> bool {
        self.meta().finalizers.as_ref().is_some_and(|f| f.iter().any(|name| name == finalizer))
    }
}

macro_rules! reconciled {
    ($kind:ty, |$spec:ident| $interval:expr) => {
        impl Reconciled for $kind {
            fn meta(&self) -> &ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut ObjectMeta {
                &mut self.metadata
            }

            fn suspended(&self) -> bool {
                self.spec.suspend.unwrap_or_default()
            }

            fn interval(&self) -> Option<Duration> {
                let $spec = &self.spec;
                let interval: Option<fl_types::Duration> = $interval;
                interval.map(|i| i.to_std().unwrap_or_default())
            }

            fn conditions(&self) -> &[Condition] {
                self.status.as_ref().and_then(|s| s.conditions.as_deref()).unwrap_or_default()
            }

            fn observed_generation(&self) -> Option<i64> {
                self.status.as_ref()?.observed_generation
            }

            fn last_handled(&self) -> Option<&str> {
                self.status.as_ref()?.last_handled_reconcile_at.as_deref()
            }

            fn status_value(&self) -> Value {
                let status = self.status.as_ref().and_then(|s| serde_json::to_value(s).ok());
                status.unwrap_or_else(|| Value::Object(Map::new()))
            }

            fn status_head(&mut self) -> StatusHead<'_> {
                let status = self.status.get_or_insert_default();
                StatusHead {
                    conditions: &mut status.conditions,
                    observed_generation: &mut status.observed_generation,
                    last_handled: &mut status.last_handled_reconcile_at,
                }
            }
        }
    };
}

reconciled!(fl_api::source::GitRepository, |spec| Some(spec.interval));
reconciled!(fl_api::source::OCIRepository, |spec| Some(spec.interval));
reconciled!(fl_api::source::HelmRepository, |spec| spec.interval);
reconciled!(fl_api::source::HelmChart, |spec| Some(spec.interval));
reconciled!(fl_api::source::Bucket, |spec| Some(spec.interval));
reconciled!(fl_api::kustomize::Kustomization, |spec| Some(spec.interval));
reconciled!(fl_api::helm::HelmRelease, |spec| Some(spec.interval));
reconciled!(fl_api::notification::Receiver, |spec| Some(spec.interval));

/// A kind that publishes an artifact in its status.
pub trait Source: Reconciled {
    fn artifact(&self) -> Option<&Artifact>;
    fn set_artifact(&mut self, artifact: Option<Artifact>);
}

macro_rules! source {
    ($($kind:ty),*) => {$(
        impl Source for $kind {
            fn artifact(&self) -> Option<&Artifact> {
                self.status.as_ref()?.artifact.as_ref()
            }

            fn set_artifact(&mut self, artifact: Option<Artifact>) {
                self.status.get_or_insert_default().artifact = artifact;
            }
        }
    )*};
}

source!(
    fl_api::source::GitRepository,
    fl_api::source::OCIRepository,
    fl_api::source::HelmRepository,
    fl_api::source::HelmChart,
    fl_api::source::Bucket
);
