//! The Helm engine for `helmCharts` of kustomizations: what kustomize would start `helm` for.

use std::path::Path;
use std::rc::Rc;

use anyhow::{Context, bail};
use fl_archive::{EntryKind, ReadError, ReadLimits, read_tar_gz};
use fl_gotemplate::{DEEP_STACK_BUDGET, Limits, on_deep_stack};
use fl_helm::{Capabilities, KubeVersion, Overrides, PrintOptions, ReleaseOptions, RenderOptions};
use fl_kustomize::{ChartRelease, ChartSource, Charts, HostError};

use super::host::LocalWorld;
use super::{source, template};

/// Renders charts; what a kustomization leaves open is taken from here.
#[derive(Debug, Default)]
pub(crate) struct Inflator {
    pub(crate) kube_version: String,
    pub(crate) api_versions: Vec<String>,
}

impl Charts for Inflator {
    fn pull(&self, chart: ChartSource<'_>, home: &Path) -> Result<(), HostError> {
        pull(chart, home).map_err(|e| format!("{e:#}").into())
    }

    fn render(&self, release: &ChartRelease<'_>) -> Result<String, HostError> {
        self.print(release).map_err(|e| format!("{e:#}").into())
    }
}

impl Inflator {
    fn print(&self, release: &ChartRelease<'_>) -> anyhow::Result<String> {
        let name = match (release.name, release.name_template) {
            ("", "") => "release-name".to_owned(),
            ("", template) => fl_helm::release_name_from_template(template, Rc::new(LocalWorld::default()))?,
            (name, "") => name.to_owned(),
            _ => bail!("cannot set nameTemplate and also specify a releaseName"),
        };
        let mut capabilities = Capabilities::default();
        let version = [release.kube_version, &self.kube_version].into_iter().find(|v| !v.is_empty());
        if let Some(version) = version {
            capabilities.kube_version = KubeVersion::parse(version)?;
        }
        let more = if release.api_versions.is_empty() { &self.api_versions } else { release.api_versions };
        capabilities.api_versions.extend(more.iter().cloned());
        let namespace = if release.namespace.is_empty() { "default" } else { release.namespace };
        let release_options =
            ReleaseOptions { name, namespace: namespace.to_owned(), revision: 1, is_upgrade: false };
        let print = PrintOptions {
            crds: release.include_crds,
            hooks: !release.skip_hooks,
            tests: !release.skip_tests,
            show_only: Vec::new(),
        };
        let values: Vec<(String, Vec<u8>)> =
            release.values.iter().map(|(file, content)| (file.clone(), content.to_vec())).collect();
        let directory = release.directory.to_owned();
        on_deep_stack(move || {
            let mut overrides = Overrides::new();
            for (file, content) in &values {
                overrides.add_file(file, content)?;
            }
            let options = RenderOptions {
                release: release_options,
                capabilities,
                limits: Limits { stack: DEEP_STACK_BUDGET, ..Limits::default() },
                host: Rc::new(LocalWorld::default()),
                skip_schema: false,
                subchart_notes: false,
            };
            let chart = template::load(&directory, &mut template::say)?;
            Ok(chart.render(&overrides, &options, None)?.printed(&print)?)
        })
        .context("cannot start a thread")?
    }
}

fn pull(chart: ChartSource<'_>, home: &Path) -> anyhow::Result<()> {
    let wanted = source::Wanted {
        reference: chart.name,
        repository: Some(chart.repository),
        version: chart.version,
        devel: chart.devel,
    };
    let archive = wanted.fetch()?.context("no archive")?;
    // Unpacked to a temporary directory and renamed, so that an interrupted download leaves no partial chart.
    std::fs::create_dir_all(home).with_context(|| format!("cannot make {}", home.display()))?;
    let place = tempfile::Builder::new().prefix(".pull-").tempdir_in(home)?;
    unpack(&archive, place.path()).with_context(|| format!("cannot unpack chart {}", chart.name))?;
    let target = home.join(chart.name);
    std::fs::rename(place.path().join(chart.name), &target)
        .with_context(|| format!("the archive holds no chart named {}", chart.name))
}

fn unpack(archive: &[u8], place: &Path) -> anyhow::Result<()> {
    // Names are clean: the reader refuses those that lead out.
    read_tar_gz(archive, &ReadLimits::default(), |entry, content| {
        if !matches!(entry.kind, EntryKind::File { .. }) {
            return Ok::<(), Broken>(());
        }
        let path = place.join(&entry.name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::io::copy(content, &mut std::fs::File::create(path)?)?;
        Ok(())
    })?;
    Ok(())
}

#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error(transparent)]
    Archive(#[from] ReadError),
    #[error(transparent)]
    Write(#[from] std::io::Error),
}
