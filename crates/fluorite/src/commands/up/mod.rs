//! `fluorite up`: from a repository to running objects in one command, with no cluster at hand.

mod choose;
mod directory;
mod engine;
mod example;
mod follow;
mod kinds;
mod objects;
mod source;
pub(in crate::commands) mod state;
mod view;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use fl_runtime::Stop;
use fl_runtime::log::{Encoding, Level, configure, redirect};
use tokio::sync::watch;

use self::directory::LocalGit;
use self::source::{Asked, EXAMPLE, Source};
use self::state::{Folder, Settings};
use self::view::{Notes, Outcome, Until, Watched};
use crate::output::{data, note};

/// Runs until it is interrupted; the state is kept for the next time
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A Git repository, by its address or as a directory; the example of the binary when absent
    #[arg(value_name = "GIT-URL | DIRECTORY")]
    source: Option<String>,
    /// Directory of the source that is delivered; looked for when absent
    #[arg(long, value_name = "PATH")]
    path: Option<String>,
    /// Deliver the files of a directory as they are saved, committed or not
    #[arg(long)]
    dirty: bool,
    /// Branch of an address; that which is checked out there when absent
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,
    /// How often an address is asked for news
    #[arg(long, value_name = "DURATION", default_value = "1m")]
    interval: String,
    /// Answer for another repository from a directory
    #[arg(long, value_name = "GIT-URL=DIRECTORY")]
    serve: Vec<String>,
    /// Fail on kinds without a CustomResourceDefinition, instead of taking their objects as they are
    #[arg(long)]
    strict_kinds: bool,
    /// Folder of the state
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// Loopback address of the API server; a free one when absent, and the same again the next time
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,

    /// Deliver to a cluster of the kubeconfig instead of the embedded one
    #[arg(long, value_name = "NAME", help_heading = "Real cluster")]
    context: Option<String>,
    /// Kubeconfig of the context
    #[arg(long, value_name = "FILE", requires = "context", help_heading = "Real cluster")]
    kubeconfig: Option<PathBuf>,
    /// Do not ask before anything is changed on the cluster
    #[arg(long, short = 'y', requires = "context", help_heading = "Real cluster")]
    yes: bool,

    /// End when all is ready; fail when it cannot become so
    #[arg(long, help_heading = "Pipelines")]
    exit_when_ready: bool,
    /// How long to wait for that
    #[arg(long, value_name = "DURATION", default_value = "5m", help_heading = "Pipelines")]
    timeout: fl_types::Duration,
    /// Print a summary at the end
    #[arg(long, short, value_name = "FORMAT", value_parser = ["json"], help_heading = "Pipelines")]
    output: Option<String>,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(16)
            .thread_keep_alive(Duration::from_secs(2))
            .enable_all()
            .build()?;
        let result = runtime.block_on(self.up());
        runtime.shutdown_timeout(Duration::from_secs(2));
        result
    }

    async fn up(self) -> anyhow::Result<()> {
        let start = Instant::now();
        fl_apiserver::create_private_files();
        let root = self.state_dir.clone().map_or_else(state::default_folder, Ok)?;
        // Before anything is made: a source that is none must not leave a folder behind.
        let asked = Source::parse(self.source.as_deref(), self.dirty)?;
        let folder = Folder::open(&root)?;
        let last = folder.settings()?;
        if asked == Asked::Example {
            // Nothing is written to a folder that delivers something else.
            self.settings(EXAMPLE, last.as_ref(), &folder)?;
        }
        let source = asked.open(&folder.path("example"))?;
        let mut settings = self.settings(&source.id(), last.as_ref(), &folder)?;
        let chosen = source.choose(self.path.as_deref())?;
        if self.branch.is_some() {
            settings.branch.clone_from(&self.branch);
        }
        if last.is_none() || settings.branch.is_none() {
            settings.branch = source.reach(settings.branch.as_deref()).await?;
        }
        configure(Level::Info, Encoding::Json);
        redirect(folder.log()?);

        let stop = Stop::default();
        let interrupted = stop.clone();
        tokio::spawn(async move {
            crate::commands::interrupted().await;
            interrupted.now();
        });
        self.greet(&source, &chosen, last.is_some(), &folder);
        let target = match &self.context {
            Some(context) => {
                let target = engine::real(context, self.kubeconfig.clone()).await?;
                self.ask(&source, context, &target.url)?;
                target
            }
            None => engine::embedded(&folder, &mut settings, self.listen, &stop).await?,
        };
        engine::install_kinds(&target).await?;
        if self.context.is_some()
            && let Some(kind) = objects::occupied(&target.cluster).await.map_err(engine::refused)?
        {
            bail!(
                "the cluster has a {kind} `{}/{}` of somebody else; `up` would take its place. Nothing was changed",
                objects::NAMESPACE,
                objects::NAME
            );
        }
        objects::make_namespace(&target.cluster).await.map_err(engine::refused)?;
        engine::make_accounts(&target).await?;
        let git = Arc::new(LocalGit::new(&source.served(&self.serve)?));
        let runtime = engine::controllers(&folder, &mut settings, &target, git.clone(), &stop).await?;
        folder.remember(&settings)?;
        let delivered = source.delivered(&chosen.path, settings.branch.as_deref(), &self.interval)?;
        objects::deliver(&target.cluster, &delivered).await.map_err(engine::refused)?;
        self.point(&folder, &target.url);

        let (wanted_sender, wanted) = watch::channel(None);
        let following = follow::start(&source, git, &runtime, delivered, wanted_sender);
        let notes = Notes::default();
        let kinds = match &target.server {
            Some(server) if !self.strict_kinds => Some(kinds::start(server, &runtime, notes.clone())),
            _ => None,
        };
        let working = runtime.clone();
        let work = tokio::spawn(async move { working.run().await });
        let watched = Watched {
            objects: fl_apply::Cluster::new(target.cluster.clone()),
            runtime: runtime.clone(),
            root: source.directory().map(|d| d.root().to_owned()),
            wanted,
            notes,
        };
        let limit = self.timeout.to_std().context("--timeout is negative")?;
        let until = if self.exit_when_ready { Until::Ready(limit) } else { Until::Stopped };
        let (outcome, rows) = view::show(&watched, until).await;
        stop.now();
        following.abort();
        if let Some(kinds) = kinds {
            kinds.abort();
        }
        let _ = work.await;
        if self.output.is_some() {
            let mut summary = view::summary(&watched, &rows, outcome, start.elapsed());
            summary["source"] = source.id().into();
            summary["path"] = format!("./{}", chosen.path).into();
            summary["state"] = folder.root().display().to_string().into();
            data(format!("{summary:#}\n").as_bytes())?;
        }
        match outcome {
            Outcome::Stopped if self.exit_when_ready => bail!("stopped before all was ready"),
            Outcome::Stopped => {
                note("stopped; `fluorite up` goes on from here, `fluorite down --purge` forgets it");
                Ok(())
            }
            Outcome::Ready => Ok(()),
            Outcome::Stuck => bail!("not all is ready, and nothing is happening any more"),
            Outcome::TimedOut => bail!("not all is ready after {}", self.timeout),
        }
    }

    /// What is remembered from now on; a folder that delivers something else is left to do so.
    fn settings(&self, source: &str, last: Option<&Settings>, folder: &Folder) -> anyhow::Result<Settings> {
        let new =
            Settings { source: source.to_owned(), context: self.context.clone(), ..Settings::default() };
        let Some(last) = last else { return Ok(new) };
        if last.source != new.source || last.context != new.context {
            let place = |s: &Settings| {
                s.context.as_ref().map_or_else(String::new, |c| format!(" to the cluster of `{c}`"))
            };
            bail!(
                "the state in {} delivers {}{}, not {}{}; keep it and give another folder with --state-dir, or forget it with `fluorite down --purge`",
                folder.root().display(),
                last.source,
                place(last),
                new.source,
                place(&new)
            );
        }
        Ok(last.clone())
    }

    fn greet(&self, source: &Source, chosen: &choose::Chosen, again: bool, folder: &Folder) {
        note(&format!("delivering {}", source.id()));
        note(&format!("path: ./{} ({})", chosen.path, chosen.why));
        if again {
            note(&format!("going on with the state in {}", folder.root().display()));
        } else {
            note(&format!("state: {}", folder.root().display()));
        }
    }

    /// How to look around.
    fn point(&self, folder: &Folder, url: &str) {
        match &self.context {
            Some(context) => note(&format!("cluster: {url} (context `{context}`)")),
            None => {
                let path = folder.path("kubeconfig");
                note(&format!("Kubernetes API: {url}"));
                note(&format!("look around: kubectl --kubeconfig {} get pods -A", path.display()));
                note(&format!("             fluorite --kubeconfig {} get all -A", path.display()));
            }
        }
        if self.source.is_none() {
            note(&format!(
                "edit the files in {} and save; README.md there says what to try",
                folder.path("example").display()
            ));
        }
        note("Ctrl-C ends it; the state stays");
    }

    /// Nothing is changed on a cluster of the user's without a yes.
    fn ask(&self, source: &Source, context: &str, url: &str) -> anyhow::Result<()> {
        use std::io::{BufRead as _, IsTerminal as _, Write as _};
        if self.yes {
            return Ok(());
        }
        if !std::io::stdin().is_terminal() {
            bail!(
                "delivering to the cluster of `{context}` ({url}) needs a yes; give --yes where nobody can be asked"
            );
        }
        let mut out = std::io::stderr().lock();
        write!(out, "Deliver {} to the cluster of `{context}` ({url})? [y/N] ", source.id())?;
        out.flush()?;
        let mut answer = String::new();
        std::io::stdin().lock().read_line(&mut answer)?;
        match answer.trim().to_lowercase().as_str() {
            "y" | "yes" => Ok(()),
            _ => bail!("not asked to; nothing was changed"),
        }
    }
}
