//! The CA, the server's certificate and the administrator's, kept in the data directory.

use std::net::IpAddr;
use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, SanType,
};

/// A certificate and its key, PEM.
#[derive(Clone)]
pub struct Identity {
    pub certificate: String,
    pub key: String,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Identity(***)")
    }
}

/// Everything TLS needs.
#[derive(Debug, Clone)]
pub struct Pki {
    pub ca: Identity,
    pub server: Identity,
    pub admin: Identity,
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PkiError {
    #[error("cannot make a certificate")]
    Make(#[from] rcgen::Error),
    #[error("cannot read or write {path}")]
    Io {
        path: String,
        #[source]
        source: std::io::Error,
    },
}

fn params(name: &str, organization: Option<&str>) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(Vec::<String>::new())?;
    let mut dn = DistinguishedName::new();
    if let Some(organization) = organization {
        dn.push(DnType::OrganizationName, organization);
    }
    dn.push(DnType::CommonName, name);
    params.distinguished_name = dn;
    Ok(params)
}

impl Pki {
    /// New certificates for a server that listens on `addresses`.
    pub fn generate(addresses: &[IpAddr]) -> Result<Self, PkiError> {
        let ca_key = KeyPair::generate()?;
        let mut ca = params("fluorite-ca", None)?;
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let ca_certificate = ca.self_signed(&ca_key)?;
        let issuer = Issuer::new(ca, &ca_key);

        let server_key = KeyPair::generate()?;
        let mut server = params("kube-apiserver", None)?;
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        for name in [
            "localhost",
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "kubernetes.default.svc.cluster.local",
        ] {
            server.subject_alt_names.push(SanType::DnsName(name.try_into()?));
        }
        let mut all = vec![
            IpAddr::from([127, 0, 0, 1]),
            IpAddr::from([0u16, 0, 0, 0, 0, 0, 0, 1]),
            IpAddr::from([10, 0, 0, 1]),
        ];
        all.extend(addresses.iter().filter(|a| !a.is_unspecified()));
        all.sort();
        all.dedup();
        server.subject_alt_names.extend(all.into_iter().map(SanType::IpAddress));
        let server_certificate = server.signed_by(&server_key, &issuer)?;

        let admin_key = KeyPair::generate()?;
        let mut admin = params("fluorite-admin", Some("system:masters"))?;
        admin.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let admin_certificate = admin.signed_by(&admin_key, &issuer)?;

        let identity = |certificate: &rcgen::Certificate, key: &KeyPair| Identity {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        };
        Ok(Self {
            ca: identity(&ca_certificate, &ca_key),
            server: identity(&server_certificate, &server_key),
            admin: identity(&admin_certificate, &admin_key),
        })
    }

    /// The certificates of a directory, made when they are missing.
    pub fn load_or_generate(dir: &Path, addresses: &[IpAddr]) -> Result<Self, PkiError> {
        let io = |path: &Path| {
            let path = path.display().to_string();
            move |source| PkiError::Io { path, source }
        };
        let names = ["ca", "server", "admin"];
        let read = |name: &str| -> Option<Identity> {
            Some(Identity {
                certificate: std::fs::read_to_string(dir.join(format!("{name}.crt"))).ok()?,
                key: std::fs::read_to_string(dir.join(format!("{name}.key"))).ok()?,
            })
        };
        if let [Some(ca), Some(server), Some(admin)] = names.map(read) {
            return Ok(Self { ca, server, admin });
        }
        let pki = Self::generate(addresses)?;
        std::fs::create_dir_all(dir).map_err(io(dir))?;
        for (name, identity) in names.iter().zip([&pki.ca, &pki.server, &pki.admin]) {
            let path = dir.join(format!("{name}.crt"));
            std::fs::write(&path, &identity.certificate).map_err(io(&path))?;
            let path = dir.join(format!("{name}.key"));
            write_private(&path, identity.key.as_bytes()).map_err(io(&path))?;
        }
        Ok(pki)
    }
}

/// Writes a file only its owner can read.
pub fn write_private(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut file =
        std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(bytes)
}
