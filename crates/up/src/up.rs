//! `fluorite up`: from a repository to running objects in one command, with no cluster at hand.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, bail};
use fl_runtime::Shutdown;
use fl_runtime::log::{Encoding, Level, configure, redirect};
use tokio::sync::watch;

use crate::controllers::{self as engine, Component};
use crate::directory::LocalGit;
use crate::output::{data, note};
use crate::source::{EXAMPLE, Source, SourceArgument};
use crate::state_dir::{self as state, Folder, Settings};
use crate::view::{ExitCondition, Notes, ViewResult, ViewState};
use crate::{bootstrap_objects as objects, path_detection, provisional_kinds, source_trigger, view};

/// What `fluorite up` is asked to do.
#[derive(Debug)]
pub struct Options {
    /// A directory or the address of a Git repository; the built-in example when absent.
    pub source: Option<String>,
    /// Directory of the source that is delivered; detected when absent.
    pub path: Option<String>,
    /// Deliver the files of a directory as they are saved.
    pub dirty: bool,
    /// Branch of a remote repository; its default branch when absent.
    pub branch: Option<String>,
    /// Interval of the GitRepository, as Go writes durations.
    pub interval: String,
    /// `GIT-URL=DIRECTORY`: directories that stand in for other repositories.
    pub serve: Vec<String>,
    /// Fail on kinds without a CustomResourceDefinition.
    pub strict_kinds: bool,
    /// State directory; [`default_state_dir`](crate::default_state_dir) when absent.
    pub state_dir: Option<PathBuf>,
    /// Loopback address of the embedded API server; a free port when absent.
    pub listen: Option<SocketAddr>,
    /// Context of a real cluster; the embedded API server when absent.
    pub context: Option<String>,
    pub kubeconfig: Option<PathBuf>,
    /// Do not ask before the real cluster is changed.
    pub yes: bool,
    pub exit_when_ready: bool,
    /// How long `exit_when_ready` waits.
    pub timeout: fl_types::Duration,
    /// Print a JSON summary at the end.
    pub summary: bool,
}

impl Options {
    /// Delivers the source with the given components until `interrupted` resolves, or all objects are ready if
    /// `exit_when_ready` asks for that.
    ///
    /// # Errors
    /// The source, the state directory or the cluster cannot be used, or not all objects became ready.
    pub async fn up(
        self,
        components: &[Component],
        interrupted: impl Future<Output = ()> + Send + 'static,
    ) -> anyhow::Result<()> {
        let start = Instant::now();
        fl_apiserver::create_private_files();
        let root = self.state_dir.clone().map_or_else(state::default_state_dir, Ok)?;
        // Before anything is created: an invalid source must not leave a state directory behind.
        let asked = Source::parse(self.source.as_deref(), self.dirty)?;
        let folder = Folder::open(&root)?;
        let last = folder.settings()?;
        if asked == SourceArgument::Example {
            // The example is not written to a state directory of another source.
            self.settings(EXAMPLE, last.as_ref(), &folder)?;
        }
        let source = asked.open(&folder.path("example"))?;
        let mut settings = self.settings(&source.id(), last.as_ref(), &folder)?;
        let chosen = source.detect_path(self.path.as_deref())?;
        if self.branch.is_some() {
            settings.branch.clone_from(&self.branch);
        }
        if last.is_none() || settings.branch.is_none() {
            settings.branch = source.check_remote(settings.branch.as_deref()).await?;
        }
        configure(Level::Info, Encoding::Json);
        redirect(folder.log()?);

        let stop = Shutdown::default();
        let interrupt = stop.clone();
        tokio::spawn(async move {
            interrupted.await;
            interrupt.now();
        });
        self.print_start(&source, &chosen, last.is_some(), &folder);
        let target = match &self.context {
            Some(context) => {
                let target = engine::real(context, self.kubeconfig.clone()).await?;
                self.confirm(&source, context, &target.url)?;
                target
            }
            None => engine::embedded(&folder, &mut settings, self.listen, &stop).await?,
        };
        engine::install_kinds(&target).await?;
        if self.context.is_some()
            && let Some(kind) = objects::find_conflict(&target.cluster).await.map_err(engine::rejected)?
        {
            bail!(
                "the cluster has a {kind} `{}/{}` that `up` did not create and would overwrite. Nothing was changed",
                objects::NAMESPACE,
                objects::NAME
            );
        }
        objects::create_namespace(&target.cluster).await.map_err(engine::rejected)?;
        engine::create_service_accounts(&target).await?;
        let git = Arc::new(LocalGit::new(&source.served(&self.serve)?));
        let runtime =
            engine::controllers(&folder, &mut settings, &target, git.clone(), components, &stop).await?;
        folder.save(&settings)?;
        let delivered = source.spec(&chosen.path, settings.branch.as_deref(), &self.interval)?;
        objects::deliver(&target.cluster, &delivered).await.map_err(engine::rejected)?;
        self.print_access(&folder, &target.url);

        let (wanted_sender, wanted) = watch::channel(None);
        let following = source_trigger::start(&source, git, &runtime, delivered, wanted_sender);
        let notes = Notes::default();
        let kinds = match &target.server {
            Some(server) if !self.strict_kinds => {
                Some(provisional_kinds::start(server, &runtime, notes.clone()))
            }
            _ => None,
        };
        let working = runtime.clone();
        let work = tokio::spawn(async move { working.run().await });
        let watched = ViewState {
            objects: fl_apply::Cluster::new(target.cluster.clone()),
            runtime: runtime.clone(),
            root: source.directory().map(|d| d.root().to_owned()),
            wanted,
            notes,
        };
        let limit = self.timeout.to_std().context("--timeout is negative")?;
        let until = if self.exit_when_ready { ExitCondition::Ready(limit) } else { ExitCondition::Stopped };
        let (outcome, rows) = view::show(&watched, until).await;
        stop.now();
        following.abort();
        if let Some(kinds) = kinds {
            kinds.abort();
        }
        let _ = work.await;
        if self.summary {
            let mut summary = view::summary(&watched, &rows, outcome, start.elapsed());
            summary["source"] = source.id().into();
            summary["path"] = format!("./{}", chosen.path).into();
            summary["state"] = folder.root().display().to_string().into();
            data(format!("{summary:#}\n").as_bytes())?;
        }
        match outcome {
            ViewResult::Stopped if self.exit_when_ready => bail!("stopped before everything was ready"),
            ViewResult::Stopped => {
                note("stopped; `fluorite up` resumes from here, `fluorite down --purge` deletes the state");
                Ok(())
            }
            ViewResult::Ready => Ok(()),
            ViewResult::Stuck => bail!("not everything is ready, and nothing is in progress"),
            ViewResult::TimedOut => bail!("not everything is ready after {}", self.timeout),
        }
    }

