//! `fluorite up`: from a repository to running objects in one command, with no cluster at hand.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::run;
use super::run::components::{COMPONENTS, Setup};

/// Runs until it is interrupted; the state is kept for the next run
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A Git repository (URL) or a directory; the built-in example when absent
    #[arg(value_name = "GIT-URL | DIRECTORY")]
    source: Option<String>,
    /// Directory of the source that is delivered; detected when absent
    #[arg(long, value_name = "PATH")]
    path: Option<String>,
    /// Deliver the files of a directory as they are saved, committed or not
    #[arg(long)]
    dirty: bool,
    /// Branch of a remote repository; its default branch when absent
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,
    /// How often a remote repository is fetched
    #[arg(long, value_name = "DURATION", default_value = "1m")]
    interval: String,
    /// Serve a directory in place of another repository
    #[arg(long, value_name = "GIT-URL=DIRECTORY")]
    serve: Vec<String>,
    /// Fail on kinds without a CustomResourceDefinition, instead of accepting their objects as they are
    #[arg(long)]
    strict_kinds: bool,
    /// State directory
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// Loopback address of the API server; a free port when absent, which is reused next time
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,

    /// Deliver to a cluster of the kubeconfig instead of the embedded one
    #[arg(long, value_name = "NAME", help_heading = "Real cluster")]
    context: Option<String>,
    /// Kubeconfig of the context
    #[arg(long, value_name = "FILE", requires = "context", help_heading = "Real cluster")]
    kubeconfig: Option<PathBuf>,
    /// Do not ask before the cluster is changed
    #[arg(long, short = 'y', requires = "context", help_heading = "Real cluster")]
    yes: bool,

    /// Exit when everything is ready; fail when that is not possible
    #[arg(long, help_heading = "Pipelines")]
    exit_when_ready: bool,
    /// How long to wait for readiness
    #[arg(long, value_name = "DURATION", default_value = "5m", help_heading = "Pipelines")]
    timeout: fl_types::Duration,
    /// Print a summary at the end
    #[arg(long, short, value_name = "FORMAT", value_parser = ["json"], help_heading = "Pipelines")]
    output: Option<String>,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let components = components(run::Args::defaults()?);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(16)
            .thread_keep_alive(Duration::from_secs(2))
            .enable_all()
            .build()?;
        let result = runtime.block_on(self.options().up(&components, super::interrupted()));
        runtime.shutdown_timeout(Duration::from_secs(2));
        result
    }

    fn options(self) -> fl_up::Options {
        fl_up::Options {
            source: self.source,
            path: self.path,
            dirty: self.dirty,
            branch: self.branch,
            interval: self.interval,
            serve: self.serve,
            strict_kinds: self.strict_kinds,
            state_dir: self.state_dir,
            listen: self.listen,
            context: self.context,
            kubeconfig: self.kubeconfig,
            yes: self.yes,
            exit_when_ready: self.exit_when_ready,
            timeout: self.timeout,
            summary: self.output.is_some(),
        }
    }
}

/// The components of `fluorite run`, with the defaults of its flags.
fn components(args: run::Args) -> Vec<fl_up::Component> {
    let args = Arc::new(args);
    let component = |component: &'static run::components::Component| {
        let args = args.clone();
        let add = move |shared: &fl_up::SharedParts| {
            let shared = shared.clone();
            (component.add)(&Setup {
                runtime: shared.runtime,
                store: shared.store,
                resolver: shared.resolver,
                artifacts: shared.artifacts,
                git: shared.git,
                remote_bases: shared.remote_bases,
                args: &args,
            })
        };
        fl_up::Component { controller: component.controller, add: Box::new(add) }
    };
    COMPONENTS.iter().map(component).collect()
}
