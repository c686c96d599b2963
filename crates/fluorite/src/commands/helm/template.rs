//! `fluorite helm template NAME CHART`: what the chart would install, printed as `helm template` prints it.

use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::{Context, bail};
use fl_gotemplate::{DEEP_STACK_BUDGET, Limits, on_deep_stack};
use fl_helm::{
    Capabilities, Chart, CompiledChart, DiskFiles, KubeVersion, Loader, Overrides, PrintOptions, Release,
    ReleaseOptions, RenderOptions, SetKind,
};

use super::output_dir::OutputDir;
use super::outside::LocalWorld;
use super::source;
use crate::output;

/// Render the templates of a chart locally, without a cluster.
///
/// NAME can be left out: `fluorite helm template CHART` renders a release named `release-name`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Name of the release, and the chart: a directory, a .tgz archive, oci://REGISTRY/CHART, an address of an archive, or with --repo
    /// a name
    #[arg(value_name = "[NAME] CHART", required = true, num_args = 1..=2)]
    name_and_chart: Vec<String>,

    /// The repository that holds the chart
    #[arg(long, value_name = "URL")]
    repo: Option<String>,
    /// Version of a chart that is fetched, or a range; the newest by default
    #[arg(long = "version", value_name = "VERSION")]
    chart_version: Option<String>,
    /// Let versions in development count when a chart is fetched
    #[arg(long)]
    devel: bool,

    /// Values in a YAML file, `-` for standard input (can be repeated or separated by commas)
    #[arg(short = 'f', long = "values", value_name = "FILE", value_delimiter = ',')]
    values: Vec<String>,
    /// Set values: key1=val1,key2=val2 (can be repeated)
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Set values that are always strings (can be repeated)
    #[arg(long, value_name = "KEY=VALUE")]
    set_string: Vec<String>,
    /// Set values from JSON (can be repeated)
    #[arg(long, value_name = "KEY=JSON")]
    set_json: Vec<String>,
    /// Set values from the content of files (can be repeated)
    #[arg(long, value_name = "KEY=FILE")]
    set_file: Vec<String>,
    /// Set one value literally, whatever it contains (can be repeated)
    #[arg(long, value_name = "KEY=VALUE")]
    set_literal: Vec<String>,
    /// Do not check values against values.schema.json
    #[arg(long)]
    skip_schema_validation: bool,

    /// Namespace of the release
    #[arg(short, long, default_value = "default")]
    namespace: String,
    /// Set .Release.IsUpgrade instead of .Release.IsInstall
    #[arg(long)]
    is_upgrade: bool,
    /// Kubernetes version for .Capabilities.KubeVersion
    #[arg(long, value_name = "VERSION")]
    kube_version: Option<String>,
    /// More API versions for .Capabilities.APIVersions (can be repeated or separated by commas)
    #[arg(short, long, value_name = "VERSIONS", value_delimiter = ',')]
    api_versions: Vec<String>,
    /// A template that makes the release name
    #[arg(long, value_name = "TEMPLATE")]
    name_template: Option<String>,
    /// Generate the release name; without a cluster it is `release-name`
    #[arg(short, long)]
    generate_name: bool,

    /// Print the CRDs of the chart too
    #[arg(long)]
    include_crds: bool,
    /// Leave hooks out
    #[arg(long)]
    no_hooks: bool,
    /// Leave test hooks out
    #[arg(long)]
    skip_tests: bool,
    /// Print only what these templates give, for example templates/deployment.yaml (can be repeated)
    #[arg(short, long, value_name = "TEMPLATE")]
    show_only: Vec<String>,
    /// Write manifests to files in this folder instead of stdout
    #[arg(long, value_name = "DIR")]
    output_dir: Option<PathBuf>,
    /// Use the release name in the path below --output-dir
    #[arg(long)]
    release_name: bool,

    #[command(flatten)]
    without_effect: WithoutEffect,
    #[command(flatten)]
    refused: Refused,
}

