//! The messages of protocol version 2 that a fetching client sends and reads.

use std::io::{Read, Write};

use crate::pktline::encode;
use crate::{Error, HashKind, ObjectId, Packet, PacketReader};

/// The advertisement of a server: its capabilities and, in the old protocol, its references.
#[derive(Clone, Debug)]
pub struct Advertisement {
    lines: Vec<String>,
    refs: Option<Vec<RemoteRef>>,
}

/// References of a server of the old protocol, which always lists all of them.
const MAX_REFS: usize = 1_000_000;

impl Advertisement {
    /// Reads the answer to the first request. Over HTTP a service line and a flush may stand before it.
    pub fn read(input: impl Read) -> Result<Self, Error> {
        Self::read_from(&mut PacketReader::new(input))
    }

    /// The same from a connection that is used again afterwards.
    pub fn read_from(reader: &mut PacketReader<impl Read>) -> Result<Self, Error> {
        let mut line = reader.next_line()?;
        if line.as_deref().is_some_and(|l| l.starts_with("# service=")) {
            reader.next_packet()?;
            line = reader.next_line()?;
        }
        match line {
            Some(line) if line == "version 2" => {}
            Some(line) if line == "version 1" => {
                let first = reader.next_line()?;
                return Self::read_old(first, reader);
            }
            first => return Self::read_old(first, reader),
        }
        let mut lines = Vec::new();
        while let Some(line) = reader.next_line()? {
            if lines.len() > 1000 {
                return Err(Error::Protocol("its list of capabilities does not end".to_owned()));
            }
            lines.push(line);
        }
        Ok(Self { lines, refs: None })
    }

    /// Protocols 0 and 1: the references at once, the capabilities behind a NUL on the first line.
    fn read_old(first: Option<String>, reader: &mut PacketReader<impl Read>) -> Result<Self, Error> {
        let Some(first) = first else { return Ok(Self { lines: Vec::new(), refs: Some(Vec::new()) }) };
        let Some((first, capabilities)) = first.split_once('\0') else {
            return Err(Error::Protocol("it does not begin like a Git server".to_owned()));
        };
        let lines: Vec<String> = capabilities.split_whitespace().map(str::to_owned).collect();
        let head = lines.iter().find_map(|c| c.strip_prefix("symref=HEAD:")).map(str::to_owned);
        let mut refs: Vec<RemoteRef> = Vec::new();
        let mut next = Some(first.to_owned());
        while let Some(line) = next {
            let (id, name) = line
                .split_once(' ')
                .ok_or_else(|| Error::Protocol(format!("a reference reads `{}`", line.escape_debug())))?;
            if id == "shallow" || name == "capabilities^{}" {
                // Neither is a reference: a boundary of the server's own history, or the word for "I have none".
            } else if let Some(tag) = name.strip_suffix("^{}") {
                if let Some(last) = refs.last_mut().filter(|r| r.name == tag) {
                    last.peeled = Some(id.parse()?);
                }
            } else {
                let symref_target = head.clone().filter(|_| name == "HEAD");
                refs.push(RemoteRef { name: name.to_owned(), id: id.parse()?, peeled: None, symref_target });
            }
            if refs.len() > MAX_REFS {
                return Err(Error::Protocol(format!("it has more than {MAX_REFS} references")));
            }
            next = reader.next_line()?;
        }
        Ok(Self { lines, refs: Some(refs) })
    }

    /// The references, if the server uses the old protocol, in which they are part of the advertisement.
    pub fn refs(&self) -> Option<&[RemoteRef]> {
        self.refs.as_deref()
    }

    /// Whether a command has a feature, as in `fetch=shallow wait-for-done`; the old protocol has one list for all.
    pub fn supports(&self, command: &str, feature: &str) -> bool {
        if self.refs.is_some() {
            return self.lines.iter().any(|l| l == feature);
        }
        let value = self.lines.iter().find_map(|l| l.strip_prefix(command)?.strip_prefix('='));
        value.is_some_and(|v| v.split(' ').any(|f| f == feature))
    }

