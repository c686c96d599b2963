//! Other GitRepositories whose artifacts are copied in.

use fl_api::condition::types;
use fl_api::meta::artifact::Artifact;
use fl_api::source::GitRepository;
use fl_archive::ReadLimits;
use fl_runtime::{ClientError, Conditions, Edge, Failure, Kind, Pass, Reconciled, Source};
use fl_store::{Check, Store};

use crate::conclude::failed;
use crate::storage::{blocking, chain, has_revision};
use crate::tree::{Overlay, OverlayError, TarTree, Tree};

/// The artifacts of all included repositories, in the order of the spec.
pub(super) async fn look_up(pass: &mut Pass<GitRepository>) -> Result<Vec<Artifact>, Failure> {
    let kind = Kind::of::<GitRepository>();
    let namespace = pass.object.namespace().to_owned();
    let after = pass.runtime.options().requeue_dependency;
    let mut artifacts = Vec::new();
    for include in pass.object.spec.include.clone().unwrap_or_default() {
        let name = &include.repository.name;
        let found = match pass.runtime.hub().store(&kind).and_then(|s| s.get(&namespace, name)) {
            Some(live) => live.parse::<GitRepository>().map_err(|e| e.to_string()),
            // Perhaps only not seen yet.
            None => pass.cluster().get_as(&kind, Some(&namespace), name).await.map_err(|e| {
                if e.is_not_found() { ClientError::absent(&kind, name).to_string() } else { e.to_string() }
            }),
        };
        let failure = match found {
            Ok(included) => match included.artifact() {
                Some(artifact) => {
                    artifacts.push(artifact.clone());
                    continue;
                }
                None => {
                    Failure::wait(after, "NoArtifact", format!("no artifact available for include '{name}'"))
                }
            },
            Err(error) => Failure::wait(
                after,
                "NotFound",
                format!("could not get resource for include '{name}': {error}"),
            ),
        };
        let mut edges = super::edges(&pass.object);
        edges.push(Edge::artifact(kind.key(&namespace, name)));
        pass.runtime.graph().set_edges(&pass.key(), edges);
        return Err(failed(pass, types::INCLUDE_UNAVAILABLE, failure));
    }
    pass.runtime.graph().set_edges(&pass.key(), super::edges(&pass.object));
    pass.object.remove_condition(types::INCLUDE_UNAVAILABLE);
    Ok(artifacts)
}

/// Whether any of the revisions is not among the others.
pub(super) fn differ(new: &[Artifact], old: &[Artifact]) -> bool {
    new.len() != old.len() || !new.iter().all(|n| old.iter().any(|o| has_revision(Some(o), &n.revision)))
}

/// The error as if the parts had been moved around on disk, which is what people search for.
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
            // The whole of it is the directory itself; a path must not end in a slash then.
            let from = if from.is_empty() { unpacked } else { unpacked.join(from) };
            let to = here.join(checkout).join(to);
            let (from, to) = (from.display(), to.display());
            format!("link error: cannot rename {from} to {to}: rename {from} {to}: file exists")
        }
    }
}

/// Puts the included artifacts into the tree.
pub(super) async fn put(
    pass: &mut Pass<GitRepository>,
    store: &Store,
    tree: Box<dyn Tree>,
    artifacts: &[Artifact],
) -> Result<Overlay, Failure> {
    let mut overlay = Overlay::new(tree);
    let includes = pass.object.spec.include.clone().unwrap_or_default();
    for (include, artifact) in includes.into_iter().zip(artifacts) {
        let name = include.repository.name;
        let from = include.from_path.unwrap_or_default();
        let to = include.to_path.filter(|p| !p.is_empty()).unwrap_or_else(|| name.clone());
        let (disk, path, digest) = (store.clone(), artifact.path.clone(), artifact.digest.clone());
        let unpacked = blocking(move || {
            let place = disk.file(&path).map_err(|e| chain(&e))?;
            let digest = digest.ok_or("the artifact has no digest")?;
            // What is not what it was when it was published must not get into another artifact.
            let file = match disk.open_checked(&path, &digest).map_err(|e| chain(&e))? {
                (_, Some(file)) => file,
                (Check::Missing, None) => {
                    return Err(format!("open {}: no such file or directory", place.display()));
                }
                (_, None) => return Err(format!("computed digest doesn't match '{digest}'")),
            };
            TarTree::unpack(file, false, &ReadLimits::default()).map_err(|e| e.to_string())
        })
        .await?;
        let placed = unpacked.and_then(|part| {
            overlay.put(Box::new(part), &from, &to).map_err(|error| on_disk(&pass.object, &error))
        });
        if let Err(error) = placed {
            let message = format!("failed to copy '{name}' include from {from} to {to}: {error}");
            return Err(failed(
                pass,
                types::STORAGE_OPERATION_FAILED,
                Failure::retry("CopyFailure", message),
            ));
        }
    }
    Ok(overlay)
}
