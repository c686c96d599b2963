//! GitRepository: a commit becomes an artifact.
//!
//! A pass: check the store, resolve the reference, stop if nothing changed, fetch, verify, include others, archive.

mod auth;
mod client;
mod include;
mod verify;

use std::sync::Arc;

use fl_api::condition::{reasons, types};
use fl_api::meta::artifact::Artifact;
use fl_api::source::GitRepository;
use fl_api::source::git_repository::{GitRepositoryInclude, GitVerificationMode};
use fl_gitfetch::{Branches, FetchOptions, Reference};
use fl_runtime::{
    Conditions, Edge, End, EventKind, Failure, Names, Outcome, Pass, Reconciled, Reconciler, Source,
};
use fl_store::Store;

pub use client::{Fetched, Found, GitClient, GitRemote, GitRequest, NetworkGit};

use crate::conclude::{self, failed};
use crate::secrets;
use crate::storage::{self, blocking, has_revision};
use crate::tree::{ArchiveError, Tree, write_archive};

/// The controller of GitRepositories.
pub struct GitRepositories {
    store: Store,
    git: Arc<dyn GitClient>,
    tokens: auth::TokenCache,
}

impl std::fmt::Debug for GitRepositories {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GitRepositories").finish_non_exhaustive()
    }
}

/// What a pass fetched.
struct Work {
    revision: String,
    commit: String,
    /// How events name the commit.
    title: String,
    /// `None`: the artifact is of this revision already and nothing about its content changed.
    tree: Option<Box<dyn Tree>>,
    includes: Vec<Artifact>,
}

impl GitRepositories {
    pub fn new(store: Store, git: Arc<dyn GitClient>) -> Self {
        GitRepositories { store, git, tokens: auth::TokenCache::default() }
    }

    async fn run(&self, pass: &mut Pass<GitRepository>) -> Result<(), Failure> {
        conclude::begin(pass);
        storage::check(pass, &self.store).await?;
        let work = self.fetch(pass).await?;
        let message = format!("stored artifact for commit '{}'", work.title);
        self.store_artifact(pass, work).await?;
        conclude::announce(pass, &message);
        Ok(())
    }

