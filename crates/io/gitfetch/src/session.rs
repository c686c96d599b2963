//! One conversation with a server, whichever way it is reached.

use std::fs::File;
use std::io::{BufWriter, Seek, Write};
use std::path::PathBuf;

use fl_git::{Advertisement, FetchRequest, FetchResponse, HashKind, Limits, Pack, PacketReader, RemoteRef};
use fl_http::BodyReader;

use crate::Failure;
use crate::http::HttpSession;
use crate::ssh::SshSession;

/// References a listing may have.
const REFS: usize = 1_000_000;

/// Where packs go and how large they may be.
#[derive(Clone, Debug)]
pub(crate) struct Scratch {
    pub(crate) directory: PathBuf,
    pub(crate) pack_bytes: u64,
    pub(crate) limits: Limits,
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

    /// An SSH connection goes on after an answer: its reader is handed back.
    fn give_back(&mut self, reader: BodyReader) {
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
        self.give_back(reader);
        Ok(refs)
    }

    /// A server of the old protocol may give out only the tips that it announced, and what they reach.
    pub(crate) fn gives_only_what_it_announced(&self) -> bool {
        let any = ["allow-reachable-sha1-in-want", "allow-any-sha1-in-want", "allow-tip-sha1-in-want"];
        let server = self.server();
        server.refs().is_some() && !any.iter().any(|c| server.supports("fetch", c))
    }

    /// Fetches into an unnamed file and indexes it.
    pub(crate) async fn fetch(
        &mut self,
        request: &FetchRequest,
        scratch: &Scratch,
    ) -> Result<Pack<File>, Failure> {
        let (hash, scratch) = (self.hash(), scratch.clone());
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
            let scratch_error = |e: std::io::Error| Failure::Scratch(e.to_string());
            let file = tempfile::tempfile_in(&scratch.directory).map_err(scratch_error)?;
            let mut out = BufWriter::with_capacity(128 * 1024, file);
            let mut packets = PacketReader::new(answer);
            if old {
                FetchResponse::read_old_from(&mut packets, deepened, &mut out, scratch.pack_bytes)?;
            } else {
                FetchResponse::read_from(&mut packets, &mut out, scratch.pack_bytes)?;
            }
            out.flush().map_err(scratch_error)?;
            let mut file = out.into_inner().map_err(|e| scratch_error(e.into_error()))?;
            file.rewind().map_err(scratch_error)?;
            Ok((Pack::open(file, hash, scratch.limits)?, packets.into_inner()))
        })
        .await?;
        self.give_back(reader);
        Ok(pack)
    }
}

/// Runs code that waits for bytes, off the async workers.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(stopped) => Err(Failure::Scratch(format!("reading was stopped: {stopped}"))),
    }
}
