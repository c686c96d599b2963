//! HelmChart: a chart of a repository or a source tree becomes an artifact.

use fl_api::condition::{reasons, types};
use fl_api::meta::artifact::Artifact;
use fl_api::source::helm_chart::ReconcileStrategy;
use fl_api::source::{Bucket, GitRepository, HelmChart, HelmRepository};
use fl_archive::ReadLimits;
use fl_runtime::{
    ArtifactFetcher, ClientError, Conditions, Edge, End, EventKind, Failure, Kind, Names, Outcome, Pass,
    Reconciled, Reconciler, Resolver, Source, WatchSpec,
};
use fl_store::Store;
use fl_types::{ObjectReference, Revision};

use super::HelmLimits;
use super::access::{self, is_oci};
use super::build::{Build, BuildError, BuildOptions, Reason};
use super::dependencies::Dependencies;
use super::local::{self, Local, SourceTree};
use super::oci::OciCharts;
use super::remote::{self, Charts, HttpCharts};
use super::verify;
use crate::conclude::{self, Verdict, failed, recovered};
use crate::storage::{self, blocking, has_revision};
use crate::tree::TarTree;

/// The controller of HelmCharts.
#[derive(Debug)]
pub struct HelmCharts {
    store: Store,
    resolver: Resolver,
    /// Reads the artifacts of sources, of this process and of others.
    artifacts: ArtifactFetcher,
    limits: HelmLimits,
}

/// Where a chart comes from.
enum ChartSource {
    Repository(Box<HelmRepository>),
    /// A tree of files.
    Tree(Artifact),
}

impl HelmCharts {
    pub fn new(store: Store, resolver: Resolver, artifacts: ArtifactFetcher, limits: HelmLimits) -> Self {
        Self { store, resolver, artifacts, limits }
    }

    async fn run(&self, pass: &mut Pass<HelmChart>) -> Result<(), Failure> {
        conclude::begin(pass);
        storage::check(pass, &self.store).await?;
        self.refresh_link(pass);
        if pass.object.is_false(types::SOURCE_VERIFIED) {
            pass.object.remove_condition(types::SOURCE_VERIFIED);
        }
        let source = self.source(pass).await?;
        let built = match source {
            ChartSource::Repository(repository) => self.build_from_repository(pass, &repository).await,
            ChartSource::Tree(artifact) => self.build_from_tree(pass, artifact).await,
        };
        let build = match built {
            Ok(build) => build,
            Err(error) => return Err(observe_failure(pass, &error)),
        };
        observe_build(pass, &build);
        let summary = build.summary();
        let reason = build.reason();
        self.store_chart(pass, build).await?;
        announce(pass, reason, &summary);
        Ok(())
    }

    fn refresh_link(&self, pass: &mut Pass<HelmChart>) {
        let path = pass.object.artifact().map(|a| a.path.clone());
        let status = pass.object.status.get_or_insert_default();
        status.url = match (path, &status.url) {
            (Some(path), Some(_)) => {
                let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
                Some(self.store.url(&format!("{folder}/latest.tar.gz")))
            }
            _ => None,
        };
    }

    /// Finds the source and notes its revision.
    async fn source(&self, pass: &mut Pass<HelmChart>) -> Result<ChartSource, Failure> {
        let reference = pass.object.spec.source_ref.clone();
        let namespace = pass.object.namespace().to_owned();
        let own = reference
            .api_version
            .as_deref()
            .is_none_or(|v| v.is_empty() || v.starts_with("source.toolkit.fluxcd.io/"));
        let found = match reference.kind.as_str() {
            "HelmRepository" if own => {
                let found = source_object::<HelmRepository>(pass, &namespace, &reference.name).await;
                found.map(|repository| {
                    let artifact = repository.artifact().cloned();
                    (artifact, Some(repository))
                })
            }
            "GitRepository" if own => {
                let found = source_object::<GitRepository>(pass, &namespace, &reference.name).await;
                found.map(|source| (source.artifact().cloned(), None))
            }
            "Bucket" if own => {
                let found = source_object::<Bucket>(pass, &namespace, &reference.name).await;
                found.map(|source| (source.artifact().cloned(), None))
            }
            _ => return self.foreign_source(pass).await,
        };
        let (artifact, repository) = match found {
            Ok(found) => found,
            Err(error) => {
                let failure = Failure::retry("SourceUnavailable", format!("failed to get source: {error}"));
                return Err(failed(pass, types::FETCH_FAILED, failure));
            }
        };
        let in_store = match &artifact {
            Some(artifact) => self.is_stored(artifact).await,
            None => false,
        };
        let needs_none = repository.as_ref().is_some_and(is_oci);
        if !in_store && !needs_none {
            return Err(no_artifact(pass));
        }
        if let Some(artifact) = &artifact {
            let status = pass.object.status.get_or_insert_default();
            status.observed_source_artifact_revision = Some(artifact.revision.clone());
        }
        Ok(match (repository, artifact) {
            (Some(repository), _) => ChartSource::Repository(Box::new(repository)),
            (None, Some(artifact)) => ChartSource::Tree(artifact),
            (None, None) => return Err(no_artifact(pass)),
        })
    }

