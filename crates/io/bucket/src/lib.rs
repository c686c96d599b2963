//! A client for object stores: S3 and whatever speaks like it, Google's, Azure's.
//!
//! A [`Bucket`] can be asked whether it exists, for its keys page by page, and for one object. Requests go to the host they were
//! made for and to nobody a redirect names, as they carry signatures. Listings are parsed as they come; an object of some size
//! goes through a file without a name. Nothing grows with what a store says.

mod azure;
mod bucket;
mod error;
mod google;
mod object;
mod s3;

pub use bucket::{Bucket, BucketOptions, Login, Provider};
pub use error::Error;
pub use fl_cloud::Destinations;
pub use fl_cloud::aws::AwsKeys;
pub use fl_cloud::azure::{AUTHORITY, AzureCertificate, AzureIdentity, AzureKind, SharedKey};
pub use fl_cloud::google::GoogleCredentials;
pub use fl_objects::{IndexError, Key};
pub use object::{Budget, Content, Object};