    /// Resolves, fetches and verifies.
    async fn fetch(&self, pass: &mut Pass<GitRepository>) -> Result<Work, Failure> {
        if pass.object.is_false(types::SOURCE_VERIFIED) {
            pass.object.remove_condition(types::SOURCE_VERIFIED);
        }
        let (auth, proxy) = match auth::read(pass, &self.tokens).await {
            Ok(found) => found,
            Err(failure) => return Err(failed(pass, types::FETCH_FAILED, failure)),
        };
        let includes = include::look_up(pass).await?;
        if include::differ(&includes, included(&pass.object)) {
            let message = "included artifacts differ from last observed includes";
            if !included(&pass.object).is_empty() {
                pass.object.mark_true(types::ARTIFACT_OUTDATED, reasons::source::INCLUDE_CHANGE, message);
            }
            pass.object.mark_progressing(true, &format!("building artifact: {message}"));
            pass.progress();
        }
        pass.object.remove_condition(types::ARTIFACT_OUTDATED);

        let reference = reference(&pass.object);
        let request = GitRequest {
            owner: fl_http::Owner::namespace(pass.object.namespace()),
            url: pass.object.spec.url.clone(),
            auth,
            proxy,
            timeout: pass.object.spec.timeout.to_std().unwrap_or_default(),
            reference: reference.clone(),
        };
        // Only what is in the store can be "unchanged".
        let known = pass.object.is_true(types::ARTIFACT_IN_STORAGE) && pass.object.artifact().is_some();
        let mut remote = match self.git.open(&request) {
            Ok(remote) => remote,
            Err(error) => {
                return Err(operation_failed(pass, &format!("failed to create Git client: {error}")));
            }
        };
        let checkout_failed = |pass: &mut Pass<GitRepository>, error: String| {
            operation_failed(pass, &format!("failed to checkout and determine revision: {error}"))
        };
        let found = match remote.resolve(known).await {
            Ok(Some(found)) => found,
            Ok(None) => {
                let failure =
                    Failure::retry(reasons::source::EMPTY_GIT_REPOSITORY, "git repository is empty");
                return Err(failed(pass, types::FETCH_FAILED, failure));
            }
            Err(error) => return Err(checkout_failed(pass, error)),
        };
        let same = known && has_revision(pass.object.artifact(), &found.revision);
        let changed = content_changed(&pass.object, &includes);
        if same && !changed && reference.is_settled_by_listing() {
            return Err(self.nothing_changed(pass, &found));
        }
        // Flux clones such references anew each time and finds them equal; only what it would report needs the clone.
        if same && !changed && pass.object.spec.verify.is_none() && !conclude::failing(pass.original.as_ref())
        {
            pass.object.remove_condition(types::FETCH_FAILED);
            pass.object.status.get_or_insert_default().source_verification_mode = None;
            pass.object.remove_condition(types::SOURCE_VERIFIED);
            let title = found.revision.clone();
            return Ok(Work { revision: found.revision, commit: found.commit, title, tree: None, includes });
        }
        let options = FetchOptions {
            recurse_submodules: pass.object.spec.recurse_submodules.unwrap_or_default(),
            sparse: pass.object.spec.sparse_checkout.clone().unwrap_or_default(),
            only_on: matches!(reference, Reference::Name(_)).then(|| branches(&pass.object)),
        };
        let fetched = match remote.fetch(&options).await {
            Ok(fetched) => fetched,
            Err(error) => return Err(checkout_failed(pass, error)),
        };
        pass.log.with([("revision", found.revision.clone().into())]).debug("git repository checked out");
        pass.object.remove_condition(types::FETCH_FAILED);
        for path in &options.sparse {
            if !fetched.tree.has(&crate::tree::confined(path)) {
                // Worded as if it had been checked out, which is what people search for.
                let place = std::env::temp_dir().join(format!(
                    "gitrepository-{}-{}",
                    pass.object.namespace(),
                    pass.object.name()
                ));
                let message = format!(
                    "failed to sparse checkout directories : sparse checkout dir '{path}' does not exist in repository: \
                     lstat {}: no such file or directory",
                    place.join(crate::tree::confined(path)).display()
                );
                return Err(operation_failed(pass, &message));
            }
        }
        verify::check(pass, &fetched.commit).await?;
        if !has_revision(pass.object.artifact(), &found.revision) {
            let message = format!("new upstream revision '{}'", found.revision);
            if pass.object.artifact().is_some() {
                pass.object.mark_true(types::ARTIFACT_OUTDATED, reasons::source::NEW_REVISION, &message);
            }
            pass.object.mark_progressing(true, &format!("building artifact: {message}"));
            pass.progress();
        }
        let title = fetched.commit.short_message();
        Ok(Work { revision: found.revision, commit: found.commit, title, tree: Some(fetched.tree), includes })
    }

    fn nothing_changed(&self, pass: &mut Pass<GitRepository>, found: &Found) -> Failure {
        pass.object.remove_condition(types::FETCH_FAILED);
        let message = format!("stored artifact for revision '{}'", found.revision);
        pass.object.mark_true(types::ARTIFACT_IN_STORAGE, reasons::SUCCEEDED, &message);
        let message = format!("stored artifact for commit '{}'", found.revision);
        conclude::announce(pass, &message);
        Failure::no_op(
            reasons::source::GIT_OPERATION_SUCCEEDED,
            format!("no changes since last reconciliation: observed revision '{}'", found.revision),
        )
    }