    /// A kind that is not ours, or an ExternalArtifact: found through the artifact it published.
    async fn foreign_source(&self, pass: &mut Pass<HelmChart>) -> Result<ChartSource, Failure> {
        let reference = pass.object.spec.source_ref.clone();
        let unsupported = reference.api_version.as_deref().is_none_or(str::is_empty)
            && reference.kind != "ExternalArtifact";
        if unsupported {
            let message = format!(
                "failed to get source: unsupported source kind '{}', must be one of: [HelmRepository GitRepository Bucket]",
                reference.kind
            );
            failed(pass, types::FETCH_FAILED, Failure::retry("SourceUnavailable", message.clone()));
            return Err(Failure::stall("UnsupportedSourceKind", message));
        }
        let object = ObjectReference {
            api_version: reference.api_version.clone(),
            kind: reference.kind.clone(),
            name: reference.name.clone(),
            namespace: None,
        };
        let namespace = pass.object.namespace().to_owned();
        match self.resolver.resolve(&object, &namespace).await {
            Ok(found) => match found.artifact {
                Some(artifact) => {
                    let status = pass.object.status.get_or_insert_default();
                    status.observed_source_artifact_revision = Some(artifact.revision.clone());
                    Ok(ChartSource::Tree(artifact))
                }
                None => Err(no_artifact(pass)),
            },
            Err(error) => {
                let failure = Failure::retry("SourceUnavailable", format!("failed to get source: {error}"));
                Err(failed(pass, types::FETCH_FAILED, failure))
            }
        }
    }

    async fn is_stored(&self, artifact: &Artifact) -> bool {
        let (store, path) = (self.store.clone(), artifact.path.clone());
        let exists = move || store.file(&path).is_ok_and(|file| file.exists());
        blocking(exists).await.unwrap_or(false)
    }

    async fn build_from_repository(
        &self,
        pass: &mut Pass<HelmChart>,
        repository: &HelmRepository,
    ) -> Result<Build, BuildError> {
        let access = access::read(pass.cluster(), repository)
            .await
            .map_err(|problem| BuildError::before(reasons::source::AUTHENTICATION_FAILED, problem))?;
        let unusable = |problem: String| {
            BuildError::before_for_good(
                reasons::FAILED,
                format!("failed to construct Helm client: {problem}"),
            )
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
                .map_err(|e| BuildError::before(reasons::source::AUTHENTICATION_FAILED, e))?;
            Charts::Oci(charts)
        } else {
            let index = repository.artifact().and_then(|a| self.store.file(&a.path).ok());
            Charts::Http(HttpCharts { access, index, limits: self.limits })
        };
        let mut options = self.options(pass).await;
        if !options.merged_files().is_empty() {
            options.version_metadata = pass.object.generation().to_string();
        }
        let spec = pass.object.spec.clone();
        let verification = verify::prepare(pass, &charts).await?;
        let built = remote::build(&charts, &spec.chart, &spec.version, &options, self.limits, &verification);
        built.await.map_err(as_login_problem)
    }

