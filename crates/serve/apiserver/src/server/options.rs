//! Configuration of a server.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::limits::Limits;
use crate::auth::User;

/// Configuration of simulated workloads.
#[derive(Debug, Clone)]
pub struct SimulateOptions {
    /// Time until a pod becomes ready.
    pub ready_after: Duration,
    /// Number of nodes to create, for daemon sets.
    pub nodes: u32,
}

impl Default for SimulateOptions {
    fn default() -> Self {
        Self { ready_after: Duration::from_millis(500), nodes: 1 }
    }
}

/// Configuration of a server.
#[derive(Clone)]
pub struct Options {
    /// Static bearer tokens.
    pub tokens: HashMap<String, User>,
    /// Whether requests without credentials are accepted as `system:anonymous` (RBAC then rejects most of
    /// them).
    pub anonymous: bool,
    /// PKCS#8 of the key that signs service account tokens; generated if absent.
    pub signing_key: Option<Vec<u8>>,
    /// PEM of the CA, published as `kube-root-ca.crt` if present.
    pub ca_pem: Option<String>,
    pub simulate: Option<SimulateOptions>,
    /// Maximum bytes of a request body; kube-apiserver's limit is 3 MiB.
    pub max_body: usize,
    /// Clock for timestamps.
    pub clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    /// Interval of bookmarks on idle watches.
    pub bookmark_every: Duration,
    /// Limits per user and connection.
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
        // Tokens and keys must not appear in logs.
        f.debug_struct("Options")
            .field("tokens", &self.tokens.len())
            .field("anonymous", &self.anonymous)
            .field("simulate", &self.simulate)
            .finish_non_exhaustive()
    }
}
