//! SSH keys for Git: new ones, public halves of given ones, and the host keys of servers.

use std::time::Duration;

use anyhow::{Context, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair,
};
use rsa::pkcs1::DecodeRsaPrivateKey;
use rsa::pkcs8::{DecodePrivateKey, EncodePrivateKey};
use rsa::traits::PublicKeyParts;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A key pair in the forms secrets hold: a PEM file and an `authorized_keys` line.
pub(crate) struct SshKey {
    pub(crate) private: String,
    pub(crate) public: String,
}

fn pem(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines: Vec<&str> =
        text.as_bytes().chunks(64).map(|c| std::str::from_utf8(c).expect("base64 is ASCII")).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

/// A new key.
///
/// # Errors
/// An algorithm this build cannot make.
pub(crate) fn generate(algorithm: &str, curve: &str, bits: &str) -> anyhow::Result<SshKey> {
    let random = SystemRandom::new();
    let failed = |_| anyhow::anyhow!("the system gave no random numbers");
    let der: Vec<u8> = match (algorithm, curve) {
        ("ed25519", _) => Ed25519KeyPair::generate_pkcs8(&random).map_err(failed)?.as_ref().to_vec(),
        ("rsa", _) => {
            let bits = bits.parse().context("size of the RSA key")?;
            let key = rsa::RsaPrivateKey::new(&mut rand::rng(), bits)?;
            key.to_pkcs8_der()?.as_bytes().to_vec()
        }
        (_, "p256") => EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random)
            .map_err(failed)?
            .as_ref()
            .to_vec(),
        (_, "p384") => EcdsaKeyPair::generate_pkcs8(&ECDSA_P384_SHA384_ASN1_SIGNING, &random)
            .map_err(failed)?
            .as_ref()
            .to_vec(),
        (_, other) => bail!(
            "keys on curve {other} cannot be made here; use p256 or p384, or give one with --private-key-file"
        ),
    };
    load(&pem("PRIVATE KEY", &der))
}

/// The pair of a private key in PEM form.
///
/// # Errors
/// The text holds no key, or one with a passphrase.
pub(crate) fn load(text: &str) -> anyhow::Result<SshKey> {
    let blob =
        if text.contains("BEGIN OPENSSH PRIVATE KEY") { openssh_public(text)? } else { pem_public(text)? };
    let algorithm = first_string(&blob).context("the key has no algorithm")?;
    Ok(SshKey { private: text.to_owned(), public: format!("{algorithm} {}\n", STANDARD.encode(&blob)) })
}

/// OpenSSH's own format carries the public key unencrypted in front of the private one.
fn openssh_public(text: &str) -> anyhow::Result<Vec<u8>> {
    let body: String = text.lines().filter(|l| !l.starts_with("-----")).collect();
    let bytes = STANDARD.decode(body.trim()).context("the key is no PEM file")?;
    let mut rest = bytes.strip_prefix(b"openssh-key-v1\0").context("the key is no OpenSSH key")?;
    let cipher = take_string(&mut rest)?;
    if cipher != b"none" {
        bail!("ssh: this private key is passphrase protected");
    }
    take_string(&mut rest)?;
    take_string(&mut rest)?;
    rest = rest.get(4..).context("the key is cut off")?;
    Ok(take_string(&mut rest)?.to_vec())
}

fn pem_public(text: &str) -> anyhow::Result<Vec<u8>> {
    if text.contains("ENCRYPTED") {
        bail!("ssh: this private key is passphrase protected");
    }
    let key =
        PrivateKeyDer::from_pem_slice(text.as_bytes()).map_err(|_| anyhow::anyhow!("ssh: no key found"))?;
    let random = SystemRandom::new();
    let rsa = match &key {
        PrivateKeyDer::Pkcs1(der) => rsa::RsaPrivateKey::from_pkcs1_der(der.secret_pkcs1_der()).ok(),
        PrivateKeyDer::Pkcs8(der) => rsa::RsaPrivateKey::from_pkcs8_der(der.secret_pkcs8_der()).ok(),
        _ => None,
    };
    if let Some(rsa) = rsa {
        let number = |n: &[u8]| {
            // SSH numbers are signed: a leading one bit needs a zero byte before it.
            let mut bytes = n.to_vec();
            if bytes.first().is_some_and(|b| b & 0x80 != 0) {
                bytes.insert(0, 0);
            }
            bytes
        };
        let (e, n) =
            (number(&rsa.e().to_be_bytes_trimmed_vartime()), number(&rsa.n().to_be_bytes_trimmed_vartime()));
        return Ok(strings(&[b"ssh-rsa", &e, &n]));
    }
    let curves =
        [(&ECDSA_P256_SHA256_ASN1_SIGNING, "nistp256"), (&ECDSA_P384_SHA384_ASN1_SIGNING, "nistp384")];
    let pkcs8 = match &key {
        PrivateKeyDer::Pkcs8(der) => der.secret_pkcs8_der().to_vec(),
        PrivateKeyDer::Sec1(der) => sec1_to_pkcs8(der.secret_sec1_der())?,
        _ => bail!("ssh: unsupported key type"),
    };
    if let Ok(pair) = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&pkcs8) {
        return Ok(strings(&[b"ssh-ed25519", pair.public_key().as_ref()]));
    }
    for (algorithm, curve) in curves {
        if let Ok(pair) = EcdsaKeyPair::from_pkcs8(algorithm, &pkcs8, &random) {
            return Ok(strings(&[
                format!("ecdsa-sha2-{curve}").as_bytes(),
                curve.as_bytes(),
                pair.public_key().as_ref(),
            ]));
        }
    }
    bail!("ssh: unsupported key type")
}