    async fn build_from_tree(
        &self,
        pass: &mut Pass<HelmChart>,
        artifact: Artifact,
    ) -> Result<Build, BuildError> {
        let unreadable = |e: String| {
            let message = format!("failed to open source artifact: {e}");
            BuildError::before(reasons::source::READ_OPERATION_FAILED, message)
        };
        // The source of a chart is in the chart's own namespace.
        let owner = fl_http::Owner::namespace(pass.object.namespace());
        let kept = self.artifacts.open(&artifact, &owner).await.map_err(|e| unreadable(e.to_string()))?;
        let name = format!("helmchart-{}-{}", pass.object.namespace(), pass.object.name());
        let shown = format!("{}/source", std::env::temp_dir().join(name).display());
        let opened = blocking(move || -> Result<SourceTree, BuildError> {
            let tree = TarTree::unpack(kept.into_file(), false, &ReadLimits::default())
                .map_err(|e| BuildError::before(reasons::FAILED, format!("artifact untar error: {e}")))?;
            Ok(SourceTree::new(tree, shown))
        });
        let source = opened.await.map_err(|f| BuildError::before(reasons::FAILED, f.message))??;
        let mut options = self.options(pass).await;
        if pass.object.spec.reconcile_strategy == ReconcileStrategy::Revision {
            options.version_metadata = revision_metadata(&artifact.revision);
        }
        if !options.merged_files().is_empty() {
            if !options.version_metadata.is_empty() {
                options.version_metadata.push('.');
            }
            options.version_metadata.push_str(&pass.object.generation().to_string());
        }
        let (path, limits) = (pass.object.spec.chart.clone(), self.limits);
        let stopped = |f: Failure| BuildError::new(Reason::Package, f.message);
        let (prepared, source) = blocking(move || (local::prepare(&source, &path, &options, limits), source))
            .await
            .map_err(stopped)?;
        let mut prepared = match prepared? {
            Local::Done(build) => return Ok(build),
            Local::Prepared(prepared) => prepared,
        };
        let mut resolved = 0;
        if let Some(directory) = prepared.directory.clone() {
            let namespace = pass.object.namespace().to_owned();
            let dependencies = Dependencies {
                cluster: pass.cluster(),
                store: &self.store,
                namespace: &namespace,
                source: &source,
                limits: self.limits,
            };
            resolved = dependencies.complete(&mut prepared.chart, &directory).await?;
        }
        blocking(move || local::finish(*prepared, resolved)).await.map_err(stopped)?
    }

    /// What the spec says about the build, and what is in the store already.
    async fn options(&self, pass: &Pass<HelmChart>) -> BuildOptions {
        let spec = &pass.object.spec;
        let mut values_files = spec.values_files.clone().unwrap_or_default();
        if let Some(old) = spec.values_file.as_ref().filter(|f| !f.is_empty() && values_files.is_empty()) {
            values_files.push(old.clone());
        }
        let observed = pass.object.generation() == pass.object.observed_generation().unwrap_or_default();
        let cached = match pass.object.artifact() {
            Some(artifact) if observed => self.stored_chart(artifact).await,
            _ => None,
        };
        let status = pass.object.status.as_ref();
        BuildOptions {
            values_files,
            ignore_missing: spec.ignore_missing_values_files.unwrap_or_default(),
            version_metadata: String::new(),
            cached,
            cached_values_files: status.and_then(|s| s.observed_values_files.clone()),
        }
    }

    /// Name and version of the chart in the store.
    async fn stored_chart(&self, artifact: &Artifact) -> Option<(String, String)> {
        let (store, path, limits) = (self.store.clone(), artifact.path.clone(), self.limits);
        let read = move || {
            let data = std::fs::read(store.file(&path).ok()?).ok()?;
            let mut metadata = fl_helm::archive_metadata(&data, remote::archive_limits(limits)).ok()?;
            metadata.validate().ok()?;
            Some((metadata.name, metadata.version))
        };
        blocking(read).await.ok().flatten()
    }

