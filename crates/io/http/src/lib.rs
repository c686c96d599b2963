//! The one HTTP client.
//!
//! Sources, registries and notifications each have certificates, a proxy and credentials per object; a [`Client`] is made for one
//! such set. Three things hold for all of them:
//!
//! - **Credentials stay home.** They go to the host they were given for and to nobody a redirect names; a redirect from
//!   `https` to `http` is refused.
//! - **Answers are bounded.** A body is read up to a limit, piece by piece; a host that says `429` or `503` with `Retry-After` gets
//!   no request of the same [`Owner`] over the same [`Route`] until then.
//! - **Tenants do not meet.** What is kept across requests is keyed by everything that decides who answers: see [`PeerKey`].
//!
//! A client for addresses that strangers write can be kept from this machine, link-local addresses and the metadata of clouds:
//! [`AddressPolicy`].

mod addresses;
mod body;
mod client;
mod error;
mod peer;
mod retry_after;
mod settings;
mod shared;
mod tls;

pub use addresses::{AddressPolicy, Forbidden, Network, NetworkError};
pub use body::BodyReader;
pub use client::{Client, Request, Response};
pub use error::Error;
pub use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
pub use peer::{Owner, PeerKey, Route};
pub use settings::{ClientCertificate, Credentials, Proxy, Settings};
pub use tls::check_certificates;
pub use url::Url;