    /// The hash of the repository's objects.
    pub fn hash(&self) -> HashKind {
        match self.lines.iter().find_map(|l| l.strip_prefix("object-format=")) {
            Some("sha256") => HashKind::Sha256,
            _ => HashKind::Sha1,
        }
    }
}

fn command(name: &str, hash: HashKind, out: &mut Vec<u8>) {
    encode(format!("command={name}\n").as_bytes(), out);
    encode(concat!("agent=fluorite/", env!("CARGO_PKG_VERSION"), "\n").as_bytes(), out);
    if hash == HashKind::Sha256 {
        encode(b"object-format=sha256\n", out);
    }
    out.extend_from_slice(b"0001");
}

/// Asks for references whose names begin with one of the prefixes (all, when there is none).
pub fn ls_refs_request(hash: HashKind, prefixes: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    command("ls-refs", hash, &mut out);
    encode(b"peel\n", &mut out);
    encode(b"symrefs\n", &mut out);
    for prefix in prefixes {
        encode(format!("ref-prefix {prefix}\n").as_bytes(), &mut out);
    }
    out.extend_from_slice(b"0000");
    out
}

/// A reference of the remote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteRef {
    pub name: String,
    pub id: ObjectId,
    /// For an annotated tag: the object it finally points to.
    pub peeled: Option<ObjectId>,
    /// For `HEAD`: the branch it stands for.
    pub symref_target: Option<String>,
}

/// Reads the answer to [`ls_refs_request`], at most `limit` references.
pub fn read_refs(input: impl Read, limit: usize) -> Result<Vec<RemoteRef>, Error> {
    read_refs_from(&mut PacketReader::new(input), limit)
}

/// The same from a connection that is used again afterwards.
pub fn read_refs_from(reader: &mut PacketReader<impl Read>, limit: usize) -> Result<Vec<RemoteRef>, Error> {
    let mut refs = Vec::new();
    while let Some(line) = reader.next_line()? {
        if refs.len() >= limit {
            return Err(Error::Protocol(format!("it has more than {limit} references")));
        }
        let mut words = line.split(' ');
        let (Some(id), Some(name)) = (words.next(), words.next()) else {
            return Err(Error::Protocol(format!("a reference reads `{}`", line.escape_debug())));
        };
        if id == "unborn" {
            continue;
        }
        let mut found =
            RemoteRef { name: name.to_owned(), id: id.parse()?, peeled: None, symref_target: None };
        for attribute in words {
            if let Some(target) = attribute.strip_prefix("symref-target:") {
                found.symref_target = Some(target.to_owned());
            } else if let Some(peeled) = attribute.strip_prefix("peeled:") {
                found.peeled = Some(peeled.parse()?);
            }
        }
        refs.push(found);
    }
    Ok(refs)
}

/// What to fetch.
#[derive(Clone, Debug, Default)]
pub struct FetchRequest {
    pub wants: Vec<ObjectId>,
    /// Commits that are here already; the server then leaves out what they reach.
    pub haves: Vec<ObjectId>,
    /// Commits whose parents are missing here.
    pub shallow: Vec<ObjectId>,
    /// How many commits deep; the whole history when absent.
    pub depth: Option<u32>,
    /// What to leave out, for example `blob:none`. Only where the server offers `filter`.
    pub filter: Option<String>,
}

impl FetchRequest {
    pub fn encode(&self, hash: HashKind) -> Vec<u8> {
        let mut out = Vec::new();
        command("fetch", hash, &mut out);
        encode(b"ofs-delta\n", &mut out);
        encode(b"no-progress\n", &mut out);
        self.lines(&mut out, "");
        self.haves.iter().for_each(|id| encode(format!("have {id}\n").as_bytes(), &mut out));
        encode(b"done\n", &mut out);
        out.extend_from_slice(b"0000");
        out
    }

    /// The request of protocols 0 and 1.
    pub fn encode_old(&self, server: &Advertisement) -> Vec<u8> {
        let mut capabilities = String::from(" side-band-64k ofs-delta no-progress");
        for (wanted, word) in [(self.depth.is_some(), "shallow"), (self.filter.is_some(), "filter")] {
            if wanted && server.supports("fetch", word) {
                capabilities.push(' ');
                capabilities.push_str(word);
            }
        }
        if server.hash() == HashKind::Sha256 {
            capabilities.push_str(" object-format=sha256");
        }
        let mut out = Vec::new();
        self.lines(&mut out, &capabilities);
        out.extend_from_slice(b"0000");
        self.haves.iter().for_each(|id| encode(format!("have {id}\n").as_bytes(), &mut out));
        encode(b"done\n", &mut out);
        out
    }

