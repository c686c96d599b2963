//! One signal that ends everything.

use tokio::sync::watch;

/// Told to stop, or asks whether that has been told. Clones share one signal.
#[derive(Clone, Debug)]
pub struct Stop {
    sender: watch::Sender<bool>,
}

impl Default for Stop {
    fn default() -> Self {
        Self { sender: watch::Sender::new(false) }
    }
}

impl Stop {
    /// Tells everybody.
    pub fn now(&self) {
        self.sender.send_replace(true);
    }

    pub fn is_stopped(&self) -> bool {
        *self.sender.borrow()
    }

    /// Resolves once stopping was told. Safe to drop and call again.
    pub async fn stopped(&self) {
        let mut receiver = self.sender.subscribe();
        // The sender is a part of `self`: it cannot be gone.
        let _ = receiver.wait_for(|stopped| *stopped).await;
    }
}
