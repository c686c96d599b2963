//! `notification.toolkit.fluxcd.io`: events out, webhooks in.

pub mod alert;
pub mod provider;
pub mod receiver;

pub use alert::{Alert, AlertSpec};
pub use provider::{Provider, ProviderSpec};
pub use receiver::{Receiver, ReceiverSpec, ReceiverStatus};
