//! What object stores say.
//!
//! - [`Page`] reads one page of a listing as it arrives, in the dialect of S3, Azure or Google; [`Refusal`] reads why a store
//!   refuses.
//! - [`Key`] is a name that leads to a file of the artifact and nowhere else.
//! - [`Index`] holds all keys with their etags and computes the revision. It sorts through a file, so that a bucket with a million
//!   keys costs no more memory than one with a thousand.
//!
//! All input is untrusted: sizes, depths and numbers have limits, and a page that does not fit them is refused.

mod external_sort;
mod index;
mod key;
mod listing;
mod responses;
mod xml;

pub use index::{Changes, Files, Index, IndexError, Spool};
pub use key::{Key, KeyError};
pub use listing::{Dialect, ListError, Listed, Page};
pub use responses::{Refusal, S3Credentials};
pub use xml::{Event, Xml, XmlError};
