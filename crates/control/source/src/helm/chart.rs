//! HelmChart: a chart of a repository or a source tree becomes an artifact.

use std::time::Duration;

use fl_api::condition::{reasons, types};
use fl_api::meta::artifact::Artifact;
use fl_api::source::helm_chart::ReconcileStrategy;
use fl_api::source::{HelmChart, HelmRepository};
use fl_archive::ReadLimits;
use fl_artifact_store::Store;
use fl_http::{HeldBytes, Lease};
use fl_runtime::{
    ArtifactFetcher, Conditions, Context, Edge, EventKind, ReconcileError, Reconciled, Resolver, Source,
};
use fl_types::{ObjectReference, Revision};

use super::HelmLimits;
use super::auth::{self, is_oci};
use super::build::{Build, BuildError, BuildOptions, Reason};
use super::chart_source::{self, ChartSource};
use super::charts::{Charts, HttpCharts};
use super::dependencies::Dependencies;
use super::local::{self, LocalChart, SourceTree};
use super::oci::OciCharts;
use super::{remote, verify};
use crate::conditions;
use crate::driver::{Change, Fetched, Fetcher, SourceReconciler, SourceResult, Storage};
use crate::storage::{self, blocking, has_revision};
use crate::tree::TarTree;

/// How long a fetch waits for room in the budget; a HelmChart has no timeout of its own.
const BUDGET_TIMEOUT: Duration = Duration::from_secs(60);

/// The controller of HelmCharts.
pub type HelmCharts = SourceReconciler<ChartFetcher>;

impl HelmCharts {
    pub fn new(store: Store, resolver: Resolver, artifacts: ArtifactFetcher, limits: HelmLimits) -> Self {
        Self::with_fetcher(store, ChartFetcher { resolver, artifacts, limits })
    }
}

/// Fetches and builds charts.
#[derive(Debug)]
pub struct ChartFetcher {
    resolver: Resolver,
    /// Reads the artifacts of sources, of this process and of others.
    artifacts: ArtifactFetcher,
    limits: HelmLimits,
}

/// A chart that was built.
#[derive(Debug)]
pub struct ChartContent {
    build: Build,
    archive: Vec<u8>,
    /// Counts the archive.
    _held: HeldBytes,
}

fn result(build: &Build, change: Change) -> SourceResult {
    SourceResult {
        revision: build.version.clone(),
        condition: (build.reason(), build.summary()),
        event: build.summary(),
        event_reason: Some(build.reason()),
        change,
    }
}

impl Fetcher for ChartFetcher {
    type Object = HelmChart;
    type Content = ChartContent;

    const CONTROLLER: &'static str = "helmchart";
    const LINK: Option<&'static str> = Some(storage::LATEST);

    fn edges(&self, object: &HelmChart) -> Vec<Edge> {
        let reference = &object.spec.source_ref;
        let source = ObjectReference {
            api_version: reference.api_version.clone(),
            kind: reference.kind.clone(),
            name: reference.name.clone(),
            namespace: None,
        };
        vec![Resolver::edge(&source, object.namespace())]
    }

    fn timeout(&self, _object: &HelmChart) -> Duration {
        BUDGET_TIMEOUT
    }

