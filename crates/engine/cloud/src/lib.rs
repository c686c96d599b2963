//! Requests to cloud providers: what to send and how to sign it.
//!
//! The caller sends the requests. Send a request only to the host it was made for, since its headers and body
//! are secrets. This crate uses neither clock nor network.

pub mod aws;
pub mod azure;
mod destinations;
mod error;
pub mod google;
pub mod jwt;
mod request;

pub use destinations::{Destination, Destinations, Origin, Token};
pub use error::{CloudError, CredentialsError};
pub use request::{CloudRequest, access_token, json_response, percent};

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
