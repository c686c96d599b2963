//! How a repository is reached that is given by its address.

use std::path::Path;

use anyhow::{Context, bail};

use crate::args::Call;
use crate::commands::create::Content;
use crate::ssh::{self, SshKey};
use crate::{logger, prompt};

/// How the repository is reached: what git needs, and what the cluster's secret holds.
pub(super) struct Access {
    pub(super) environment: Vec<(String, String)>,
    pub(super) secret: Content,
    _files: Option<tempfile::TempDir>,
}

pub(super) async fn access(call: &Call, url: &url::Url) -> anyhow::Result<Access> {
    let password = match call.text("password") {
        "" => std::env::var("GIT_PASSWORD").unwrap_or_default(),
        given => given.to_owned(),
    };
    match url.scheme() {
        "ssh" => {
            let key = key(call)?;
            let host = match call.text("ssh-hostname") {
                "" => {
                    url.host_str().unwrap_or_default().to_owned()
                        + &url.port().map(|p| format!(":{p}")).unwrap_or_default()
                }
                given => given.to_owned(),
            };
            let hosts = ssh::scan(&host).await?;
            if call.text("private-key-file").is_empty() {
                logger::success(format!("public key: {}", key.public.trim()));
                if !call.on("silent") {
                    prompt::confirm("Please give the key access to your repository")?;
                }
            }
            let files = tempfile::tempdir()?;
            let (key_file, hosts_file) = (files.path().join("identity"), files.path().join("known_hosts"));
            std::fs::write(&hosts_file, format!("{hosts}\n"))?;
            write_private(&key_file, &key.private)?;
            let command = format!(
                "ssh -i '{}' -o IdentitiesOnly=yes -o UserKnownHostsFile='{}' -o StrictHostKeyChecking=yes{}",
                key_file.display(),
                hosts_file.display(),
                host_key_algorithms(call.list("ssh-hostkey-algos"))?
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
                environment = if bearer {
                    header(format!("Authorization: Bearer {password}"))
                } else {
                    login(user, &password)
                };
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

/// The key of --private-key-file, or a new one.
///
/// # Errors
/// The file cannot be read or holds no key.
pub(super) fn key(call: &Call) -> anyhow::Result<SshKey> {
    match call.text("private-key-file") {
        "" => ssh::generate(
            call.text("ssh-key-algorithm"),
            call.text("ssh-ecdsa-curve"),
            call.text("ssh-rsa-bits"),
        ),
        file => ssh::load(
            &std::fs::read_to_string(file)
                .with_context(|| format!("failed to open private key file {file}"))?,
        ),
    }
}

/// The environment that makes git log in with a name and a password.
pub(super) fn login(user: &str, password: &str) -> Vec<(String, String)> {
    use base64::Engine;
    let pair = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
    header(format!("Authorization: Basic {pair}"))
}

/// In the environment, not among the arguments, which everyone on the machine can read.
fn header(value: String) -> Vec<(String, String)> {
    vec![
        ("GIT_CONFIG_COUNT".to_owned(), "1".to_owned()),
        ("GIT_CONFIG_KEY_0".to_owned(), "http.extraHeader".to_owned()),
        ("GIT_CONFIG_VALUE_0".to_owned(), value),
    ]
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

/// The option of `ssh` for the host key algorithms to accept. The command is read by a shell, so names must be names.
fn host_key_algorithms(names: &[String]) -> anyhow::Result<String> {
    let is_name = |name: &String| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-.@_".contains(c))
    };
    if let Some(name) = names.iter().find(|name| !is_name(name)) {
        bail!("{name:?} of --ssh-hostkey-algos is no algorithm of host keys");
    }
    Ok(if names.is_empty() { String::new() } else { format!(" -o HostKeyAlgorithms={}", names.join(",")) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_key_algorithms_are_given_to_ssh() {
        let names = |list: &[&str]| list.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
        let option = host_key_algorithms(&names(&["ssh-ed25519", "rsa-sha2-512"])).expect("names");
        assert_eq!(option, " -o HostKeyAlgorithms=ssh-ed25519,rsa-sha2-512");
        assert_eq!(host_key_algorithms(&[]).expect("none"), "");
        assert!(host_key_algorithms(&names(&["x; rm"])).is_err());
    }
}
