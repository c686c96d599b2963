//! The one HTTP client.
//!
//! Sources, registries and notifications each have certificates, a proxy and credentials per object; a [`Client`] is made for one
//! such set. This holds for all of them:
//!
//! - **Credentials are sent to their own host only**, not to the target of a redirect; a redirect from
//!   `https` to `http` is refused.
//! - **Answers are bounded.** A body is read up to a limit, piece by piece; a host that answers `429` or `503` with `Retry-After` gets
//!   no request of the same [`Owner`] over the same [`Route`] until then.
//! - **Memory and disk are bounded.** What concurrent fetches hold is counted against one [`ByteBudget`].
//! - **Tenants do not meet.** What is kept across requests is keyed by everything that decides who answers: see [`PeerKey`].
//!
//! A client for untrusted addresses can be kept from this machine, link-local addresses and the metadata of clouds:
//! [`AddressPolicy`].

mod address_policy;
mod body;
mod budget;
mod client;
mod connection_pool;
mod error;
mod options;
mod peer;
mod retry_after;
mod spool;
mod tls;

pub use address_policy::{AddressPolicy, Forbidden, Network, NetworkError};
pub use body::BodyReader;
pub use budget::{BudgetError, BudgetLimits, ByteBudget, CancelWaits, HeldBytes, Lease};
pub use client::{Client, Request, Response};
pub use error::Error;
pub use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
pub use options::{ClientCertificate, Credentials, Proxy, Settings};
pub use peer::{Owner, PeerKey, Route};
pub use spool::SpoolFile;
pub use tls::{CertificateError, check_certificates};
pub use url::Url;
