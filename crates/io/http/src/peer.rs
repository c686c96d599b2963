//! Keys for what is kept across requests: everything that decides who answers.
//!
//! The process serves many tenants. Whatever one of them can influence (a proxy, a certificate authority, a login, the responses
//! of its own server) must not change what another one gets, even for the same URL. Every memory that outlives a request is
//! therefore keyed by a [`Route`] or a [`PeerKey`]; both come from a [`Client`](crate::Client) and cannot be made in part.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::{AddressPolicy, Credentials, Settings};

/// On whose behalf requests are made: the engine itself or one namespace, which is the boundary between tenants.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Owner(Option<Arc<str>>);

impl Owner {
    /// Requests that the operator configured, and those of commands.
    #[must_use]
    pub fn engine() -> Self {
        Self(None)
    }

    /// Requests of an object of this namespace.
    #[must_use]
    pub fn namespace(name: &str) -> Self {
        Self(Some(name.into()))
    }
}

/// Owner, proxy, TLS settings and address policy of a client. Two clients with equal routes reach the same server for a URL.
///
/// Certificates, keys and passwords are part of it as a hash, so that a rotated one is a new route.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Route {
    owner: Owner,
    addresses: AddressPolicy,
    settings: [u8; 32],
}

impl Route {
    pub(crate) fn of(settings: &Settings) -> Self {
        // All fields are named, so that a new setting cannot be forgotten here.
        let Settings {
            owner,
            ca,
            client_certificate,
            insecure_tls,
            proxy,
            credentials: _,
            timeout: _,
            addresses,
        } = settings;
        let mut hash = Fields::default();
        hash.optional(ca.as_deref());
        hash.optional(client_certificate.as_ref().map(|c| c.chain.as_slice()));
        hash.optional(client_certificate.as_ref().map(|c| c.key.expose().as_slice()));
        hash.field(&[u8::from(*insecure_tls)]);
        hash.optional(proxy.as_ref().map(|p| p.address.as_bytes()));
        hash.optional(proxy.as_ref().map(|p| p.username.as_bytes()));
        hash.optional(proxy.as_ref().map(|p| p.password.expose().as_bytes()));
        Self { owner: owner.clone(), addresses: addresses.clone(), settings: hash.finish() }
    }
}

/// A URL as one client sees it: its route, its credentials and the URL.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PeerKey {
    route: Route,
    credentials: [u8; 32],
    url: String,
}

impl PeerKey {
    pub(crate) fn new(route: &Route, credentials: &Credentials, url: &str) -> Self {
        let mut hash = Fields::default();
        match credentials {
            Credentials::None => hash.field(b"none"),
            Credentials::Basic { username, password } => {
                hash.field(b"basic");
                hash.field(username.as_bytes());
                hash.field(password.expose().as_bytes());
            }
            Credentials::Bearer(token) => {
                hash.field(b"bearer");
                hash.field(token.expose().as_bytes());
            }
        }
        Self { route: route.clone(), credentials: hash.finish(), url: url.to_owned() }
    }
}

/// A hash over fields with their lengths: no two lists of fields have the same input.
#[derive(Default)]
struct Fields(Sha256);

impl Fields {
    fn field(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_be_bytes());
        self.0.update(bytes);
    }

    fn optional(&mut self, bytes: Option<&[u8]>) {
        self.field(&[u8::from(bytes.is_some())]);
        self.field(bytes.unwrap_or_default());
    }

    fn finish(self) -> [u8; 32] {
        self.0.finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use fl_types::Secret;

    use super::*;
    use crate::{Client, ClientCertificate, Proxy};

    fn settings() -> Settings {
        Settings::new(Owner::namespace("a"))
    }

    fn proxy(address: &str, username: &str, password: &str) -> Option<Proxy> {
        Some(Proxy {
            address: address.to_owned(),
            username: username.to_owned(),
            password: Secret::new(password.to_owned()),
        })
    }

    #[test]
    fn every_setting_that_selects_the_server_is_part_of_the_route() {
        let pair = |key: &str| {
            Some(ClientCertificate { chain: b"c".to_vec(), key: Secret::new(key.as_bytes().to_vec()) })
        };
        let all = [
            settings(),
            Settings::new(Owner::engine()),
            Settings::new(Owner::namespace("b")),
            Settings { ca: Some(b"x".to_vec()), ..settings() },
            Settings { ca: Some(Vec::new()), ..settings() },
            Settings { insecure_tls: true, ..settings() },
            Settings { client_certificate: pair("k"), ..settings() },
            Settings { client_certificate: pair("l"), ..settings() },
            Settings { proxy: proxy("http://p", "", ""), ..settings() },
            Settings { proxy: proxy("http://p", "u", ""), ..settings() },
            Settings { proxy: proxy("http://p", "", "u"), ..settings() },
            Settings { addresses: AddressPolicy::cluster(), ..settings() },
        ];
        for (i, one) in all.iter().enumerate() {
            for (j, other) in all.iter().enumerate() {
                assert_eq!(Route::of(one) == Route::of(other), i == j, "{i} {j}");
            }
        }
    }

    #[test]
    fn credentials_and_url_are_part_of_a_peer() {
        let login = |username: &str, password: &str| Credentials::Basic {
            username: username.to_owned(),
            password: Secret::new(password.to_owned()),
        };
        let key = |credentials: Credentials, url: &str| {
            Client::new(Settings { credentials, ..settings() }).expect("a client").peer(url)
        };
        let all = [
            key(Credentials::None, "http://h/a"),
            key(Credentials::None, "http://h/b"),
            key(login("u", "p"), "http://h/a"),
            key(login("up", ""), "http://h/a"),
            key(Credentials::Bearer(Secret::new("up".to_owned())), "http://h/a"),
        ];
        for (i, one) in all.iter().enumerate() {
            assert_eq!(all.iter().filter(|other| *other == one).count(), 1, "{i}");
        }
        assert_eq!(key(login("u", "p"), "http://h/a"), all[2]);
        assert!(!format!("{:?}", all[2]).contains("password"));
    }
}
