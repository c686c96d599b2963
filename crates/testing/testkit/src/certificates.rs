//! A certificate authority for one control plane.

use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};

/// Files the API server reads, and the authority its clients trust.
pub(crate) struct Certificates {
    pub(crate) server_certificate: PathBuf,
    pub(crate) server_key: PathBuf,
    /// Signs service account tokens.
    pub(crate) token_key: PathBuf,
    /// Verifies them.
    pub(crate) token_public_key: PathBuf,
    pub(crate) authority: PathBuf,
    pub(crate) authority_der: Vec<u8>,
}

/// Makes everything in `folder`.
pub(crate) fn create(folder: &Path) -> anyhow::Result<Certificates> {
    let write = |name: &str, text: &str| -> anyhow::Result<PathBuf> {
        let path = folder.join(name);
        std::fs::write(&path, text)?;
        Ok(path)
    };
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name.push(DnType::CommonName, "fluorite test authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let authority_key = KeyPair::generate()?;
    let authority = params.self_signed(&authority_key)?;
    let issuer = Issuer::new(params, authority_key);

    let server_key = KeyPair::generate()?;
    let server = CertificateParams::new(vec!["127.0.0.1".to_owned(), "localhost".to_owned()])?
        .signed_by(&server_key, &issuer)?;
    let token_key = KeyPair::generate()?;
    Ok(Certificates {
        server_certificate: write("server.crt", &server.pem())?,
        server_key: write("server.key", &server_key.serialize_pem())?,
        token_key: write("tokens.key", &token_key.serialize_pem())?,
        token_public_key: write("tokens.pub", &token_key.public_key_pem())?,
        authority: write("ca.crt", &authority.pem())?,
        authority_der: authority.der().to_vec(),
    })
}
