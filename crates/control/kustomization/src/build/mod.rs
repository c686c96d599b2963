//! The build step: from the files of an artifact to objects.

mod artifact_cache;
mod artifact_files;
mod cache;
mod decrypt;
mod kms;
mod remote;
mod run;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fl_api::kustomize::Kustomization;
use fl_http::AddressPolicy;
use fl_kustomize_build::{BuildError, finish, render};
use fl_runtime::{KnownSecrets, Reconciled as _};
use fl_types::Secret;
use fl_yaml::{Dialect, JsonStyle, Node};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

pub(crate) use artifact_cache::ArtifactCache;
pub(crate) use artifact_files::ArtifactFiles;
pub(crate) use cache::{BuildCache, Built};
pub(crate) use decrypt::{KeyMaterial, KeyMaterialError};
pub use kms::EngineKeyServices;

use crate::dereference::{Variables, VariablesError};
use crate::error::StepError;
use decrypt::Decryptor;
use remote::FetchedBases;

/// Everything a build needs beside the files.
pub(crate) struct Request<'a> {
    pub(crate) object: &'a Kustomization,
    /// The variables of `postBuild`, or why they could not be read.
    pub(crate) variables: Result<Variables, VariablesError>,
    pub(crate) strict: bool,
    pub(crate) keys: Option<KeyMaterial>,
    /// The engine's own credentials for key services.
    pub(crate) key_services: &'a EngineKeyServices,
    /// Decrypted values, and what expressions make of secret variables, are registered here.
    pub(crate) secrets: KnownSecrets,
    /// Where remote bases may be fetched from; none when they are disabled.
    pub(crate) remote: Option<AddressPolicy>,
}

/// The directory of `spec.path`.
pub(crate) fn check_path(files: &ArtifactFiles, path: &str) -> Result<PathBuf, StepError> {
    let directory = files.join(path);
    if files.exists(&directory) {
        return Ok(directory);
    }
    Err(StepError::Path(directory.display().to_string()))
}

/// Builds the objects of a directory. Blocks: remote bases and key services are requested from this thread.
pub(crate) fn build(
    files: &ArtifactFiles,
    directory: &Path,
    request: &Request<'_>,
) -> Result<Built, BuildError> {
    let namespace = request.object.namespace();
    let spec = serde_json::to_value(&request.object.spec).map_err(|e| BuildError::Encode(e.to_string()))?;
    let decryptor = request
        .keys
        .as_ref()
        .map(|keys| Decryptor::new(keys, request.key_services, request.secrets.clone(), namespace));
    let bases = request.remote.clone().map(|policy| FetchedBases::new(namespace, policy));
    let derived = RefCell::new(BTreeSet::new());
    let learn_derived = |value: &str, result: &str| {
        if request.secrets.contains(value) {
            request.secrets.learn_text(result);
            derived.borrow_mut().insert(result.to_owned());
        }
    };
    let build = fl_kustomize_build::Request {
        files,
        directory,
        boundary: Some(files.root()),
        spec: &spec,
        variables: request.variables.as_ref().map(Secret::expose).map_err(ToString::to_string),
        derived: Some(&learn_derived),
        strict: request.strict,
        decryptor: decryptor.as_ref().map(|decryptor| decryptor as &dyn fl_kustomize_build::Decrypt),
        remote: bases.as_ref().map(|bases| bases as &dyn fl_kustomize_build::RemoteBases),
        filter: None,
        shared: Some(files),
        require_names: true,
    };
    let rendered = render(&build)?;
    let mut text = String::new();
    let mut objects = Vec::with_capacity(rendered.objects.len());
    for (i, node) in finish(rendered.objects, &build)?.iter().enumerate() {
        if i > 0 {
            text.push_str("---\n");
        }
        fl_yaml::write_sigs_yaml(&mut text, node, Dialect::V3)
            .map_err(|e| BuildError::Encode(e.to_string()))?;
        collect(to_json(node)?, &mut objects);
    }
    let digest = format!("sha256:{}", hex(&Sha256::digest(text.as_bytes())));
    let derived = Secret::new(derived.take());
    Ok(Built::new(objects, digest, files, rendered.reads, rendered.remote).with_derived_secrets(derived))
}

fn to_json(node: &Node) -> Result<Value, BuildError> {
    let text = fl_yaml::to_json(node, Dialect::V3, JsonStyle::default())
        .map_err(|e| BuildError::Encode(e.to_string()))?;
    serde_json::from_str(&text).map_err(|e| BuildError::Encode(e.to_string()))
}

/// Adds an object, or the items of a list; kustomization files are left out.
fn collect(object: Value, into: &mut Vec<Value>) {
    if let Some(items) = object.get("items").and_then(Value::as_array) {
        into.extend(items.iter().cloned());
        return;
    }
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let kustomization = api_version.starts_with("kustomize.config.k8s.io/")
        && object["kind"].as_str().is_some_and(|k| k.eq_ignore_ascii_case("kustomization"));
    if !kustomization {
        into.push(object);
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, b| {
        let _ = write!(out, "{b:02x}");
        out
    })
}

#[cfg(test)]
mod decrypt_tests;
#[cfg(test)]
mod tests;
