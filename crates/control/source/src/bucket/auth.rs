//! Options of the connection to a bucket from a Bucket: credentials, certificates, proxy. Error messages are Flux's.

use fl_api::condition::reasons;
use fl_api::meta::provider::CloudProvider;
use fl_api::meta::references::LocalObjectReference;
use fl_api::source::Bucket;
use fl_api::source::bucket::{BucketSts, StsProvider};
use fl_bucket::{
    AUTHORITY, AwsKeys, AzureCertificate, AzureIdentity, AzureKind, BucketOptions, Destinations,
    GoogleCredentials, Login, Provider, SharedKey,
};
use fl_runtime::{Context, ReconcileError, Reconciled};
use fl_types::Secret;

use crate::secrets::{self, SecretData, Tls};

const NO_IDENTITY: &str = "this engine cannot log in with a cloud identity yet; give the login in a Secret and name it in spec.secretRef";

/// The options of a connection.
pub(super) async fn options(
    cx: &Context<Bucket>,
    engine_keys: Option<&AwsKeys>,
) -> Result<BucketOptions, ReconcileError> {
    let spec = &cx.object.spec;
    let account = spec.service_account_name.as_ref().is_some_and(|n| !n.is_empty());
    if account
        && spec.provider != CloudProvider::Generic
        && !cx.runtime.options().gates.enabled("ObjectLevelWorkloadIdentity")
    {
        return Err(ReconcileError::stalled(
            reasons::FEATURE_GATE_DISABLED,
            "to use spec.serviceAccountName for provider authentication please enable the \
             ObjectLevelWorkloadIdentity feature gate in the controller",
        ));
    }
    if account && spec.provider != CloudProvider::Generic {
        return Err(ReconcileError::stalled(
            reasons::source::AUTHENTICATION_FAILED,
            "spec.serviceAccountName cannot be used: this engine exchanges no tokens of service accounts for cloud credentials; give the login in a Secret and name it in spec.secretRef",
        ));
    }
    let engine_keys = engine_keys.filter(|_| cx.runtime.options().lockdown().engine_credentials_allowed());
    let secret = secret(cx, spec.secret_ref.as_ref(), "secret").await?;
    let sts = spec.sts.as_ref();
    let sts_secret = self::secret(cx, sts.and_then(|s| s.secret_ref.as_ref()), "STS secret").await?;
    let proxy = match &spec.proxy_secret_ref {
        None => None,
        Some(reference) => {
            let found = secrets::read_named(cx.cluster(), cx.object.namespace(), &reference.name).await;
            let proxy = found.and_then(|s| secrets::proxy(&s));
            Some(proxy.map_err(|e| refuse(format!("failed to get proxy URL: {e}")))?)
        }
    };
    let tls = tls(cx, spec.cert_secret_ref.as_ref(), "TLS config").await?;
    let sts_tls = self::tls(cx, sts.and_then(|s| s.cert_secret_ref.as_ref()), "STS TLS config").await?;
    let (provider, login) = match spec.provider {
        CloudProvider::Gcp => (Provider::Google, google(secret.as_ref())?),
        CloudProvider::Azure => (Provider::Azure, azure(secret.as_ref(), &spec.endpoint)?),
        CloudProvider::Aws | CloudProvider::Generic => {
            let amazon = spec.provider == CloudProvider::Aws;
            if amazon && secret.is_none() && (tls.ca.is_some() || tls.client_certificate.is_some()) {
                // A tenant's own certificate authority could impersonate AWS and read what the engine signs.
                return Err(refuse(
                    "spec.certSecretRef cannot be used with the engine's AWS identity; give the login in a Secret and name it in spec.secretRef".to_owned(),
                ));
            }
            (Provider::S3, s3(secret.as_ref(), amazon, engine_keys, sts, sts_secret.as_ref(), sts_tls)?)
        }
    };
    // Only for S3-compatible servers; the clouds have public certificates.
    let tls = if provider == Provider::S3 { tls } else { Tls::default() };
    Ok(BucketOptions {
        insecure: spec.insecure.unwrap_or_default(),
        region: spec.region.clone().unwrap_or_default(),
        login,
        ca: tls.ca,
        client_certificate: tls.client_certificate,
        proxy,
        timeout: spec.timeout.to_std().unwrap_or_default(),
        ..BucketOptions::new(
            fl_http::Owner::namespace(cx.object.namespace()),
            provider,
            &spec.endpoint,
            &spec.bucket_name,
        )
    })
}

