//! Kubeconfig for a server.

use serde_json::json;

/// A kubeconfig (as JSON, which is YAML) for one server and one user with a token, and with a client
/// certificate if the server uses TLS.
#[must_use]
pub fn kubeconfig(url: &str, ca_pem: Option<&str>, token: &str, client: Option<(&str, &str)>) -> String {
    use base64::Engine as _;
    let encode = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
    let mut cluster = json!({"server": url});
    if let Some(ca) = ca_pem {
        cluster["certificate-authority-data"] = json!(encode(ca));
    }
    let mut user = json!({"token": token});
    if let Some((certificate, key)) = client {
        // Either the certificate or the token is sufficient.
        user = json!({
            "client-certificate-data": encode(certificate), "client-key-data": encode(key), "token": token
        });
    }
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "fluorite",
        "clusters": [{"name": "fluorite", "cluster": cluster}],
        "users": [{"name": "fluorite-admin", "user": user}],
        "contexts": [{"name": "fluorite", "context": {"cluster": "fluorite", "user": "fluorite-admin"}}]
    });
    String::from_utf8(crate::yaml::write(&config)).unwrap_or_default()
}
