//! `create secret …`: credentials in the shape flux reads them.

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::checks::{check_url, ecdsa_curve, key_algorithm, receiver_type, rsa_bits, scheme_and_host};
use super::source::helm_content;
use super::{labels, leaf, metadata, name, upsert};
use crate::args::{Call, CommandResult, action};
use crate::cluster::Cluster;
use crate::command::Node;
use crate::flag::{Flag, checked, list, text};
use crate::format::go_io_error;
use crate::image::check_reference;
use crate::{format as view, logger, ssh};

const USERNAME: Flag = text("username", "User name").short('u');
const PASSWORD: Flag = text("password", "Password").short('p');
const TLS_FLAGS: [Flag; 3] = [
    text("tls-crt-file", "Certificate of the client"),
    text("tls-key-file", "Key of the client"),
    text("ca-crt-file", "Certificate authority"),
];

pub(super) fn node() -> Node {
    Node::group(
        "secret",
        "Create or update secrets flux reads",
        vec![
            leaf!("git", "Create or update credentials for Git", git)
                .flags(&[
                    text("url", "Address of the repository"),
                    USERNAME,
                    PASSWORD,
                    checked("ssh-key-algorithm", key_algorithm, "Algorithm of a new SSH key: rsa, ecdsa or ed25519").or("ecdsa"),
                    checked("ssh-rsa-bits", rsa_bits, "Size of a new RSA key").or("2048"),
                    checked("ssh-ecdsa-curve", ecdsa_curve, "Curve of a new ECDSA key: p256, p384 or p521").or("p384"),
                    text("ca-crt-file", "Certificate authority of the server"),
                    text("private-key-file", "SSH key without a passphrase"),
                    text("bearer-token", "Token instead of user and password"),
                ])
                .example("User and token", "create secret git app --url=https://git.example.com/acme/app --username=bot --password=$TOKEN")
                .example("A new deploy key", "create secret git app --url=ssh://git@git.example.com/acme/app"),
            leaf!("helm", "Create or update credentials for a Helm repository", helm).flags(&[USERNAME, PASSWORD]).flags(&TLS_FLAGS),
            leaf!("oci", "Create or update an image pull secret", oci)
                .flags(&[text("url", "Address of the registry"), USERNAME, PASSWORD])
                .example("For a registry", "create secret oci pull --url=registry.example.com --username=bot --password=$TOKEN"),
            leaf!("tls", "Create or update TLS certificates", tls).flags(&TLS_FLAGS),
            leaf!("proxy", "Create or update the address of a proxy", proxy)
                .flags(&[text("address", "Address of the proxy"), USERNAME, PASSWORD]),
            leaf!("notation", "Create or update what Notation trusts", notation).flags(&[
                text("trust-policy-file", "Trust policy"),
                list("ca-cert-file", "Root certificates, .crt or .pem"),
            ]),
            leaf!("githubapp", "Create or update the credentials of a GitHub app", github_app).flags(&[
                text("app-id", "ID of the app"),
                text("app-installation-owner", "User or organization of the installation"),
                text("app-installation-id", "ID of the installation"),
                text("app-private-key", "File with the key of the app"),
                text("app-base-url", "Address of an enterprise server"),
            ]),
            leaf!("receiver", "Create or update the token of a Receiver", receiver).flags(&[
                checked("type", receiver_type, "Type of the Receiver"),
                text("token", "Token; a new one when left out"),
                text("hostname", "Host name of the webhook"),
                text("email-claim", "Service account that calls, for type gcr"),
                text("audience-claim", "Audience of its tokens, for type gcr"),
            ]),
        ],
    )
}

/// What a secret holds, as text.
#[derive(Default)]
pub(crate) struct Content(BTreeMap<String, String>);

impl Content {
    /// An entry; nothing when the text is empty.
    pub(crate) fn file(mut self, key: &str, value: &str) -> Content {
        if !value.is_empty() {
            self.0.insert(key.to_owned(), value.to_owned());
        }
        self
    }

    /// User and password, when both are given.
    pub(crate) fn pair(self, username: &str, password: &str) -> Content {
        if username.is_empty() || password.is_empty() {
            return self;
        }
        self.file("username", username).file("password", password)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn get(&self, key: &str) -> Option<&String> {
        self.0.get(key)
    }

    pub(crate) fn secret(
        &self,
        name: &str,
        namespace: &str,
        labels: &BTreeMap<String, String>,
        kind: &str,
    ) -> Value {
        let mut secret =
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata(name, namespace, labels)});
        if !self.0.is_empty() {
            secret["stringData"] = json!(self.0);
        }
        if !kind.is_empty() {
            secret["type"] = json!(kind);
        }
        secret
    }
}