    /// Puts the included parts in and archives the result.
    async fn store_artifact(&self, pass: &mut Pass<GitRepository>, work: Work) -> Result<(), Failure> {
        let Work { revision, commit, tree, includes, .. } = work;
        let Some(tree) = tree else {
            self.up_to_date(pass, &revision);
            return Ok(());
        };
        let overlay = include::put(pass, &self.store, tree, &includes).await?;
        pass.object.remove_condition(types::INCLUDE_UNAVAILABLE);
        let same = has_revision(pass.object.artifact(), &revision);
        if same
            && !include::differ(&includes, included(&pass.object))
            && !content_changed(&pass.object, &includes)
        {
            self.up_to_date(pass, &revision);
            return Ok(());
        }
        let at = storage::location(&pass.object)?;
        let (disk, ignore) = (self.store.clone(), pass.object.spec.ignore.clone());
        let published = blocking(move || {
            let mut overlay = overlay;
            disk.publish_tree(&at, &format!("{commit}.tar.gz"), |tar| {
                write_archive(&mut overlay, ignore.as_deref(), tar)
            })
        })
        .await?;
        let published = match published {
            Ok(published) => published,
            Err(error) => return Err(archive_failed(pass, &error)),
        };
        let spec = pass.object.spec.clone();
        let filled = |list: Option<Vec<_>>| list.filter(|l: &Vec<_>| !l.is_empty());
        let status = pass.object.status.get_or_insert_default();
        status.artifact = Some(storage::artifact(published, &revision));
        status.included_artifacts = Some(includes).filter(|i| !i.is_empty());
        status.observed_ignore = spec.ignore;
        status.observed_recurse_submodules = spec.recurse_submodules.filter(|r| *r);
        status.observed_include = spec.include.map(without_empty_paths).filter(|i| !i.is_empty());
        status.observed_sparse_checkout = filled(spec.sparse_checkout);
        pass.object.remove_condition(types::STORAGE_OPERATION_FAILED);
        self.stored(pass, &revision);
        Ok(())
    }

    fn up_to_date(&self, pass: &mut Pass<GitRepository>, revision: &str) {
        let message = format!("artifact up-to-date with remote revision: '{revision}'");
        pass.log.info(&message);
        pass.event(EventKind::Trace, "ArtifactUpToDate", &message);
        self.stored(pass, revision);
    }

    fn stored(&self, pass: &mut Pass<GitRepository>, revision: &str) {
        pass.object.remove_condition(types::ARTIFACT_OUTDATED);
        let message = format!("stored artifact for revision '{revision}'");
        pass.object.mark_true(types::ARTIFACT_IN_STORAGE, reasons::SUCCEEDED, &message);
    }
}

fn operation_failed(pass: &mut Pass<GitRepository>, message: &str) -> Failure {
    failed(pass, types::FETCH_FAILED, Failure::retry(reasons::source::GIT_OPERATION_FAILED, message))
}

/// Trouble with the disk, or with what is written to it.
fn archive_failed(pass: &mut Pass<GitRepository>, error: &ArchiveError) -> Failure {
    let message = format!("unable to archive artifact to storage: {error}");
    let failure = Failure::retry(reasons::source::ARCHIVE_OPERATION_FAILED, message);
    failed(pass, types::STORAGE_OPERATION_FAILED, failure)
}

fn included(object: &GitRepository) -> &[Artifact] {
    object.status.as_ref().and_then(|s| s.included_artifacts.as_deref()).unwrap_or_default()
}

/// The Secrets an object uses. Included repositories are looked at when the object itself is, as in Flux; only one that is
/// waited for wakes it.
fn edges(object: &GitRepository) -> Vec<Edge> {
    let spec = &object.spec;
    let verify = spec.verify.as_ref().map(|v| &v.secret_ref);
    secrets::edges(object.namespace(), [spec.secret_ref.as_ref(), spec.proxy_secret_ref.as_ref(), verify])
}

/// What the spec asks for.
fn reference(object: &GitRepository) -> Reference {
    let reference = object.spec.r#ref.clone().unwrap_or_default();
    Reference::from_fields(
        reference.branch.as_deref(),
        reference.tag.as_deref(),
        reference.semver.as_deref(),
        reference.name.as_deref(),
        reference.commit.as_deref(),
    )
}

