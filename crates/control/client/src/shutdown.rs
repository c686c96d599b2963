//! The shutdown signal of the process.

use tokio::sync::watch;

/// A shutdown signal. Clones share it.
#[derive(Clone, Debug)]
pub struct Shutdown {
    sender: watch::Sender<bool>,
}

impl Default for Shutdown {
    fn default() -> Self {
        Self { sender: watch::Sender::new(false) }
    }
}

impl Shutdown {
    /// Starts the shutdown.
    pub fn now(&self) {
        self.sender.send_replace(true);
    }

    pub fn is_stopped(&self) -> bool {
        *self.sender.borrow()
    }

    /// Resolves once the shutdown has started. Cancel safe.
    pub async fn stopped(&self) {
        let mut receiver = self.sender.subscribe();
        // The sender is a part of `self`, so it is not dropped.
        let _ = receiver.wait_for(|stopped| *stopped).await;
    }
}
