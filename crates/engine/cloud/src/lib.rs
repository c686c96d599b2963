//! Requests as clouds want them.
//!
//! Which requests to send and how to sign them is decided here; sending is left to whoever has a network. A request goes to the
//! host it was made for and nowhere else, as its headers and its body are secrets. Nothing here touches a clock or a network.

pub mod aws;
pub mod azure;
mod call;
mod destinations;
pub mod google;
pub mod jwt;

pub use call::{Call, access_token, json_answer, percent};
pub use destinations::{Destination, Destinations, Origin, Token};

/// Why credentials cannot be used. The text holds nothing of them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unusable(pub &'static str);

/// Lower case, two digits a byte.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
