//! The credentials for the server of a GitRepository.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::time::Duration;

use fl_api::condition::reasons;
use fl_api::source::GitRepository;
use fl_api::source::git_repository::GitProvider;
use fl_git_client::{Address, Auth, GithubApp, GithubAppError};
use fl_http::{Credentials, Owner, Proxy};
use fl_runtime::{Context, ReconcileError, Reconciled};
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use crate::secrets;
use crate::storage::DEADLINE_EXCEEDED;

const NEED_APP: &str = "secretRef with github app data must be specified when provider is set to github";

/// GitHub's tokens are valid for an hour; they are used for four fifths of it.
const TOKEN_LIFETIME: Duration = Duration::from_secs(48 * 60);
const TOKEN_TIMEOUT: Duration = Duration::from_secs(60);

/// Installation tokens of GitHub Apps, until they expire.
#[derive(Default)]
pub(super) struct TokenCache(Mutex<HashMap<TokenKey, (Credentials, Instant)>>);

/// A Secret with its content, and the proxy of the request: another key or proxy needs another token.
#[derive(PartialEq, Eq, Hash)]
struct TokenKey {
    namespace: String,
    secret: String,
    data: [u8; 32],
    proxy: Option<(String, String, [u8; 32])>,
}

impl TokenKey {
    fn new(namespace: &str, secret: &str, data: &BTreeMap<String, Vec<u8>>, proxy: Option<&Proxy>) -> Self {
        let mut hash = Sha256::new();
        for part in data.iter().flat_map(|(key, value)| [key.as_bytes(), value]) {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        let password = |p: &Proxy| Sha256::digest(p.password.expose().as_bytes()).into();
        Self {
            namespace: namespace.to_owned(),
            secret: secret.to_owned(),
            data: hash.finalize().into(),
            proxy: proxy.map(|p| (p.address.clone(), p.username.clone(), password(p))),
        }
    }
}

/// Credentials and proxy of an object.
pub(super) async fn read(
    cx: &Context<GitRepository>,
    tokens: &TokenCache,
) -> Result<(Auth, Option<Proxy>), ReconcileError> {
    let spec = &cx.object.spec;
    let namespace = cx.object.namespace();
    let refuse = |message: String| ReconcileError::backoff(reasons::source::AUTHENTICATION_FAILED, message);
    let proxy = match &spec.proxy_secret_ref {
        None => None,
        Some(reference) => {
            let secret = secrets::read_named(cx.cluster(), namespace, &reference.name).await;
            let proxy = secret.and_then(|s| secrets::proxy(&s));
            Some(proxy.map_err(|e| refuse(format!("failed to configure proxy options: {e}")))?)
        }
    };
    let address = Address::parse(&spec.url).map_err(|e| {
        let message = format!("failed to parse url '{}': {e}", spec.url);
        ReconcileError::stalled(reasons::source::URL_INVALID, message)
    })?;
    let mut data = BTreeMap::new();
    let place = spec.secret_ref.as_ref().map(|r| format!("{namespace}/{}", r.name)).unwrap_or_default();
    if let Some(reference) = &spec.secret_ref {
        let secret = secrets::read(cx.cluster(), namespace, &reference.name).await;
        // Flux repeats the text.
        let secret = secret.map_err(|e| {
            refuse(format!("failed to get secret '{place}': failed to get secret '{place}': {e}"))
        })?;
        data = secret.data;
    }
    let auth = Auth::from_secret(&address, &data)
        .map_err(|e| refuse(format!("failed to configure authentication options: {e}")))?;
    if auth.lacks_passphrase() {
        return Err(refuse(format!(
            "SSH identity key is encrypted but no 'password' field was provided in the secret '{place}'"
        )));
    }
    let configuration =
        |message: String| ReconcileError::backoff(reasons::source::INVALID_PROVIDER_CONFIGURATION, message);
    let auth = match spec.provider.unwrap_or(GitProvider::Generic) {
        GitProvider::Generic if GithubApp::is_in(&data) => {
            return Err(configuration(format!(
                "secretRef '{place}' has github app data but provider is not set to github"
            )));
        }
        GitProvider::Generic => auth,
        GitProvider::Github if spec.secret_ref.is_none() => {
            return Err(ReconcileError::stalled(reasons::source::INVALID_PROVIDER_CONFIGURATION, NEED_APP));
        }
        GitProvider::Github if !GithubApp::is_in(&data) => return Err(configuration(NEED_APP.to_owned())),
        GitProvider::Github => {
            let secret = spec.secret_ref.as_ref().map(|r| r.name.as_str()).unwrap_or_default();
            let key = TokenKey::new(namespace, secret, &data, proxy.as_ref());
            let credentials = github(&data, proxy.as_ref(), key, tokens).await;
            let credentials = credentials
                .map_err(|e| refuse(format!("failed to configure authentication options: {e}")))?;
            auth.with_credentials(credentials)
        }
        provider @ (GitProvider::Aws | GitProvider::Azure) => {
            if spec.service_account_name.as_ref().is_some_and(|n| !n.is_empty())
                && !cx.runtime.options().gates.enabled("ObjectLevelWorkloadIdentity")
            {
                return Err(ReconcileError::stalled(
                    reasons::FEATURE_GATE_DISABLED,
                    "to use spec.serviceAccountName for provider authentication please enable the \
                     ObjectLevelWorkloadIdentity feature gate in the controller",
                ));
            }
            let name = if provider == GitProvider::Aws { "aws" } else { "azure" };
            return Err(refuse(format!(
                "failed to configure authentication options: this engine cannot log in with the identity of {name} yet; \
                 give the credentials in a Secret"
            )));
        }
    };
    Ok((auth, proxy))
}

/// Why there is no token of a GitHub App.
#[derive(Debug, thiserror::Error)]
enum TokenError {
    #[error("{0}")]
    App(#[from] GithubAppError),
    #[error("{DEADLINE_EXCEEDED}")]
    Deadline,
}

/// A token of a GitHub App, requested once and cached until shortly before it expires.
async fn github(
    data: &BTreeMap<String, Vec<u8>>,
    proxy: Option<&Proxy>,
    key: TokenKey,
    tokens: &TokenCache,
) -> Result<Credentials, TokenError> {
    let owner = Owner::namespace(&key.namespace);
    let app = GithubApp::from_secret(data)?;
    if let Some((credentials, until)) =
        tokens.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get(&key)
        && *until > Instant::now()
    {
        return Ok(credentials.clone());
    }
    let exchange = app.credentials(owner, proxy.cloned(), TOKEN_TIMEOUT);
    let credentials =
        tokio::time::timeout(TOKEN_TIMEOUT, exchange).await.map_err(|_| TokenError::Deadline)??;
    let mut all = tokens.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    all.retain(|_, (_, until)| *until > Instant::now());
    all.insert(key, (credentials.clone(), Instant::now() + TOKEN_LIFETIME));
    Ok(credentials)
}