/// The file a flag names; empty when the flag was not given.
pub(super) fn read_file(call: &Call, flag: &str, failure: &str) -> anyhow::Result<String> {
    let path = call.text(flag);
    if path.is_empty() { Ok(String::new()) } else { read(path, failure) }
}

fn read(path: &str, failure: &str) -> anyhow::Result<String> {
    match std::fs::read(path) {
        Ok(bytes) => String::from_utf8(bytes).with_context(|| format!("{failure}: {path} is no text")),
        Err(error) => bail!("{failure}: {}", go_io_error("open", path, &error)),
    }
}

/// Prints the secret or puts it in the cluster. flux ends all but one kind with an empty line.
async fn finish(call: &Call, what: &str, secret: Value) -> CommandResult {
    if call.on("export") {
        logger::data(&format!("---\n{}", view::yaml(&secret)));
        if what != "tls" {
            logger::data("\n");
        }
        return Ok(());
    }
    if let Some(key) = secret.pointer("/stringData/identity.pub").and_then(Value::as_str) {
        logger::generate(format!("deploy key: {key}"));
    }
    let cluster = Cluster::connect(call).await?;
    upsert::secret(&cluster, &secret).await?;
    logger::action(format!("{what} secret '{}' created in '{}' namespace", name(call), call.namespace()));
    Ok(())
}

async fn git(call: &Call) -> CommandResult {
    let url = call.text("url");
    if url.is_empty() {
        bail!("url is required");
    }
    check_url(url).map_err(|why| anyhow::anyhow!("git URL parse failed: {why}"))?;
    let labels = labels(call)?;
    let (scheme, host) = scheme_and_host(url);
    let (username, password, token) =
        (call.text("username"), call.text("password"), call.text("bearer-token"));
    let content = match scheme {
        "ssh" => git_content(call, host, password).await?,
        "http" | "https" => {
            let pair = !username.is_empty() && !password.is_empty();
            if !pair && token.is_empty() {
                bail!("for Git over HTTP/S the username and password, or a bearer token is required");
            }
            if pair && !token.is_empty() {
                bail!("user credentials and bearer token cannot be used together");
            }
            let authority = read_file(call, "ca-crt-file", "unable to read TLS CA file")?;
            Content::default().pair(username, password).file("bearerToken", token).file("ca.crt", &authority)
        }
        _ => bail!("git URL scheme '{scheme}' not supported, can be: ssh, http and https"),
    };
    finish(call, "git", content.secret(name(call), call.namespace(), &labels, "")).await
}

/// An SSH key, given or new, with the host keys of the server.
pub(super) async fn git_content(call: &Call, host: &str, password: &str) -> anyhow::Result<Content> {
    let key = match call.text("private-key-file") {
        "" => ssh::generate(
            call.text("ssh-key-algorithm"),
            call.text("ssh-ecdsa-curve"),
            call.text("ssh-rsa-bits"),
        )
        .context("key pair generation failed, error")?,
        path => ssh::load(&read(path, "failed to open private key file")?)?,
    };
    let hosts = ssh::scan(host).await?;
    Ok(Content::default()
        .file("identity", &key.private)
        .file("identity.pub", &key.public)
        .file("known_hosts", hosts.trim())
        .file("password", password))
}

async fn helm(call: &Call) -> CommandResult {
    let labels = labels(call)?;
    let authority = read_file(call, "ca-crt-file", "unable to read TLS CA file")?;
    let certificate = read_file(call, "tls-crt-file", "failed to read cert file")?;
    let key = read_file(call, "tls-key-file", "failed to read key file")?;
    let (content, kind) =
        helm_content(call.text("username"), call.text("password"), &certificate, &key, &authority)?;
    finish(call, "helm", content.secret(name(call), call.namespace(), &labels, kind)).await
}

