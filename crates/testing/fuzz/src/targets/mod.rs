//! The targets: one file per engine, one function per parser of untrusted bytes.
//!
//! A new target is a row in its engine's file (a new engine adds a row here) and seeds in `fuzz/seeds/<name>/`.

mod apiserver;
mod archive;
mod fetch;
mod git;
mod helm;
mod kustomize;
mod merge;
mod release;
mod semver;
mod sops;
mod subst;
mod template;
mod types;
mod yaml;

/// Name and function of a target. A panic is its only failure.
pub(crate) type Target = (&'static str, fn(&[u8]));

/// Every target, engine by engine.
pub(crate) fn all() -> impl Iterator<Item = Target> {
    [
        apiserver::TARGETS,
        archive::TARGETS,
        fetch::TARGETS,
        git::TARGETS,
        helm::TARGETS,
        kustomize::TARGETS,
        merge::TARGETS,
        release::TARGETS,
        semver::TARGETS,
        sops::TARGETS,
        subst::TARGETS,
        template::TARGETS,
        types::TARGETS,
        yaml::TARGETS,
    ]
    .into_iter()
    .flatten()
    .copied()
}
