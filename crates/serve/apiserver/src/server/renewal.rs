//! Renews certificates while the server runs.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;

use super::pki::Pki;
use super::tls::ServingCertificate;

/// Certificates are due months before their end, so it is enough to look twice a day.
const INTERVAL: Duration = Duration::from_secs(12 * 3600);

/// Certificates that are looked after.
#[derive(Debug)]
pub struct Renewal {
    pub pki: Pki,
    /// Where they are kept; `None` when they end with the process.
    pub dir: Option<PathBuf>,
    /// What the server listens on.
    pub addresses: Vec<IpAddr>,
    /// What clients are shown.
    pub certificate: ServingCertificate,
}

impl Renewal {
    /// Runs until it is dropped. `report` gets the certificates after a renewal (to write them into a kubeconfig), or why it
    /// failed; it is tried again at the next turn.
    pub async fn run(mut self, mut report: impl FnMut(Result<&Pki, String>) + Send) {
        loop {
            tokio::time::sleep(INTERVAL).await;
            match self.renew(Timestamp::now()) {
                Ok(true) => report(Ok(&self.pki)),
                Ok(false) => {}
                Err(problem) => report(Err(problem)),
            }
        }
    }

    fn renew(&mut self, now: Timestamp) -> Result<bool, String> {
        let mut renewed = self.pki.clone();
        if !renewed.renew(&self.addresses, now).map_err(|e| e.to_string())? {
            return Ok(false);
        }
        if let Some(dir) = &self.dir {
            renewed.write(dir).map_err(|e| e.to_string())?;
        }
        self.certificate.replace(&renewed.server).map_err(|e| e.to_string())?;
        self.pki = renewed;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::Listener;

    #[tokio::test]
    async fn a_renewed_certificate_is_kept_and_shown() {
        let dir = tempfile::tempdir().expect("a directory");
        let pki = Pki::load_or_generate(dir.path(), &[]).expect("certificates");
        let listener = Listener::bind(([127, 0, 0, 1], 0).into(), Some(&pki)).await.expect("a socket");
        let certificate = listener.certificate().expect("TLS");
        let mut renewal = Renewal {
            pki: pki.clone(),
            dir: Some(dir.path().to_owned()),
            addresses: Vec::new(),
            certificate,
        };
        assert!(!renewal.renew(Timestamp::now()).expect("looked"), "nothing is due");
        let later = Timestamp::from_second(Timestamp::now().as_second() + 300 * 24 * 3600).expect("in range");
        assert!(renewal.renew(later).expect("renewed"));
        assert!(renewal.pki.server != pki.server && renewal.pki.ca == pki.ca);
        let kept = std::fs::read_to_string(dir.path().join("server.crt")).expect("read");
        assert_eq!(kept, renewal.pki.server.certificate);
    }
}
