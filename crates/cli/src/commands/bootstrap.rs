//! `bootstrap`: an installation that delivers itself from a Git repository.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};
use serde_json::{Value, json};

use crate::call::{Call, Outcome, action};
use crate::cluster::{Cluster, Resource, text_at};
use crate::commands::create::{Content, ecdsa_curve, key_algorithm, rsa_bits, safe_path, upsert_secret};
use crate::commands::install::{self, COMPONENT_FLAGS};
use crate::commands::status::wait_for;
use crate::flag::{Flag, checked, duration, list, switch, text};
use crate::kinds::{self, Kind};
use crate::node::Node;
use crate::{prompt, say, ssh, text as view};

const SHARED: &[Flag] = &[
    text("branch", "Branch").or("main"),
    switch("recurse-submodules", "Fetch submodules too"),
    list("sparse-checkout", "Only these paths"),
    switch("token-auth", "Use the token instead of a deploy key"),
    text("secret-name", "Secret with the credentials").or("flux-system"),
    checked("ssh-key-algorithm", key_algorithm, "Algorithm of a new SSH key: rsa, ecdsa or ed25519")
        .or("ecdsa"),
    checked("ssh-rsa-bits", rsa_bits, "Size of a new RSA key").or("2048"),
    list("ssh-hostkey-algos", "Algorithms of host keys to accept"),
    checked("ssh-ecdsa-curve", ecdsa_curve, "Curve of a new ECDSA key: p256, p384 or p521").or("p384"),
    text("ssh-hostname", "Host for SSH when it differs"),
    text("ca-file", "Certificate authority of the server"),
    text("private-key-file", "SSH key to use"),
    text("author-name", "Author of commits").or("Flux"),
    text("author-email", "Address of the author"),
    text("gpg-key-ring", "GPG key ring to sign commits with"),
    text("gpg-passphrase", "Passphrase of the GPG key"),
    text("gpg-key-id", "GPG key to choose"),
    text("ssh-signing-key-file", "SSH key to sign commits with"),
    text("ssh-signing-password", "Passphrase of that key"),
    text("ssh-signing-passphrase", "The same").hidden(),
    switch("ssh-signing-reuse-private-key", "Sign commits with the key of --private-key-file"),
    text("commit-message-appendix", "Text below commit messages, e.g. [ci skip]"),
];

const PATH: Flag = checked("path", safe_path, "Folder of the cluster in the repository");
const INTERVAL: Flag = duration("interval", "1m0s", "How often the repository is fetched");

const HOSTED: &[Flag] = &[
    text("owner", "User or organization"),
    text("repository", "Name of the repository"),
    switch("personal", "The owner is a user"),
    switch("private", "The repository is private").or("true"),
    INTERVAL,
    PATH,
    switch("read-write-key", "The deploy key may write"),
    switch("reconcile", "Change an existing repository to these options"),
];

pub(crate) fn node() -> Node {
    let hosted = |name: &'static str, host: &'static str, more: &[Flag]| {
        Node::leaf(
            name,
            &format!("Bootstrap from a repository at {host}"),
            action(move |_: Call| async move { unavailable(host) }),
        )
        .flags(HOSTED)
        .flags(more)
    };
    let teams = list("team", "Teams with access");
    Node::group(
        "bootstrap",
        "Install from a Git repository that then delivers itself",
        vec![
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
            ),
            hosted("github", "GitHub", &[teams, text("hostname", "Host").or("github.com")]),
            hosted(
                "gitlab",
                "GitLab",
                &[
                    teams,
                    text("hostname", "Host").or("gitlab.com"),
                    text("visibility", "private, internal or public").or("private"),
                    switch("deploy-token-auth", "Use a deploy token of the project"),
                ],
            ),
            hosted("gitea", "Gitea", &[teams, text("hostname", "Host").or("gitea.com")]),
            hosted(
                "bitbucket-server",
                "Bitbucket Server",
                &[
                    list("group", "Groups with access"),
                    text("hostname", "Host"),
                    text("username", "User name").or("git").short('u'),
                ],
            ),
        ],
    )
    .shared(COMPONENT_FLAGS)
    .shared(SHARED)
}