    async fn store_chart(&self, pass: &mut Pass<HelmChart>, build: Build) -> Result<(), Failure> {
        let (summary, reason) = (build.summary(), build.reason());
        let stored = |pass: &mut Pass<HelmChart>| {
            let known = pass.object.status.as_ref().and_then(|s| s.observed_chart_name.as_deref())
                == Some(build.name.as_str());
            if known && has_revision(pass.object.artifact(), &build.version) {
                pass.object.remove_condition(types::ARTIFACT_OUTDATED);
                pass.object.mark_true(types::ARTIFACT_IN_STORAGE, reason, &summary);
            }
        };
        let Some(archive) = build.archive.clone() else {
            let message = format!("artifact up-to-date with remote revision: '{}'", build.version);
            pass.log.info(&message);
            pass.event(EventKind::Trace, "ArtifactUpToDate", &message);
            stored(pass);
            return Ok(());
        };
        let at = storage::location(&pass.object)?;
        let name = format!("{}-{}.tgz", build.name.replace('/', "-"), build.version);
        let disk = self.store.clone();
        let published = blocking(move || -> Result<_, fl_store::Error> {
            let published = disk.publish(&at, &name, |out| {
                std::io::Write::write_all(out, &archive).map_err(|source| fl_store::Error::Io {
                    action: "write",
                    path: name.clone().into(),
                    source,
                })
            })?;
            let link = disk.link(&at, &name, "latest.tar.gz").map_err(|e| storage::chain(&e));
            Ok((published, link))
        })
        .await?;
        let (published, link) = match published {
            Ok(done) => done,
            Err(error) => {
                let message = format!("unable to copy Helm chart to storage: {}", storage::chain(&error));
                let failure = Failure::retry(reasons::source::ARCHIVE_OPERATION_FAILED, message);
                return Err(failed(pass, types::STORAGE_OPERATION_FAILED, failure));
            }
        };
        let ignoring = pass.object.spec.ignore_missing_values_files.unwrap_or_default();
        let status = pass.object.status.get_or_insert_default();
        status.artifact = Some(storage::artifact(published, &build.version));
        status.observed_chart_name = Some(build.name.clone());
        status.observed_values_files = ignoring.then(|| build.values_files.clone()).filter(|f| !f.is_empty());
        match link {
            Ok(url) => status.url = Some(url),
            Err(error) => {
                let message = format!("failed to update status URL symlink: {error}");
                pass.event(EventKind::Trace, reasons::source::SYMLINK_UPDATE_FAILED, &message);
            }
        }
        pass.object.remove_condition(types::STORAGE_OPERATION_FAILED);
        stored(pass);
        Ok(())
    }
}

fn no_artifact(pass: &mut Pass<HelmChart>) -> Failure {
    let reference = &pass.object.spec.source_ref;
    let message = format!("no artifact available for {} source '{}'", reference.kind, reference.name);
    let failure = Failure { event: Some(EventKind::Trace), ..Failure::retry("NoSourceArtifact", message) };
    failed(pass, types::FETCH_FAILED, failure)
}

/// Of a commit or a content the first twelve digits, so that a label still has room for the rest of the version.
fn revision_metadata(revision: &str) -> String {
    let parsed = revision.parse::<Revision>().ok();
    let digest = parsed.as_ref().and_then(|r| r.digest()).map(|d| d.encoded().to_owned());
    digest.unwrap_or_else(|| revision.to_owned()).chars().take(12).collect()
}

/// A refused login is told apart by words in the error, as Flux does it.
fn as_login_problem(error: BuildError) -> BuildError {
    let message = error.message();
    let words = ["401", "unauthorized", "authentication required", "tls", "unknown certificate authority"];
    if words.iter().any(|w| message.contains(w)) {
        let message = format!("failed to authenticate with the Helm repository: {message}");
        return BuildError::before(reasons::source::AUTHENTICATION_FAILED, message);
    }
    error
}

/// Notes a failed build on the object.
fn observe_failure(pass: &mut Pass<HelmChart>, error: &BuildError) -> Failure {
    let message = error.message();
    if pass.object.spec.verify.is_none() {
        pass.object.remove_condition(types::SOURCE_VERIFIED);
    }
    match error {
        BuildError::Before { reason, message, is_final } => {
            pass.object.remove_condition(types::BUILD_FAILED);
            pass.object.mark_true(types::FETCH_FAILED, "Unknown", &format!("unknown build error: {message}"));
            if *is_final { Failure::stall(reason, message) } else { Failure::retry(reason, message) }
        }
        BuildError::Failed { reason, .. } => {
            if reason.is_fetching() {
                pass.object.remove_condition(types::BUILD_FAILED);
                pass.object.mark_true(types::FETCH_FAILED, reason.name(), &message);
            } else {
                pass.object.remove_condition(types::FETCH_FAILED);
                pass.object.mark_true(types::BUILD_FAILED, reason.name(), &message);
            }
            if *reason == Reason::Verification {
                pass.object.mark_false(types::SOURCE_VERIFIED, reasons::source::VERIFICATION_ERROR, &message);
            }
            if reason.is_final() {
                Failure::stall(reason.name(), message)
            } else {
                Failure::retry(reason.name(), message)
            }
        }
    }
}

