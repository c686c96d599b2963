//! The messages of protocol version 2 that a fetching client sends and reads.

use std::io::{Read, Write};

use crate::pktline::encode;
use crate::{Error, HashKind, ObjectId, Packet, PacketReader};

/// What the server said it can do.
#[derive(Clone, Debug)]
pub struct Advertisement {
    lines: Vec<String>,
}

impl Advertisement {
    /// Reads the answer to the first request. Over HTTP a service line and a flush may stand before it.
    pub fn read(input: impl Read) -> Result<Self, Error> {
        let mut reader = PacketReader::new(input);
        let mut line = reader.next_line()?;
        if line.as_deref().is_some_and(|l| l.starts_with("# service=")) {
            reader.next_packet()?;
            line = reader.next_line()?;
        }
        if line.as_deref() != Some("version 2") {
            return Err(Error::Protocol("the server does not speak protocol version 2".to_owned()));
        }
        let mut lines = Vec::new();
        while let Some(line) = reader.next_line()? {
            if lines.len() > 1000 {
                return Err(Error::Protocol("its list of capabilities does not end".to_owned()));
            }
            lines.push(line);
        }
        Ok(Self { lines })
    }

    /// Whether a command has a feature, as in `fetch=shallow wait-for-done`.
    pub fn supports(&self, command: &str, feature: &str) -> bool {
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
    let mut reader = PacketReader::new(input);
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
}

impl FetchRequest {
    pub fn encode(&self, hash: HashKind) -> Vec<u8> {
        let mut out = Vec::new();
        command("fetch", hash, &mut out);
        encode(b"ofs-delta\n", &mut out);
        encode(b"no-progress\n", &mut out);
        let mut line = |text: String| encode(text.as_bytes(), &mut out);
        self.wants.iter().for_each(|id| line(format!("want {id}\n")));
        self.shallow.iter().for_each(|id| line(format!("shallow {id}\n")));
        if let Some(depth) = self.depth {
            line(format!("deepen {depth}\n"));
        }
        self.haves.iter().for_each(|id| line(format!("have {id}\n")));
        line("done\n".to_owned());
        out.extend_from_slice(b"0000");
        out
    }
}

/// What the server said before the pack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FetchResponse {
    pub shallow: Vec<ObjectId>,
    pub pack_bytes: u64,
}

impl FetchResponse {
    /// Reads the answer and writes the pack into `pack` as it arrives, at most `limit` bytes of it.
    pub fn read(input: impl Read, pack: &mut dyn Write, limit: u64) -> Result<Self, Error> {
        let mut reader = PacketReader::new(input);
        let mut response = Self::default();
        loop {
            match reader.next_line()?.as_deref() {
                Some("packfile") => break,
                Some("shallow-info") => response.shallow_section(&mut reader)?,
                Some("acknowledgments" | "wanted-refs") => while reader.next_line()?.is_some() {},
                Some(other) => {
                    return Err(Error::Protocol(format!("a section is called `{}`", other.escape_debug())));
                }
                None => return Err(Error::Protocol("it sent no pack".to_owned())),
            }
        }
        while let Some(Packet::Data(bytes)) = reader.next_packet()? {
            let (channel, payload) =
                bytes.split_first().ok_or_else(|| Error::Protocol("an empty side-band packet".to_owned()))?;
            match channel {
                1 => {
                    response.pack_bytes += payload.len() as u64;
                    if response.pack_bytes > limit {
                        return Err(Error::TooLarge { what: "the pack".to_owned(), limit });
                    }
                    pack.write_all(payload)?;
                }
                2 => {} // progress, for people
                3 => return Err(Error::Remote(String::from_utf8_lossy(payload).trim().to_owned())),
                other => return Err(Error::Protocol(format!("side-band channel {other}"))),
            }
        }
        Ok(response)
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
