//! Helm's release records: the storage format, read and written as helm does, and the digests Flux keeps of them.
//!
//! - A [`Release`] is one revision: what was rendered, from which chart and values, and how it went.
//! - [`encode`] and [`decode`] turn it into the text that Helm keeps in a Secret or ConfigMap; [`secret_object`] makes the
//!   whole object, [`History`] reads all of a release, records that cannot be read among them.
//! - [`Observation`] is what Flux digests to notice that somebody else touched a release; [`values_digest`] does the same
//!   for values.
//!
//! Reading is tolerant: Helm 2 wrote no such records, everything Helm 3, Helm 4 and Flux wrote is understood, unknown
//! fields are passed over.

mod chart;
mod digest;
mod error;
mod go_json;
mod go_time;
mod history;
mod hook;
mod name;
mod observation;
mod record;
mod storage;

pub use chart::{ChartDependency, ChartMaintainer, ChartMetadata, ChartRecord};
pub use digest::{
    EMPTY_VALUES_DIGEST, common_metadata_digest, json_digest, post_renderers_digest, values_digest,
    verify_values,
};
pub use error::{DecodeError, EncodeError};
pub use go_json::to_go_json;
pub use go_time::GoTime;
pub use history::{Corrupt, History};
pub use hook::{Hook, HookExecution, HookPhase};
pub use name::shorten_name;
pub use observation::{Observation, SNAPSHOT_VERSION, snapshot_verifies, test_hooks};
pub use record::{ApplyMethod, Info, Release, Status};
pub use storage::{
    LARGEST_RECORD, OWNER, RECORD_TYPE, SYSTEM_LABELS, config_map_object, decode, encode, record_name,
    secret_object,
};
