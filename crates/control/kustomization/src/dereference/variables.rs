//! The variables of `spec.postBuild`.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fl_api::kustomize::Kustomization;
use fl_api::meta::references::ValuesKind;
use fl_runtime::{ClientError, Kind, Reconciled as _, Runtime};
use fl_types::Secret;

/// Values for substitution. They may come from Secrets, so they are treated as such.
pub(crate) type Variables = Secret<BTreeMap<String, String>>;

/// An object of `substituteFrom` that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("substitute from '{kind}/{name}' error: {source}")]
pub(crate) struct VariablesError {
    kind: &'static str,
    name: String,
    source: ClientError,
}

/// The variables of `postBuild`: those of ConfigMaps and Secrets in order, then those in the spec.
pub(crate) async fn variables(
    object: &Kustomization,
    runtime: &Runtime,
) -> Result<Variables, VariablesError> {
    let mut variables = BTreeMap::new();
    let Some(post_build) = &object.spec.post_build else { return Ok(Secret::new(variables)) };
    let plain = |text: &str| text.replace('\n', "");
    for reference in post_build.substitute_from.iter().flatten() {
        let (kind, word) = match reference.kind {
            ValuesKind::ConfigMap => (Kind::config_map(), "ConfigMap"),
            ValuesKind::Secret => (Kind::secret(), "Secret"),
        };
        let found = match runtime.cluster().get(&kind, Some(object.namespace()), &reference.name).await {
            Ok(found) => found,
            Err(error) if error.is_not_found() && reference.optional => continue,
            Err(source) => {
                return Err(VariablesError { kind: word, name: reference.name.clone(), source });
            }
        };
        for (key, value) in found["data"].as_object().into_iter().flatten() {
            let text = value.as_str().unwrap_or_default();
            let value = match reference.kind {
                ValuesKind::ConfigMap => plain(text),
                ValuesKind::Secret => {
                    plain(&String::from_utf8_lossy(&STANDARD.decode(text).unwrap_or_default()))
                }
            };
            variables.insert(key.clone(), value);
        }
    }
    for (key, value) in post_build.substitute.iter().flatten() {
        variables.insert(key.clone(), plain(value));
    }
    Ok(Secret::new(variables))
}
