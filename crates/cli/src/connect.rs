//! From flags, environment and kubeconfig to a client.

use std::collections::HashMap;
use std::path::PathBuf;

use anyhow::{Context, bail};
use kube::Config;
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};

use crate::call::Call;
use crate::flag::{Flag, decimal, duration, number, repeated, switch, text};
use crate::text::go_io_error;

/// The namespace flux lives in unless told otherwise.
pub(crate) const DEFAULT_NAMESPACE: &str = "flux-system";

/// Flags of every command.
pub(crate) const GLOBAL_FLAGS: &[Flag] = &[
    text("namespace", "Namespace of the request").or(DEFAULT_NAMESPACE).short('n'),
    switch(
        "ns-follows-kube-context",
        "Take the namespace of the kubeconfig's context; also FLUX_NS_FOLLOWS_KUBE_CONTEXT",
    ),
    duration("timeout", "5m0s", "How long this operation may take"),
    switch("verbose", "Say more about what is done"),
    text("kubeconfig", "Kubeconfig file, instead of KUBECONFIG or ~/.kube/config"),
    text("context", "Context of the kubeconfig"),
    text("cluster", "Cluster of the kubeconfig"),
    text("user", "User of the kubeconfig"),
    text("server", "Address of the API server"),
    text("token", "Bearer token for the API server"),
    text("as", "User to act as"),
    repeated("as-group", "Group to act as; may be repeated"),
    text("as-uid", "UID to act as"),
    repeated("as-user-extra", "Extra values of the user to act as, key=value; may be repeated"),
    text("cache-dir", "Accepted for compatibility: nothing is cached")
        .constant("the API server is asked every time"),
    text("certificate-authority", "Certificate authority file of the API server"),
    text("client-certificate", "Certificate file of the client"),
    text("client-key", "Key file of the client"),
    switch("disable-compression", "Ask for answers without compression"),
    switch("insecure-skip-tls-verify", "Do not check the API server's certificate"),
    text("tls-server-name", "Name to expect in the API server's certificate"),
    decimal("kube-api-qps", "50", "Requests per second to the API server; negative for any number"),
    number("kube-api-burst", "300", "Requests that may come at once before that"),
];

/// The kubeconfig the flags and the environment name, merged; empty when there is none.
fn kubeconfig(call: &Call) -> anyhow::Result<Kubeconfig> {
    let named = call.text("kubeconfig");
    if !named.is_empty() {
        if let Err(error) = std::fs::metadata(named) {
            bail!("{}", go_io_error("stat", named, &error));
        }
        return Kubeconfig::read_from(named).with_context(|| format!("kubeconfig {named}"));
    }
    if let Some(paths) = std::env::var_os("KUBECONFIG").filter(|v| !v.is_empty()) {
        let mut merged = Kubeconfig::default();
        for path in std::env::split_paths(&paths).filter(|p| !p.as_os_str().is_empty() && p.exists()) {
            let next =
                Kubeconfig::read_from(&path).with_context(|| format!("kubeconfig {}", path.display()))?;
            merged = merged.merge(next)?;
        }
        return Ok(merged);
    }
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default().join(".kube/config");
    if !home.exists() {
        return Ok(Kubeconfig::default());
    }
    Kubeconfig::read_from(&home).with_context(|| format!("kubeconfig {}", home.display()))
}

/// The namespace of the context in use, if it names one.
pub(crate) fn context_namespace(call: &Call) -> Option<String> {
    let file = kubeconfig(call).ok()?;
    let name = match call.text("context") {
        "" => file.current_context.clone()?,
        named => named.to_owned(),
    };
    let context = file.contexts.into_iter().find(|c| c.name == name)?.context?;
    context.namespace.filter(|ns| !ns.is_empty())
}

/// The names of all contexts.
pub(crate) fn contexts(call: &Call) -> Option<Vec<String>> {
    Some(kubeconfig(call).ok()?.contexts.into_iter().map(|c| c.name).collect())
}