async fn oci(call: &Call) -> CommandResult {
    let (url, username, password) = (call.text("url"), call.text("username"), call.text("password"));
    for (flag, value) in [("url", url), ("username", username), ("password", password)] {
        if value.is_empty() {
            bail!("--{flag} is required");
        }
    }
    if let Err(why) = check_reference(url)
        && !url.contains("://")
    {
        bail!("error parsing url: '{why}'");
    }
    let json_text = |text: &str| serde_json::to_string(text).expect("text is JSON");
    let auth = STANDARD.encode(format!("{username}:{password}"));
    // Written by hand: the order of the keys is part of what flux prints.
    let config = format!(
        "{{\n  \"auths\": {{\n    {}: {{\n      \"username\": {},\n      \"password\": {},\n      \"auth\": {}\n    }}\n  }}\n}}",
        json_text(url),
        json_text(username),
        json_text(password),
        json_text(&auth)
    );
    let content = Content::default().file(".dockerconfigjson", &config);
    finish(
        call,
        "oci",
        content.secret(name(call), call.namespace(), &BTreeMap::new(), "kubernetes.io/dockerconfigjson"),
    )
    .await
}

async fn tls(call: &Call) -> CommandResult {
    let labels = labels(call)?;
    let authority = read_file(call, "ca-crt-file", "unable to read TLS CA file")?;
    let certificate = read_file(call, "tls-crt-file", "failed to read cert file")?;
    let key = read_file(call, "tls-key-file", "failed to read key file")?;
    let (content, kind) = tls_content(&certificate, &key, &authority)?;
    finish(call, "tls", content.secret(name(call), call.namespace(), &labels, kind)).await
}

/// A certificate with its key, an authority, or both; and the type of the secret that holds them.
pub(super) fn tls_content(
    certificate: &str,
    key: &str,
    authority: &str,
) -> anyhow::Result<(Content, &'static str)> {
    match (certificate.is_empty(), key.is_empty()) {
        (false, true) => bail!("found certificate but missing private key"),
        (true, false) => bail!("found private key but missing certificate"),
        (true, true) if authority.is_empty() => bail!("no CA certificate or client certificate pair found"),
        (true, true) => Ok((Content::default().file("ca.crt", authority), "Opaque")),
        (false, false) => {
            check_pair(certificate, key).context("invalid TLS certificate and key pair")?;
            let content = Content::default()
                .file("tls.crt", certificate)
                .file("tls.key", key)
                .file("ca.crt", authority);
            Ok((content, "kubernetes.io/tls"))
        }
    }
}

fn check_pair(certificate: &str, key: &str) -> anyhow::Result<()> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(certificate.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|_| anyhow::anyhow!("the certificate is no PEM file"))?;
    if chain.is_empty() {
        bail!("tls: failed to find any PEM data in certificate input");
    }
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes())
        .map_err(|_| anyhow::anyhow!("tls: failed to find any PEM data in key input"))?;
    rustls::sign::CertifiedKey::from_der(chain, key, &rustls::crypto::ring::default_provider())?;
    Ok(())
}

async fn proxy(call: &Call) -> CommandResult {
    let labels = labels(call)?;
    if call.text("address").is_empty() {
        bail!("address is required");
    }
    let content = Content::default()
        .file("address", call.text("address"))
        .file("username", call.text("username"))
        .file("password", call.text("password"));
    finish(call, "proxy", content.secret(name(call), call.namespace(), &labels, "Opaque")).await
}

async fn notation(call: &Call) -> CommandResult {
    if call.list("ca-cert-file").is_empty() {
        bail!("--ca-cert-file is required");
    }
    let policy_file = call.text("trust-policy-file");
    if policy_file.is_empty() {
        bail!("--trust-policy-file is required");
    }
    let labels = labels(call)?;
    let policy = read(policy_file, "unable to read trust policy file")?;
    let document: Value = serde_json::from_str(&policy).map_err(|error| {
        let why = if error.is_eof() { "unexpected end of JSON input".to_owned() } else { error.to_string() };
        anyhow::anyhow!("failed to unmarshal trust policy {policy_file}: {why}")
    })?;
    check_policy(&document).context("invalid trust policy")?;
    let mut content = Content::default();
    let mut failures = Vec::new();
    for path in call.list("ca-cert-file") {
        let file = path.rsplit('/').next().unwrap_or(path);
        if !file.ends_with(".crt") && !file.ends_with(".pem") {
            failures.push(format!("{file} must end with either .crt or .pem"));
            continue;
        }
        match read(path, "unable to read TLS CA file") {
            Ok(text) => content = content.file(file, &text),
            Err(error) => failures.push(format!("{error:#}")),
        }
    }
    if !failures.is_empty() {
        bail!("{}", failures.join("\n"));
    }
    let content = content.file("trustpolicy.json", &policy);
    finish(call, "notation configuration", content.secret(name(call), call.namespace(), &labels, "")).await
}

