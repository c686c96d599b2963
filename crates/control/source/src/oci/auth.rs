//! Options of the connection to a registry from an OCIRepository: credentials, certificates, proxy.

use fl_api::condition::{reasons, types};
use fl_api::meta::provider::CloudProvider;
use fl_api::source::OCIRepository;
use fl_oci::{Keychain, RegistryOptions};
use fl_runtime::{Context, EventKind, ReconcileError, Reconciled};

use crate::secrets::{self, SecretData, SecretError};

/// The options of a connection. A disabled feature gate is reported without `FetchFailed`, as in Flux.
pub(super) async fn options(cx: &Context<OCIRepository>) -> Result<RegistryOptions, ReconcileError> {
    let spec = &cx.object.spec;
    let namespace = cx.object.namespace();
    let refuse = |message: String| {
        ReconcileError::backoff(reasons::source::AUTHENTICATION_FAILED, message).on(types::FETCH_FAILED)
    };
    let keychain = keychain(cx).await.map_err(|e| refuse(format!("failed to get credential: {e}")))?;
    let proxy = match &spec.proxy_secret_ref {
        None => None,
        Some(reference) => {
            let secret = secrets::read_named(cx.cluster(), namespace, &reference.name).await;
            let proxy = secret.and_then(|s| secrets::proxy(&s));
            Some(proxy.map_err(|e| refuse(format!("failed to get proxy address: {e}")))?)
        }
    };
    if keychain.is_none() && spec.provider != CloudProvider::Generic {
        let account = spec.service_account_name.as_ref().is_some_and(|n| !n.is_empty());
        if account && !cx.runtime.options().gates.enabled("ObjectLevelWorkloadIdentity") {
            return Err(ReconcileError::stalled(
                reasons::FEATURE_GATE_DISABLED,
                "to use spec.serviceAccountName for provider authentication please enable the \
                 ObjectLevelWorkloadIdentity feature gate in the controller",
            ));
        }
        let provider = serde_json::to_value(spec.provider).unwrap_or_default();
        let provider = provider.as_str().unwrap_or_default().to_owned();
        return Err(refuse(format!(
            "failed to get credential from {provider}: this engine cannot log in with a cloud identity yet; \
             give the login in a Secret"
        )));
    }
    let mut options = RegistryOptions {
        keychain: keychain.unwrap_or_else(Keychain::anonymous),
        insecure: spec.insecure.unwrap_or_default(),
        proxy,
        timeout: spec.timeout.to_std().unwrap_or_default(),
        ..RegistryOptions::new(fl_http::Owner::namespace(namespace))
    };
    if let Some(reference) = spec.cert_secret_ref.as_ref().filter(|r| !r.name.is_empty()) {
        let secret = secrets::read_named(cx.cluster(), namespace, &reference.name).await;
        let tls = secret
            .and_then(|s| secrets::tls(&s))
            .map_err(|e| refuse(format!("failed to generate transport for '{}': {e}", spec.url)))?;
        options.ca = tls.ca;
        options.client_certificate = tls.client_certificate;
    }
    Ok(options)
}

/// Why the credentials of a registry cannot be used.
#[derive(Debug, thiserror::Error)]
enum KeychainError {
    #[error("{0}")]
    Secret(#[from] SecretError),
    #[error("{0}")]
    Config(#[from] fl_oci::KeychainError),
    #[error("the docker config is not valid JSON")]
    Json,
}

/// The credentials of `secretRef` and of the account's pull secrets, the former first; `None` without any.
async fn keychain(cx: &Context<OCIRepository>) -> Result<Option<Keychain>, KeychainError> {
    let namespace = cx.object.namespace();
    let mut found: Vec<SecretData> = Vec::new();
    if let Some(reference) = &cx.object.spec.secret_ref {
        let name = &reference.name;
        match secrets::read(cx.cluster(), namespace, name).await {
            Ok(secret) => found.push(secret),
            Err(error) => {
                let message = format!("auth secret '{name}' not found");
                cx.log.info(&message);
                cx.event(EventKind::Trace, reasons::source::AUTHENTICATION_FAILED, &message);
                return Err(SecretError::read(namespace, name, error).into());
            }
        }
    }
    if let Some(account) = cx.object.spec.service_account_name.as_deref().filter(|n| !n.is_empty()) {
        found.extend(secrets::pull_secrets(cx.cluster(), namespace, account).await?);
    }
    if found.is_empty() {
        return Ok(None);
    }
    let mut keychain = Keychain::anonymous();
    for secret in &found {
        keychain = keychain.and(logins(secret)?);
    }
    Ok(Some(keychain))
}

/// The credentials of one pull secret, in the current or the old format. A Secret of another type has none.
fn logins(secret: &SecretData) -> Result<Keychain, KeychainError> {
    let of = |kind: &str, key: &str| {
        secret.data.get(key).filter(|config| secret.kind == kind && !config.is_empty())
    };
    if let Some(config) = of("kubernetes.io/dockerconfigjson", ".dockerconfigjson") {
        return Ok(Keychain::from_docker_config(config)?);
    }
    if let Some(config) = of("kubernetes.io/dockercfg", ".dockercfg") {
        // The old format is the `auths` map alone.
        let auths: serde_json::Value = serde_json::from_slice(config).map_err(|_| KeychainError::Json)?;
        let wrapped = serde_json::json!({ "auths": auths }).to_string();
        return Ok(Keychain::from_docker_config(wrapped.as_bytes())?);
    }
    Ok(Keychain::anonymous())
}
