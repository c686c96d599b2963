//! Bootstrapping from a repository that may first have to be made, at a host with an API.

use anyhow::{Context, bail};
use fl_types::Secret;

use super::clone::Clone;
use super::git_auth::{key, login};
use super::steps::Delivery;
use crate::args::{Call, CommandResult};
use crate::cluster::Cluster;
use crate::commands::create::Content;
use crate::commands::install;
use crate::{logger, ssh};

/// Which repository, and what the flags say about it.
pub(super) struct Place {
    /// As in messages.
    pub(super) provider: &'static str,
    pub(super) token: Secret<String>,
    /// The host as given, without scheme.
    pub(super) host: String,
    /// `https`, unless the host was given with another one.
    pub(super) scheme: String,
    pub(super) owner: String,
    pub(super) repository: String,
    pub(super) personal: bool,
    pub(super) visibility: String,
    pub(super) authority: Option<Vec<u8>>,
    /// The name for logging in to Git.
    pub(super) user: String,
    teams: Vec<(String, String)>,
}

impl Place {
    /// # Errors
    /// No token, or a file that cannot be read.
    pub(super) fn new(
        call: &Call,
        provider: &'static str,
        variable: &str,
        permission: &str,
    ) -> anyhow::Result<Place> {
        let token = std::env::var(variable).unwrap_or_default();
        if token.is_empty() {
            bail!("could not read token: set {variable} to a personal access token of {provider}");
        }
        for flag in ["owner", "repository"] {
            if call.text(flag).is_empty() {
                bail!("--{flag} is required");
            }
        }
        let (scheme, host) = match call.text("hostname").split_once("://") {
            Some((scheme, host)) => (scheme, host),
            None => ("https", call.text("hostname")),
        };
        let authority = match call.text("ca-file") {
            "" => None,
            file => Some(std::fs::read(file).context("unable to read TLS CA file")?),
        };
        let visibility = match call.has("visibility") && (call.on("private") || !call.changed("private")) {
            true => call.text("visibility"),
            false if call.on("private") => "private",
            false => "public",
        };
        let own = call.has("username") && !call.on("personal");
        let names = if call.has("group") { call.list("group") } else { call.list("team") };
        let team = |text: &String| match text.split_once(':') {
            Some((name, permission)) => (name.to_owned(), permission.to_owned()),
            None => (text.clone(), permission.to_owned()),
        };
        Ok(Place {
            provider,
            token: Secret::new(token),
            host: host.trim_end_matches('/').to_owned(),
            scheme: scheme.to_owned(),
            owner: call.text("owner").to_owned(),
            repository: call.text("repository").trim_end_matches(".git").to_owned(),
            personal: call.on("personal"),
            visibility: visibility.to_owned(),
            authority,
            user: if own { call.text("username") } else { call.text("owner") }.to_owned(),
            teams: names.iter().map(team).collect(),
        })
    }

    /// The host's address.
    pub(super) fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.host)
    }
}

/// What a deploy token lets in with.
pub(super) struct DeployToken {
    pub(super) user: String,
    pub(super) token: Secret<String>,
}

/// A host of repositories.
pub(super) trait Host {
    fn place(&self) -> &Place;
    /// The path of the repository in addresses.
    fn path(&self) -> String;
    /// The path for cloning over HTTPS, where it differs.
    fn clone_path(&self) -> String {
        format!("{}.git", self.path())
    }
    /// Whether the repository exists.
    async fn exists(&mut self) -> anyhow::Result<bool>;
    async fn create(&mut self) -> anyhow::Result<()>;
    /// Brings an existing repository to the visibility asked for; answers whether it had another.
    async fn reconcile(&mut self) -> anyhow::Result<bool>;
    /// Gives a team access; `again` also where it has some. Answers whether something changed.
    async fn grant(&mut self, team: &str, permission: &str, again: bool) -> anyhow::Result<bool>;
    /// Sees to it that a key of this title has access; answers whether something changed.
    async fn deploy_key(&mut self, title: &str, key: &str, write: bool) -> anyhow::Result<bool>;
    /// A token for the repository; none when one of this name exists.
    async fn deploy_token(&mut self, _name: &str) -> anyhow::Result<Option<DeployToken>> {
        bail!("{} has no deploy tokens", self.place().provider)
    }
}

