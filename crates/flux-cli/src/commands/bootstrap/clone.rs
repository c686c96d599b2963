//! A clone in a temporary folder.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

use crate::args::{Call, CommandResult};
use crate::logger;

/// A clone in a temporary folder, worked on by the program `git`.
pub(super) struct Clone {
    pub(super) folder: tempfile::TempDir,
    pub(super) branch: String,
    url: String,
    environment: Vec<(String, String)>,
}

impl Clone {
    /// # Errors
    /// No temporary folder.
    pub(super) fn new(call: &Call, url: &str, environment: Vec<(String, String)>) -> anyhow::Result<Clone> {
        Ok(Clone {
            folder: tempfile::tempdir()?,
            branch: call.text("branch").to_owned(),
            url: url.to_owned(),
            environment,
        })
    }

    fn run(&self, args: &[&str]) -> anyhow::Result<String> {
        let output = Command::new("git")
            .args(args)
            .current_dir(self.folder.path())
            .envs(self.environment.iter().map(|(k, v)| (k, v)))
            .env("GIT_TERMINAL_PROMPT", "0")
            .output()
            .context("bootstrapping needs the program git")?;
        if !output.status.success() {
            bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Clones the branch, or starts it in an empty repository.
    pub(super) fn start(&self) -> CommandResult {
        logger::action(format!("cloning branch {:?} from Git repository {:?}", self.branch, self.url));
        self.run(&["init", "-q", "-b", &self.branch])?;
        self.run(&["remote", "add", "origin", &self.url])?;
        let refs = match self.run(&["ls-remote", "--heads", "origin"]) {
            Ok(refs) => refs,
            // A host may need a moment for a repository it has just made.
            Err(error) => {
                logger::warning(format!(" clone failure: {error:#}"));
                std::thread::sleep(std::time::Duration::from_secs(2));
                self.run(&["ls-remote", "--heads", "origin"]).context("failed to clone repository")?
            }
        };
        let reference = format!("refs/heads/{}", self.branch);
        if refs.lines().any(|line| line.ends_with(&format!("\t{reference}"))) {
            self.run(&["fetch", "-q", "origin", &reference]).context("failed to clone repository")?;
            self.run(&["reset", "-q", "--hard", "FETCH_HEAD"])?;
        }
        logger::success("cloned repository");
        Ok(())
    }

    pub(super) fn write(&self, path: &Path, content: &str) -> CommandResult {
        let full = self.folder.path().join(path);
        if let Some(parent) = full.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(&full, content).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Commits and pushes what changed.
    pub(super) fn publish(&self, call: &Call, message: &str, what: &str) -> CommandResult {
        self.run(&["add", "-A"])?;
        if self.run(&["status", "--porcelain"])?.is_empty() {
            logger::success(format!("{what} are up to date"));
            return Ok(());
        }
        let mut text = message.to_owned();
        if !call.text("commit-message-appendix").is_empty() {
            text.push_str(&format!("\n\n{}", call.text("commit-message-appendix")));
        }
        let name = format!("user.name={}", call.text("author-name"));
        let email = format!("user.email={}", call.text("author-email"));
        let mut args = vec!["-c", &name, "-c", &email];
        let key = signing_key(call);
        let configured = key.as_ref().map(|key| format!("user.signingkey={key}"));
        if let Some(configured) = &configured {
            args.extend(["-c", "gpg.format=ssh", "-c", configured]);
        }
        args.extend(["commit", "-q", "-m", &text]);
        if configured.is_some() {
            args.push("-S");
        }
        self.run(&args).with_context(|| format!("failed to commit {what}"))?;
        let head = self.head()?;
        logger::success(format!("committed {what} to {:?} ({head:?})", self.branch));
        logger::action(format!("pushing {what} to {:?}", self.url));
        self.run(&["push", "-q", "origin", &format!("HEAD:refs/heads/{}", self.branch)])
            .with_context(|| format!("failed to push {what}"))?;
        Ok(())
    }

    pub(super) fn head(&self) -> anyhow::Result<String> {
        self.run(&["rev-parse", "HEAD"])
    }
}

fn signing_key(call: &Call) -> Option<String> {
    let named = match call.text("ssh-signing-key-file") {
        "" if call.on("ssh-signing-reuse-private-key") => call.text("private-key-file"),
        file => file,
    };
    (!named.is_empty()).then(|| named.to_owned())
}
