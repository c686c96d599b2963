//! Git over SSH: a channel that runs `git-upload-pack`, and nothing else.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use fl_git::{Advertisement, PacketReader};
use fl_http::BodyReader;
use russh::client::{self, Handle, Msg};
use russh::keys::{HashAlg, PrivateKey, PrivateKeyWithHashAlg, PublicKey};
use russh::{Channel, ChannelMsg, ChannelWriteHalf};
use tokio::net::TcpStream;

use crate::session::blocking;
use crate::{Address, Auth, Failure, KnownHosts, RemoteOptions, tunnel};

/// Bytes of a server's complaint that are kept.
const COMPLAINT: usize = 4096;
/// A host key of fewer bits is refused.
const RSA_BITS: usize = 2048;

pub(crate) struct SshSession {
    connection: Handle<HostCheck>,
    command: String,
    writer: ChannelWriteHalf<Msg>,
    complaint: Arc<Mutex<String>>,
    /// Away while an answer is being read; a conversation that was cut short does not bring it back.
    pub(crate) reader: Option<BodyReader>,
    pub(crate) server: Advertisement,
}

/// Judges the server's key. What it found wrong is kept for the error, since the library only knows yes or no.
struct HostCheck {
    known: KnownHosts,
    host: String,
    port: u16,
    refusal: Arc<Mutex<Option<String>>>,
}

impl client::Handler for HostCheck {
    type Error = russh::Error;

    async fn check_server_key(
        &mut self,
        shown: &russh::keys::PublicKeyOrCertificate,
    ) -> Result<bool, Self::Error> {
        let verdict = match shown {
            russh::keys::PublicKeyOrCertificate::PublicKey { key, .. } => self.judge(key),
            // Never asked for, so a server that shows one is not ours.
            _ => Err("knownhosts: key is unknown".to_owned()),
        };
        let ok = verdict.is_ok();
        *self.refusal.lock().unwrap_or_else(PoisonError::into_inner) = verdict.err();
        Ok(ok)
    }
}