    fn status_url<'a>(&self, object: &'a mut HelmChart) -> Option<&'a mut Option<String>> {
        Some(&mut object.status.get_or_insert_default().url)
    }

    async fn fetch(
        &self,
        cx: &mut Context<HelmChart>,
        storage: &Storage<'_>,
        lease: &Lease,
    ) -> Result<Fetched<ChartContent>, ReconcileError> {
        conditions::reset_verification(cx);
        let mut held = lease.hold();
        let built = match chart_source::find(cx, storage.store, &self.resolver).await? {
            ChartSource::Repository(repository) => {
                self.build_from_repository(cx, &repository, storage.store, lease, &mut held).await
            }
            ChartSource::Tree(artifact) => {
                self.build_from_tree(cx, artifact, storage.store, lease, &mut held).await
            }
        };
        let mut build = built.map_err(|error| report_failure(cx, &error))?;
        report_build(cx, &build);
        Ok(match build.archive.take() {
            None => Fetched::Current(result(&build, Change::UpToDate)),
            Some(archive) => Fetched::New(ChartContent { build, archive, _held: held }),
        })
    }

    async fn store(
        &self,
        cx: &mut Context<HelmChart>,
        storage: &Storage<'_>,
        content: ChartContent,
    ) -> Result<SourceResult, ReconcileError> {
        let ChartContent { build, archive, _held } = content;
        let name = format!("{}-{}.tgz", build.name.replace('/', "-"), build.version);
        let (store, at, file) = (storage.store.clone(), storage.location.clone(), name.clone());
        let published = blocking(move || {
            store.publish(&at, &file, |out| {
                std::io::Write::write_all(out, &archive).map_err(|source| fl_artifact_store::Error::Io {
                    action: "write",
                    path: file.clone().into(),
                    source,
                })
            })
        })
        .await?;
        let published = published.map_err(|error| {
            let problem = storage::chain(&error);
            storage::archive_failed(format!("unable to copy Helm chart to storage: {problem}"))
        })?;
        let ignoring = cx.object.spec.ignore_missing_values_files.unwrap_or_default();
        let status = cx.object.status.get_or_insert_default();
        status.artifact = Some(storage::artifact(published, &build.version));
        status.observed_chart_name = Some(build.name.clone());
        status.observed_values_files = ignoring.then(|| build.values_files.clone()).filter(|f| !f.is_empty());
        storage.link(self, cx, name).await?;
        Ok(result(&build, Change::Stored))
    }
}

impl ChartFetcher {
    async fn build_from_repository(
        &self,
        cx: &mut Context<HelmChart>,
        repository: &HelmRepository,
        store: &Store,
        lease: &Lease,
        held: &mut HeldBytes,
    ) -> Result<Build, BuildError> {
        let access = auth::read(cx.cluster(), repository)
            .await
            .map_err(|e| BuildError::before(reasons::source::AUTHENTICATION_FAILED, e.to_string()))?;
        let unusable = |problem: String| {
            BuildError::before_final(reasons::FAILED, format!("failed to construct Helm client: {problem}"))
        };
        let charts = if is_oci(repository) {
            if !access.url.starts_with("oci://") {
                return Err(unusable(format!("invalid OCI registry URL: {}", access.url)));
            }
            if repository.spec.provider != fl_api::meta::provider::CloudProvider::Generic
                && repository.spec.secret_ref.is_none()
            {
                let provider = serde_json::to_value(repository.spec.provider).unwrap_or_default();
                let problem = format!(
                    "failed to get credential from '{}': cloud identities are not part of this build; use secretRef",
                    provider.as_str().unwrap_or_default()
                );
                return Err(BuildError::before(reasons::source::AUTHENTICATION_FAILED, problem));
            }
            let charts = OciCharts::new(&access, self.limits)
                .map_err(|e| BuildError::before(reasons::source::AUTHENTICATION_FAILED, e.to_string()))?;
            Charts::Oci(charts)
        } else {
            let index = repository.artifact().and_then(|a| store.file(&a.path).ok());
            Charts::Http(HttpCharts { access, index, limits: self.limits, lease: lease.clone() })
        };
        let mut options = self.options(cx, store).await;
        if !options.merged_files().is_empty() {
            options.version_metadata = cx.object.generation().to_string();
        }
        let spec = cx.object.spec.clone();
        let verification = verify::prepare(cx, &charts).await?;
        remote::build(&charts, &spec.chart, &spec.version, &options, self.limits, &verification, held)
            .await
            .map_err(as_authentication_error)
    }

