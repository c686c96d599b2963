//! The keys that `spec.decryption` refers to.

use fl_api::kustomize::Kustomization;
use fl_runtime::{ClientError, Reconciled as _, Runtime};

use super::secret_data;
use crate::Options;
use crate::build::{KeyMaterial, KeyMaterialError};

/// Why there are no keys to decrypt with.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DecryptionKeysError {
    #[error(transparent)]
    NotFound(ClientError),
    #[error("cannot get sops decryption Secret '{namespace}/{name}': {source}")]
    Unavailable { namespace: String, name: String, source: ClientError },
    #[error(transparent)]
    Invalid(#[from] KeyMaterialError),
}

/// The keys of a Kustomization; none without `spec.decryption`. Where it names no Secret, the age keys of the engine's own
/// Secret are used, if the operator configured one.
pub(crate) async fn decryption_keys(
    object: &Kustomization,
    runtime: &Runtime,
    options: &Options,
) -> Result<Option<KeyMaterial>, DecryptionKeysError> {
    let Some(decryption) = &object.spec.decryption else { return Ok(None) };
    let (namespace, name, own) = match &decryption.secret_ref {
        Some(secret) => (object.namespace(), secret.name.as_str(), false),
        None if !options.sops_age_secret.is_empty() => {
            (runtime.options().runtime_namespace.as_str(), options.sops_age_secret.as_str(), true)
        }
        None => return Ok(Some(KeyMaterial::default())),
    };
    let data = match secret_data(runtime, namespace, name).await {
        Ok(data) => data,
        Err(error) if error.is_not_found() => return Err(DecryptionKeysError::NotFound(error)),
        Err(source) => {
            let (namespace, name) = (namespace.to_owned(), name.to_owned());
            return Err(DecryptionKeysError::Unavailable { namespace, name, source });
        }
    };
    let kind = if own { "sops SOPS age" } else { "sops" };
    let place = format!("{kind} decryption Secret '{namespace}/{name}'");
    let import = if own { KeyMaterial::import_age } else { KeyMaterial::import };
    Ok(Some(import(&data, &place)?))
}