/// Wraps an EC key into PKCS #8; the curve is named in the key itself.
fn sec1_to_pkcs8(der: &[u8]) -> anyhow::Result<Vec<u8>> {
    const P256: &[u8] = &[0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
    const P384: &[u8] = &[0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x22];
    const EC: &[u8] = &[0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
    let curve = [P256, P384]
        .into_iter()
        .find(|c| der.windows(c.len()).any(|w| w == *c))
        .context("ssh: unsupported curve")?;
    let tlv = |tag: u8, body: &[u8]| {
        let mut out = vec![tag];
        match body.len() {
            n @ 0..=127 => out.push(n as u8),
            n @ 128..=255 => out.extend([0x81, n as u8]),
            n => out.extend([0x82, (n >> 8) as u8, n as u8]),
        }
        out.extend_from_slice(body);
        out
    };
    // ring wants the inner key without the parameters that name the curve a second time.
    let inner: Vec<u8> = {
        let parameters = tlv(0xa0, curve);
        match der.windows(parameters.len()).position(|w| w == parameters) {
            Some(at) => {
                let header = if der[1] < 0x80 { 2 } else { 2 + usize::from(der[1] & 0x7f) };
                let body = [&der[header..at], &der[at + parameters.len()..]].concat();
                tlv(0x30, &body)
            }
            None => der.to_vec(),
        }
    };
    let algorithm = tlv(0x30, &[EC, curve].concat());
    Ok(tlv(0x30, &[&[0x02, 0x01, 0x00][..], &algorithm, &tlv(0x04, &inner)].concat()))
}

fn strings(parts: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    for part in parts {
        out.extend((part.len() as u32).to_be_bytes());
        out.extend_from_slice(part);
    }
    out
}

fn take_string<'a>(rest: &mut &'a [u8]) -> anyhow::Result<&'a [u8]> {
    let (length, body) = rest.split_at_checked(4).context("the key is cut off")?;
    let length = u32::from_be_bytes(length.try_into().expect("four bytes")) as usize;
    let (value, after) = body.split_at_checked(length).context("the key is cut off")?;
    *rest = after;
    Ok(value)
}

fn first_string(blob: &[u8]) -> anyhow::Result<String> {
    let mut rest = blob;
    Ok(String::from_utf8_lossy(take_string(&mut rest)?).into_owned())
}

/// Asks a server for its host key and gives the line for `known_hosts`.
///
/// # Errors
/// The server cannot be reached or speaks no SSH we know.
pub(crate) async fn scan(host: &str) -> anyhow::Result<String> {
    let address = if host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()) {
        host.to_owned()
    } else {
        format!("{host}:22")
    };
    let scanned = tokio::time::timeout(Duration::from_secs(30), host_key(&address)).await;
    let key = match scanned {
        Ok(Ok(key)) => key,
        Ok(Err(error)) => bail!("SSH key scan for host {address} failed, error: {error:#}"),
        Err(_) => bail!("SSH key scan for host {address} failed, error: i/o timeout"),
    };
    let name = match address.rsplit_once(':') {
        Some((host, "22")) => host.to_owned(),
        Some((host, port)) => format!("[{host}]:{port}"),
        None => address.clone(),
    };
    Ok(format!("{name} {} {}", first_string(&key)?, STANDARD.encode(&key)))
}

