//! From an OCIRepository to how its registry is reached: logins, certificates, proxy.

use fl_api::condition::reasons;
use fl_api::meta::provider::CloudProvider;
use fl_api::source::OCIRepository;
use fl_oci::{Keychain, RegistryOptions};
use fl_runtime::{EventKind, Failure, Pass, Reconciled};

use crate::secrets::{self, SecretData};

/// Everything about the connection that an object decides.
pub(super) async fn options(pass: &Pass<OCIRepository>) -> Result<RegistryOptions, Failure> {
    let spec = &pass.object.spec;
    let namespace = pass.object.namespace();
    let refuse = |message: String| Failure::retry(reasons::source::AUTHENTICATION_FAILED, message);
    let keychain = keychain(pass).await.map_err(|e| refuse(format!("failed to get credential: {e}")))?;
    let proxy = match &spec.proxy_secret_ref {
        None => None,
        Some(reference) => {
            let secret = secrets::read_named(pass.cluster(), namespace, &reference.name).await;
            let proxy = secret.and_then(|s| secrets::proxy(&s));
            Some(proxy.map_err(|e| refuse(format!("failed to get proxy address: {e}")))?)
        }
    };
    if keychain.is_none() && spec.provider != CloudProvider::Generic {
        let account = spec.service_account_name.as_ref().is_some_and(|n| !n.is_empty());
        if account && !pass.runtime.options().gates.enabled("ObjectLevelWorkloadIdentity") {
            return Err(Failure::stall(
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
        let secret = secrets::read_named(pass.cluster(), namespace, &reference.name).await;
        let tls = secret
            .and_then(|s| secrets::tls(&s))
            .map_err(|e| refuse(format!("failed to generate transport for '{}': {e}", spec.url)))?;
        options.ca = tls.ca;
        options.client_certificate = tls.client_certificate;
    }
    Ok(options)
}

/// The logins of `secretRef` and of the account's pull secrets, the former first; `None` without any.
async fn keychain(pass: &Pass<OCIRepository>) -> Result<Option<Keychain>, String> {
    let namespace = pass.object.namespace();
    let mut found: Vec<SecretData> = Vec::new();
    if let Some(reference) = &pass.object.spec.secret_ref {
        let name = &reference.name;
        match secrets::read(pass.cluster(), namespace, name).await {
            Ok(secret) => found.push(secret),
            Err(error) => {
                let message = format!("auth secret '{name}' not found");
                pass.log.info(&message);
                pass.event(EventKind::Trace, reasons::source::AUTHENTICATION_FAILED, &message);
                return Err(format!("failed to get secret '{namespace}/{name}': {error}"));
            }
        }
    }
    if let Some(account) = pass.object.spec.service_account_name.as_deref().filter(|n| !n.is_empty()) {
        found.extend(secrets::pull_secrets(pass.cluster(), namespace, account).await?);
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

/// The logins of one pull secret, in the current or the old form. A Secret of another type has none.
fn logins(secret: &SecretData) -> Result<Keychain, String> {
    let of = |kind: &str, key: &str| {
        secret.data.get(key).filter(|config| secret.kind == kind && !config.is_empty())
    };
    if let Some(config) = of("kubernetes.io/dockerconfigjson", ".dockerconfigjson") {
        return Keychain::from_docker_config(config).map_err(|e| e.to_string());
    }
    if let Some(config) = of("kubernetes.io/dockercfg", ".dockercfg") {
        // The old form is the `auths` map alone.
        let auths: serde_json::Value =
            serde_json::from_slice(config).map_err(|_| "the docker config is not valid JSON".to_owned())?;
        let wrapped = serde_json::json!({ "auths": auths }).to_string();
        return Keychain::from_docker_config(wrapped.as_bytes()).map_err(|e| e.to_string());
    }
    Ok(Keychain::anonymous())
}
