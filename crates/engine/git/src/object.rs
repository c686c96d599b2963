//! Objects: what commits, tags and trees say.

use std::fmt;

use crate::{Error, HashKind, ObjectId};

/// The four kinds of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObjectKind {
    Commit,
    Tree,
    Blob,
    Tag,
}

impl fmt::Display for ObjectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ObjectKind::Commit => "commit",
            ObjectKind::Tree => "tree",
            ObjectKind::Blob => "blob",
            ObjectKind::Tag => "tag",
        })
    }
}

/// Who did something and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    pub name: String,
    pub email: String,
    /// Seconds since 1970.
    pub seconds: i64,
    /// Minutes east of UTC.
    pub offset_minutes: i32,
}

/// A commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    pub tree: ObjectId,
    pub parents: Vec<ObjectId>,
    pub author: Signature,
    pub committer: Signature,
    pub message: String,
    /// The armoured PGP or SSH signature, when the commit is signed.
    pub signature: Option<String>,
    /// The bytes that the signature covers: the commit without it.
    pub signed_payload: Vec<u8>,
}

/// An annotated tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tag {
    pub target: ObjectId,
    pub target_kind: ObjectKind,
    pub name: String,
    pub tagger: Option<Signature>,
    pub message: String,
    pub signature: Option<String>,
    pub signed_payload: Vec<u8>,
}

/// What an entry of a tree is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    File,
    Executable,
    Symlink,
    Directory,
    /// A submodule: the id of a commit in another repository.
    Submodule,
}

/// One entry of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeEntry {
    pub name: String,
    pub kind: EntryKind,
    pub id: ObjectId,
}

