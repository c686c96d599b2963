//! The commands, one module each: arguments and dispatch. `helm`, `kustomize` and `run` also put the library crates together.

mod apiserver;
mod docgen;
mod down;
mod helm;
mod kustomize;
mod run;
mod up;

/// The commands of the binary; `main` adds those of `flux` from `fl_flux_cli`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Run a Kubernetes API server
    Apiserver(apiserver::Args),
    /// Write the reference of commands and flags
    #[command(hide = true)]
    Docgen(docgen::Args),
    /// Stop `fluorite up`
    Down(down::Args),
    /// Work with Helm charts
    Helm(helm::Args),
    /// Build kustomizations as `kustomize` does
    Kustomize(kustomize::Args),
    /// Run the controllers
    Run(Box<run::Args>),
    /// Deliver a repository without a cluster
    Up(Box<up::Args>),
}

/// Adjusts what the derive macro cannot express.
pub(crate) fn refined(program: clap::Command) -> clap::Command {
    program.mut_subcommand("helm", |helm| helm.mut_subcommand("template", helm::like_pflag))
}

impl Command {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self {
            Command::Apiserver(args) => args.run(),
            Command::Docgen(args) => args.run(),
            Command::Down(args) => args.run(),
            Command::Helm(args) => args.run(),
            Command::Kustomize(args) => args.run(),
            Command::Run(args) => args.run(),
            Command::Up(args) => args.run(),
        }
    }
}

/// Resolves on SIGINT or SIGTERM.
pub(crate) async fn interrupted() {
    let terminate = async {
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(mut signal) => {
                signal.recv().await;
            }
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        () = terminate => {}
    }
}
