//! Connection flags of every command, and the connection that they, the environment and the kubeconfig give.

use std::path::{Path, PathBuf};

use anyhow::bail;
use fl_client::{ConfigOverrides, Connection, Kubeconfig, KubeconfigError};

use crate::args::Call;
use crate::flag::{Flag, decimal, duration, number, repeated, switch, text};
use crate::format::go_io_error;

/// The default namespace.
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

/// The kubeconfig that the flags and the environment name, merged; empty when there is none.
fn kubeconfig(call: &Call) -> anyhow::Result<Kubeconfig> {
    let path = call.text("kubeconfig");
    if path.is_empty() {
        return Ok(Kubeconfig::load(None)?);
    }
    if let Err(error) = std::fs::metadata(path) {
        bail!("{}", go_io_error("stat", path, &error));
    }
    Ok(Kubeconfig::load(Some(Path::new(path)))?)
}

/// The namespace of the context in use, if it names one.
pub(crate) fn context_namespace(call: &Call) -> Option<String> {
    let context = given(call.text("context"));
    kubeconfig(call).ok()?.namespace(context.as_deref()).map(str::to_owned)
}

/// The names of all contexts.
pub(crate) fn contexts(call: &Call) -> Option<Vec<String>> {
    Some(kubeconfig(call).ok()?.contexts().map(str::to_owned).collect())
}

fn given(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// Connects to the API server.
///
/// # Errors
/// The kubeconfig cannot be read, the context does not exist, or no cluster is named anywhere.
pub(crate) async fn connection(call: &Call) -> anyhow::Result<Connection> {
    let file = kubeconfig(call)?;
    let overrides = ConfigOverrides {
        context: given(call.text("context")),
        cluster: given(call.text("cluster")),
        user: given(call.text("user")),
        server: given(call.text("server")),
        token: given(call.global("token")),
        certificate_authority: given(call.text("certificate-authority")).map(PathBuf::from),
        client_certificate: given(call.text("client-certificate")),
        client_key: given(call.text("client-key")),
        tls_server_name: given(call.text("tls-server-name")),
        insecure_skip_tls_verify: call.on("insecure-skip-tls-verify"),
        disable_compression: call.on("disable-compression"),
        impersonate: given(call.text("as")),
        impersonate_uid: given(call.text("as-uid")),
        impersonate_groups: call.list("as-group").to_vec(),
        impersonate_extra: call.list("as-user-extra").iter().map(|pair| key_value(pair)).collect(),
    };
    Connection::from_kubeconfig(file, &overrides).await.map_err(|error| match error {
        KubeconfigError::NotConfigured => anyhow::anyhow!(
            "no cluster is configured: set KUBECONFIG or --kubeconfig, name one with --server, \
             or start one with `fluorite up`"
        ),
        error => error.into(),
    })
}

fn key_value(pair: &str) -> (String, String) {
    let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
    (key.to_owned(), value.to_owned())
}
