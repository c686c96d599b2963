//! `fluorite helm template NAME CHART`: what the chart would install, printed as `helm template` prints it.

use std::fs::File;
use std::io::{IsTerminal, Read, Write};
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

use anyhow::{Context, bail};
use fl_gotemplate::{DEEP_STACK_BUDGET, Limits, on_deep_stack};
use fl_helm::{
    ArchiveSource, Capabilities, CompiledChart, DiskFiles, KubeVersion, Links, Loader, Overrides,
    PrintOptions, Release, ReleaseOptions, RenderOptions, SetKind, push_document,
};

use super::flags::{Refused, WithoutEffect, items};
use super::host::LocalWorld;
use super::output_dir::OutputDir;
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
    #[arg(short = 'f', long = "values", value_name = "FILE")]
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
    #[arg(short, long, value_name = "VERSIONS")]
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

    /// Print what was rendered even when it is not YAML
    #[arg(long)]
    debug: bool,

    #[command(flatten)]
    without_effect: WithoutEffect,
    #[command(flatten)]
    refused: Refused,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        self.refused.check()?;
        let archive = self.fetched()?;
        // Charts may nest a thousand includes; Go's stack grows, ours has a fixed size. Few charts need more than the main
        // thread has, so a second thread with a larger stack is started only for those.
        if let Some(stack) = own_stack() {
            match self.run_here(archive.as_deref(), stack, &mut say) {
                Err(error) if matches!(error.downcast_ref(), Some(fl_helm::Error::TooDeep(_))) => {}
                done => return done,
            }
        }
        on_deep_stack(move || self.run_here(archive.as_deref(), DEEP_STACK_BUDGET, &mut |_| {}))
            .context("cannot start a thread")?
    }

    fn run_here(
        &self,
        archive: Option<&[u8]>,
        stack: usize,
        say: &mut dyn FnMut(&str),
    ) -> anyhow::Result<()> {
        let capabilities = self.capabilities()?;
        let (name, path) = self.name_and_path()?;
        let overrides = self.overrides()?;
        // The process ends right after this: taking a large chart apart again would only cost time.
        let chart = ManuallyDrop::new(match archive {
            Some(archive) => load_archive(&ArchiveSource::Memory(Arc::new(archive.to_vec())), say),
            None => load(Path::new(path), say),
        }?);
        if chart.chart().metadata.deprecated {
            say("WARNING: This chart is deprecated");
        }
        let options = RenderOptions {
            release: ReleaseOptions {
                name: name.clone(),
                namespace: self.namespace().to_owned(),
                revision: 1,
                is_upgrade: self.is_upgrade,
            },
            capabilities,
            limits: Limits { stack, ..Limits::default() },
            host: Rc::new(LocalWorld::default()),
            skip_schema: self.skip_schema_validation,
            subchart_notes: false,
        };
        let release = match chart.render(&overrides, &options, None) {
            Ok(release) => release,
            Err(error) => return self.failed(error, &chart, &overrides, &options),
        };
        let release = ManuallyDrop::new(release);
        release.warnings.iter().for_each(|warning| say(warning));
        self.print(&release, &name)
    }

    /// Says where the chart is wrong; with `--debug` what was rendered is printed as it is.
    fn failed(
        &self,
        error: fl_helm::Error,
        chart: &CompiledChart,
        overrides: &Overrides,
        options: &RenderOptions,
    ) -> anyhow::Result<()> {
        if matches!(error, fl_helm::Error::TooDeep(_)) {
            return Err(error.into());
        }
        let mut text = error.to_string();
        if self.debug && error.while_rendering() {
            output::data(self.unsorted(&error, chart, overrides, options).as_bytes())?;
        } else if error.while_rendering() {
            text.push_str("\n\nUse --debug flag to render out invalid YAML");
        }
        if let Some(excerpt) = error.excerpt() {
            text = format!("{text}\n{excerpt}");
        }
        bail!("{text}")
    }

    /// The files of a chart whose manifests cannot be told apart.
    fn unsorted(
        &self,
        error: &fl_helm::Error,
        chart: &CompiledChart,
        overrides: &Overrides,
        options: &RenderOptions,
    ) -> String {
        let mut text = String::new();
        if matches!(error, fl_helm::Error::Output { .. })
            && let Ok(mut rendered) = chart.render_files(overrides, options)
        {
            rendered.files.sort_by(|a, b| a.0.cmp(&b.0));
            for (path, content) in rendered.files.iter().filter(|(_, content)| !content.trim().is_empty()) {
                push_document(&mut text, path, content);
            }
        }
        format!("{}\n", text.trim())
    }

    fn print(&self, release: &Release, name: &str) -> anyhow::Result<()> {
        if let Some(folder) = &self.output_dir {
            let folder = OutputDir::new(folder, self.release_name.then_some(name));
            let written = folder.write(release, self.include_crds, !self.no_hooks, !self.skip_tests)?;
            return output::data(written.as_bytes());
        }
        let options = PrintOptions {
            crds: self.include_crds,
            hooks: !self.no_hooks,
            tests: !self.skip_tests,
            show_only: self.show_only.clone(),
        };
        if !options.show_only.is_empty() {
            return output::data(release.printed(&options)?.as_bytes());
        }
        output::stream(|out| release.print_all(&options, |piece| out.write_all(piece.as_bytes())))
    }

    /// The archive of a chart that is not on this machine.
    fn fetched(&self) -> anyhow::Result<Option<Vec<u8>>> {
        let (_, path) = self.name_and_path()?;
        let version = self.chart_version.clone().unwrap_or_default();
        let wanted = source::Wanted {
            reference: path,
            repository: self.repo.as_deref(),
            version: &version,
            devel: self.devel,
        };
        wanted.fetch()
    }

    /// An empty name is as good as none.
    fn namespace(&self) -> &str {
        if self.namespace.is_empty() { "default" } else { &self.namespace }
    }

    fn capabilities(&self) -> anyhow::Result<Capabilities> {
        let mut capabilities = Capabilities::default();
        if let Some(version) = self.kube_version.as_deref().filter(|version| !version.is_empty()) {
            capabilities.kube_version = KubeVersion::parse(version)?;
        }
        capabilities.api_versions.extend(items("-a, --api-versions", &self.api_versions)?);
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
        for file in items("-f, --values", &self.values)? {
            let data = read_input(&file).map_err(anyhow::Error::msg)?;
            overrides.add_file(&file, &data)?;
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

/// The part of this thread's stack that templates may use, when it is the first one and has a usual size.
fn own_stack() -> Option<usize> {
    const ENOUGH: u64 = 8 << 20;
    let limit = rustix::process::getrlimit(rustix::process::Resource::Stack).current.unwrap_or(ENOUGH);
    (std::thread::current().name() == Some("main") && limit >= ENOUGH).then_some(4 << 20)
}

pub(super) fn load(path: &Path, say: &mut dyn FnMut(&str)) -> anyhow::Result<CompiledChart> {
    let meta = std::fs::metadata(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => anyhow::anyhow!(
            "path {:?} not found; name a directory, an archive, oci://REGISTRY/CHART, or a chart of a --repo",
            path.display().to_string()
        ),
        _ => anyhow::anyhow!("cannot read {}: {error}", path.display()),
    })?;
    if !meta.is_dir() {
        let unreadable = || format!("file '{}' cannot be read", path.display());
        let mut file = File::open(path).with_context(unreadable)?;
        let mut start = Vec::new();
        // A pipe can be read only once.
        let most = if meta.is_file() { 2 } else { u64::MAX };
        Read::by_ref(&mut file).take(most).read_to_end(&mut start).with_context(unreadable)?;
        check_archive(path, &start)?;
        let source = if meta.is_file() {
            ArchiveSource::File(Arc::new(file))
        } else {
            ArchiveSource::Memory(Arc::new(start))
        };
        return load_archive(&source, say);
    }
    let mut loader = Loader::new();
    let chart = loader.directory(&DiskFiles::with_links(path, Links::Subcharts)?)?;
    loader.notices().iter().for_each(|notice| say(notice));
    Ok(CompiledChart::new(chart))
}

fn load_archive(source: &ArchiveSource, say: &mut dyn FnMut(&str)) -> anyhow::Result<CompiledChart> {
    let mut loader = Loader::new();
    let chart = loader.compiled_archive(source)?;
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
        return read_stdin().clone();
    }
    if name.starts_with("http://") || name.starts_with("https://") {
        return Err(format!("{name}: values are not fetched from the network; save the file and name it"));
    }
    std::fs::read(name).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => format!("open {name}: no such file or directory"),
        _ => format!("open {name}: {error}"),
    })
}

/// Standard input can be read only once, a chart that needs a deeper stack is rendered twice.
fn read_stdin() -> &'static Result<Vec<u8>, String> {
    static INPUT: OnceLock<Result<Vec<u8>, String>> = OnceLock::new();
    INPUT.get_or_init(|| {
        let mut data = Vec::new();
        let mut input = std::io::stdin().lock();
        if input.is_terminal() {
            say("reading values from the terminal, end with Ctrl-D");
        }
        match input.read_to_end(&mut data) {
            Ok(_) => Ok(data),
            Err(error) => Err(format!("cannot read standard input: {error}")),
        }
    })
}

/// Notes for a person go to stderr.
pub(super) fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