/// Flags of an install that change nothing about what is rendered; scripts pass them along.
#[derive(Debug, clap::Args)]
struct WithoutEffect {
    #[arg(long, hide = true)]
    create_namespace: bool,
    #[arg(long, hide = true)]
    skip_crds: bool,
    #[arg(long, hide = true)]
    atomic: bool,
    #[arg(long, hide = true)]
    wait: bool,
    #[arg(long, hide = true)]
    wait_for_jobs: bool,
    #[arg(long, hide = true)]
    timeout: Option<String>,
    #[arg(long, hide = true)]
    force: bool,
    #[arg(long, hide = true)]
    replace: bool,
    #[arg(long, hide = true)]
    take_ownership: bool,
    #[arg(long, hide = true)]
    disable_openapi_validation: bool,
    #[arg(long, hide = true)]
    description: Option<String>,
    #[arg(long, hide = true)]
    hide_notes: bool,
    #[arg(long, hide = true)]
    render_subchart_notes: bool,
    #[arg(short, long, hide = true)]
    labels: Vec<String>,
}

/// Flags of `helm template` that need what this command does not do; they are answered with the reason.
#[derive(Debug, clap::Args)]
struct Refused {
    #[arg(long, hide = true)]
    validate: bool,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "client")]
    dry_run: Option<String>,
    #[arg(long, hide = true)]
    post_renderer: Option<String>,
    #[arg(long, hide = true)]
    post_renderer_args: Vec<String>,
    #[arg(long, hide = true)]
    dependency_update: bool,
    #[arg(long, hide = true)]
    enable_dns: bool,
    #[arg(long, hide = true)]
    verify: bool,
}

impl Refused {
    fn check(&self) -> anyhow::Result<()> {
        let refusals = [
            (self.validate, "--validate needs a cluster; this command works without one"),
            (
                self.dry_run.as_deref().is_some_and(|mode| matches!(mode, "server" | "none" | "false")),
                "--dry-run=server needs a cluster; this command works without one",
            ),
            (
                self.post_renderer.is_some() || !self.post_renderer_args.is_empty(),
                "--post-renderer would start a program, which fluorite never does; pipe the output through it instead",
            ),
            (
                self.dependency_update,
                "--dependency-update fetches charts; put them into charts/ with `helm dependency build` first",
            ),
            (
                self.enable_dns,
                "--enable-dns lets templates look up names in the network, which fluorite never does",
            ),
            (self.verify, "--verify is for fetched charts; give a directory or an archive you trust"),
        ];
        match refusals.iter().find(|(given, _)| *given) {
            Some((_, why)) => bail!("{why}"),
            None => Ok(()),
        }
    }
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        // Charts may nest a thousand includes; Helm's stack grows, ours is chosen beforehand.
        on_deep_stack(move || self.run_here()).context("cannot start a thread")?
    }

    fn run_here(self) -> anyhow::Result<()> {
        self.refused.check()?;
        let capabilities = self.capabilities()?;
        let (name, path) = self.name_and_path()?;
        let overrides = self.overrides()?;
        let chart = self.chart(path)?;
        if chart.metadata.deprecated {
            say("WARNING: This chart is deprecated");
        }
        let options = RenderOptions {
            release: ReleaseOptions {
                name: name.clone(),
                namespace: self.namespace.clone(),
                revision: 1,
                is_upgrade: self.is_upgrade,
            },
            capabilities,
            limits: Limits { stack: DEEP_STACK_BUDGET, ..Limits::default() },
            outside: Rc::new(LocalWorld::default()),
            skip_schema: self.skip_schema_validation,
            subchart_notes: false,
        };
        // The process ends right after this: taking a large chart apart again would only cost time.
        let chart = std::mem::ManuallyDrop::new(CompiledChart::new(chart));
        let release = chart.render(&overrides, &options, None)?;
        release.warnings.iter().for_each(|warning| say(warning));
        output::data(self.printed(&release, &name)?.as_bytes())
    }

    fn printed(&self, release: &Release, name: &str) -> anyhow::Result<String> {
        if let Some(folder) = &self.output_dir {
            let folder = OutputDir::new(folder, self.release_name.then_some(name));
            return folder.write(release, self.include_crds, !self.no_hooks, !self.skip_tests);
        }
        let options = PrintOptions {
            crds: self.include_crds,
            hooks: !self.no_hooks,
            tests: !self.skip_tests,
            show_only: self.show_only.clone(),
        };
        Ok(release.printed(&options)?)
    }

    fn chart(&self, path: &str) -> anyhow::Result<Chart> {
        let version = self.chart_version.clone().unwrap_or_default();
        let wanted = source::Wanted {
            reference: path,
            repository: self.repo.as_deref(),
            version: &version,
            devel: self.devel,
        };
        match wanted.fetch()? {
            Some(archive) => load_archive(&archive),
            None => load(Path::new(path)),
        }
    }

    fn capabilities(&self) -> anyhow::Result<Capabilities> {
        let mut capabilities = Capabilities::default();
        if let Some(version) = self.kube_version.as_deref().filter(|version| !version.is_empty()) {
            capabilities.kube_version = KubeVersion::parse(version)?;
        }
        capabilities.api_versions.extend(self.api_versions.iter().cloned());
        Ok(capabilities)
    }

    fn name_and_path(&self) -> anyhow::Result<(String, &str)> {
        match self.name_and_chart.as_slice() {
            [_, _] if self.generate_name => bail!("cannot set --generate-name and also specify a name"),
            [_, _] if self.name_template.is_some() => {
                bail!("cannot set --name-template and also specify a name")
            }
            [name, chart] => Ok((name.clone(), chart.trim())),
            [chart, ..] => {
                let name = match &self.name_template {
                    Some(template) => {
                        fl_helm::release_name_from_template(template, Rc::new(LocalWorld::default()))?
                    }
                    None => "release-name".to_owned(),
                };
                Ok((name, chart.trim()))
            }
            [] => bail!("\"helm template\" requires at least 1 argument"),
        }
    }

    fn overrides(&self) -> anyhow::Result<Overrides> {
        let mut overrides = Overrides::new();
        for file in &self.values {
            let data = read_input(file).map_err(anyhow::Error::msg)?;
            overrides.add_file(file, &data)?;
        }
        let arguments = [
            (SetKind::Json, &self.set_json),
            (SetKind::Typed, &self.set),
            (SetKind::String, &self.set_string),
            (SetKind::File, &self.set_file),
            (SetKind::Literal, &self.set_literal),
        ];
        for (kind, texts) in arguments {
            for text in texts {
                overrides.set(kind, text, &mut read_input)?;
            }
        }
        Ok(overrides)
    }
}

