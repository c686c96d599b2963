//! Renewal of certificates while the server runs.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;

use super::pki::Pki;
use super::tls::ServingCertificate;

/// Interval between checks. Certificates are due months before they expire.
const INTERVAL: Duration = Duration::from_secs(12 * 3600);

/// Certificates to renew.
#[derive(Debug)]
pub struct Renewal {
    pub pki: Pki,
    /// Directory of the certificates; `None` if they are not stored.
    pub dir: Option<PathBuf>,
    /// Addresses the server listens on.
    pub addresses: Vec<IpAddr>,
    /// The serving certificate to replace.
    pub certificate: ServingCertificate,
}

impl Renewal {
    /// Runs until dropped. `report` gets the certificates after a renewal (to write them into a kubeconfig),
    /// or the error; the next check tries again.
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
    async fn renewed_certificate_is_stored_and_served() {
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
