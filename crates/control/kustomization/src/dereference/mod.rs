//! Everything a Kustomization refers to: its source and its files, its dependencies, its variables and its keys.

mod artifact;
mod decryption;
mod dependencies;
mod source;
mod variables;

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fl_runtime::{ClientError, Kind, Runtime};
use fl_types::Secret;

pub(crate) use artifact::{ArtifactOpener, OpenError};
pub(crate) use decryption::{DecryptionKeysError, decryption_keys};
pub(crate) use dependencies::{DependencyNotReady, cycle, dependencies};
pub(crate) use source::{SourceError, source};
pub(crate) use variables::{Variables, VariablesError, variables};

/// The data of a Secret, decoded.
pub(crate) async fn secret_data(
    runtime: &Runtime,
    namespace: &str,
    name: &str,
) -> Result<BTreeMap<String, Secret<Vec<u8>>>, ClientError> {
    let secret = runtime.cluster().get(&Kind::secret(), Some(namespace), name).await?;
    let data = secret["data"].as_object().into_iter().flatten();
    Ok(data
        .filter_map(|(key, value)| {
            let bytes = STANDARD.decode(value.as_str()?).ok()?;
            Some((key.clone(), Secret::new(bytes)))
        })
        .collect())
}