fn refuse(message: String) -> ReconcileError {
    ReconcileError::backoff(reasons::source::AUTHENTICATION_FAILED, message)
}

async fn secret(
    cx: &Context<Bucket>,
    reference: Option<&LocalObjectReference>,
    what: &str,
) -> Result<Option<SecretData>, ReconcileError> {
    let Some(reference) = reference else { return Ok(None) };
    let (namespace, name) = (cx.object.namespace(), &reference.name);
    let read = secrets::read(cx.cluster(), namespace, name).await;
    read.map(Some).map_err(|e| refuse(format!("failed to get {what} '{namespace}/{name}': {e}")))
}

async fn tls(
    cx: &Context<Bucket>,
    reference: Option<&LocalObjectReference>,
    what: &str,
) -> Result<Tls, ReconcileError> {
    let Some(reference) = reference else { return Ok(Tls::default()) };
    let found = secrets::read_named(cx.cluster(), cx.object.namespace(), &reference.name).await;
    found.and_then(|s| secrets::tls(&s)).map_err(|e| refuse(format!("failed to get {what}: {e}")))
}

fn text(secret: &SecretData, key: &str) -> String {
    secret.data.get(key).map(|v| String::from_utf8_lossy(v).into_owned()).unwrap_or_default()
}

fn s3(
    secret: Option<&SecretData>,
    amazon: bool,
    engine_keys: Option<&AwsKeys>,
    sts: Option<&BucketSts>,
    sts_secret: Option<&SecretData>,
    sts_tls: Tls,
) -> Result<Login, ReconcileError> {
    if let Some(secret) = secret
        && !(secret.data.contains_key("accesskey") && secret.data.contains_key("secretkey"))
    {
        let name = &secret.name;
        return Err(refuse(format!(
            "invalid '{name}' secret data: required fields 'accesskey' and 'secretkey'"
        )));
    }
    if let Some(sts) = sts {
        check_sts(amazon, sts, sts_secret)?;
    }
    match (secret, sts) {
        (Some(secret), _) => {
            let (id, key) = (text(secret, "accesskey"), text(secret, "secretkey"));
            if id.is_empty() || key.is_empty() {
                return Ok(Login::Anonymous);
            }
            Ok(Login::Aws(AwsKeys {
                access_key_id: id,
                secret_access_key: Secret::new(key),
                session_token: Secret::default(),
                destinations: Destinations::Any,
            }))
        }
        (None, _) if amazon => engine_keys
            .cloned()
            .map(Login::Aws)
            .ok_or_else(|| refuse(format!("AWS authentication failed: {NO_IDENTITY}"))),
        (None, Some(sts)) => Ok(Login::Ldap {
            endpoint: sts.endpoint.clone(),
            username: sts_secret.map(|s| text(s, "username")).unwrap_or_default(),
            password: Secret::new(sts_secret.map(|s| text(s, "password")).unwrap_or_default()),
            ca: sts_tls.ca,
            client_certificate: sts_tls.client_certificate,
        }),
        (None, None) => Ok(Login::Anonymous),
    }
}

/// The validation rules of the CRD, for API servers with an older CRD.
fn check_sts(amazon: bool, sts: &BucketSts, secret: Option<&SecretData>) -> Result<(), ReconcileError> {
    let stall =
        |message: String| Err(ReconcileError::stalled(reasons::source::INVALID_STS_CONFIGURATION, message));
    let (name, provider) = match sts.provider {
        StsProvider::Aws => ("aws", StsProvider::Aws),
        StsProvider::Ldap => ("ldap", StsProvider::Ldap),
    };
    if amazon != (provider == StsProvider::Aws) {
        let bucket = if amazon { "aws" } else { "generic" };
        return stall(format!("STS provider '{name}' is not supported for '{bucket}' bucket provider"));
    }
    if amazon && sts.secret_ref.is_some() {
        return stall("spec.sts.secretRef is not required for the 'aws' STS provider".to_owned());
    }
    if amazon && sts.cert_secret_ref.is_some() {
        return stall("spec.sts.certSecretRef is not required for the 'aws' STS provider".to_owned());
    }
    if let Err(error) = url::Url::parse(&sts.endpoint) {
        let message = format!("failed to parse STS endpoint '{}': {error}", sts.endpoint);
        return Err(ReconcileError::stalled(reasons::source::URL_INVALID, message));
    }
    if let Some(secret) = secret.filter(|_| !amazon)
        && (text(secret, "username").is_empty() || text(secret, "password").is_empty())
    {
        return Err(refuse(format!(
            "invalid '{}' secret data for '{name}' STS provider: required fields username, password",
            secret.name
        )));
    }
    Ok(())
}

