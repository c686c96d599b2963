//! `bootstrap`: an installation that delivers itself from a Git repository.
//!
//! `git` takes a repository as it is; the other commands first see to it that the repository, its teams and its deploy key
//! exist at a host ([`hosted`]). The steps that follow are the same ([`steps`]).

mod bitbucket;
mod clone;
mod git_auth;
mod github;
mod gitlab;
mod provider;
mod provider_api;
mod steps;

use anyhow::{Context, bail};

use crate::args::{Call, CommandResult, action};
use crate::cluster::Cluster;
use crate::command::Node;
use crate::commands::create::{ecdsa_curve, key_algorithm, rsa_bits, safe_path};
use crate::commands::install::{self, COMPONENT_FLAGS};
use crate::flag::{Flag, checked, duration, list, switch, text};

use self::bitbucket::Bitbucket;
use self::clone::Clone;
use self::github::Github;
use self::gitlab::Gitlab;
use self::provider::Place;
use self::steps::Delivery;

const NO_GPG: &str = "commits cannot be signed with GPG keys here; use --ssh-signing-key-file";
const NO_PASSPHRASE: &str =
    "commits are signed by the program git, which asks for no passphrase here; give a key without one";

const SHARED: &[Flag] = &[
    text("branch", "Branch").or("main"),
    switch("recurse-submodules", "Fetch submodules too"),
    list("sparse-checkout", "Only these paths"),
    switch("token-auth", "Use the token instead of a deploy key"),
    text("secret-name", "Secret with the credentials").or("flux-system"),
    checked("ssh-key-algorithm", key_algorithm, "Algorithm of a new SSH key: rsa, ecdsa or ed25519")
        .or("ecdsa"),
    checked("ssh-rsa-bits", rsa_bits, "Size of a new RSA key").or("2048"),
    list("ssh-hostkey-algos", "Algorithms of host keys to accept, in order of preference"),
    checked("ssh-ecdsa-curve", ecdsa_curve, "Curve of a new ECDSA key: p256, p384 or p521").or("p384"),
    text("ssh-hostname", "Host for SSH when it differs"),
    text("ca-file", "Certificate authority of the server"),
    text("private-key-file", "SSH key to use"),
    text("author-name", "Author of commits").or("Flux"),
    text("author-email", "Address of the author"),
    text("gpg-key-ring", "Refused: commits are signed with SSH keys only").refused(NO_GPG),
    text("gpg-passphrase", "Refused: commits are signed with SSH keys only").refused(NO_GPG),
    text("gpg-key-id", "Refused: commits are signed with SSH keys only").refused(NO_GPG),
    text("ssh-signing-key-file", "SSH key to sign commits with"),
    text("ssh-signing-password", "Refused: the key must not have a passphrase").refused(NO_PASSPHRASE),
    text("ssh-signing-passphrase", "Refused: the key must not have a passphrase")
        .hidden()
        .refused(NO_PASSPHRASE),
    switch("ssh-signing-reuse-private-key", "Sign commits with the key of --private-key-file"),
    text("commit-message-appendix", "Text below commit messages, e.g. [ci skip]"),
];

const PATH: Flag = checked("path", safe_path, "Folder of the cluster in the repository");
const INTERVAL: Flag = duration("interval", "1m0s", "How often the repository is fetched");

const HOSTED: &[Flag] = &[
    text("owner", "User or organization"),
    text("repository", "Name of the repository"),
    switch("personal", "The owner is a user"),
    INTERVAL,
    PATH,
    switch("read-write-key", "The deploy key may write"),
    switch("reconcile", "Change an existing repository to these options"),
];
const PRIVATE: Flag = switch("private", "The repository is private").or("true");
const TEAMS: Flag = list("team", "Teams with access, name or name:permission");

pub(crate) fn node() -> Node {
    Node::group(
        "bootstrap",
        "Install from a Git repository that then delivers itself",
        vec![git_node(), github_node(), gitlab_node(), gitea_node(), bitbucket_node()],
    )
    .shared(COMPONENT_FLAGS)
    .shared(SHARED)
}

fn git_node() -> Node {
    Node::leaf(
        "git",
        "Bootstrap from any Git repository; needs the program git",
        action(|call: Call| async move { git(&call).await }),
    )
    .flags(&[
        text("url", "Address of the repository"),
        INTERVAL,
        PATH,
        text("username", "User name").or("git").short('u'),
        text("password", "Password or token; also GIT_PASSWORD").short('p'),
        switch("silent", "The deploy key is in place already, do not ask").short('s'),
        switch("allow-insecure-http", "Allow plain HTTP"),
        switch("with-bearer-token", "Send the password as a bearer token"),
    ])
    .example(
        "Over SSH, with a new deploy key",
        "bootstrap git --url=ssh://git@git.example.com/acme/fleet --path=clusters/prod",
    )
    .example(
        "Over HTTPS",
        "bootstrap git --url=https://git.example.com/acme/fleet --token-auth --path=clusters/prod",
    )
}