/// As Flux writes them down: a path that is empty is none.
fn without_empty_paths(mut includes: Vec<GitRepositoryInclude>) -> Vec<GitRepositoryInclude> {
    for include in &mut includes {
        include.from_path = include.from_path.take().filter(|p| !p.is_empty());
        include.to_path = include.to_path.take().filter(|p| !p.is_empty());
    }
    includes
}

/// The branches that the clone of a named reference has.
fn branches(object: &GitRepository) -> Branches {
    let branch = object.spec.r#ref.as_ref().and_then(|r| r.branch.clone());
    branch.filter(|b| !b.is_empty()).map_or(Branches::All, Branches::One)
}

/// The mode without its old spelling.
pub(crate) fn verification_mode(mode: GitVerificationMode) -> &'static str {
    match mode {
        GitVerificationMode::Head | GitVerificationMode::HeadUpper => "HEAD",
        GitVerificationMode::Tag => "Tag",
        GitVerificationMode::TagAndHEAD => "TagAndHEAD",
    }
}

/// Whether what decides the content, beside the commit, is other than last time.
fn content_changed(object: &GitRepository, includes: &[Artifact]) -> bool {
    let spec = &object.spec;
    let status = object.status.clone().unwrap_or_default();
    let list = |l: &Option<Vec<String>>| l.clone().unwrap_or_default();
    let spec_include = spec.include.as_deref().unwrap_or_default();
    let observed_include = status.observed_include.as_deref().unwrap_or_default();
    let included = status.included_artifacts.as_deref().unwrap_or_default();
    if spec.ignore != status.observed_ignore
        || spec.recurse_submodules.unwrap_or_default()
            != status.observed_recurse_submodules.unwrap_or_default()
        || list(&spec.sparse_checkout) != list(&status.observed_sparse_checkout)
        || needs_verification(object)
    {
        return true;
    }
    if [observed_include.len(), includes.len(), included.len()].iter().any(|n| *n != spec_include.len()) {
        return true;
    }
    let plain = |text: &Option<String>| text.clone().unwrap_or_default();
    let same_include = spec_include.iter().zip(observed_include).all(|(a, b)| {
        a.repository == b.repository
            && plain(&a.from_path) == plain(&b.from_path)
            && plain(&a.to_path) == plain(&b.to_path)
    });
    let same_artifact = included
        .iter()
        .zip(includes)
        .all(|(old, new)| has_revision(Some(old), &new.revision) && old.digest == new.digest);
    !same_include || !same_artifact
}

/// Whether something is to be verified that was not before.
fn needs_verification(object: &GitRepository) -> bool {
    let Some(verify) = &object.spec.verify else { return false };
    let wanted = verification_mode(verify.mode);
    match object.status.as_ref().and_then(|s| s.source_verification_mode.as_deref()) {
        None => true,
        Some("Tag") => wanted != "Tag",
        Some("HEAD") => wanted != "HEAD",
        Some(_) => false,
    }
}

impl Reconciler for GitRepositories {
    type Object = GitRepository;

    fn names(&self) -> Names {
        Names {
            controller: "gitrepository",
            component: "source-controller",
            field_manager: "source-controller",
        }
    }

    fn owned_conditions(&self) -> &'static [&'static str] {
        conclude::CONDITIONS
    }

    fn edges(&self, object: &GitRepository) -> Vec<Edge> {
        edges(object)
    }

    async fn reconcile(&self, pass: &mut Pass<GitRepository>) -> Outcome {
        let result = self.run(pass).await;
        conclude::conclude(pass, &result.into())
    }

    async fn delete(&self, pass: &mut Pass<GitRepository>) -> Result<(), Outcome> {
        storage::remove(pass, &self.store).await
    }

    fn finish(&self, pass: &mut Pass<GitRepository>, end: End, _outcome: &mut Outcome) {
        conclude::finish(pass, end);
    }
}
