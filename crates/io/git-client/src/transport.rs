//! A session with a Git server, over HTTP or SSH.

use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

use fl_git::{Advertisement, FetchRequest, FetchResponse, HashKind, Limits, Pack, PacketReader, RemoteRef};
use fl_http::{BodyReader, HeldBytes, Lease, SpoolFile};

use crate::Failure;
use crate::http::HttpSession;
use crate::ssh::SshSession;

/// References a listing may have.
const REFS: usize = 1_000_000;

/// Where packs go and how large they may be.
#[derive(Clone, Debug)]
pub(crate) struct PackSpool {
    pub(crate) directory: PathBuf,
    pub(crate) pack_bytes: u64,
    pub(crate) limits: Limits,
    pub(crate) lease: Lease,
}

/// Bytes of memory that the index needs for each object, roughly.
const INDEX_BYTES: u64 = 128;

/// An indexed pack in a file without a name.
#[derive(Debug)]
pub(crate) struct SpooledPack {
    pub(crate) pack: Pack<SpoolFile>,
    _index: HeldBytes,
}

impl PackSpool {
    /// Counts the index of a pack before it is made. A pack cannot have more objects than its bytes allow.
    fn hold_index(&self, file: &mut SpoolFile, bytes: u64) -> std::io::Result<HeldBytes> {
        let mut head = [0; 12];
        if bytes >= 12 {
            file.read_exact(&mut head)?;
        }
        file.seek(SeekFrom::Start(0))?;
        let claimed = u32::from_be_bytes([head[8], head[9], head[10], head[11]]);
        let objects = u64::from(claimed.min(self.limits.objects)).min(bytes / 8);
        let mut held = self.lease.hold();
        held.add_blocking(objects * INDEX_BYTES)?;
        Ok(held)
    }
}

pub(crate) enum Session {
    Http(Box<HttpSession>),
    Ssh(Box<SshSession>),
}

impl Session {
    pub(crate) fn hash(&self) -> HashKind {
        match self {
            Session::Http(session) => session.server.hash(),
            Session::Ssh(session) => session.server.hash(),
        }
    }

    pub(crate) fn server(&self) -> &Advertisement {
        match self {
            Session::Http(session) => &session.server,
            Session::Ssh(session) => &session.server,
        }
    }

    /// Sends a request; the answer comes as a reader for the blocking pool.
    async fn ask(&mut self, body: Vec<u8>) -> Result<BodyReader, Failure> {
        match self {
            Session::Http(session) => session.ask(body).await,
            Session::Ssh(session) => session.ask(body).await,
        }
    }

    /// An SSH connection is used again after a response.
    fn restore_reader(&mut self, reader: BodyReader) {
        if let Session::Ssh(session) = self {
            session.reader = Some(reader);
        }
    }

    /// References whose names begin with one of the prefixes, all when there is none.
    pub(crate) async fn refs(&mut self, prefixes: &[&str]) -> Result<Vec<RemoteRef>, Failure> {
        if let Some(refs) = self.server().refs() {
            let wanted =
                |r: &&RemoteRef| prefixes.is_empty() || prefixes.iter().any(|p| r.name.starts_with(p));
            return Ok(refs.iter().filter(wanted).cloned().collect());
        }
        let answer = self.ask(fl_git::ls_refs_request(self.hash(), prefixes)).await?;
        let (refs, reader) = blocking(move || {
            let mut packets = PacketReader::new(answer);
            let refs = fl_git::read_refs_from(&mut packets, REFS)?;
            Ok((refs, packets.into_inner()))
        })
        .await?;
        self.restore_reader(reader);
        Ok(refs)
    }

    /// Whether a server of the old protocol serves only the references that it advertised, and what they reach.
    pub(crate) fn serves_only_advertised_refs(&self) -> bool {
        let any = ["allow-reachable-sha1-in-want", "allow-any-sha1-in-want", "allow-tip-sha1-in-want"];
        let server = self.server();
        server.refs().is_some() && !any.iter().any(|c| server.supports("fetch", c))
    }

    /// Fetches into an unnamed file and indexes it.
    pub(crate) async fn fetch(
        &mut self,
        request: &FetchRequest,
        spool: &PackSpool,
    ) -> Result<SpooledPack, Failure> {
        let (hash, spool) = (self.hash(), spool.clone());
        let old = self.server().refs().is_some();
        let deepened = request.depth.is_some() && self.server().supports("fetch", "shallow");
        let mut request = request.clone();
        if !self.server().supports("fetch", "filter") {
            request.filter = None;
        }
        if !deepened {
            request.depth = None;
        }
        let body = if old { request.encode_old(self.server()) } else { request.encode(hash) };
        let answer = self.ask(body).await?;
        let (pack, reader) = blocking(move || {
            let spool_error = |e: std::io::Error| Failure::Spool(e.to_string());
            let file = spool.lease.spool_in(&spool.directory).map_err(spool_error)?;
            let mut out = BufWriter::with_capacity(128 * 1024, file);
            let mut packets = PacketReader::new(answer);
            if old {
                FetchResponse::read_old_from(&mut packets, deepened, &mut out, spool.pack_bytes)?;
            } else {
                FetchResponse::read_from(&mut packets, &mut out, spool.pack_bytes)?;
            }
            out.flush().map_err(spool_error)?;
            let mut file = out.into_inner().map_err(|e| spool_error(e.into_error()))?;
            let bytes = file.stream_position().map_err(spool_error)?;
            file.rewind().map_err(spool_error)?;
            let index = spool.hold_index(&mut file, bytes).map_err(spool_error)?;
            let pack = SpooledPack { pack: Pack::open(file, hash, spool.limits)?, _index: index };
            Ok((pack, packets.into_inner()))
        })
        .await?;
        self.restore_reader(reader);
        Ok(pack)
    }
}

/// Runs code that waits for bytes, off the async workers.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(stopped) => Err(Failure::Spool(format!("reading was stopped: {stopped}"))),
    }
}
