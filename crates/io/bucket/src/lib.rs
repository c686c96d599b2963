//! A client for object stores: S3 and whatever speaks like it, Google's, Azure's.
//!
//! A [`Bucket`] answers whether it exists, lists its keys page by page, and returns single objects. Redirects are not
//! followed, because requests are signed. Listings are parsed as they come; an object of some size
//! goes through a file without a name. Memory does not grow with the size of a response.

mod azure;
mod bucket;
mod download;
mod error;
mod google;
mod s3;

pub use bucket::{Bucket, BucketOptions, Login, Provider};
pub use download::{Budget, Content, Object};
pub use error::Error;
pub use fl_bucket_index::{IndexError, Key};
pub use fl_cloud::Destinations;
pub use fl_cloud::aws::AwsKeys;
pub use fl_cloud::azure::{AUTHORITY, AzureCertificate, AzureIdentity, AzureKind, SharedKey};
pub use fl_cloud::google::GoogleCredentials;
