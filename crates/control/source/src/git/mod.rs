//! GitRepository: a commit becomes an artifact.

mod auth;
mod client;
mod include;
mod verify;

use std::sync::Arc;
use std::time::Duration;

use fl_api::condition::{reasons, types};
use fl_api::meta::artifact::Artifact;
use fl_api::source::GitRepository;
use fl_api::source::git_repository::{GitRepositoryInclude, GitVerificationMode};
use fl_artifact_store::Store;
use fl_git_client::{Branches, FetchOptions, Reference};
use fl_http::{Lease, Owner};
use fl_runtime::{Conditions, Context, Edge, ReconcileError, Reconciled, Source};

pub use client::{FetchedCommit, GitClient, GitError, GitRemote, GitRequest, NetworkGit, ResolvedCommit};

use crate::conditions;
use crate::driver::{Change, Fetched, Fetcher, SourceReconciler, SourceResult, Storage};
use crate::secrets;
use crate::storage::{self, blocking, has_revision};
use crate::tree::{Tree, write_archive};

/// The controller of GitRepositories.
pub type GitRepositories = SourceReconciler<GitFetcher>;

impl GitRepositories {
    pub fn new(store: Store, git: Arc<dyn GitClient>) -> Self {
        Self::with_fetcher(store, GitFetcher { git, tokens: auth::TokenCache::default() })
    }
}

/// Fetches commits.
pub struct GitFetcher {
    git: Arc<dyn GitClient>,
    tokens: auth::TokenCache,
}

impl std::fmt::Debug for GitFetcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GitFetcher").finish_non_exhaustive()
    }
}

/// A commit that was fetched and verified.
pub struct CommitContent {
    revision: String,
    commit: String,
    /// How events name the commit.
    title: String,
    tree: Box<dyn Tree>,
    includes: Vec<Artifact>,
    /// For the artifacts of included repositories.
    lease: Lease,
}

impl std::fmt::Debug for CommitContent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CommitContent").finish_non_exhaustive()
    }
}

fn result(revision: &str, title: &str, change: Change) -> SourceResult {
    SourceResult {
        revision: revision.to_owned(),
        condition: (reasons::SUCCEEDED, format!("stored artifact for revision '{revision}'")),
        event: format!("stored artifact for commit '{title}'"),
        event_reason: None,
        change,
    }
}

impl Fetcher for GitFetcher {
    type Object = GitRepository;
    type Content = CommitContent;

    const CONTROLLER: &'static str = "gitrepository";

    fn edges(&self, object: &GitRepository) -> Vec<Edge> {
        edges(object)
    }

    fn timeout(&self, object: &GitRepository) -> Duration {
        object.spec.timeout.to_std().unwrap_or_default()
    }

    async fn fetch(
        &self,
        cx: &mut Context<GitRepository>,
        _storage: &Storage<'_>,
        lease: &Lease,
    ) -> Result<Fetched<CommitContent>, ReconcileError> {
        conditions::reset_verification(cx);
        let (auth, proxy) =
            auth::read(cx, &self.tokens).await.map_err(|error| error.on(types::FETCH_FAILED))?;
        let includes = include::look_up(cx).await?;
        if include::differ(&includes, included(&cx.object)) {
            let message = "included artifacts differ from last observed includes";
            if !included(&cx.object).is_empty() {
                cx.object.mark_true(types::ARTIFACT_OUTDATED, reasons::source::INCLUDE_CHANGE, message);
            }
            cx.object.mark_progressing(true, &format!("building artifact: {message}"));
            cx.progress();
        }
        cx.object.remove_condition(types::ARTIFACT_OUTDATED);

        let reference = reference(&cx.object);
        let request = GitRequest {
            owner: Owner::namespace(cx.object.namespace()),
            url: cx.object.spec.url.clone(),
            auth,
            proxy,
            timeout: self.timeout(&cx.object),
            reference: reference.clone(),
            lease: lease.clone(),
        };
        // Only what is in storage can be unchanged.
        let stored = cx.object.is_true(types::ARTIFACT_IN_STORAGE) && cx.object.artifact().is_some();
        let mut remote = self
            .git
            .open(&request)
            .map_err(|error| operation_failed(format!("failed to create Git client: {error}")))?;
        let Some(found) = remote.resolve(stored).await.map_err(checkout_failed)? else {
            let error =
                ReconcileError::backoff(reasons::source::EMPTY_GIT_REPOSITORY, "git repository is empty");
            return Err(error.on(types::FETCH_FAILED));
        };
        let same = stored && has_revision(cx.object.artifact(), &found.revision);
        let changed = content_changed(&cx.object, &includes);
        if same && !changed && reference.is_settled_by_listing() {
            return Ok(Fetched::Current(unchanged(cx, &found.revision)));
        }
        // Flux clones such references each time; here only what it would report needs the clone.
        if same && !changed && cx.object.spec.verify.is_none() && !conditions::failing(cx.original.as_ref()) {
            cx.object.remove_condition(types::FETCH_FAILED);
            cx.object.status.get_or_insert_default().source_verification_mode = None;
            cx.object.remove_condition(types::SOURCE_VERIFIED);
            return Ok(Fetched::Current(result(&found.revision, &found.revision, Change::UpToDate)));
        }
        let options = FetchOptions {
            recurse_submodules: cx.object.spec.recurse_submodules.unwrap_or_default(),
            sparse: cx.object.spec.sparse_checkout.clone().unwrap_or_default(),
            only_on: matches!(reference, Reference::Name(_)).then(|| branches(&cx.object)),
        };
        let fetched = remote.fetch(&options).await.map_err(checkout_failed)?;
        cx.log.with([("revision", found.revision.clone().into())]).debug("git repository checked out");
        cx.object.remove_condition(types::FETCH_FAILED);
        check_sparse_paths(&cx.object, &options.sparse, fetched.tree.as_ref())?;
        verify::check(cx, &fetched.commit).await?;
        if !has_revision(cx.object.artifact(), &found.revision) {
            let message = format!("new upstream revision '{}'", found.revision);
            conditions::mark_outdated(cx, reasons::source::NEW_REVISION, &message);
        }
        Ok(Fetched::New(CommitContent {
            revision: found.revision,
            commit: found.commit,
            title: fetched.commit.short_message(),
            tree: fetched.tree,
            includes,
            lease: lease.clone(),
        }))
    }

