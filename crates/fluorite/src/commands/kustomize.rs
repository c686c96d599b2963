//! `fluorite kustomize build`: the engine on a directory, with the flags of `kustomize build` that it honours.

use std::path::PathBuf;

use anyhow::{Context, bail};
use fl_kustomize::{Disk, LoadRestrictor, Options, Reorder};
use fl_remote_bases::{Limits, RemoteBases};

use super::helm::Inflator;

/// Build kustomizations as `kustomize` does
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Print the objects that a kustomization describes
    Build(Build),
}

#[derive(Debug, clap::Args)]
struct Build {
    /// The directory with the kustomization
    #[arg(default_value = ".")]
    directory: PathBuf,
    /// LoadRestrictionsRootOnly, or LoadRestrictionsNone to let kustomizations read files outside of their directory
    #[arg(long, value_name = "RESTRICTOR", default_value = "LoadRestrictionsRootOnly")]
    load_restrictor: String,
    /// The order of the output: legacy (by kind) or none (as accumulated); `sortOptions` of the kustomization win
    #[arg(long, value_name = "ORDER", default_value = "legacy")]
    reorder: String,
    /// Write to this file, or to one file for each object in this directory, instead of the standard output
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Refuse bases and files on other machines
    #[arg(long)]
    no_remote_bases: bool,
    /// Add the label app.kubernetes.io/managed-by to all objects
    #[arg(long)]
    enable_managedby_label: bool,
    /// Inflate `helmCharts` with the built-in Helm engine; charts that are not in the folder of charts are fetched into it
    #[arg(long)]
    enable_helm: bool,
    /// The Kubernetes version that charts see, unless the kustomization names one
    #[arg(long, value_name = "VERSION", default_value = "", hide_default_value = true)]
    helm_kube_version: String,
    /// More API versions that charts see, unless the kustomization names some (can be repeated)
    #[arg(long, value_name = "VERSION")]
    helm_api_versions: Vec<String>,
    /// Not offered: charts are rendered by the built-in engine
    #[arg(long, hide = true)]
    helm_command: Option<String>,
    /// Not offered: there is no child process to debug
    #[arg(long, hide = true)]
    helm_debug: bool,
    /// Not offered: exec functions never run
    #[arg(long)]
    enable_exec: bool,
    /// Not offered: plugins outside of the engine never run
    #[arg(long)]
    enable_alpha_plugins: bool,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.command {
            Command::Build(build) => build.run(),
        }
    }
}

/// Deeper than any tree that was written by hand.
const MAX_DEPTH: usize = 2000;

impl Build {
    /// A build recurses through nested kustomizations, so it gets a stack for the deepest allowed tree; unused pages cost nothing.
    fn run(self) -> anyhow::Result<()> {
        let thread =
            std::thread::Builder::new().stack_size(MAX_DEPTH * 64 * 1024).spawn(move || self.build());
        match thread.context("cannot start a thread")?.join() {
            Ok(result) => result,
            Err(_) => bail!("the build ended unexpectedly; please report this kustomization"),
        }
    }

    fn build(self) -> anyhow::Result<()> {
        for (asked, flag, instead) in [
            (self.helm_command.is_some(), "--helm-command", "charts are rendered by the built-in engine"),
            (self.helm_debug, "--helm-debug", "there is no child process to debug"),
            (self.enable_exec, "--enable-exec", "exec functions never run here"),
            (self.enable_alpha_plugins, "--enable-alpha-plugins", "only built-in plugins run here"),
        ] {
            if asked {
                bail!("`{flag}` is not offered: {instead}");
            }
        }
        // Who starts the command may reach whatever this machine reaches.
        let bases =
            RemoteBases::new(fl_http::Owner::engine(), fl_http::AddressPolicy::default(), Limits::default());
        let inflator =
            Inflator { kube_version: self.helm_kube_version, api_versions: self.helm_api_versions };
        let options = Options {
            charts: self.enable_helm.then_some(&inflator as &dyn fl_kustomize::Charts),
            fetcher: (!self.no_remote_bases).then_some(&bases as &dyn fl_kustomize::Fetcher),
            load_restrictor: match self.load_restrictor.as_str() {
                "LoadRestrictionsRootOnly" | "rootOnly" | "" => LoadRestrictor::RootOnly,
                "LoadRestrictionsNone" | "none" => LoadRestrictor::None,
                other => bail!(
                    "illegal flag value --load-restrictor {other}; legal values: LoadRestrictionsRootOnly, LoadRestrictionsNone"
                ),
            },
            reorder: match self.reorder.as_str() {
                "legacy" => Reorder::Legacy,
                "none" => Reorder::None,
                other => bail!("illegal flag value --reorder {other}; legal values: legacy, none"),
            },
            managed_by_label: self.enable_managedby_label,
            max_depth: Some(MAX_DEPTH),
            ..Options::default()
        };
        let output = fl_kustomize::build(&Disk, &self.directory, &options)?;
        for warning in &output.warnings {
            anstream::eprintln!("warning: {warning}");
        }
        let text = output.to_yaml()?;
        match &self.output {
            None => crate::output::data(text.as_bytes()),
            Some(path) if path.is_dir() => write_each(path, &output.objects),
            Some(path) => {
                std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
            }
        }
    }
}

/// One file for each object, named as kustomize names them: by group, version, kind and name, and by namespace when there are several.
fn write_each(directory: &std::path::Path, objects: &[fl_yaml::Node]) -> anyhow::Result<()> {
    let field = |object: &fl_yaml::Node, path: &[&str]| {
        object.at(path).and_then(fl_yaml::Node::as_text).unwrap_or_default().to_owned()
    };
    let namespaces: std::collections::BTreeSet<String> =
        objects.iter().map(|o| field(o, &["metadata", "namespace"])).collect();
    for object in objects {
        let api_version = field(object, &["apiVersion"]);
        let parts =
            [api_version.replace('/', "_"), field(object, &["kind"]), field(object, &["metadata", "name"])];
        let mut name = format!("{}.yaml", parts.join("_"));
        let namespace = field(object, &["metadata", "namespace"]);
        if namespaces.len() > 1 && !namespace.is_empty() {
            name = format!("{namespace}_{name}");
        }
        // A name must not lead out of the directory.
        let name = name.to_lowercase().replace(['/', '\\'], "_");
        let text = fl_yaml::to_sigs_yaml(object, fl_yaml::Dialect::V3)?;
        let path = directory.join(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