    /// The settings of this run. A state directory of another source or cluster is rejected.
    fn settings(&self, source: &str, last: Option<&Settings>, folder: &Folder) -> anyhow::Result<Settings> {
        let new =
            Settings { source: source.to_owned(), context: self.context.clone(), ..Settings::default() };
        let Some(last) = last else { return Ok(new) };
        if last.source != new.source || last.context != new.context {
            let place = |s: &Settings| {
                s.context.as_ref().map_or_else(String::new, |c| format!(" to the cluster of `{c}`"))
            };
            bail!(
                "the state in {} delivers {}{}, not {}{}; use another directory with --state-dir, or delete the state with `fluorite down --purge`",
                folder.root().display(),
                last.source,
                place(last),
                new.source,
                place(&new)
            );
        }
        Ok(last.clone())
    }

    fn print_start(
        &self,
        source: &Source,
        chosen: &path_detection::DetectedPath,
        again: bool,
        folder: &Folder,
    ) {
        note(&format!("delivering {}", source.id()));
        note(&format!("path: ./{} ({})", chosen.path, chosen.why));
        if again {
            note(&format!("resuming from the state in {}", folder.root().display()));
        } else {
            note(&format!("state: {}", folder.root().display()));
        }
    }

    /// Prints how to inspect the cluster.
    fn print_access(&self, folder: &Folder, url: &str) {
        match &self.context {
            Some(context) => note(&format!("cluster: {url} (context `{context}`)")),
            None => {
                let path = folder.path("kubeconfig");
                note(&format!("Kubernetes API: {url}"));
                note(&format!("inspect it with: kubectl --kubeconfig {} get pods -A", path.display()));
                note(&format!("                 fluorite --kubeconfig {} get all -A", path.display()));
            }
        }
        if self.source.is_none() {
            note(&format!(
                "edit the files in {} and save; README.md there has suggestions",
                folder.path("example").display()
            ));
        }
        note("Ctrl-C stops it; the state is kept");
    }

    /// Asks before a real cluster is changed.
    fn confirm(&self, source: &Source, context: &str, url: &str) -> anyhow::Result<()> {
        use std::io::{BufRead as _, IsTerminal as _, Write as _};
        if self.yes {
            return Ok(());
        }
        if !std::io::stdin().is_terminal() {
            bail!(
                "delivering to the cluster of `{context}` ({url}) needs a confirmation; pass --yes without a terminal"
            );
        }
        let mut out = std::io::stderr().lock();
        write!(out, "Deliver {} to the cluster of `{context}` ({url})? [y/N] ", source.id())?;
        out.flush()?;
        let mut answer = String::new();
        std::io::stdin().lock().read_line(&mut answer)?;
        match answer.trim().to_lowercase().as_str() {
            "y" | "yes" => Ok(()),
            _ => bail!("not confirmed; nothing was changed"),
        }
    }
}
