//! Git over SSH: a channel that runs `git-upload-pack`, and nothing else.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use fl_git::{Advertisement, PacketReader};
use fl_http::BodyReader;
use russh::client::{self, Handle, Msg};
use russh::keys::{HashAlg, PrivateKey, PrivateKeyWithHashAlg, PublicKey};
use russh::{Channel, ChannelMsg, ChannelWriteHalf};
use tokio::net::TcpStream;

use crate::ssh_stream::{CloseOnDrop, SessionStream};
use crate::transport::blocking;
use crate::{Address, Auth, CredentialsError, Failure, KnownHosts, RemoteOptions, proxy};

/// Bytes of the server's standard error that are kept.
const MAX_STDERR_BYTES: usize = 4096;
/// An RSA host key of fewer bits is refused.
const MIN_RSA_BITS: usize = 2048;

pub(crate) struct SshSession {
    connection: Handle<HostCheck>,
    /// Closes the connection with the session. The library would keep it open as long as the server does.
    _close: CloseOnDrop,
    command: String,
    writer: ChannelWriteHalf<Msg>,
    stderr: Arc<Mutex<String>>,
    /// `None` while a response is being read, and after one that was interrupted.
    pub(crate) reader: Option<BodyReader>,
    pub(crate) server: Advertisement,
}

/// Checks the host key of the server. The reason of a refusal is kept for the error message.
struct HostCheck {
    known: KnownHosts,
    host: String,
    port: u16,
    refusal: Arc<Mutex<Option<HostKeyError>>>,
}

/// Why a host key is refused.
#[derive(Debug, thiserror::Error)]
enum HostKeyError {
    #[error("{0}")]
    KnownHosts(&'static str),
    #[error("{0}")]
    Encoding(String),
    #[error("the host's RSA key has {0} bits, at least {MIN_RSA_BITS} are needed")]
    WeakRsa(usize),
}

/// Why a private key cannot be used. Its bytes are never part of an error.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyError {
    #[error("the key is not text")]
    NotText,
    #[error("ssh: no key found")]
    NoKey,
    #[error("the key is encrypted and no passphrase was given")]
    Encrypted,
    #[error("the key cannot be read with the given passphrase")]
    Passphrase,
    #[error("the key cannot be read")]
    Unreadable,
}

impl client::Handler for HostCheck {
    type Error = russh::Error;

    async fn check_server_key(
        &mut self,
        shown: &russh::keys::PublicKeyOrCertificate,
    ) -> Result<bool, Self::Error> {
        let result = match shown {
            russh::keys::PublicKeyOrCertificate::PublicKey { key, .. } => self.check(key),
            // Certificates are not requested, so a server must not present one.
            _ => Err(HostKeyError::KnownHosts("knownhosts: key is unknown")),
        };
        let ok = result.is_ok();
        *self.refusal.lock().unwrap_or_else(PoisonError::into_inner) = result.err();
        Ok(ok)
    }
}

impl HostCheck {
    fn check(&self, key: &PublicKey) -> Result<(), HostKeyError> {
        let wire = key.to_bytes().map_err(|e| HostKeyError::Encoding(e.to_string()))?;
        self.known.check(&self.host, self.port, &wire).map_err(HostKeyError::KnownHosts)?;
        match key.key_data().rsa().map(|rsa| rsa_bits(rsa.n().as_bytes())) {
            Some(bits) if bits < MIN_RSA_BITS => Err(HostKeyError::WeakRsa(bits)),
            _ => Ok(()),
        }
    }
}

fn rsa_bits(modulus: &[u8]) -> usize {
    let significant = modulus.iter().skip_while(|b| **b == 0).count();
    let first = modulus.iter().find(|b| **b != 0).map_or(0, |b| b.leading_zeros() as usize);
    (significant * 8).saturating_sub(first)
}

impl SshSession {
    pub(crate) async fn open(
        address: &Address,
        auth: &Auth,
        options: &RemoteOptions,
    ) -> Result<Self, Failure> {
        let Auth::Ssh { user, identity, passphrase, known_hosts } = auth else {
            return Err(Failure::Ssh("no key was given".to_owned()));
        };
        let key = read_key(identity.expose(), passphrase.as_ref().map(|p| p.expose().as_str()))
            .map_err(CredentialsError::from)?;
        let known = KnownHosts::parse(known_hosts).map_err(CredentialsError::from)?;
        let port = address.port.unwrap_or(22);
        let (connection, close) = connect(address, port, known, options).await?;
        let connection = log_in(connection, user, key).await?;
        let command = format!("git-upload-pack {}", quoted(&address.path));
        let (writer, mut reader, stderr) = run(&connection, &command).await?;
        let server = read_advertisement(&mut reader, &stderr).await?;
        Ok(Self { connection, _close: close, command, writer, stderr, reader, server })
    }

