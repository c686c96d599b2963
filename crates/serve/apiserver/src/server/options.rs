//! How a server is set up.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::limits::Limits;
use crate::auth::User;

/// How simulated workloads behave.
#[derive(Debug, Clone)]
pub struct SimulateOptions {
    /// How long a pod takes to become ready.
    pub ready_after: Duration,
    /// Nodes that daemon sets run on; they are created.
    pub nodes: u32,
}

impl Default for SimulateOptions {
    fn default() -> Self {
        Self { ready_after: Duration::from_millis(500), nodes: 1 }
    }
}

/// How a server is set up.
#[derive(Clone)]
pub struct Options {
    /// Static bearer tokens.
    pub tokens: HashMap<String, User>,
    /// Whether callers without credentials are let in as `system:anonymous` (and then mostly refused by RBAC).
    pub anonymous: bool,
    /// PKCS#8 of the key that signs service account tokens; made anew when absent.
    pub signing_key: Option<Vec<u8>>,
    /// PEM of the CA, published as `kube-root-ca.crt` when given.
    pub ca_pem: Option<String>,
    pub simulate: Option<SimulateOptions>,
    /// Largest request body; kube-apiserver's 3 MiB.
    pub max_body: usize,
    /// The clock of timestamps.
    pub clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    /// How often idle watches get a bookmark.
    pub bookmark_every: Duration,
    /// What one user and one connection may have under way.
    pub limits: Limits,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            tokens: HashMap::new(),
            anonymous: true,
            signing_key: None,
            ca_pem: None,
            simulate: None,
            max_body: 3 << 20,
            clock: Arc::new(Timestamp::now),
            bookmark_every: Duration::from_secs(60),
            limits: Limits::default(),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Tokens and keys stay out of logs.
        f.debug_struct("Options")
            .field("tokens", &self.tokens.len())
            .field("anonymous", &self.anonymous)
            .field("simulate", &self.simulate)
            .finish_non_exhaustive()
    }
}
