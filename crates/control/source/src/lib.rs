//! The source controllers: content comes in and becomes an artifact.
//!
//! Every source runs the same steps (check the store, fetch, verify, archive) and ends the same way ([`conclude`]); what
//! differs is where the content comes from. Fetchers sit behind traits ([`git::GitClient`], [`oci::OciClient`],
//! [`bucket::BucketClient`]) with twins in tests. Trees are streamed from where they are into the archive; nothing is checked out on disk.

pub mod bucket;
pub mod conclude;
pub mod git;
pub mod helm;
pub mod oci;
pub mod secrets;
mod signature;
pub mod storage;
pub mod tree;
