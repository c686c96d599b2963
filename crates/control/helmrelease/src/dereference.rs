//! From the references of a HelmRelease to what its release is made of, in Flux's order: dependencies, source, values,
//! chart, target cluster.

use fl_api::condition::{reasons, types};
use fl_api::helm::HelmRelease;
use fl_api::meta::artifact::Artifact;
use fl_http::Owner;
use fl_runtime::{Conditions, Context};
use serde_json::{Map, Value};

use crate::action::LoadedChart;
use crate::chart_cache::{ChartError, version_of_revision};
use crate::controller::HelmReleaseController;
use crate::error::StepError;
use crate::target::Target;
use crate::{dependencies, source, values};

/// What a release is made of, and where.
#[derive(Debug)]
pub(crate) struct ReleaseInputs {
    pub(crate) chart: LoadedChart,
    /// The revision of the source.
    pub(crate) revision: String,
    /// The digest of the source's revision, where it has one.
    pub(crate) digest: Option<String>,
    pub(crate) values: Map<String, Value>,
    pub(crate) target: Target,
}

impl HelmReleaseController {
    /// Resolves all references. `None` if the source published another artifact meanwhile.
    pub(crate) async fn dereference(
        &self,
        cx: &mut Context<HelmRelease>,
    ) -> Result<Option<ReleaseInputs>, StepError> {
        dependencies::check(cx).await?;
        clear_failure(cx, &[reasons::DEPENDENCY_NOT_READY]);
        let found = source::find(cx, &self.resolver).await?;
        clear_failure(cx, &[reasons::ACCESS_DENIED, reasons::ARTIFACT_FAILED]);
        let artifact = source::artifact(&found)?;
        clear_failure(cx, &["SourceNotReady"]);
        let values = values::resolve(cx.cluster(), &cx.object).await?;
        clear_failure(cx, &["ValuesError"]);
        let owner = Owner::namespace(found.key.namespace());
        let loaded = tokio::select! {
            loaded = self.load_chart(&artifact, &owner) => loaded,
            () = source::moved(cx, &self.resolver, &artifact) => return Ok(None),
        };
        let mut chart = loaded?;
        clear_failure(cx, &[reasons::ARTIFACT_FAILED]);
        let mut digest = None;
        if source::has_digest(&found, &artifact) {
            let (version, of_revision) = version_of_revision(&chart.version, &artifact.revision)?;
            if self.track_digest {
                let id = artifact.digest.as_ref().map(ToString::to_string).unwrap_or_default();
                chart = self.charts.with_version(chart, &id, &version);
            }
            digest = Some(of_revision);
        }
        let target = self.target(&cx.object).await?;
        clear_failure(cx, &["RESTClientError"]);
        Ok(Some(ReleaseInputs { chart, revision: artifact.revision, digest, values, target }))
    }

    /// Loads the chart of an artifact. A source that packs its chart again replaces the file before it updates its status;
    /// one retry waits for that.
    async fn load_chart(&self, artifact: &Artifact, owner: &Owner) -> Result<LoadedChart, ChartError> {
        let first = self.charts.load(&self.fetcher, artifact, owner).await;
        if !matches!(first, Err(ChartError::Replaced(_))) {
            return first;
        }
        fl_runtime::without_permit(tokio::time::sleep(fl_runtime::STATUS_FOLLOWS)).await;
        self.charts.load(&self.fetcher, artifact, owner).await
    }
}

/// Resets `Ready` if it reports the failure of a step that has now succeeded.
fn clear_failure(cx: &mut Context<HelmRelease>, failures: &[&str]) {
    if cx.object.condition(types::READY).is_some_and(|ready| failures.contains(&ready.reason.as_str())) {
        cx.object.mark_unknown(types::READY, reasons::PROGRESSING, "reconciliation in progress");
    }
}