fn github_node() -> Node {
    Node::leaf(
        "github",
        "Bootstrap from a repository at GitHub; the token is in GITHUB_TOKEN",
        action(|call: Call| async move {
            refuse_key_reuse(&call, "github")?;
            let place = Place::new(&call, "GitHub", "GITHUB_TOKEN", "maintain")?;
            provider::run(&call, Github::of_github(place)?).await
        }),
    )
    .flags(HOSTED)
    .flags(&[PRIVATE, TEAMS, text("hostname", "Host").or("github.com")])
    .example(
        "A private repository of an organization",
        "bootstrap github --owner=acme --repository=fleet --path=clusters/prod",
    )
    .example(
        "A public repository of a user",
        "bootstrap github --owner=jo --repository=fleet --personal --private=false --path=clusters/home",
    )
}

fn gitea_node() -> Node {
    Node::leaf(
        "gitea",
        "Bootstrap from a repository at Gitea; the token is in GITEA_TOKEN",
        action(|call: Call| async move {
            refuse_key_reuse(&call, "gitea")?;
            let place = Place::new(&call, "Gitea", "GITEA_TOKEN", "maintain")?;
            provider::run(&call, Github::gitea(place)?).await
        }),
    )
    .flags(HOSTED)
    .flags(&[PRIVATE, TEAMS, text("hostname", "Host").or("gitea.com")])
}

fn gitlab_node() -> Node {
    Node::leaf(
        "gitlab",
        "Bootstrap from a project at GitLab; the token is in GITLAB_TOKEN",
        action(|call: Call| async move {
            let place = Place::new(&call, "GitLab", "GITLAB_TOKEN", "maintain")?;
            if call.on("token-auth") && call.on("deploy-token-auth") {
                bail!("--token-auth and --deploy-token-auth cannot be set both.");
            }
            provider::run(&call, Gitlab::new(place)?).await
        }),
    )
    .flags(HOSTED)
    .flags(&[
        PRIVATE.deprecated("use --visibility instead"),
        TEAMS,
        text("hostname", "Host").or("gitlab.com"),
        checked("visibility", visibility, "private, internal or public").or("private"),
        switch("deploy-token-auth", "Use a deploy token of the project"),
    ])
}

fn bitbucket_node() -> Node {
    Node::leaf(
        "bitbucket-server",
        "Bootstrap from a repository at Bitbucket Server; the token is in BITBUCKET_TOKEN",
        action(|call: Call| async move {
            if call.text("hostname").is_empty() {
                bail!("invalid hostname \"\"");
            }
            let place = Place::new(&call, "Bitbucket", "BITBUCKET_TOKEN", "push")?;
            provider::run(&call, Bitbucket::new(place)?).await
        }),
    )
    .flags(HOSTED)
    .flags(&[
        PRIVATE,
        list("group", "Groups with access, name or name:permission"),
        text("hostname", "Host"),
        text("username", "User name").or("git").short('u'),
    ])
}

fn visibility(text: &str) -> Result<String, String> {
    match text {
        "public" | "internal" | "private" => Ok(text.to_owned()),
        _ => Err(format!("unsupported visibility '{text}'")),
    }
}

/// These hosts get a key made for them; there is none of the user's that could sign.
fn refuse_key_reuse(call: &Call, command: &str) -> CommandResult {
    if call.on("ssh-signing-reuse-private-key") {
        bail!(
            "--ssh-signing-reuse-private-key is not supported by 'bootstrap {command}'; the SSH key is made anew, use --ssh-signing-key-file"
        );
    }
    Ok(())
}

/// A repository can only deliver itself with these.
fn check_components(call: &Call) -> CommandResult {
    let chosen =
        |name: &str| call.list("components").iter().chain(call.list("components-extra")).any(|c| c == name);
    for name in ["source-controller", "kustomize-controller"] {
        if !chosen(name) {
            bail!("component {name} is required");
        }
    }
    Ok(())
}

async fn git(call: &Call) -> CommandResult {
    check_components(call)?;
    let url: url::Url = call.text("url").parse().context("git URL parse failed")?;
    let options = install::options(call)?;
    let cluster = Cluster::connect(call).await?;
    let delivery = Delivery::new(call, cluster, options)?;
    delivery.check_path().await?;
    let access = git_auth::access(call, &url).await?;
    let clone = Clone::new(call, call.text("url"), access.environment)?;
    delivery.components(&clone).await?;
    delivery.source_secret(&access.secret).await?;
    delivery.sync(&clone, call.text("url")).await?;
    delivery.finish(&clone).await
}
