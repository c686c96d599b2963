//! Helm's release storage: the format that helm reads and writes, and the digests that Flux computes.
//!
//! - A [`Release`] is one revision: the rendered manifest, its chart and values, and its status.
//! - [`encode`] and [`decode`] convert it to the text that Helm stores in a Secret or ConfigMap;
//!   [`secret_object`] creates the object, [`History`] reads all revisions, including unreadable ones.
//! - [`Observation`] is what Flux digests to detect that another client changed a release; [`values_digest`]
//!   does the same for values.
//!
//! Reading is lenient: all releases written by Helm 3, Helm 4 and Flux are accepted, and unknown fields are
//! ignored. Helm 2 had another format.

mod chart;
mod digest;
mod error;
mod history;
mod hook;
mod name;
mod observation;
mod release;
mod storage;

pub use chart::{ChartDependency, ChartMaintainer, ChartMetadata, StoredChart};
pub use digest::{
    EMPTY_VALUES_DIGEST, common_metadata_digest, json_digest, post_renderers_digest, values_digest,
    verify_values,
};
pub use error::{DecodeError, EncodeError};
pub use fl_go::GoTime;
pub use history::{CorruptRelease, History};
pub use hook::{Hook, HookExecution, HookPhase};
pub use name::shorten_name;
pub use observation::{Observation, SNAPSHOT_VERSION, snapshot_verifies, test_hooks};
pub use release::{ApplyMethod, Info, Release, Status};
pub use storage::{
    MAX_SECRET_BYTES, OWNER, SECRET_TYPE, SYSTEM_LABELS, config_map_object, decode, encode, object_name,
    secret_object,
};
