//! Git without I/O.
//!
//! What a client needs to fetch a revision and read it: packet lines, the messages of protocol v2, a pack file turned into an
//! index, and the objects in it. Bytes come in through `Read` and go out as values; who connects, how and with which secret is
//! the business of the transports above.
//!
//! All input is untrusted: every length is checked against a [`Limits`] before memory is taken, delta chains
//! are followed without recursion, SHA-1 collisions of known kinds are refused.

mod blob;
mod delta;
mod error;
mod id;
mod index;
mod object;
mod pack;
mod packindex;
mod pktline;
mod protocol;
mod refname;

pub use blob::Blob;
pub use error::Error;
pub use id::{HashKind, Hasher, ObjectId};
pub use index::{Limits, Pack};
pub use object::{
    Commit, EntryKind, ObjectKind, Signature, Tag, TreeEntry, parse_commit, parse_tag, parse_tree,
};
pub use pktline::{Packet, PacketReader, encode};
pub use protocol::{
    Advertisement, FetchRequest, FetchResponse, RemoteRef, ls_refs_request, read_refs, read_refs_from,
};
pub use refname::check_ref_name;
