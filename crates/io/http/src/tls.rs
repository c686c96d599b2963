//! TLS with one provider, ring.

use std::sync::{Arc, OnceLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};

use crate::{ClientCertificate, Error, Settings};

/// The system's certificates are read once; a container may have none, and then only given ones are trusted. Clients without
/// a CA bundle share one copy.
fn system_roots() -> &'static Arc<RootCertStore> {
    static ROOTS: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    ROOTS.get_or_init(|| {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        Arc::new(roots)
    })
}

/// Whether a text has a certificate that can be trusted, whatever else is in it.
fn holds_certificate(pem: &[u8]) -> bool {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(CertificateDer::pem_slice_iter(pem).flatten()).0 > 0
}

/// Whether a text has a private key.
fn holds_key(pem: &[u8]) -> bool {
    PrivateKeyDer::from_pem_slice(pem).is_ok()
}

pub(crate) fn config(settings: &Settings) -> Result<ClientConfig, Error> {
    let bad = |what, problem: String| Error::Settings { what, problem };
    let mut roots = system_roots().clone();
    if let Some(pem) = &settings.ca {
        let roots = Arc::make_mut(&mut roots);
        let before = roots.len();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|e| bad("CA bundle", e.to_string()))?;
            roots.add(certificate).map_err(|e| bad("CA bundle", e.to_string()))?;
        }
        if roots.len() == before {
            return Err(bad("CA bundle", "it holds no certificate".to_owned()));
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|e| bad("TLS provider", e.to_string()))?;
    let builder = if settings.insecure_tls {
        builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
    } else {
        builder.with_root_certificates(roots)
    };
    match &settings.client_certificate {
        None => Ok(builder.with_no_client_auth()),
        Some(pair) => {
            let chain: Vec<_> = CertificateDer::pem_slice_iter(&pair.chain)
                .collect::<Result<_, _>>()
                .map_err(|e| bad("client certificate", e.to_string()))?;
            // The parser's error is left out: it could quote the key.
            let key = PrivateKeyDer::from_pem_slice(pair.key.expose())
                .map_err(|_| bad("client key", "it is not a PEM key".to_owned()))?;
            builder.with_client_auth_cert(chain, key).map_err(|e| bad("client certificate", e.to_string()))
        }
    }
}

/// Why certificates cannot be used, with Go's messages.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum CertificateError {
    #[error("failed to parse TLS certificate and key: tls: failed to find any PEM data in certificate input")]
    NoCertificate,
    #[error("failed to parse TLS certificate and key: tls: failed to find any PEM data in key input")]
    NoKey,
    #[error("failed to parse CA certificate")]
    NoAuthority,
}

/// Checks that certificates can be parsed. A bundle may contain some that cannot.
///
/// # Errors
/// A pair that is not PEM, or a bundle without a usable certificate.
pub fn check_certificates(
    ca: Option<&[u8]>,
    pair: Option<&ClientCertificate>,
) -> Result<(), CertificateError> {
    if let Some(pair) = pair {
        if !CertificateDer::pem_slice_iter(&pair.chain).any(|found| found.is_ok()) {
            return Err(CertificateError::NoCertificate);
        }
        if !holds_key(pair.key.expose()) {
            return Err(CertificateError::NoKey);
        }
    }
    if ca.is_some_and(|pem| !holds_certificate(pem)) {
        return Err(CertificateError::NoAuthority);
    }
    Ok(())
}

/// For `insecureSkipVerify`: accepts any certificate, but checks the signature of the handshake.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