    async fn build_from_tree(
        &self,
        cx: &mut Context<HelmChart>,
        artifact: Artifact,
        store: &Store,
        lease: &Lease,
        held: &mut HeldBytes,
    ) -> Result<Build, BuildError> {
        let unreadable = |e: String| {
            let message = format!("failed to open source artifact: {e}");
            BuildError::before(reasons::source::READ_OPERATION_FAILED, message)
        };
        // The source is in the namespace of the chart.
        let owner = fl_http::Owner::namespace(cx.object.namespace());
        let opened = self.artifacts.open(&artifact, &owner).await.map_err(|e| unreadable(e.to_string()))?;
        let name = format!("helmchart-{}-{}", cx.object.namespace(), cx.object.name());
        let shown = format!("{}/source", std::env::temp_dir().join(name).display());
        let unpack_lease = lease.clone();
        let unpacked = blocking(move || -> Result<SourceTree, BuildError> {
            let tree = TarTree::unpack(opened.into_file(), false, &ReadLimits::default(), &unpack_lease)
                .map_err(|e| BuildError::before(reasons::FAILED, format!("artifact untar error: {e}")))?;
            Ok(SourceTree::new(tree, shown))
        });
        let source = unpacked.await.map_err(|f| BuildError::before(reasons::FAILED, f.message))??;
        let mut options = self.options(cx, store).await;
        if cx.object.spec.reconcile_strategy == ReconcileStrategy::Revision {
            options.version_metadata = revision_metadata(&artifact.revision);
        }
        if !options.merged_files().is_empty() {
            if !options.version_metadata.is_empty() {
                options.version_metadata.push('.');
            }
            options.version_metadata.push_str(&cx.object.generation().to_string());
        }
        let (path, limits) = (cx.object.spec.chart.clone(), self.limits);
        let stopped = |f: ReconcileError| BuildError::new(Reason::Package, f.message);
        let (loaded, source) = blocking(move || (local::load(&source, &path, &options, limits), source))
            .await
            .map_err(stopped)?;
        let mut loaded = match loaded? {
            LocalChart::Complete(build) => return Ok(build),
            LocalChart::Loaded(loaded) => loaded,
        };
        let mut resolved = 0;
        if let Some(directory) = loaded.directory.clone() {
            let namespace = cx.object.namespace().to_owned();
            let dependencies = Dependencies {
                cluster: cx.cluster(),
                store,
                namespace: &namespace,
                source: &source,
                limits: self.limits,
                lease,
            };
            resolved = dependencies.complete(&mut loaded.chart, &directory, held).await?;
        }
        blocking(move || local::package(*loaded, resolved)).await.map_err(stopped)?
    }

    /// The options of the spec, and the chart that is in storage.
    async fn options(&self, cx: &Context<HelmChart>, store: &Store) -> BuildOptions {
        let spec = &cx.object.spec;
        let mut values_files = spec.values_files.clone().unwrap_or_default();
        if let Some(old) = spec.values_file.as_ref().filter(|f| !f.is_empty() && values_files.is_empty()) {
            values_files.push(old.clone());
        }
        let observed = cx.object.generation() == cx.object.observed_generation().unwrap_or_default();
        let cached = match cx.object.artifact() {
            Some(artifact) if observed => self.stored_chart(store, artifact).await,
            _ => None,
        };
        let status = cx.object.status.as_ref();
        BuildOptions {
            values_files,
            ignore_missing: spec.ignore_missing_values_files.unwrap_or_default(),
            version_metadata: String::new(),
            cached,
            cached_values_files: status.and_then(|s| s.observed_values_files.clone()),
        }
    }

    /// Name and version of the chart in storage.
    async fn stored_chart(&self, store: &Store, artifact: &Artifact) -> Option<(String, String)> {
        let (store, path, limits) = (store.clone(), artifact.path.clone(), self.limits);
        let read = move || {
            let data = std::fs::read(store.file(&path).ok()?).ok()?;
            let mut metadata = fl_helm::archive_metadata(&data, remote::archive_limits(limits)).ok()?;
            metadata.validate().ok()?;
            Some((metadata.name, metadata.version))
        };
        blocking(read).await.ok().flatten()
    }
}