    pub(crate) async fn ask(&mut self, body: Vec<u8>) -> Result<BodyReader, Failure> {
        if self.reader.is_none() {
            (self.writer, self.reader, self.stderr) = run(&self.connection, &self.command).await?;
            self.server = read_advertisement(&mut self.reader, &self.stderr).await?;
        }
        self.writer.data_bytes(body).await.map_err(|e| Failure::Ssh(e.to_string()))?;
        self.reader.take().ok_or_else(|| Failure::Ssh("the connection is closed".to_owned()))
    }
}

async fn connect(
    address: &Address,
    port: u16,
    known: KnownHosts,
    options: &RemoteOptions,
) -> Result<(Handle<HostCheck>, CloseOnDrop), Failure> {
    let host = address.host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let stream = match &options.proxy {
        None => match options.addresses.resolve(&host, port).await {
            Ok(addresses) => TcpStream::connect(addresses.as_slice()).await,
            Err(error) => Err(error),
        },
        Some(proxy) => proxy::connect(proxy, &host, port).await,
    };
    let stream = stream.map_err(|e| Failure::Dial(dial_text(&e, &host, port)))?;
    // A host that cannot be reached is reported as such, whether its key is known or not.
    let Some(preferred) = options.ssh.preferred(&known.kinds(&host, port)) else {
        return Err(Failure::Ssh("handshake failed: knownhosts: key is unknown".to_owned()));
    };
    let config = client::Config { preferred, nodelay: true, ..client::Config::default() };
    let refusal = Arc::new(Mutex::new(None));
    let check = HostCheck { known, host: host.clone(), port, refusal: refusal.clone() };
    let (stream, close) = SessionStream::new(stream, options.timeout);
    let connection = client::connect_stream(Arc::new(config), stream, check).await.map_err(|e| {
        let refusal = refusal.lock().unwrap_or_else(PoisonError::into_inner).take();
        let problem = refusal.map_or_else(|| e.to_string(), |refusal| refusal.to_string());
        Failure::Ssh(format!("handshake failed: {problem}"))
    })?;
    Ok((connection, close))
}

/// The text after `dial tcp`, as Go formats it.
fn dial_text(error: &std::io::Error, host: &str, port: u16) -> String {
    let text = error.to_string();
    match error.raw_os_error() {
        Some(_) => {
            let problem = text.split(" (os error").next().unwrap_or_default().to_lowercase();
            format!(" {host}:{port}: connect: {problem}")
        }
        None => format!(": {text}"),
    }
}

async fn log_in(
    mut connection: Handle<HostCheck>,
    user: &str,
    key: PrivateKey,
) -> Result<Handle<HostCheck>, Failure> {
    let failed = |e: russh::Error| Failure::Ssh(format!("handshake failed: {e}"));
    let hash = connection.best_supported_rsa_hash().await.map_err(failed)?;
    // SHA-256 where the server names no algorithm; SHA-1 is never used.
    let hash = hash.flatten().or(Some(HashAlg::Sha256));
    let key = PrivateKeyWithHashAlg::new(Arc::new(key), hash);
    let result = connection.authenticate_publickey(user, key).await.map_err(failed)?;
    if result.success() {
        Ok(connection)
    } else {
        Err(Failure::Ssh(
            "handshake failed: ssh: unable to authenticate, attempted methods [none publickey], no supported methods remain"
                .to_owned(),
        ))
    }
}

type SshChannel = (ChannelWriteHalf<Msg>, Option<BodyReader>, Arc<Mutex<String>>);

