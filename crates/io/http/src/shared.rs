//! Connections shared by clients that differ only in their credentials.
//!
//! Five hundred objects on one registry then keep a handful of connections and one copy of the trusted certificates.

use std::sync::{LazyLock, Mutex, PoisonError};

use crate::{AddressPolicy, Error, Settings};

/// Sets of certificates and proxies that are kept; the one that was made first goes first.
const KEPT: usize = 64;

static CLIENTS: LazyLock<Mutex<Vec<(Key, reqwest::Client)>>> = LazyLock::new(Mutex::default);

/// Everything that shapes a connection. Private keys are part of it, so that a rotated one is noticed.
#[derive(PartialEq, Eq)]
struct Key {
    ca: Option<Vec<u8>>,
    certificate: Option<(Vec<u8>, Vec<u8>)>,
    insecure_tls: bool,
    proxy: Option<(String, String, String)>,
    addresses: AddressPolicy,
    /// A connection lives on the runtime that made it; tests have many.
    runtime: Option<tokio::runtime::Id>,
}

impl Key {
    fn of(settings: &Settings) -> Self {
        Self {
            ca: settings.ca.clone(),
            certificate: settings
                .client_certificate
                .as_ref()
                .map(|c| (c.chain.clone(), c.key.expose().clone())),
            insecure_tls: settings.insecure_tls,
            proxy: settings
                .proxy
                .as_ref()
                .map(|p| (p.address.clone(), p.username.clone(), p.password.expose().clone())),
            addresses: settings.addresses.clone(),
            runtime: tokio::runtime::Handle::try_current().ok().map(|h| h.id()),
        }
    }
}

pub(crate) fn connections(
    settings: &Settings,
    build: impl FnOnce(&Settings) -> Result<reqwest::Client, Error>,
) -> Result<reqwest::Client, Error> {
    let key = Key::of(settings);
    let mut clients = CLIENTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, client)) = clients.iter().find(|(known, _)| *known == key) {
        return Ok(client.clone());
    }
    let client = build(settings)?;
    if clients.len() >= KEPT {
        clients.remove(0);
    }
    clients.push((key, client.clone()));
    Ok(client)
}
