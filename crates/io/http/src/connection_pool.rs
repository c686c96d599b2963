//! Connection pools by route.
//!
//! Five hundred objects of one namespace on one registry keep a handful of connections. Objects of other namespaces, and those with
//! another proxy or other certificates, have pools of their own: a server that sends more than it was asked for must not be able
//! to answer the next request of another tenant.

use std::sync::{LazyLock, Mutex, PoisonError};

use crate::{Error, Route, Settings};

/// Pools that are kept; the least recently used one is dropped.
const POOLS: usize = 256;

/// A connection lives on the runtime that made it; tests have many.
type Key = (Route, Option<tokio::runtime::Id>);

static CLIENTS: LazyLock<Mutex<Vec<(Key, reqwest::Client)>>> = LazyLock::new(Mutex::default);

/// The pool of a route.
pub(crate) fn pool(
    route: &Route,
    settings: &Settings,
    build: impl FnOnce(&Settings) -> Result<reqwest::Client, Error>,
) -> Result<reqwest::Client, Error> {
    let runtime = tokio::runtime::Handle::try_current().ok().map(|h| h.id());
    let mut clients = CLIENTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(at) = clients.iter().position(|((r, id), _)| r == route && *id == runtime) {
        let found = clients.remove(at);
        let client = found.1.clone();
        clients.push(found);
        return Ok(client);
    }
    let client = build(settings)?;
    if clients.len() >= POOLS {
        clients.remove(0);
    }
    clients.push(((route.clone(), runtime), client.clone()));
    Ok(client)
}
