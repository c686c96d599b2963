//! `spec.include`: other GitRepositories whose artifacts are copied into the tree.

use std::path::PathBuf;

use fl_api::condition::types;
use fl_api::meta::artifact::Artifact;
use fl_api::source::GitRepository;
use fl_archive::ReadLimits;
use fl_artifact_store::{Check, Store};
use fl_http::Lease;
use fl_runtime::{ClientError, Conditions, Context, Edge, Kind, ReconcileError, Reconciled, Source};

use crate::storage::{blocking, chain, has_revision};
use crate::tree::{Overlay, OverlayError, TarTree, Tree, UnpackError};
use fl_types::Digest;

/// The artifacts of all included repositories, in the order of the spec.
pub(super) async fn look_up(cx: &mut Context<GitRepository>) -> Result<Vec<Artifact>, ReconcileError> {
    let kind = Kind::of::<GitRepository>();
    let namespace = cx.object.namespace().to_owned();
    let after = cx.runtime.options().requeue_dependency;
    let mut artifacts = Vec::new();
    for include in cx.object.spec.include.clone().unwrap_or_default() {
        let name = &include.repository.name;
        let found = match cx.runtime.informers().store(&kind).and_then(|s| s.get(&namespace, name)) {
            Some(live) => live.parse::<GitRepository>().map_err(|e| e.to_string()),
            // The cache may not have it yet.
            None => cx.cluster().get_as(&kind, Some(&namespace), name).await.map_err(|e| {
                if e.is_not_found() { ClientError::absent(&kind, name).to_string() } else { e.to_string() }
            }),
        };
        let error = match found {
            Ok(included) => match included.artifact() {
                Some(artifact) => {
                    artifacts.push(artifact.clone());
                    continue;
                }
                None => ReconcileError::waiting(
                    after,
                    "NoArtifact",
                    format!("no artifact available for include '{name}'"),
                ),
            },
            Err(error) => ReconcileError::waiting(
                after,
                "NotFound",
                format!("could not get resource for include '{name}': {error}"),
            ),
        };
        let mut edges = super::edges(&cx.object);
        edges.push(Edge::artifact(kind.key(&namespace, name)));
        cx.runtime.graph().set_edges(&cx.key(), edges);
        return Err(error.on(types::INCLUDE_UNAVAILABLE));
    }
    cx.runtime.graph().set_edges(&cx.key(), super::edges(&cx.object));
    cx.object.remove_condition(types::INCLUDE_UNAVAILABLE);
    Ok(artifacts)
}

/// Whether the revisions differ, in any order.
pub(super) fn differ(new: &[Artifact], old: &[Artifact]) -> bool {
    new.len() != old.len() || !new.iter().all(|n| old.iter().any(|o| has_revision(Some(o), &n.revision)))
}

/// Flux's message, which names paths of its checkout.
fn on_disk(object: &GitRepository, error: &OverlayError) -> String {
    let here = std::env::temp_dir();
    let unpacked = here.join("flux-include-0").join("unpack");
    match error {
        OverlayError::NoSuchPath(path) => {
            let path = unpacked.join(path);
            format!("cannot stat {0}: stat {0}: no such file or directory", path.display())
        }
        OverlayError::Occupied { from, to } => {
            let checkout = format!("gitrepository-{}-{}-0", object.namespace(), object.name());
            // An empty path is the directory itself; joined, it would end in a slash.
            let from = if from.is_empty() { unpacked } else { unpacked.join(from) };
            let to = here.join(checkout).join(to);
            let (from, to) = (from.display(), to.display());
            format!("link error: cannot rename {from} to {to}: rename {from} {to}: file exists")
        }
    }
}

/// Copies the included artifacts into the tree.
pub(super) async fn copy_in(
    cx: &mut Context<GitRepository>,
    store: &Store,
    tree: Box<dyn Tree>,
    artifacts: &[Artifact],
    lease: &Lease,
) -> Result<Overlay, ReconcileError> {
    let mut overlay = Overlay::new(tree);
    let includes = cx.object.spec.include.clone().unwrap_or_default();
    for (include, artifact) in includes.into_iter().zip(artifacts) {
        let name = include.repository.name;
        let from = include.from_path.unwrap_or_default();
        let to = include.to_path.filter(|p| !p.is_empty()).unwrap_or_else(|| name.clone());
        let (disk, path, digest) = (store.clone(), artifact.path.clone(), artifact.digest.clone());
        let lease = lease.clone();
        let unpacked = blocking(move || unpack(&disk, &path, digest, &lease)).await?;
        let copied = unpacked.map_err(|error| error.to_string()).and_then(|part| {
            overlay.put(Box::new(part), &from, &to).map_err(|error| on_disk(&cx.object, &error))
        });
        copied.map_err(|error| {
            let message = format!("failed to copy '{name}' include from {from} to {to}: {error}");
            ReconcileError::backoff("CopyFailure", message).on(types::STORAGE_OPERATION_FAILED)
        })?;
    }
    Ok(overlay)
}

/// Why an included artifact cannot be read.
#[derive(Debug, thiserror::Error)]
enum IncludeError {
    #[error("{}", chain(.0))]
    Store(#[from] fl_artifact_store::Error),
    #[error("the artifact has no digest")]
    NoDigest,
    #[error("open {}: no such file or directory", .0.display())]
    Missing(PathBuf),
    #[error("computed digest doesn't match '{0}'")]
    WrongDigest(Digest),
    #[error("{0}")]
    Unpack(#[from] UnpackError),
}

/// Unpacks an artifact, which must have the digest that was recorded.
fn unpack(store: &Store, path: &str, digest: Option<Digest>, lease: &Lease) -> Result<TarTree, IncludeError> {
    let place = store.file(path)?;
    let digest = digest.ok_or(IncludeError::NoDigest)?;
    let file = match store.open_checked(path, &digest)? {
        (_, Some(file)) => file,
        (Check::Missing, None) => return Err(IncludeError::Missing(place)),
        (_, None) => return Err(IncludeError::WrongDigest(digest)),
    };
    Ok(TarTree::unpack(file, false, &ReadLimits::default(), lease)?)
}