impl HostCheck {
    fn judge(&self, key: &PublicKey) -> Result<(), String> {
        let wire = key.to_bytes().map_err(|e| e.to_string())?;
        self.known.check(&self.host, self.port, &wire).map_err(str::to_owned)?;
        match key.key_data().rsa().map(|rsa| rsa_bits(rsa.n().as_bytes())) {
            Some(bits) if bits < RSA_BITS => {
                Err(format!("the host's RSA key has {bits} bits, at least {RSA_BITS} are needed"))
            }
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
            .map_err(Failure::Key)?;
        let known = KnownHosts::parse(known_hosts).map_err(Failure::Key)?;
        let port = address.port.unwrap_or(22);
        let connection = connect(address, port, known, options).await?;
        let connection = log_in(connection, user, key).await?;
        let command = format!("git-upload-pack {}", quoted(&address.path));
        let (writer, mut reader, complaint) = run(&connection, &command).await?;
        let server = greeting(&mut reader, &complaint).await?;
        Ok(Self { connection, command, writer, complaint, reader, server })
    }

    pub(crate) async fn ask(&mut self, body: Vec<u8>) -> Result<BodyReader, Failure> {
        if self.reader.is_none() {
            (self.writer, self.reader, self.complaint) = run(&self.connection, &self.command).await?;
            self.server = greeting(&mut self.reader, &self.complaint).await?;
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
) -> Result<Handle<HostCheck>, Failure> {
    let host = address.host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let stream = match &options.proxy {
        None => match options.addresses.resolve(&host, port).await {
            Ok(addresses) => TcpStream::connect(addresses.as_slice()).await,
            Err(error) => Err(error),
        },
        Some(proxy) => tunnel::connect(proxy, &host, port).await,
    };
    let stream = stream.map_err(|e| Failure::Dial(dial_text(&e, &host, port)))?;
    // A host that nobody answers for is told of as such, known or not.
    let Some(preferred) = options.ssh.preferred(&known.kinds(&host, port)) else {
        return Err(Failure::Ssh("handshake failed: knownhosts: key is unknown".to_owned()));
    };
    let config = client::Config { preferred, nodelay: true, ..client::Config::default() };
    let refusal = Arc::new(Mutex::new(None));
    let check = HostCheck { known, host: host.clone(), port, refusal: refusal.clone() };
    client::connect_stream(Arc::new(config), stream, check).await.map_err(|e| {
        let refusal = refusal.lock().unwrap_or_else(PoisonError::into_inner).take();
        Failure::Ssh(format!("handshake failed: {}", refusal.unwrap_or_else(|| e.to_string())))
    })
}

/// What stands behind `dial tcp`, as Go writes it.
fn dial_text(error: &std::io::Error, host: &str, port: u16) -> String {
    let text = error.to_string();
    match error.raw_os_error() {
        Some(_) => {
            let said = text.split(" (os error").next().unwrap_or_default().to_lowercase();
            format!(" {host}:{port}: connect: {said}")
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
    // A server that does not say gets SHA-256; SHA-1 is never signed with.
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

type Conversation = (ChannelWriteHalf<Msg>, Option<BodyReader>, Arc<Mutex<String>>);

/// Starts the command on a new channel. A server that does not take the variable speaks the old protocol.
async fn run(connection: &Handle<HostCheck>, command: &str) -> Result<Conversation, Failure> {
    let failed = |e: russh::Error| Failure::Ssh(e.to_string());
    let channel: Channel<Msg> = connection.channel_open_session().await.map_err(failed)?;
    channel.set_env(false, "GIT_PROTOCOL", "version=2").await.map_err(failed)?;
    channel.exec(false, command).await.map_err(failed)?;
    let (mut incoming, writer) = channel.split();
    let (sender, reader) = BodyReader::channel();
    let complaint = Arc::new(Mutex::new(String::new()));
    let heard = complaint.clone();
    tokio::spawn(async move {
        while let Some(message) = incoming.wait().await {
            match message {
                ChannelMsg::Data { data } => {
                    let taken = sender.send(Ok(data)).await;
                    if taken.is_err() {
                        return;
                    }
                }
                ChannelMsg::ExtendedData { data, .. } => {
                    let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
                    if heard.len() < COMPLAINT {
                        heard.push_str(&String::from_utf8_lossy(&data));
                    }
                }
                ChannelMsg::Close => return,
                _ => {}
            }
        }
        let _ = sender.send(Err(io::ErrorKind::UnexpectedEof.into())).await;
    });
    Ok((writer, Some(reader), complaint))
}

/// Reads what the server says first. When it says nothing, its complaint tells why.
async fn greeting(
    reader: &mut Option<BodyReader>,
    complaint: &Arc<Mutex<String>>,
) -> Result<Advertisement, Failure> {
    let input = reader.take().ok_or_else(|| Failure::Ssh("the connection is closed".to_owned()))?;
    let result = blocking(move || {
        let mut packets = PacketReader::new(input);
        let server = Advertisement::read_from(&mut packets)?;
        Ok((server, packets.into_inner()))
    })
    .await;
    let said = complaint.lock().unwrap_or_else(PoisonError::into_inner).trim().to_owned();
    match result {
        Ok((server, input)) if said.is_empty() || server.refs().is_none_or(|r| !r.is_empty()) => {
            *reader = Some(input);
            Ok(server)
        }
        _ if is_not_found(&said) => Err(Failure::NoSuchRepository),
        _ if !said.is_empty() => Err(Failure::Ssh(format!("unknown error: {said}"))),
        Ok((server, input)) => {
            *reader = Some(input);
            Ok(server)
        }
        Err(failure) => Err(failure),
    }
}

/// What the usual servers say of a repository that is not there.
fn is_not_found(said: &str) -> bool {
    let said = said.to_lowercase();
    [
        "repository not found",
        "does not exist",
        "does not appear to be a git repository",
        "could not be found",
        "access denied",
    ]
    .iter()
    .any(|words| said.contains(words))
}

/// A path for the server's shell: between single quotes nothing is special, and a quote is taken out of them.
fn quoted(path: &str) -> String {
    format!("'{}'", path.replace('\'', "'\\''"))
}

/// Reads a private key in the OpenSSH or a PEM format. Its bytes never enter an error.
fn read_key(pem: &[u8], passphrase: Option<&str>) -> Result<PrivateKey, String> {
    let text = std::str::from_utf8(pem).map_err(|_| "the key is not text".to_owned())?;
    let text = text.replace("\r\n", "\n");
    if !text.contains("-----BEGIN ") {
        return Err("ssh: no key found".to_owned());
    }
    russh::keys::decode_secret_key(text.trim(), passphrase).map_err(|error| match error {
        russh::keys::Error::KeyIsEncrypted => "the key is encrypted and no passphrase was given".to_owned(),
        _ if passphrase.is_some() => "the key cannot be read with the given passphrase".to_owned(),
        _ => "the key cannot be read".to_owned(),
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