/// The first twelve digits of a commit or a digest, so that the version fits a label.
fn revision_metadata(revision: &str) -> String {
    let parsed = revision.parse::<Revision>().ok();
    let digest = parsed.as_ref().and_then(|r| r.digest()).map(|d| d.encoded().to_owned());
    digest.unwrap_or_else(|| revision.to_owned()).chars().take(12).collect()
}

/// Recognises an authentication error by its text, as Flux does.
fn as_authentication_error(error: BuildError) -> BuildError {
    let message = error.message();
    let words = ["401", "unauthorized", "authentication required", "tls", "unknown certificate authority"];
    if words.iter().any(|w| message.contains(w)) {
        let message = format!("failed to authenticate with the Helm repository: {message}");
        return BuildError::before(reasons::source::AUTHENTICATION_FAILED, message);
    }
    error
}

/// Sets the conditions of a failed build.
fn report_failure(cx: &mut Context<HelmChart>, error: &BuildError) -> ReconcileError {
    if cx.object.spec.verify.is_none() {
        cx.object.remove_condition(types::SOURCE_VERIFIED);
    }
    match error {
        BuildError::Before { reason, message, is_final } => {
            cx.object.remove_condition(types::BUILD_FAILED);
            cx.object.mark_true(types::FETCH_FAILED, "Unknown", &format!("unknown build error: {message}"));
            if *is_final {
                ReconcileError::stalled(reason, message)
            } else {
                ReconcileError::backoff(reason, message)
            }
        }
        BuildError::Failed { reason, .. } => {
            let message = error.message();
            if *reason == Reason::Verification {
                cx.object.mark_false(types::SOURCE_VERIFIED, reasons::source::VERIFICATION_ERROR, &message);
            }
            let (condition, other) = if reason.is_fetching() {
                (types::FETCH_FAILED, types::BUILD_FAILED)
            } else {
                (types::BUILD_FAILED, types::FETCH_FAILED)
            };
            cx.object.remove_condition(other);
            let error = if reason.is_final() {
                ReconcileError::stalled(reason.name(), message)
            } else {
                ReconcileError::backoff(reason.name(), message)
            };
            error.on(condition)
        }
    }
}

/// Sets the conditions of a successful build.
fn report_build(cx: &mut Context<HelmChart>, build: &Build) {
    let known = cx.object.status.as_ref().and_then(|s| s.observed_chart_name.clone());
    if known.as_deref() != Some(build.name.as_str()) || !has_revision(cx.object.artifact(), &build.version) {
        conditions::mark_outdated(cx, reasons::source::NEW_CHART, &build.summary());
    }
    cx.object.remove_condition(types::FETCH_FAILED);
    cx.object.remove_condition(types::BUILD_FAILED);
    if build.verified {
        let message = format!("verified signature of version {}", build.version);
        cx.object.mark_true(types::SOURCE_VERIFIED, reasons::SUCCEEDED, &message);
    }
    if cx.object.spec.verify.is_none() {
        cx.object.remove_condition(types::SOURCE_VERIFIED);
    }
    if build.resolved_dependencies > 0 {
        let message = format!("resolved {} chart dependencies", build.resolved_dependencies);
        cx.event(EventKind::Trace, "ResolvedDependencies", &message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revision_metadata_has_twelve_digits() {
        let commit = "8b9f98084bef9cff99a8bcda3426ba8231a3e68d";
        assert_eq!(revision_metadata(&format!("main@sha1:{commit}")), "8b9f98084bef");
        assert_eq!(revision_metadata(&format!("sha256:{}", "ab".repeat(32))), "abababababab");
    }

    #[test]
    fn authentication_errors_are_recognised_by_text() {
        let refused =
            as_authentication_error(BuildError::new(Reason::Pull, "failed to fetch x : 401 Unauthorized"));
        assert!(
            refused
                .message()
                .starts_with("failed to authenticate with the Helm repository: chart pull error: ")
        );
        let other =
            as_authentication_error(BuildError::new(Reason::Pull, "failed to fetch x : 404 Not Found"));
        assert_eq!(other.message(), "chart pull error: failed to fetch x : 404 Not Found");
    }
}