pub(super) fn load(path: &Path) -> anyhow::Result<Chart> {
    let meta = std::fs::metadata(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => anyhow::anyhow!(
            "path {:?} not found; name a directory, an archive, oci://REGISTRY/CHART, or a chart of a --repo",
            path.display().to_string()
        ),
        _ => anyhow::anyhow!("cannot read {}: {error}", path.display()),
    })?;
    if !meta.is_dir() {
        let data =
            std::fs::read(path).with_context(|| format!("file '{}' cannot be read", path.display()))?;
        check_archive(path, &data)?;
        return load_archive(&data);
    }
    let mut loader = Loader::new();
    let chart = loader.directory(&DiskFiles::open(path)?)?;
    loader.notices().iter().for_each(|notice| say(notice));
    Ok(chart)
}

fn load_archive(data: &[u8]) -> anyhow::Result<Chart> {
    let mut loader = Loader::new();
    let chart = loader.archive(data)?;
    loader.notices().iter().for_each(|notice| say(notice));
    Ok(chart)
}

/// A values file in the chart's place is a common slip; say so instead of complaining about gzip.
fn check_archive(path: &Path, data: &[u8]) -> anyhow::Result<()> {
    if data.starts_with(b"\x1f\x8b") {
        return Ok(());
    }
    let shown = path.display();
    match path.extension().and_then(|e| e.to_str()) {
        Some("yaml" | "yml") => {
            bail!("file '{shown}' seems to be a YAML file, but expected a gzipped archive")
        }
        _ => bail!("file '{shown}' does not appear to be a gzipped archive"),
    }
}

/// The content of a file named by an argument; `-` is standard input.
fn read_input(name: &str) -> Result<Vec<u8>, String> {
    if name.trim() == "-" {
        let mut data = Vec::new();
        let mut input = std::io::stdin().lock();
        if input.is_terminal() {
            say("reading values from the terminal, end with Ctrl-D");
        }
        return match input.read_to_end(&mut data) {
            Ok(_) => Ok(data),
            Err(error) => Err(format!("cannot read standard input: {error}")),
        };
    }
    if name.starts_with("http://") || name.starts_with("https://") {
        return Err(format!("{name}: values are not fetched from the network; save the file and name it"));
    }
    std::fs::read(name).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => format!("open {name}: no such file or directory"),
        _ => format!("open {name}: {error}"),
    })
}

/// Notes for a person go to stderr.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