    /// Copies the included artifacts in and archives the result.
    async fn store(
        &self,
        cx: &mut Context<GitRepository>,
        storage: &Storage<'_>,
        content: CommitContent,
    ) -> Result<SourceResult, ReconcileError> {
        let CommitContent { revision, commit, title, tree, includes, lease } = content;
        let overlay = include::copy_in(cx, storage.store, tree, &includes, &lease).await?;
        cx.object.remove_condition(types::INCLUDE_UNAVAILABLE);
        if has_revision(cx.object.artifact(), &revision)
            && !include::differ(&includes, included(&cx.object))
            && !content_changed(&cx.object, &includes)
        {
            return Ok(result(&revision, &title, Change::UpToDate));
        }
        let (store, at, ignore) =
            (storage.store.clone(), storage.location.clone(), cx.object.spec.ignore.clone());
        let published = blocking(move || {
            let mut overlay = overlay;
            store.publish_tree(&at, &format!("{commit}.tar.gz"), |tar| {
                write_archive(&mut overlay, ignore.as_deref(), tar)
            })
        })
        .await?;
        let published = published.map_err(|error| {
            storage::archive_failed(format!("unable to archive artifact to storage: {error}"))
        })?;
        let spec = cx.object.spec.clone();
        let filled = |list: Option<Vec<_>>| list.filter(|l: &Vec<_>| !l.is_empty());
        let status = cx.object.status.get_or_insert_default();
        status.artifact = Some(storage::artifact(published, &revision));
        status.included_artifacts = Some(includes).filter(|i| !i.is_empty());
        status.observed_ignore = spec.ignore;
        status.observed_recurse_submodules = spec.recurse_submodules.filter(|r| *r);
        status.observed_include = spec.include.map(without_empty_paths).filter(|i| !i.is_empty());
        status.observed_sparse_checkout = filled(spec.sparse_checkout);
        Ok(result(&revision, &title, Change::Stored))
    }
}

/// The listing of references names the revision of the artifact; nothing is fetched.
fn unchanged(cx: &mut Context<GitRepository>, revision: &str) -> SourceResult {
    cx.object.remove_condition(types::FETCH_FAILED);
    let change = Change::Unchanged {
        reason: reasons::source::GIT_OPERATION_SUCCEEDED,
        message: format!("no changes since last reconciliation: observed revision '{revision}'"),
    };
    result(revision, revision, change)
}

fn operation_failed(message: String) -> ReconcileError {
    ReconcileError::backoff(reasons::source::GIT_OPERATION_FAILED, message).on(types::FETCH_FAILED)
}

fn checkout_failed(error: GitError) -> ReconcileError {
    operation_failed(format!("failed to checkout and determine revision: {error}"))
}

/// Paths of `spec.sparseCheckout` must exist.
fn check_sparse_paths(
    object: &GitRepository,
    paths: &[String],
    tree: &dyn Tree,
) -> Result<(), ReconcileError> {
    let Some(path) = paths.iter().find(|path| !tree.has(&crate::tree::confined(path))) else {
        return Ok(());
    };
    // Flux's message names the path in its checkout, of which there is none here.
    let name = format!("gitrepository-{}-{}", object.namespace(), object.name());
    let place = std::env::temp_dir().join(name).join(crate::tree::confined(path));
    Err(operation_failed(format!(
        "failed to sparse checkout directories : sparse checkout dir '{path}' does not exist in repository: \
         lstat {}: no such file or directory",
        place.display()
    )))
}

fn included(object: &GitRepository) -> &[Artifact] {
    object.status.as_ref().and_then(|s| s.included_artifacts.as_deref()).unwrap_or_default()
}

/// The Secrets an object uses. As in Flux, a change of an included repository does not trigger a reconcile; only one that
/// the object waits for does.
fn edges(object: &GitRepository) -> Vec<Edge> {
    let spec = &object.spec;
    let verify = spec.verify.as_ref().map(|v| &v.secret_ref);
    secrets::edges(object.namespace(), [spec.secret_ref.as_ref(), spec.proxy_secret_ref.as_ref(), verify])
}

/// The reference of the spec.
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

/// As Flux records them: without empty paths.
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

/// The mode; `head` is the old spelling of `HEAD`.
pub(crate) fn verification_mode(mode: GitVerificationMode) -> &'static str {
    match mode {
        GitVerificationMode::Head | GitVerificationMode::HeadUpper => "HEAD",
        GitVerificationMode::Tag => "Tag",
        GitVerificationMode::TagAndHEAD => "TagAndHEAD",
    }
}

/// Whether something besides the commit that decides the content has changed.
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

/// Whether the spec requires a verification that was not made yet.
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
