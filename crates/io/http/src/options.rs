//! What one object's connections look like.

use std::time::Duration;

use fl_types::Secret;

use crate::{AddressPolicy, Owner};

/// Settings of a client.
#[derive(Clone, Debug)]
pub struct Settings {
    /// On whose behalf requests are made. There is no default.
    pub owner: Owner,
    /// PEM certificates to trust in addition to the system's.
    pub ca: Option<Vec<u8>>,
    pub client_certificate: Option<ClientCertificate>,
    /// Accept any certificate. Only where an API allows it.
    pub insecure_tls: bool,
    pub proxy: Option<Proxy>,
    pub credentials: Credentials,
    /// For the whole of a request, body included.
    pub timeout: Duration,
    /// Where connections may go; of a proxy's connections only the address in the URL is known here.
    pub addresses: AddressPolicy,
}

impl Settings {
    /// The system's certificates are trusted; no proxy and no credentials are used.
    #[must_use]
    pub fn new(owner: Owner) -> Self {
        Self {
            owner,
            ca: None,
            client_certificate: None,
            insecure_tls: false,
            proxy: None,
            credentials: Credentials::None,
            timeout: Duration::from_secs(60),
            addresses: AddressPolicy::default(),
        }
    }
}

/// A certificate chain and its key, both PEM.
#[derive(Clone, Debug)]
pub struct ClientCertificate {
    pub chain: Vec<u8>,
    pub key: Secret<Vec<u8>>,
}

/// A proxy of scheme `http`, `https` or `socks5`.
#[derive(Clone, Debug)]
pub struct Proxy {
    pub address: String,
    pub username: String,
    pub password: Secret<String>,
}

/// Who we say we are, and only to the host of the request.
#[derive(Clone, Debug)]
pub enum Credentials {
    None,
    /// An empty user name is allowed: some hosts want a token as password alone.
    Basic {
        username: String,
        password: Secret<String>,
    },
    Bearer(Secret<String>),
}
