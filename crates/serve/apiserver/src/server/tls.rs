//! TLS: the serving certificate, and users from client certificates.

use std::sync::{Arc, PoisonError, RwLock};

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{DigitallySignedStruct, DistinguishedName, SignatureScheme};
use tokio_rustls::TlsAcceptor;

use super::listen::ListenError;
use super::pki::{Identity, Pki};
use crate::auth::User;

fn tls_error(error: impl std::fmt::Display) -> ListenError {
    ListenError::Tls(error.to_string())
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// The certificate for new connections. Clones share it.
#[derive(Clone)]
pub struct ServingCertificate(Arc<RwLock<Arc<CertifiedKey>>>);

impl std::fmt::Debug for ServingCertificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ServingCertificate(***)")
    }
}

fn certified_key(identity: &Identity) -> Result<Arc<CertifiedKey>, ListenError> {
    let chain = vec![CertificateDer::from_pem_slice(identity.certificate.as_bytes()).map_err(tls_error)?];
    let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).map_err(tls_error)?;
    CertifiedKey::from_der(chain, key, &provider()).map(Arc::new).map_err(tls_error)
}

impl ServingCertificate {
    fn new(identity: &Identity) -> Result<Self, ListenError> {
        Ok(Self(Arc::new(RwLock::new(certified_key(identity)?))))
    }

    /// Replaces the certificate for new connections.
    pub fn replace(&self, identity: &Identity) -> Result<(), ListenError> {
        let key = certified_key(identity)?;
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = key;
        Ok(())
    }
}

impl ResolvesServerCert for ServingCertificate {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.read().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

/// Requests a client certificate and accepts any whose key the client has. [`Tls::user`] decides later who
/// the client is, as kube-apiserver does: a client with an expired certificate can still send a token.
#[derive(Debug)]
struct AnyCertificate(Arc<dyn ClientCertVerifier>);

impl ClientCertVerifier for AnyCertificate {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.0.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }

    fn offer_client_auth(&self) -> bool {
        true
    }

    fn client_auth_mandatory(&self) -> bool {
        false
    }
}

/// TLS configuration of the server.
#[derive(Clone)]
pub(super) struct Tls {
    pub(super) acceptor: TlsAcceptor,
    pub(super) certificate: ServingCertificate,
    clients: Arc<dyn ClientCertVerifier>,
}

impl Tls {
    pub(super) fn new(pki: &Pki) -> Result<Self, ListenError> {
        let (config, certificate, clients) = setup(pki)?;
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), certificate, clients })
    }

    /// The user of a client certificate; `None` without one, and for one that is not signed by our CA or not
    /// valid now.
    pub(super) fn user(&self, chain: Option<&[CertificateDer<'_>]>) -> Option<User> {
        let (certificate, intermediates) = chain?.split_first()?;
        self.clients.verify_client_cert(certificate, intermediates, UnixTime::now()).ok()?;
        certificate_user(certificate)
    }
}

fn setup(
    pki: &Pki,
) -> Result<(rustls::ServerConfig, ServingCertificate, Arc<dyn ClientCertVerifier>), ListenError> {
    let mut roots = rustls::RootCertStore::empty();
    let ca = CertificateDer::from_pem_slice(pki.ca.certificate.as_bytes()).map_err(tls_error)?;
    roots.add(ca).map_err(tls_error)?;
    let clients: Arc<dyn ClientCertVerifier> =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider())
            .allow_unauthenticated()
            .build()
            .map_err(tls_error)?;
    let certificate = ServingCertificate::new(&pki.server)?;
    let mut config = rustls::ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(tls_error)?
        .with_client_cert_verifier(Arc::new(AnyCertificate(clients.clone())))
        .with_cert_resolver(Arc::new(certificate.clone()));
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok((config, certificate, clients))
}

impl Pki {
    /// A configuration for another TLS server with these certificates.
    pub fn server_config(&self) -> Result<rustls::ServerConfig, ListenError> {
        Ok(setup(self)?.0)
    }
}

/// User and groups from the common name and organizations of a verified certificate.
fn certificate_user(certificate: &CertificateDer<'_>) -> Option<User> {
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate).ok()?;
    let subject = parsed.subject();
    let name = subject.iter_common_name().next()?.as_str().ok()?.to_owned();
    let mut groups: Vec<String> =
        subject.iter_organization().filter_map(|o| o.as_str().ok()).map(str::to_owned).collect();
    groups.push("system:authenticated".to_owned());
    Some(User { name, groups, ..User::default() })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn der(identity: &Identity) -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(identity.certificate.as_bytes()).expect("PEM")
    }

    #[test]
    fn only_a_valid_certificate_of_our_ca_identifies_a_user() {
        let now = Timestamp::now();
        let past = Timestamp::from_second(now.as_second() - 2 * 365 * 24 * 3600).expect("in range");
        let old = Pki::generate_at(&[], past).expect("made");
        let mut renewed = old.clone();
        assert!(renewed.renew(&[], now).expect("renewed"));
        let tls = Tls::new(&renewed).expect("TLS");
        let user = tls.user(Some(&[der(&renewed.admin)])).expect("a user");
        assert_eq!(user.name, "fluorite-admin");
        assert!(user.in_group("system:masters"));
        assert!(tls.user(Some(&[der(&old.admin)])).is_none(), "expired");
        assert!(tls.user(Some(&[der(&Pki::generate(&[]).expect("made").admin)])).is_none(), "another CA");
        assert!(tls.user(Some(&[der(&renewed.server)])).is_none(), "not for clients");
        assert!(tls.user(None).is_none() && tls.user(Some(&[])).is_none());
    }

    #[test]
    fn certificate_is_replaced_while_serving() {
        let pki = Pki::generate(&[]).expect("made");
        let tls = Tls::new(&pki).expect("TLS");
        let shown = || tls.certificate.0.read().expect("a lock").cert[0].clone();
        assert_eq!(shown(), der(&pki.server));
        let other = Pki::generate(&[]).expect("made");
        tls.certificate.replace(&other.server).expect("replaced");
        assert_eq!(shown(), der(&other.server));
    }
}