/// Starts the command on a new channel. A server that does not take the variable speaks the old protocol.
async fn run(connection: &Handle<HostCheck>, command: &str) -> Result<SshChannel, Failure> {
    let failed = |e: russh::Error| Failure::Ssh(e.to_string());
    let channel: Channel<Msg> = connection.channel_open_session().await.map_err(failed)?;
    channel.set_env(false, "GIT_PROTOCOL", "version=2").await.map_err(failed)?;
    channel.exec(false, command).await.map_err(failed)?;
    let (mut incoming, writer) = channel.split();
    let (sender, reader) = BodyReader::channel();
    let stderr = Arc::new(Mutex::new(String::new()));
    let collected = stderr.clone();
    tokio::spawn(async move {
        while let Some(event) = incoming.wait().await {
            match event {
                ChannelMsg::Data { data } => {
                    let taken = sender.send(Ok(data)).await;
                    if taken.is_err() {
                        return;
                    }
                }
                ChannelMsg::ExtendedData { data, .. } => {
                    let mut collected = collected.lock().unwrap_or_else(PoisonError::into_inner);
                    if collected.len() < MAX_STDERR_BYTES {
                        collected.push_str(&String::from_utf8_lossy(&data));
                    }
                }
                ChannelMsg::Close => return,
                _ => {}
            }
        }
        let _ = sender.send(Err(io::ErrorKind::UnexpectedEof.into())).await;
    });
    Ok((writer, Some(reader), stderr))
}

/// Reads the advertisement of the server. Without one, its standard error has the reason.
async fn read_advertisement(
    reader: &mut Option<BodyReader>,
    stderr: &Arc<Mutex<String>>,
) -> Result<Advertisement, Failure> {
    let input = reader.take().ok_or_else(|| Failure::Ssh("the connection is closed".to_owned()))?;
    let result = blocking(move || {
        let mut packets = PacketReader::new(input);
        let server = Advertisement::read_from(&mut packets)?;
        Ok((server, packets.into_inner()))
    })
    .await;
    let message = stderr.lock().unwrap_or_else(PoisonError::into_inner).trim().to_owned();
    match result {
        Ok((server, input)) if message.is_empty() || server.refs().is_none_or(|r| !r.is_empty()) => {
            *reader = Some(input);
            Ok(server)
        }
        _ if is_not_found(&message) => Err(Failure::NoSuchRepository),
        _ if !message.is_empty() => Err(Failure::Ssh(format!("unknown error: {message}"))),
        Ok((server, input)) => {
            *reader = Some(input);
            Ok(server)
        }
        Err(failure) => Err(failure),
    }
}

/// Messages of common servers for a repository that does not exist.
fn is_not_found(message: &str) -> bool {
    let message = message.to_lowercase();
    [
        "repository not found",
        "does not exist",
        "does not appear to be a git repository",
        "could not be found",
        "access denied",
    ]
    .iter()
    .any(|words| message.contains(words))
}

/// Quotes a path for the server's shell.
fn quoted(path: &str) -> String {
    format!("'{}'", path.replace('\'', "'\\''"))
}

/// Reads a private key in the OpenSSH or a PEM format. Its bytes never enter an error.
fn read_key(pem: &[u8], passphrase: Option<&str>) -> Result<PrivateKey, KeyError> {
    let text = std::str::from_utf8(pem).map_err(|_| KeyError::NotText)?;
    let text = text.replace("\r\n", "\n");
    if !text.contains("-----BEGIN ") {
        return Err(KeyError::NoKey);
    }
    russh::keys::decode_secret_key(text.trim(), passphrase).map_err(|error| match error {
        russh::keys::Error::KeyIsEncrypted => KeyError::Encrypted,
        _ if passphrase.is_some() => KeyError::Passphrase,
        _ => KeyError::Unreadable,
    })
}

/// Whether a private key needs a passphrase.
pub(crate) fn is_encrypted(pem: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(pem) else { return false };
    if text.contains("-----BEGIN ENCRYPTED PRIVATE KEY-----") || text.contains("Proc-Type: 4,ENCRYPTED") {
        return true;
    }
    text.contains("-----BEGIN OPENSSH PRIVATE KEY-----")
        && matches!(PrivateKey::from_openssh(text), Ok(key) if key.is_encrypted())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stays_one_word_for_the_shell() {
        assert_eq!(quoted("/a b/c'; rm -rf x"), "'/a b/c'\\''; rm -rf x'");
    }

    #[test]
    fn bits_of_a_modulus() {
        assert_eq!(rsa_bits(&[0, 0x80, 0]), 16);
        assert_eq!(rsa_bits(&[1]), 1);
        assert_eq!(rsa_bits(&[]), 0);
    }
}