    fn lines(&self, out: &mut Vec<u8>, capabilities: &str) {
        let mut line = |text: String| encode(text.as_bytes(), out);
        for (at, id) in self.wants.iter().enumerate() {
            line(format!("want {id}{}\n", if at == 0 { capabilities } else { "" }));
        }
        self.shallow.iter().for_each(|id| line(format!("shallow {id}\n")));
        if let Some(depth) = self.depth {
            line(format!("deepen {depth}\n"));
        }
        if let Some(filter) = &self.filter {
            line(format!("filter {filter}\n"));
        }
    }
}

/// The part of the response before the pack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FetchResponse {
    pub shallow: Vec<ObjectId>,
    pub pack_bytes: u64,
}

impl FetchResponse {
    /// Reads the answer and writes the pack into `pack` as it arrives, at most `limit` bytes of it.
    pub fn read(input: impl Read, pack: &mut dyn Write, limit: u64) -> Result<Self, Error> {
        Self::read_from(&mut PacketReader::new(input), pack, limit)
    }

    /// The same from a connection that is used again afterwards.
    pub fn read_from(
        reader: &mut PacketReader<impl Read>,
        pack: &mut dyn Write,
        limit: u64,
    ) -> Result<Self, Error> {
        let mut response = Self::default();
        loop {
            match reader.next_line()?.as_deref() {
                Some("packfile") => break,
                Some("shallow-info") => response.shallow_section(reader)?,
                Some("acknowledgments" | "wanted-refs") => while reader.next_line()?.is_some() {},
                Some(other) => {
                    return Err(Error::Protocol(format!("a section is called `{}`", other.escape_debug())));
                }
                None => return Err(Error::Protocol("it sent no pack".to_owned())),
            }
        }
        response.pack_section(reader, pack, limit)?;
        Ok(response)
    }

    /// Reads the answer to [`FetchRequest::encode_old`]; `deepened`: whether a depth was requested.
    pub fn read_old_from(
        reader: &mut PacketReader<impl Read>,
        deepened: bool,
        pack: &mut dyn Write,
        limit: u64,
    ) -> Result<Self, Error> {
        let mut response = Self::default();
        if deepened {
            response.shallow_section(reader)?;
        }
        match reader.next_line()? {
            Some(line) if line == "NAK" || line.starts_with("ACK ") => {}
            other => return Err(Error::Protocol(format!("it answered {other:?} instead of NAK"))),
        }
        response.pack_section(reader, pack, limit)?;
        Ok(response)
    }

    fn pack_section(
        &mut self,
        reader: &mut PacketReader<impl Read>,
        pack: &mut dyn Write,
        limit: u64,
    ) -> Result<(), Error> {
        while let Some(Packet::Data(bytes)) = reader.next_packet()? {
            let (channel, payload) =
                bytes.split_first().ok_or_else(|| Error::Protocol("an empty side-band packet".to_owned()))?;
            match channel {
                1 => {
                    self.pack_bytes += payload.len() as u64;
                    if self.pack_bytes > limit {
                        return Err(Error::TooLarge { what: "the pack".to_owned(), limit });
                    }
                    pack.write_all(payload)?;
                }
                // Progress messages are not shown.
                2 => reader.count_line(payload.len().max(4))?,
                3 => return Err(Error::Remote(String::from_utf8_lossy(payload).trim().to_owned())),
                other => return Err(Error::Protocol(format!("side-band channel {other}"))),
            }
        }
        Ok(())
    }

    fn shallow_section(&mut self, reader: &mut PacketReader<impl Read>) -> Result<(), Error> {
        while let Some(line) = reader.next_line()? {
            if let Some(id) = line.strip_prefix("shallow ") {
                self.shallow.push(id.parse()?);
            }
        }
        Ok(())
    }
}
