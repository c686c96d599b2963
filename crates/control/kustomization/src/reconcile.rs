//! The steps of a reconcile: dereference, validate, build, apply, report.

use fl_api::condition::{reasons, types};
use fl_api::kustomize::Kustomization;
use fl_api::meta::artifact::Artifact;
use fl_runtime::{Completed, Conditions as _, Context, ReconcileResult, Reconciled as _, Requeue};
use tokio::time::Instant;

use crate::build::check_path;
use crate::controller::KustomizationController;
use crate::dereference::{self, DependencyNotReady, OpenError, SourceError};
use crate::error::{ErrorContext, StepError};
use crate::status::{Revision, progressing};
use crate::validate::{self, Plan, validate};

/// How long a new Kustomization waits for the first artifact of its source before it reports that there is none.
const FIRST_ARTIFACT_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(1);

impl KustomizationController {
    pub(crate) async fn run(&self, cx: &mut Context<Kustomization>) -> ReconcileResult {
        let mut errors = ErrorContext {
            revision: Revision::default(),
            retry_interval: validate::retry_interval(&cx.object),
            requeue_dependency: self.runtime.options().requeue_dependency,
            started: cx.started,
        };
        let result = self.steps(cx, &mut errors.revision).await;
        result.map_err(|error| errors.report(error))
    }

    /// All steps. `revision` is set as soon as the source is known: reports of later errors name it.
    async fn steps(
        &self,
        cx: &mut Context<Kustomization>,
        revision: &mut Revision,
    ) -> Result<Completed, StepError> {
        let plan = validate(&cx.object, &self.runtime.options().gates)?;
        let Some(artifact) = self.source(cx).await? else {
            return Ok(Completed::Requeue(Requeue::After(FIRST_ARTIFACT_TIMEOUT)));
        };
        *revision = Revision::of(&artifact);
        self.dependencies(cx, &artifact).await?;
        let result = self.build_and_apply(cx, &plan, &artifact, revision).await;
        self.owned_objects.reconciled(&cx.key(), cx.object.is_true(types::READY));
        result
    }

    /// The artifact to build; none while a new Kustomization waits for the first one.
    async fn source(&self, cx: &Context<Kustomization>) -> Result<Option<Artifact>, SourceError> {
        let found = dereference::source(&cx.object, &self.resolver).await;
        if matches!(found, Err(SourceError::NoArtifact)) && self.is_new(cx) {
            return Ok(None);
        }
        self.awaiting_first_artifact().remove(&cx.key());
        found.map(Some)
    }

    /// Whether the Kustomization has no conditions yet and was first seen less than [`FIRST_ARTIFACT_TIMEOUT`] ago. A source
    /// is often applied together with its consumers, which then need not report a failure first.
    fn is_new(&self, cx: &Context<Kustomization>) -> bool {
        if !cx.object.conditions().is_empty() || cx.requested() {
            return false;
        }
        let since = *self.awaiting_first_artifact().entry(cx.key()).or_insert_with(Instant::now);
        since.elapsed() < FIRST_ARTIFACT_TIMEOUT
    }

    async fn dependencies(
        &self,
        cx: &Context<Kustomization>,
        artifact: &Artifact,
    ) -> Result<(), DependencyNotReady> {
        let checked = dereference::dependencies(&cx.object, artifact, &self.runtime).await;
        if matches!(checked, Err(DependencyNotReady::Waiting(_)))
            && let Some(cycle) = dereference::cycle(&self.runtime, &cx.key())
        {
            cx.log.error(&cycle, "this Kustomization waits for itself through dependsOn");
        }
        checked
    }

    async fn build_and_apply(
        &self,
        cx: &mut Context<Kustomization>,
        plan: &Plan,
        artifact: &Artifact,
        revision: &Revision,
    ) -> Result<Completed, StepError> {
        if self.is_up_to_date(cx, plan, artifact).await {
            return Ok(Completed::UpToDate);
        }
        cx.object.mark_unknown(types::READY, reasons::PROGRESSING, "Reconciliation in progress");
        progressing(cx, "Fetching manifests", &revision.revision, plan.timeout);
        let source = validate::source_reference(&cx.object);
        let files = match self.artifacts.open(artifact, &source, cx.object.namespace()).await {
            Ok(files) => files,
            Err(OpenError::Superseded) => return Ok(Completed::Requeue(Requeue::Immediately)),
            Err(error) => return Err(error.into()),
        };
        let directory = check_path(&files, cx.object.spec.path.as_deref().unwrap_or_default())?;
        cx.object.status.get_or_insert_default().last_attempted_revision = Some(revision.revision.clone());
        progressing(cx, "Building manifests", &revision.revision, plan.timeout);
        let target = self.target(&cx.object).await?;
        let built = self.build(cx, artifact, files, directory).await?;
        progressing(cx, "Detecting drift", &revision.revision, plan.timeout);
        self.apply(cx, plan, revision, &target, &built).await?;
        Ok(Completed::Done)
    }

    /// Whether nothing was requested and nothing changed: same artifact, spec and variables as in the last reconcile, which
    /// succeeded, and no drift. Sends no writes.
    async fn is_up_to_date(&self, cx: &Context<Kustomization>, plan: &Plan, artifact: &Artifact) -> bool {
        let Some(built) = self.last_build(cx, artifact).await else { return false };
        match self.target(&cx.object).await {
            Ok(target) => self.is_unchanged(cx, plan, &target, &built).await,
            Err(_) => false,
        }
    }
}
