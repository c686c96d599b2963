//! The build step of a reconcile.

use std::path::PathBuf;
use std::sync::Arc;

use fl_api::kustomize::Kustomization;
use fl_api::meta::artifact::Artifact;
use fl_runtime::{Conditions as _, Context, Reconciled as _};

use super::{ArtifactFiles, Built, Request, build};
use crate::controller::KustomizationController;
use crate::dereference::{self, Variables};
use crate::error::StepError;

impl KustomizationController {
    /// The objects of a Kustomization: from the last build when its inputs are the same, else from a new one.
    pub(crate) async fn build(
        &self,
        cx: &Context<Kustomization>,
        artifact: &Artifact,
        files: Arc<ArtifactFiles>,
        directory: PathBuf,
    ) -> Result<Arc<Built>, StepError> {
        let variables = dereference::variables(&cx.object, &self.runtime).await;
        let keys = dereference::decryption_keys(&cx.object, &self.runtime, &self.options).await?;
        // The result of a decryption is not kept in memory for longer than the reconcile.
        let cacheable = keys.is_none() && variables.is_ok();
        let (key, inputs) = (cx.key(), inputs(&cx.object, variables.as_ref().ok()));
        let digest = artifact.digest.as_ref().map(ToString::to_string).unwrap_or_default();
        if cacheable && let Some(built) = self.builds.same_files(&key, &inputs, &digest, &files) {
            built.mask_derived_secrets(&cx.secrets);
            return Ok(built);
        }
        let object = cx.object.clone();
        let strict = self.runtime.options().gates.enabled("StrictPostBuildSubstitutions");
        let (key_services, secrets) = (self.options.key_services.clone(), cx.secrets.clone());
        let remote = (!self.options.no_remote_bases).then(|| self.options.remote_addresses.clone());
        let result = tokio::task::spawn_blocking(move || {
            let key_services = &key_services;
            let request = Request { object: &object, variables, strict, keys, key_services, secrets, remote };
            build(&files, &directory, &request)
        })
        .await;
        let built = match result {
            Ok(Ok(built)) => Arc::new(built),
            Ok(Err(error)) => return Err(error.into()),
            Err(_) => return Err(StepError::BuildPanicked),
        };
        if cacheable {
            self.builds.keep(&key, inputs, &digest, built.clone());
        }
        Ok(built)
    }

    /// The last build, when the reconcile is only due by its interval: same artifact, spec and variables, ready before,
    /// nothing requested.
    pub(crate) async fn last_build(
        &self,
        cx: &Context<Kustomization>,
        artifact: &Artifact,
    ) -> Option<Arc<Built>> {
        let object = &cx.object;
        let applied = object.status.as_ref()?.last_applied_revision.as_deref();
        let same = applied == Some(artifact.revision.as_str())
            && object.is_ready()
            && object.observed_generation() == Some(object.generation())
            && !cx.requested()
            && object.spec.decryption.is_none()
            && object.spec.kube_config.is_none();
        if !same || self.owned_objects.comparison_is_due(&cx.key(), self.options.full_pass) {
            return None;
        }
        let variables = dereference::variables(object, &self.runtime).await.ok()?;
        let digest = artifact.digest.as_ref()?.to_string();
        let built = self.builds.same_artifact(&cx.key(), &inputs(object, Some(&variables)), &digest)?;
        built.mask_derived_secrets(&cx.secrets);
        Some(built)
    }
}

/// A hash of everything beside the files that decides the result of a build.
fn inputs(object: &Kustomization, variables: Option<&Variables>) -> [u8; 32] {
    let spec = serde_json::to_string(&object.spec).unwrap_or_default();
    let mut hasher = blake3::Hasher::new();
    hasher.update(spec.as_bytes());
    for (key, value) in variables.into_iter().flat_map(fl_types::Secret::expose) {
        hasher.update(&(key.len() as u64).to_le_bytes()).update(key.as_bytes());
        hasher.update(&(value.len() as u64).to_le_bytes()).update(value.as_bytes());
    }
    *hasher.finalize().as_bytes()
}