fn given(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// The client's configuration.
///
/// # Errors
/// The kubeconfig cannot be read, the context does not exist, or no cluster is named anywhere.
pub(crate) async fn config(call: &Call) -> anyhow::Result<Config> {
    let file = kubeconfig(call)?;
    let server = call.text("server");
    let nothing_named = file.clusters.is_empty() && file.contexts.is_empty();
    let mut config = if nothing_named && given(call.text("context")).is_none() {
        if server.is_empty() {
            Config::incluster().map_err(|_| {
                anyhow::anyhow!(
                    "no cluster is configured: set KUBECONFIG or --kubeconfig, name one with --server, \
                     or start one with `fluorite up`"
                )
            })?
        } else {
            Config::new(address(call, server)?)
        }
    } else {
        let options = KubeConfigOptions {
            context: given(call.text("context")),
            cluster: given(call.text("cluster")),
            user: given(call.text("user")),
        };
        if let Some(name) = &options.context
            && !file.contexts.iter().any(|c| &c.name == name)
        {
            bail!("context {name:?} does not exist");
        }
        if let Some(name) = &options.cluster
            && !file.clusters.iter().any(|c| &c.name == name)
        {
            bail!("cluster {name:?} does not exist");
        }
        if let Some(name) = &options.user
            && !file.auth_infos.iter().any(|u| &u.name == name)
        {
            bail!("auth info {name:?} does not exist");
        }
        Config::from_custom_kubeconfig(file, &options).await?
    };
    if !server.is_empty() {
        config.cluster_url = address(call, server)?;
    } else if config.cluster_url.scheme().is_none() {
        let secure = config.root_cert.is_some() || config.accept_invalid_certs;
        config.cluster_url = with_scheme(&config.cluster_url.to_string(), secure)?;
    }
    if call.on("insecure-skip-tls-verify") {
        config.accept_invalid_certs = true;
    }
    if call.on("disable-compression") {
        config.disable_compression = true;
    }
    if let Some(name) = given(call.text("tls-server-name")) {
        config.tls_server_name = Some(name);
    }
    if let Some(path) = given(call.text("certificate-authority")) {
        let pem =
            std::fs::read(&path).with_context(|| format!("unable to read certificate-authority {path}"))?;
        config.root_cert = Some(certificates(&pem)?);
    }
    authenticate(call, &mut config.auth_info);
    // A watch or a log may be silent for longer than a reply takes; the command's own deadline ends it.
    config.read_timeout = None;
    Ok(config)
}

/// The API server that --server names.
fn address(call: &Call, server: &str) -> anyhow::Result<http::Uri> {
    let secure = call.on("insecure-skip-tls-verify") || given(call.text("certificate-authority")).is_some();
    with_scheme(server, secure).context("--server")
}

/// An address without a scheme is one of plain HTTP, unless something about certificates was said.
fn with_scheme(text: &str, secure: bool) -> anyhow::Result<http::Uri> {
    let text = text.trim_end_matches('/');
    if text.contains("://") {
        return Ok(text.parse()?);
    }
    Ok(format!("{}://{text}", if secure { "https" } else { "http" }).parse()?)
}

fn certificates(pem: &[u8]) -> anyhow::Result<Vec<Vec<u8>>> {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;
    CertificateDer::pem_slice_iter(pem)
        .map(|c| c.map(|c| c.to_vec()))
        .collect::<Result<_, _>>()
        .context("certificate-authority is no PEM file")
}

fn authenticate(call: &Call, auth: &mut AuthInfo) {
    if let Some(token) = given(call.global("token")) {
        auth.token = Some(token.into());
        auth.exec = None;
    }
    if let Some(path) = given(call.text("client-certificate")) {
        auth.client_certificate = Some(path);
        auth.client_certificate_data = None;
    }
    if let Some(path) = given(call.text("client-key")) {
        auth.client_key = Some(path);
        auth.client_key_data = None;
    }
    if let Some(user) = given(call.text("as")) {
        auth.impersonate = Some(user);
    }
    if let Some(uid) = given(call.text("as-uid")) {
        auth.impersonate_uid = Some(uid);
    }
    if !call.list("as-group").is_empty() {
        auth.impersonate_groups = Some(call.list("as-group").to_vec());
    }
    if !call.list("as-user-extra").is_empty() {
        let mut extra: HashMap<String, Vec<String>> = HashMap::new();
        for pair in call.list("as-user-extra") {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            extra.entry(key.to_owned()).or_default().push(value.to_owned());
        }
        auth.impersonate_user_extra = Some(extra);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_get_a_scheme() {
        let text = |text: &str, secure| with_scheme(text, secure).unwrap().to_string();
        assert_eq!(text("10.0.0.1:6443", false), "http://10.0.0.1:6443/");
        assert_eq!(text("api.example.com", true), "https://api.example.com/");
        assert_eq!(text("https://api.example.com/", false), "https://api.example.com/");
        assert!(with_scheme("a b", false).is_err());
    }
}