/// The repository with its settings and teams.
async fn repository(call: &Call, host: &mut impl Host) -> CommandResult {
    let name = format!("{}/{}", host.place().url(), host.path());
    logger::action(format!("connecting to {}", host.place().host));
    if !host.exists().await.with_context(|| format!("failed to get Git repository {name:?}"))? {
        host.create().await.with_context(|| format!("failed to create new Git repository {name:?}"))?;
        logger::success(format!("repository {name:?} created"));
    }
    if call.on("reconcile")
        && host.reconcile().await.with_context(|| format!("failed to reconcile Git repository {name:?}"))?
    {
        logger::success(format!("repository {name:?} reconciled"));
    }
    let teams = host.place().teams.clone();
    if host.place().personal || teams.is_empty() {
        return Ok(());
    }
    logger::action("reconciling repository permissions");
    for (team, permission) in &teams {
        match host.grant(team, permission, call.on("reconcile")).await {
            Ok(true) => logger::success(format!("granted {permission:?} permissions to {team:?}")),
            Ok(false) => {}
            // The repository works without it; report it as a warning.
            Err(error) => {
                logger::failure(format!("failed to grant {permission:?} permissions to {team:?}: {error:#}"));
            }
        }
    }
    logger::success("reconciled repository permissions");
    Ok(())
}

/// What namespace, branch, secret and path make of a deploy key's title.
fn title(call: &Call) -> String {
    let parts = [call.namespace(), call.text("branch"), call.text("secret-name"), call.text("path")];
    parts.into_iter().filter(|p| !p.is_empty()).collect::<Vec<_>>().join("-")
}

/// The secret the cluster reads the repository with.
async fn secret(call: &Call, delivery: &Delivery<'_>, host: &mut impl Host) -> CommandResult {
    let authority = || -> anyhow::Result<Content> {
        match &host.place().authority {
            Some(pem) => {
                let pem = std::str::from_utf8(pem).context("the CA file is no text")?;
                Ok(Content::default().file("ca.crt", pem))
            }
            None => Ok(Content::default()),
        }
    };
    if call.on("token-auth") {
        let user = if call.has("username") { host.place().user.as_str() } else { "git" };
        return delivery.source_secret(&authority()?.pair(user, host.place().token.expose())).await;
    }
    if call.has("deploy-token-auth") && call.on("deploy-token-auth") {
        let mut content = authority()?;
        logger::action("checking to reconcile deploy token for source secret");
        let name = title(call);
        match host.deploy_token(&name).await? {
            Some(token) => {
                logger::success(format!("configured deploy token {name:?} for {:?}", host.path()));
                content = content.pair(&token.user, token.token.expose());
            }
            None => logger::success("reconciled deploy token for source secret"),
        }
        return delivery.source_secret(&content).await;
    }
    if delivery.has_secret().await? && call.text("private-key-file").is_empty() {
        logger::success("source secret up to date");
        return Ok(());
    }
    logger::action("generating source secret");
    let key = key(call)?;
    let hosts = ssh::scan(&ssh_host(call, host.place())).await?;
    logger::success(format!("public key: {}", key.public.trim()));
    let title = title(call);
    if host.deploy_key(&title, key.public.trim(), call.on("read-write-key")).await? {
        let name = format!("{}/{}", host.place().url(), host.path());
        logger::success(format!("configured deploy key {title:?} for {name:?}"));
    }
    let content = Content::default()
        .file("identity", &key.private)
        .file("identity.pub", &key.public)
        .file("known_hosts", &hosts);
    delivery.apply_secret(&content).await
}

fn ssh_host(call: &Call, place: &Place) -> String {
    match call.text("ssh-hostname") {
        // The port of the API is not that of SSH.
        "" => place.host.split(':').next().unwrap_or_default().to_owned(),
        given => given.to_owned(),
    }
}

/// Bootstraps from a repository at this host.
pub(super) async fn run(call: &Call, mut host: impl Host) -> CommandResult {
    super::check_components(call)?;
    let options = install::options(call)?;
    let cluster = Cluster::connect(call).await?;
    let delivery = Delivery::new(call, cluster, options)?;
    delivery.check_path().await?;
    repository(call, &mut host).await?;
    let https = format!("{}/{}", host.place().url(), host.clone_path());
    let over_https = call.on("token-auth") || call.has("deploy-token-auth") && call.on("deploy-token-auth");
    let sync_url = match over_https {
        true => https.clone(),
        false => format!("ssh://git@{}/{}", ssh_host(call, host.place()), host.path()),
    };
    let mut environment = login(&host.place().user, host.place().token.expose());
    if !call.text("ca-file").is_empty() {
        environment.push(("GIT_SSL_CAINFO".to_owned(), call.text("ca-file").to_owned()));
    }
    let clone = Clone::new(call, &https, environment)?;
    delivery.components(&clone).await?;
    secret(call, &delivery, &mut host).await?;
    delivery.sync(&clone, &sync_url).await?;
    delivery.finish(&clone).await
}