fn google(secret: Option<&SecretData>) -> Result<Login, ReconcileError> {
    let Some(secret) = secret else {
        return Err(refuse(format!("failed to get credential from gcp: {NO_IDENTITY}")));
    };
    let name = &secret.name;
    let Some(key) = secret.data.get("serviceaccount") else {
        return Err(refuse(format!("invalid '{name}' secret data: required fields 'serviceaccount'")));
    };
    let credentials = GoogleCredentials::from_json(key);
    credentials
        .map(Login::Google)
        .map_err(|e| refuse(format!("failed to create Google credentials from secret: {e}")))
}

fn azure(secret: Option<&SecretData>, endpoint: &str) -> Result<Login, ReconcileError> {
    let Some(secret) = secret else {
        return Err(refuse(format!("failed to get credential from azure: {NO_IDENTITY}")));
    };
    let name = &secret.name;
    let has = |key: &str| secret.data.contains_key(key);
    if !["clientId", "accountKey", "sasKey", "authorityHost"].iter().any(|key| has(key)) {
        return Err(refuse(format!(
            "invalid '{name}' secret data: requires a 'clientId' or 'accountKey' field, a combination of 'tenantId', 'clientId' and 'clientSecret', or 'tenantId', 'clientId' and 'clientCertificate'"
        )));
    }
    if let Some(kind) = azure_identity(secret)? {
        let authority =
            if has("authorityHost") { text(secret, "authorityHost") } else { AUTHORITY.to_owned() };
        return Ok(Login::Azure(AzureIdentity { authority, kind }));
    }
    if has("accountKey") {
        let bad =
            |e: String| refuse(format!("failed to create shared credential from '{name}' Secret data: {e}"));
        let host = url::Url::parse(endpoint).ok().and_then(|u| u.host_str().map(str::to_owned)).ok_or_else(
            || bad(format!("failed to extract account name from endpoint: '{endpoint}' is no address")),
        )?;
        let parts: Vec<&str> = host.split('.').collect();
        if parts.len() <= 2 {
            return Err(bad(format!(
                "failed to extract account name from endpoint: expected '{host}' to be a subdomain"
            )));
        }
        let key = SharedKey::new(parts[0], &text(secret, "accountKey"));
        return key.map(Login::AzureKey).map_err(|e| bad(e.to_string()));
    }
    if has("sasKey") {
        return Ok(Login::AzureSas(Secret::new(text(secret, "sasKey"))));
    }
    Ok(Login::Anonymous)
}

fn azure_identity(secret: &SecretData) -> Result<Option<AzureKind>, ReconcileError> {
    let client = text(secret, "clientId");
    if !secret.data.contains_key("clientId") {
        return Ok(None);
    }
    if secret.data.contains_key("tenantId") {
        let tenant = text(secret, "tenantId");
        let password = text(secret, "clientSecret");
        if !password.is_empty() {
            return Ok(Some(AzureKind::ClientSecret { tenant, client, secret: Secret::new(password) }));
        }
        let pem = text(secret, "clientCertificate");
        if !pem.is_empty() {
            let chain = text(secret, "clientCertificateSendChain").to_lowercase();
            let certificate = AzureCertificate::from_pem(&pem, matches!(chain.as_str(), "1" | "true"));
            let certificate = certificate.map_err(|e| {
                let name = &secret.name;
                refuse(format!("failed to create token credential from '{name}' Secret: failed to parse client certificates: {e}"))
            })?;
            return Ok(Some(AzureKind::Certificate { tenant, client, certificate }));
        }
    }
    Ok(Some(AzureKind::ManagedIdentity { client }))
}
