//! The server: one `handle` from request to response, over a socket or in process.

mod connection_threads;
pub(crate) mod dispatch;
pub(crate) mod headers;
pub(crate) mod health;
mod host_check;
mod kubeconfig;
pub(crate) mod limits;
mod listen;
mod options;
mod pki;
mod private_files;
mod renewal;
mod service;
mod tls;
mod write_deadline;

use std::sync::{Arc, RwLock};

use jiff::Timestamp;

pub use dispatch::ConnectionInfo;
pub(crate) use dispatch::{RequestContext, Target};
pub use kubeconfig::kubeconfig;
pub use limits::Limits;
pub use listen::{ListenError, Listener};
pub use options::{Options, SimulateOptions};
pub use pki::{Identity, Pki, PkiError};
pub use private_files::{create_private_files, private_dir, write_private};
pub use renewal::Renewal;
pub use service::InProcess;
pub use tls::ServingCertificate;

use crate::auth::authenticate::Authenticator;
use crate::auth::rbac::Authorizer;
use crate::auth::token::Signer;
use crate::registry::Registry;
use crate::store::Store;

/// State shared by all requests.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) store: Store,
    registry: RwLock<Arc<Registry>>,
    pub(crate) authenticator: Authenticator,
    pub(crate) authorizer: Authorizer,
    pub(crate) webhooks: crate::admission::Webhooks,
    pub(crate) custom: crate::crd::Custom,
    pub(crate) addresses: crate::allocator::Allocator,
    pub(crate) in_flight: limits::InFlight,
    pub(crate) options: Options,
    /// Ends background tasks and open watches when the server is dropped.
    pub(crate) ending: tokio::sync::watch::Sender<bool>,
}

impl Inner {
    pub(crate) fn registry(&self) -> Arc<Registry> {
        self.registry.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    /// Changes the registry. The lock is held throughout: CRDs are accepted concurrently, and no change may
    /// undo another.
    pub(crate) fn change_registry(&self, change: impl FnOnce(&mut Registry)) {
        let mut registry = self.registry.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        change(Arc::make_mut(&mut registry));
    }

    pub(crate) fn now(&self) -> Timestamp {
        (self.options.clock)()
    }
}

/// RFC 3339 with seconds precision, as Kubernetes writes times.
pub(crate) fn rfc3339(now: Timestamp) -> String {
    let seconds = Timestamp::from_second(now.as_second()).unwrap_or(now);
    seconds.to_string()
}

/// An API server. Clones share it; dropping the last one ends its background tasks.
#[derive(Debug, Clone)]
pub struct ApiServer {
    pub(crate) inner: Arc<Inner>,
    _background: Arc<Background>,
}

#[derive(Debug)]
struct Background(Vec<tokio::task::JoinHandle<()>>, tokio::sync::watch::Sender<bool>);

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.1.send_replace(true);
        for task in &self.0 {
            task.abort();
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    #[error("cannot prepare the token signing key: {0}")]
    SigningKey(String),
    #[error("cannot write the first objects: {0}")]
    Bootstrap(String),
    #[error("the bearer token of {0:?} is empty; an empty token would let in everybody who sends none")]
    EmptyToken(String),
}

impl ApiServer {
    /// Starts a server on a store. Creates the objects that every cluster has (namespaces, roles) if they are
    /// missing.
    pub async fn new(store: Store, options: Options) -> Result<Self, StartError> {
        if let Some((_, user)) = options.tokens.iter().find(|(token, _)| token.trim().is_empty()) {
            return Err(StartError::EmptyToken(user.name.clone()));
        }
        let key = match &options.signing_key {
            Some(key) => key.clone(),
            None => Signer::generate().map_err(StartError::SigningKey)?,
        };
        let signer = Signer::from_pkcs8(&key).map_err(StartError::SigningKey)?;
        let ending = tokio::sync::watch::channel(false).0;
        let inner = Arc::new(Inner {
            authenticator: Authenticator::new(&store, options.tokens.clone(), signer),
            authorizer: Authorizer::new(&store),
            webhooks: crate::admission::Webhooks::new(&store),
            custom: crate::crd::Custom::default(),
            addresses: crate::allocator::Allocator::new(&store),
            registry: RwLock::new(Arc::new(Registry::new(crate::resource_type::ResourceType::builtin()))),
            store,
            in_flight: limits::InFlight::new(options.limits.clone()),
            options,
            ending: ending.clone(),
        });
        crate::crd::load(&inner);
        let fresh = inner.store.revision() <= 1;
        crate::auth::bootstrap::write(&inner).await.map_err(|e| StartError::Bootstrap(e.message))?;
        if fresh {
            // Events from before the start are not visible to watches.
            inner.store.discard_history();
        }
        let mut tasks = crate::controllers::start(&inner);
        if let Some(simulate) = inner.options.simulate.clone() {
            tasks.extend(crate::simulate::start(&inner, simulate));
        }
        Ok(Self { inner, _background: Arc::new(Background(tasks, ending)) })
    }

    /// A server with an in-memory store and default options, for tests.
    pub async fn in_memory() -> Result<Self, StartError> {
        Self::new(Store::in_memory(), Options::default()).await
    }

    /// The newest revision of the store.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.inner.store.revision()
    }

    /// The store, for tests that bypass the API.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.inner.store
    }
}