fn unavailable(host: &str) -> Outcome {
    bail!(
        "repositories at {host} cannot be created from here: create the repository and its access yourself, \
         then use `bootstrap git --url=…`"
    )
}

/// A clone in a temporary folder, worked on by the program `git`.
struct Clone {
    folder: tempfile::TempDir,
    branch: String,
    url: String,
    environment: Vec<(String, String)>,
}

impl Clone {
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
    fn start(&self) -> Outcome {
        say::action(format!("cloning branch {:?} from Git repository {:?}", self.branch, self.url));
        self.run(&["init", "-q", "-b", &self.branch])?;
        self.run(&["remote", "add", "origin", &self.url])?;
        let refs = self.run(&["ls-remote", "--heads", "origin"]).context("failed to clone repository")?;
        let reference = format!("refs/heads/{}", self.branch);
        if refs.lines().any(|line| line.ends_with(&format!("\t{reference}"))) {
            self.run(&["fetch", "-q", "origin", &reference]).context("failed to clone repository")?;
            self.run(&["reset", "-q", "--hard", "FETCH_HEAD"])?;
        }
        say::success("cloned repository");
        Ok(())
    }

    fn write(&self, path: &Path, content: &str) -> Outcome {
        let full = self.folder.path().join(path);
        if let Some(parent) = full.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(&full, content).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Commits and pushes what changed.
    fn publish(&self, call: &Call, message: &str, what: &str) -> Outcome {
        self.run(&["add", "-A"])?;
        if self.run(&["status", "--porcelain"])?.is_empty() {
            say::success(format!("{what} are up to date"));
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
        say::success(format!("committed {what} to {:?} ({head:?})", self.branch));
        say::action(format!("pushing {what} to {:?}", self.url));
        self.run(&["push", "-q", "origin", &format!("HEAD:refs/heads/{}", self.branch)])
            .with_context(|| format!("failed to push {what}"))?;
        Ok(())
    }

    fn head(&self) -> anyhow::Result<String> {
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

/// How the repository is reached: what git needs, and what the cluster's secret holds.
struct Access {
    environment: Vec<(String, String)>,
    secret: Content,
    _files: Option<tempfile::TempDir>,
}

async fn access(call: &Call, url: &url::Url) -> anyhow::Result<Access> {
    let password = match call.text("password") {
        "" => std::env::var("GIT_PASSWORD").unwrap_or_default(),
        given => given.to_owned(),
    };
    match url.scheme() {
        "ssh" => {
            let key = match call.text("private-key-file") {
                "" => ssh::generate(
                    call.text("ssh-key-algorithm"),
                    call.text("ssh-ecdsa-curve"),
                    call.text("ssh-rsa-bits"),
                )?,
                file => ssh::load(
                    &std::fs::read_to_string(file)
                        .with_context(|| format!("failed to open private key file {file}"))?,
                )?,
            };
            let host = match call.text("ssh-hostname") {
                "" => {
                    url.host_str().unwrap_or_default().to_owned()
                        + &url.port().map(|p| format!(":{p}")).unwrap_or_default()
                }
                given => given.to_owned(),
            };
            let hosts = ssh::scan(&host).await?;
            if call.text("private-key-file").is_empty() {
                say::success(format!("public key: {}", key.public.trim()));
                if !call.on("silent") {
                    prompt::confirm("Please give the key access to your repository")?;
                }
            }
            let files = tempfile::tempdir()?;
            let (key_file, hosts_file) = (files.path().join("identity"), files.path().join("known_hosts"));
            std::fs::write(&hosts_file, format!("{hosts}\n"))?;
            write_private(&key_file, &key.private)?;
            let command = format!(
                "ssh -i '{}' -o IdentitiesOnly=yes -o UserKnownHostsFile='{}' -o StrictHostKeyChecking=yes",
                key_file.display(),
                hosts_file.display()
            );
            let secret = Content::default()
                .file("identity", &key.private)
                .file("identity.pub", &key.public)
                .file("known_hosts", &hosts);
            Ok(Access {
                environment: vec![("GIT_SSH_COMMAND".to_owned(), command)],
                secret,
                _files: Some(files),
            })
        }
        scheme @ ("https" | "http") => {
            if scheme == "http" && !call.on("allow-insecure-http") {
                bail!("scheme http is insecure, pass --allow-insecure-http=true to allow it");
            }
            let user = call.text("username");
            let bearer = call.on("with-bearer-token");
            let mut environment = Vec::new();
            if !password.is_empty() {
                let header = if bearer {
                    format!("Authorization: Bearer {password}")
                } else {
                    use base64::Engine;
                    let pair = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
                    format!("Authorization: Basic {pair}")
                };
                // In the environment, not among the arguments, which everyone on the machine can read.
                environment = vec![
                    ("GIT_CONFIG_COUNT".to_owned(), "1".to_owned()),
                    ("GIT_CONFIG_KEY_0".to_owned(), "http.extraHeader".to_owned()),
                    ("GIT_CONFIG_VALUE_0".to_owned(), header),
                ];
            }
            let mut secret = if bearer {
                Content::default().file("bearerToken", &password)
            } else {
                Content::default().pair(user, &password)
            };
            if !call.text("ca-file").is_empty() {
                let authority =
                    std::fs::read_to_string(call.text("ca-file")).context("unable to read TLS CA file")?;
                environment.push(("GIT_SSL_CAINFO".to_owned(), call.text("ca-file").to_owned()));
                secret = secret.file("ca.crt", &authority);
            }
            Ok(Access { environment, secret, _files: None })
        }
        other => bail!("git URL scheme '{other}' not supported, can be: ssh, http and https"),
    }
}

fn write_private(path: &Path, content: &str) -> std::io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?
        .write_all(content.as_bytes())
}

async fn git(call: &Call) -> Outcome {
    let url: url::Url = call.text("url").parse().context("git URL parse failed")?;
    if !call.text("gpg-key-ring").is_empty() {
        bail!("commits cannot be signed with GPG keys here; use --ssh-signing-key-file");
    }
    let options = install::options(call)?;
    let cluster = Cluster::connect(call).await?;
    let path = call.text("path").trim_start_matches("./").to_owned();
    let namespace = call.namespace();
    check_path(&cluster, namespace, &path).await?;
    let access = access(call, &url).await?;
    let clone = Clone {
        folder: tempfile::tempdir()?,
        branch: call.text("branch").to_owned(),
        url: call.text("url").to_owned(),
        environment: access.environment,
    };
    clone.start()?;
    let folder = Path::new(&path).join(namespace);
    say::action("generating component manifests");
    let objects = fl_install::manifests(&options).context("component manifest generation failed")?;
    clone.write(&folder.join("gotk-components.yaml"), &install::manifest_text(&options, &objects)?)?;
    say::success("generated component manifests");
    clone.publish(
        call,
        &format!("Add Flux {} component manifests", options.version),
        "component manifests",
    )?;
    say::action(format!("installing components in {namespace:?} namespace"));
    install::apply(&cluster, &objects).await?;
    say::success("installed components");
    install::pull_secret(call, &cluster, &options).await?;
    say::success("reconciled components");
    source_secret(call, &cluster, &access.secret).await?;
    sync(call, &cluster, &clone, &folder, &path).await?;
    let revision = format!("{}@sha1:{}", clone.branch, clone.head()?);
    for kind in [&kinds::GIT, &kinds::KUSTOMIZATION] {
        reconciled(&cluster, kind, namespace, &revision).await?;
    }
    say::action("confirming components are healthy");
    for deployment in objects.iter().filter(|o| o["kind"] == "Deployment") {
        if !wait_for(&cluster, deployment).await {
            bail!("timed out waiting for all resources to be ready");
        }
    }
    say::success("all components are healthy");
    Ok(())
}

/// A cluster that delivers another folder must not be moved by accident.
async fn check_path(cluster: &Cluster, namespace: &str, path: &str) -> Outcome {
    let found = match cluster.find(&kinds::KUSTOMIZATION.resource(), namespace, namespace).await {
        Ok(found) => found,
        Err(error) if error.is_no_match() => None,
        Err(error) => {
            bail!("failed to determine if sync configuration would overwrite existing Kustomization: {error}")
        }
    };
    let plain = |text: &str| text.trim_start_matches("./").trim_end_matches('/').to_owned();
    if let Some(found) = found {
        let current = text_at(&found, "/spec/path");
        if plain(current) != plain(path) {
            bail!(
                "sync path configuration ({path:?}) would overwrite path ({current:?}) of existing Kustomization"
            );
        }
    }
    Ok(())
}

async fn source_secret(call: &Call, cluster: &Cluster, content: &Content) -> Outcome {
    let (name, namespace) = (call.text("secret-name"), call.namespace());
    let key = format!("{namespace}/{name}");
    say::action(format!("determining if source secret {key:?} exists"));
    let exists =
        cluster.find(&Resource::new("v1", "Secret", "secrets", true), namespace, name).await?.is_some();
    if exists && content.is_empty() {
        say::success("source secret up to date");
        return Ok(());
    }
    say::action("generating source secret");
    say::action(format!("applying source secret {key:?}"));
    upsert_secret(cluster, &content.secret(name, namespace, &Default::default(), "")).await?;
    say::success("reconciled source secret");
    Ok(())
}

/// The objects that make the repository deliver the cluster, and the kustomization that lists them.
async fn sync(call: &Call, cluster: &Cluster, clone: &Clone, folder: &Path, path: &str) -> Outcome {
    say::action("generating sync manifests");
    let objects = sync_objects(call, &clone.url, path);
    let text = format!(
        "# This manifest was generated by fluorite. DO NOT EDIT.\n---\n{}---\n{}",
        view::yaml(&objects[0]),
        view::yaml(&objects[1])
    );
    clone.write(&folder.join("gotk-sync.yaml"), &text)?;
    let kustomization = folder.join("kustomization.yaml");
    // A kustomization with patches of the user's stays as it is.
    if !clone.folder.path().join(&kustomization).exists() {
        let list = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n- gotk-components.yaml\n- gotk-sync.yaml\n";
        clone.write(&kustomization, list)?;
    }
    say::success("generated sync manifests");
    clone.publish(call, "Add Flux sync manifests", "sync manifests")?;
    say::action("applying sync manifests");
    install::apply(cluster, &objects).await?;
    say::success("reconciled sync configuration");
    Ok(())
}

fn sync_objects(call: &Call, url: &str, path: &str) -> Vec<Value> {
    let namespace = call.namespace();
    let metadata = json!({"name": namespace, "namespace": namespace});
    let mut spec = json!({
        "interval": call.text("interval"),
        "ref": {"branch": call.text("branch")},
        "secretRef": {"name": call.text("secret-name")},
        "url": url,
    });
    if call.on("recurse-submodules") {
        spec["recurseSubmodules"] = json!(true);
    }
    if !call.list("sparse-checkout").is_empty() {
        spec["sparseCheckout"] = json!(call.list("sparse-checkout"));
    }
    vec![
        json!({"apiVersion": kinds::GIT.api_version(), "kind": "GitRepository", "metadata": metadata, "spec": spec}),
        json!({
            "apiVersion": kinds::KUSTOMIZATION.api_version(),
            "kind": "Kustomization",
            "metadata": metadata,
            "spec": {
                "interval": "10m0s",
                "path": format!("./{path}"),
                "prune": true,
                "sourceRef": {"kind": "GitRepository", "name": namespace},
            },
        }),
    ]
}

async fn reconciled(cluster: &Cluster, kind: &Kind, name: &str, revision: &str) -> Outcome {
    say::waiting(format!("waiting for {} \"{name}/{name}\" to be reconciled", kind.kind));
    let resource = kind.resource();
    let done = cluster
        .poll(|| async {
            let object = cluster.get(&resource, name, name).await?;
            Ok((kind.revision(&object) == revision && kinds::is_ready(&object, true)?).then_some(()))
        })
        .await;
    if let Err(error) = done {
        say::failure(format!("{error:#}"));
        bail!("error while waiting for {} to be ready: '{error:#}'", kind.kind);
    }
    say::success(format!("{} reconciled successfully", kind.kind));
    Ok(())
}