/// Name and value of each header, continuation lines folded in. Names of unused headers are blank.
type Headers = Vec<(&'static str, String)>;

/// The headers of a commit or tag and the message after them.
fn headers(kind: ObjectKind, bytes: &[u8]) -> Result<(Headers, &[u8]), Error> {
    let bad = |problem: &str| Error::Object { kind, problem: problem.to_owned() };
    let mut found = Headers::new();
    let mut rest = bytes;
    loop {
        let Some(end) = rest.iter().position(|b| *b == b'\n') else {
            // A message may be missing altogether, even with its blank line.
            return if rest.is_empty() { Ok((found, rest)) } else { Err(bad("a header line has no end")) };
        };
        let (line, after) = (&rest[..end], &rest[end + 1..]);
        rest = after;
        if line.is_empty() {
            return Ok((found, rest));
        }
        let line = String::from_utf8_lossy(line);
        if let Some(more) = line.strip_prefix(' ') {
            let (_, value) = found.last_mut().ok_or_else(|| bad("it begins with a continuation line"))?;
            value.push('\n');
            value.push_str(more);
        } else {
            let (name, value) = line.split_once(' ').unwrap_or((&line, ""));
            let name = KNOWN.iter().find(|k| **k == name).copied().unwrap_or("");
            found.push((name, value.to_owned()));
        }
    }
}

const KNOWN: &[&str] =
    &["tree", "parent", "author", "committer", "gpgsig", "gpgsig-sha256", "object", "type", "tag", "tagger"];

/// Parses the content of a commit object.
pub fn parse_commit(bytes: &[u8]) -> Result<Commit, Error> {
    let kind = ObjectKind::Commit;
    let (headers, message) = headers(kind, bytes)?;
    let get = |name: &str| headers.iter().find(|(n, _)| *n == name).map(|(_, v)| v.as_str());
    let need =
        |name: &str| get(name).ok_or_else(|| Error::Object { kind, problem: format!("it has no {name}") });
    let tree: ObjectId = need("tree")?.parse()?;
    let parents =
        headers.iter().filter(|(n, _)| *n == "parent").map(|(_, v)| v.parse()).collect::<Result<_, _>>()?;
    let signature_header = if tree.kind() == HashKind::Sha256 { "gpgsig-sha256" } else { "gpgsig" };
    Ok(Commit {
        tree,
        parents,
        author: person(need("author")?),
        committer: person(need("committer")?),
        message: String::from_utf8_lossy(message).into_owned(),
        signature: get(signature_header).map(str::to_owned),
        signed_payload: without_signatures(bytes),
    })
}

/// The commit's bytes without its signature headers, which is what was signed.
fn without_signatures(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut skipping = false;
    let mut rest = bytes;
    while !rest.is_empty() {
        let end = rest.iter().position(|b| *b == b'\n').map_or(rest.len(), |at| at + 1);
        let (line, after) = rest.split_at(end);
        if line == b"\n" {
            out.extend_from_slice(rest);
            break;
        }
        skipping = line.starts_with(b"gpgsig ")
            || line.starts_with(b"gpgsig-sha256 ")
            || (skipping && line.starts_with(b" "));
        if !skipping {
            out.extend_from_slice(line);
        }
        rest = after;
    }
    out
}

/// Parses the content of a tag object. A tag's signature stands at the end of its message.
pub fn parse_tag(bytes: &[u8]) -> Result<Tag, Error> {
    let kind = ObjectKind::Tag;
    let (headers, message) = headers(kind, bytes)?;
    let get = |name: &str| headers.iter().find(|(n, _)| *n == name).map(|(_, v)| v.as_str());
    let need =
        |name: &str| get(name).ok_or_else(|| Error::Object { kind, problem: format!("it has no {name}") });
    let target_kind = match need("type")? {
        "commit" => ObjectKind::Commit,
        "tree" => ObjectKind::Tree,
        "blob" => ObjectKind::Blob,
        "tag" => ObjectKind::Tag,
        other => return Err(Error::Object { kind, problem: format!("it points to a `{other}`") }),
    };
    let begins = signature_start(message);
    let signature = begins.map(|at| String::from_utf8_lossy(&message[at..]).into_owned());
    let signed = bytes.len() - begins.map_or(0, |at| message.len() - at);
    Ok(Tag {
        target: need("object")?.parse()?,
        target_kind,
        name: need("tag")?.to_owned(),
        tagger: get("tagger").map(person),
        message: String::from_utf8_lossy(&message[..begins.unwrap_or(message.len())]).into_owned(),
        signature,
        signed_payload: bytes[..signed].to_vec(),
    })
}

fn signature_start(message: &[u8]) -> Option<usize> {
    let mut at = 0;
    let mut last = None;
    for line in message.split_inclusive(|b| *b == b'\n') {
        if line.starts_with(b"-----BEGIN PGP SIGNATURE-----")
            || line.starts_with(b"-----BEGIN SSH SIGNATURE-----")
        {
            last = Some(at);
        }
        at += line.len();
    }
    last
}

/// `Name <mail> seconds zone`; what is missing reads as empty, as Git's own reader does.
fn person(text: &str) -> Signature {
    let (name, rest) = text.split_once('<').unwrap_or((text, ""));
    let (email, when) = rest.rsplit_once('>').unwrap_or((rest, ""));
    let mut words = when.split_whitespace();
    let seconds = words.next().and_then(|w| w.parse().ok()).unwrap_or(0);
    let zone: i32 = words.next().and_then(|w| w.parse().ok()).unwrap_or(0);
    Signature {
        name: name.trim().to_owned(),
        email: email.trim().to_owned(),
        seconds,
        offset_minutes: zone / 100 * 60 + zone % 100,
    }
}

/// Parses the content of a tree object. A name that could leave its directory or reach Git's own folder is refused.
pub fn parse_tree(bytes: &[u8], hash: HashKind) -> Result<Vec<TreeEntry>, Error> {
    let bad = |problem: String| Error::Object { kind: ObjectKind::Tree, problem };
    let mut entries = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let space =
            rest.iter().position(|b| *b == b' ').ok_or_else(|| bad("an entry has no mode".to_owned()))?;
        let nul = rest.iter().position(|b| *b == 0).ok_or_else(|| bad("an entry has no end".to_owned()))?;
        if nul < space {
            return Err(bad("an entry has no mode".to_owned()));
        }
        let name = String::from_utf8_lossy(&rest[space + 1..nul]).into_owned();
        let kind = match &rest[..space] {
            b"100644" | b"100664" => EntryKind::File,
            b"100755" => EntryKind::Executable,
            b"120000" => EntryKind::Symlink,
            b"40000" | b"040000" => EntryKind::Directory,
            b"160000" => EntryKind::Submodule,
            other => return Err(bad(format!("`{name}` has the mode {}", other.escape_ascii()))),
        };
        if !safe_name(&name) {
            return Err(bad(format!("an entry is named {name:?}")));
        }
        let id = rest.get(nul + 1..nul + 1 + hash.size()).and_then(ObjectId::from_bytes);
        let id = id.ok_or_else(|| bad(format!("the id of `{name}` is cut off")))?;
        rest = &rest[nul + 1 + hash.size()..];
        entries.push(TreeEntry { name, kind, id });
    }
    Ok(entries)
}

