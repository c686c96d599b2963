//! The source controllers: they fetch content and publish it as artifacts.
//!
//! All kinds share one reconciler ([`driver::SourceReconciler`]): check storage, fetch, store the artifact, emit the event. What
//! differs between them is a [`driver::Fetcher`]. Remote systems are reached through traits ([`git::GitClient`],
//! [`oci::OciClient`], [`bucket::BucketClient`]) with fakes in tests. Trees are streamed into the archive; nothing is
//! checked out on disk, and what is spooled is counted by one budget ([`fl_http::ByteBudget`]).

pub mod bucket;
pub mod conditions;
pub mod driver;
pub mod git;
pub mod helm;
pub mod oci;
pub mod secrets;
mod signature;
pub mod storage;
pub mod tree;