/// Notes a build on the object.
fn observe_build(pass: &mut Pass<HelmChart>, build: &Build) {
    let known = pass.object.status.as_ref().and_then(|s| s.observed_chart_name.clone());
    if known.as_deref() != Some(build.name.as_str()) || !has_revision(pass.object.artifact(), &build.version)
    {
        let summary = build.summary();
        if pass.object.artifact().is_some() {
            pass.object.mark_true(types::ARTIFACT_OUTDATED, reasons::source::NEW_CHART, &summary);
        }
        pass.object.mark_progressing(true, &format!("building artifact: {summary}"));
        pass.progress();
    }
    pass.object.remove_condition(types::FETCH_FAILED);
    pass.object.remove_condition(types::BUILD_FAILED);
    if build.verified {
        let message = format!("verified signature of version {}", build.version);
        pass.object.mark_true(types::SOURCE_VERIFIED, reasons::SUCCEEDED, &message);
    }
    if pass.object.spec.verify.is_none() {
        pass.object.remove_condition(types::SOURCE_VERIFIED);
    }
    if build.resolved_dependencies > 0 {
        let message = format!("resolved {} chart dependencies", build.resolved_dependencies);
        pass.event(EventKind::Trace, "ResolvedDependencies", &message);
    }
}

/// The event of a new chart, or of a recovery without one.
fn announce(pass: &Pass<HelmChart>, reason: &str, summary: &str) {
    let Some(artifact) = pass.object.artifact() else { return };
    let digest = |object: &HelmChart| object.artifact().and_then(|a| a.digest.clone());
    if digest(&pass.original) == digest(&pass.object) && !recovered(pass) {
        return;
    }
    let metadata = [
        ("revision", artifact.revision.clone()),
        ("digest", artifact.digest.as_ref().map(ToString::to_string).unwrap_or_default()),
    ];
    pass.event_with(EventKind::Normal, reason, summary, metadata.into());
    pass.log.info(summary);
}

impl Reconciler for HelmCharts {
    type Object = HelmChart;

    fn names(&self) -> Names {
        Names { controller: "helmchart", component: "source-controller", field_manager: "source-controller" }
    }

    fn owned_conditions(&self) -> &'static [&'static str] {
        conclude::CONDITIONS
    }

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

    async fn reconcile(&self, pass: &mut Pass<HelmChart>) -> Outcome {
        let verdict = Verdict::from(self.run(pass).await);
        conclude::conclude(pass, &verdict)
    }

    async fn delete(&self, pass: &mut Pass<HelmChart>) -> Result<(), Outcome> {
        storage::remove(pass, &self.store).await
    }

    fn finish(&self, pass: &mut Pass<HelmChart>, end: End, _outcome: &mut Outcome) {
        conclude::finish(pass, end);
    }
}

/// A source, as the watch has it; asked for where that does not know it (yet).
async fn source_object<T: fl_api::Resource + serde::de::DeserializeOwned>(
    pass: &Pass<HelmChart>,
    namespace: &str,
    name: &str,
) -> Result<T, ClientError> {
    let kind = Kind::of::<T>();
    let known = pass.runtime.hub().watch(WatchSpec::full(kind.clone())).get(namespace, name);
    if let Some(object) = known.and_then(|live| live.parse::<T>().ok()) {
        return Ok(object);
    }
    let found = pass.cluster().get_as::<T>(&kind, Some(namespace), name).await;
    found.map_err(|error| if error.is_not_found() { ClientError::absent(&kind, name) } else { error })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_of_revisions() {
        let commit = "8b9f98084bef9cff99a8bcda3426ba8231a3e68d";
        assert_eq!(revision_metadata(&format!("main@sha1:{commit}")), "8b9f98084bef");
        assert_eq!(revision_metadata(&format!("sha256:{}", "ab".repeat(32))), "abababababab");
    }

    #[test]
    fn words_of_a_refused_login() {
        let refused = as_login_problem(BuildError::new(Reason::Pull, "failed to fetch x : 401 Unauthorized"));
        assert!(
            refused
                .message()
                .starts_with("failed to authenticate with the Helm repository: chart pull error: ")
        );
        let other = as_login_problem(BuildError::new(Reason::Pull, "failed to fetch x : 404 Not Found"));
        assert_eq!(other.message(), "chart pull error: failed to fetch x : 404 Not Found");
    }
}