/// The parts of Notation's trust policy that decide whether it can be used at all.
fn check_policy(document: &Value) -> anyhow::Result<()> {
    let version = document["version"].as_str().unwrap_or_default();
    if version.is_empty() {
        bail!("trust policy document has empty version, version must be specified");
    }
    if version != "1.0" {
        bail!("trust policy document uses unsupported version {version:?}");
    }
    let policies = document["trustPolicies"].as_array().cloned().unwrap_or_default();
    if policies.is_empty() {
        bail!("trust policy document can not have zero trust policy statements");
    }
    for policy in &policies {
        let Some(name) = policy["name"].as_str().filter(|n| !n.is_empty()) else {
            bail!("a trust policy statement is missing a name, every statement requires a name");
        };
        let level =
            policy.pointer("/signatureVerification/level").and_then(Value::as_str).unwrap_or_default();
        if !["strict", "permissive", "audit", "skip"].contains(&level) {
            bail!(
                "trust policy statement {name:?} has invalid signatureVerification: invalid signature verification level {level:?}"
            );
        }
        if level != "skip"
            && (policy["trustStores"].as_array().is_none_or(Vec::is_empty)
                || policy["trustedIdentities"].as_array().is_none_or(Vec::is_empty))
        {
            bail!(
                "trust policy statement {name:?} is either missing trust stores or trusted identities, both must be specified"
            );
        }
        if policy["registryScopes"].as_array().is_none_or(Vec::is_empty) {
            bail!(
                "trust policy statement {name:?} has zero registry scopes, it must specify registry scopes with at least one value"
            );
        }
    }
    Ok(())
}

async fn github_app(call: &Call) -> CommandResult {
    let key = read(call.text("app-private-key"), "unable to read private key file")?;
    let (id, owner, installation) =
        (call.text("app-id"), call.text("app-installation-owner"), call.text("app-installation-id"));
    if id.is_empty() {
        bail!("githubAppID is required");
    }
    if key.is_empty() {
        bail!("githubAppPrivateKey is required");
    }
    if owner.is_empty() == installation.is_empty() {
        bail!("exactly one of githubAppInstallationOwner or githubAppInstallationID must be provided");
    }
    let content = Content::default()
        .file("githubAppID", id)
        .file("githubAppPrivateKey", &key)
        .file("githubAppInstallationOwner", owner)
        .file("githubAppInstallationID", installation)
        .file("githubAppBaseURL", call.text("app-base-url"));
    finish(call, "githubapp", content.secret(name(call), call.namespace(), &BTreeMap::new(), "Opaque")).await
}

/// The path a Receiver listens on.
pub(crate) fn webhook_path(token: &str, name: &str, namespace: &str) -> String {
    let digest = Sha256::digest(format!("{token}{name}{namespace}"));
    format!("/hook/{}", view::hex(&digest))
}

async fn receiver(call: &Call) -> CommandResult {
    let kind = call.text("type");
    if kind.is_empty() {
        bail!("--type is required");
    }
    let hostname = call.text("hostname");
    if hostname.is_empty() {
        bail!("--hostname is required");
    }
    if kind == "gcr" && call.text("email-claim").is_empty() {
        bail!("--email-claim is required for gcr receiver type");
    }
    let labels = labels(call)?;
    let token = match call.text("token") {
        "" => view::hex(&rand::random::<[u8; 32]>()),
        given => given.to_owned(),
    };
    let url = format!("https://{hostname}{}", webhook_path(&token, name(call), call.namespace()));
    let mut content = Content::default().file("token", &token);
    if kind == "gcr" {
        let audience = match call.text("audience-claim") {
            "" => &url,
            given => given,
        };
        content = content.file("email", call.text("email-claim")).file("audience", audience);
    }
    let mut secret = content.secret(name(call), call.namespace(), &labels, "");
    secret["metadata"]["annotations"] = json!({"notification.toolkit.fluxcd.io/webhook": url});
    finish(call, "receiver", secret).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn webhooks_are_named_by_a_digest() {
        assert_eq!(
            webhook_path("abc123", "hook", "apps"),
            "/hook/a9782ba39653d30d8ca026da7e57fced7153889a26f0a19ee7cf8ba55014fd9c"
        );
    }

    #[test]
    fn certificates_come_in_pairs() {
        let error = |c, k, a| tls_content(c, k, a).err().unwrap().to_string();
        assert_eq!(error("C", "", ""), "found certificate but missing private key");
        assert_eq!(error("", "", ""), "no CA certificate or client certificate pair found");
        assert!(error("C", "K", "").starts_with("invalid TLS certificate and key pair"));
        assert_eq!(tls_content("", "", "CA").unwrap().1, "Opaque");
    }
}