/// The start of a key exchange: the server proves nothing here, it only shows its key before encryption starts.
async fn host_key(address: &str) -> anyhow::Result<Vec<u8>> {
    const KEX_INIT: u8 = 20;
    const ECDH_INIT: u8 = 30;
    const ECDH_REPLY: u8 = 31;
    let mut stream = TcpStream::connect(address).await.map_err(|error| match error.kind() {
        std::io::ErrorKind::ConnectionRefused => {
            anyhow::anyhow!("dial tcp {address}: connect: connection refused")
        }
        _ => error.into(),
    })?;
    stream.write_all(b"SSH-2.0-Go\r\n").await?;
    read_banner(&mut stream).await?;
    let lists: [&str; 10] = [
        "curve25519-sha256,curve25519-sha256@libssh.org",
        "ecdsa-sha2-nistp256,ecdsa-sha2-nistp384,ecdsa-sha2-nistp521,rsa-sha2-256,rsa-sha2-512,ssh-rsa,ssh-ed25519",
        "aes128-gcm@openssh.com,chacha20-poly1305@openssh.com,aes128-ctr,aes256-ctr",
        "aes128-gcm@openssh.com,chacha20-poly1305@openssh.com,aes128-ctr,aes256-ctr",
        "hmac-sha2-256-etm@openssh.com,hmac-sha2-256,hmac-sha1",
        "hmac-sha2-256-etm@openssh.com,hmac-sha2-256,hmac-sha1",
        "none",
        "none",
        "",
        "",
    ];
    let mut init = vec![KEX_INIT];
    init.extend(rand::random::<[u8; 16]>());
    init.extend(strings(&lists.map(str::as_bytes)));
    init.extend([0; 5]);
    send_packet(&mut stream, &init).await?;
    let mut point = vec![ECDH_INIT];
    point.extend(strings(&[&rand::random::<[u8; 32]>()]));
    send_packet(&mut stream, &point).await?;
    for _ in 0..16 {
        let packet = read_packet(&mut stream).await?;
        if packet.first() == Some(&ECDH_REPLY) {
            let mut rest = &packet[1..];
            return Ok(take_string(&mut rest)?.to_vec());
        }
    }
    bail!("the server sent no host key")
}

async fn read_banner(stream: &mut TcpStream) -> anyhow::Result<()> {
    // Servers may greet with other lines first.
    for _ in 0..32 {
        let mut line = Vec::new();
        loop {
            let byte = stream.read_u8().await?;
            if byte == b'\n' {
                break;
            }
            line.push(byte);
            if line.len() > 1024 {
                bail!("the server does not speak SSH");
            }
        }
        if line.starts_with(b"SSH-2.0") || line.starts_with(b"SSH-1.99") {
            return Ok(());
        }
    }
    bail!("the server does not speak SSH")
}

async fn send_packet(stream: &mut TcpStream, payload: &[u8]) -> anyhow::Result<()> {
    let mut padding = 8 - (payload.len() + 5) % 8;
    if padding < 4 {
        padding += 8;
    }
    let mut packet = ((payload.len() + padding + 1) as u32).to_be_bytes().to_vec();
    packet.push(padding as u8);
    packet.extend_from_slice(payload);
    packet.extend(std::iter::repeat_n(0, padding));
    Ok(stream.write_all(&packet).await?)
}

async fn read_packet(stream: &mut TcpStream) -> anyhow::Result<Vec<u8>> {
    let length = stream.read_u32().await? as usize;
    if !(2..=65_536).contains(&length) {
        bail!("the server sent a packet of {length} bytes");
    }
    let mut packet = vec![0; length];
    stream.read_exact(&mut packet).await?;
    let padding = usize::from(packet[0]);
    packet
        .get(1..length.saturating_sub(padding))
        .map(<[u8]>::to_vec)
        .context("the server sent a broken packet")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_keys_can_be_read_back() {
        for (algorithm, curve, starts) in [
            ("ed25519", "", "ssh-ed25519 AAAA"),
            ("ecdsa", "p256", "ecdsa-sha2-nistp256 AAAA"),
            ("ecdsa", "p384", "ecdsa-sha2-nistp384 AAAA"),
        ] {
            let key = generate(algorithm, curve, "2048").unwrap();
            assert!(key.public.starts_with(starts), "{}", key.public);
            assert!(key.private.starts_with("-----BEGIN PRIVATE KEY-----\n"));
            assert_eq!(load(&key.private).unwrap().public, key.public);
        }
        assert!(generate("ecdsa", "p521", "").is_err());
    }

    #[test]
    fn invalid_keys_are_rejected() {
        for text in
            ["", "no key", "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n"]
        {
            assert!(load(text).is_err());
        }
    }

    #[tokio::test]
    async fn closed_port_is_reported() {
        let error = scan("127.0.0.1:1").await.unwrap_err().to_string();
        assert!(error.starts_with("SSH key scan for host 127.0.0.1:1 failed, error: "), "{error}");
    }
}