fn safe_name(name: &str) -> bool {
    !name.is_empty()
        && name != "."
        && name != ".."
        && !name.eq_ignore_ascii_case(".git")
        && !name.contains(['/', '\0'])
        && !name.ends_with('\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: &str = "tree ce013625030ba8dba906f756967f9e9ca394464a\nparent ce013625030ba8dba906f756967f9e9ca394464b\n\
        author A B <a@b> 1700000000 +0130\ncommitter C <c@d> 1700000001 -0500\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n abc\n \
        -----END PGP SIGNATURE-----\nencoding utf-8\n\nsubject\n\nbody\n";

    #[test]
    fn a_signed_commit() {
        let commit = parse_commit(COMMIT.as_bytes()).unwrap();
        assert_eq!(
            commit.author,
            Signature { name: "A B".into(), email: "a@b".into(), seconds: 1_700_000_000, offset_minutes: 90 }
        );
        assert_eq!(commit.committer.offset_minutes, -300);
        assert_eq!(commit.message, "subject\n\nbody\n");
        assert_eq!(
            commit.signature.as_deref(),
            Some("-----BEGIN PGP SIGNATURE-----\n\nabc\n-----END PGP SIGNATURE-----")
        );
        let payload = String::from_utf8(commit.signed_payload).unwrap();
        assert!(
            !payload.contains("gpgsig") && payload.contains("-0500\nencoding utf-8\n\nsubject"),
            "{payload}"
        );
    }

    #[test]
    fn a_signed_tag() {
        let text = "object ce013625030ba8dba906f756967f9e9ca394464a\ntype commit\ntag v1\ntagger T <t@t> 1 +0000\n\nnotes\n\
            -----BEGIN SSH SIGNATURE-----\nabc\n-----END SSH SIGNATURE-----\n";
        let tag = parse_tag(text.as_bytes()).unwrap();
        assert_eq!((tag.name.as_str(), tag.message.as_str()), ("v1", "notes\n"));
        assert!(
            tag.signature.unwrap().starts_with("-----BEGIN SSH") && tag.signed_payload.ends_with(b"notes\n")
        );
    }

    /// E03: names that lead into `.git` or out of the directory, and a CR at the end of one.
    #[test]
    fn a_tree_entry_cannot_leave_its_directory() {
        let entry =
            |mode: &str, name: &str| [mode.as_bytes(), b" ", name.as_bytes(), b"\0", &[7; 20]].concat();
        assert_eq!(
            parse_tree(&entry("100755", "run.sh"), HashKind::Sha1).unwrap()[0].kind,
            EntryKind::Executable
        );
        for bad in ["", ".", "..", ".git", ".GIT", "a/b", "x\r"] {
            assert!(parse_tree(&entry("100644", bad), HashKind::Sha1).is_err(), "{bad:?}");
        }
        // The names of systemd's units have backslashes.
        assert!(parse_tree(&entry("100644", "a\\x2db.service"), HashKind::Sha1).is_ok());
        assert!(parse_tree(&entry("777", "x"), HashKind::Sha1).is_err());
        assert!(parse_tree(&entry("100644", "x")[..15], HashKind::Sha1).is_err());
    }
}
