//! Tables of Kubernetes' built-in types and resources: fields, merge keys, verbs.
//!
//! The tables are one compact text (see `data/README.md`) that is compiled in. They are parsed lazily: the
//! first access scans the text for line positions, and a type is parsed on its first use.
//!
//! ```
//! let schema = fl_kubeschema::schema("apps", "v1", "Deployment").expect("a built-in kind");
//! assert!(schema.property("spec").and_then(|s| s.property("replicas")).is_some());
//! assert!(fl_kubeschema::group_versions().iter().any(|g| g.group == "batch"));
//! ```

mod descriptions;
mod discovery;
mod openapi;
mod operations;
mod protobuf;
mod resources;
mod round_trip;
mod schemas;
mod table;
mod types;
mod walk;

pub use descriptions::Descriptions;
pub use discovery::{aggregated_group, aggregated_version, plain_resources};
pub use openapi::{definition_v3, openapi_v2, openapi_v3, openapi_v3_paths};
pub use protobuf::{ProtobufError, protobuf_to_json};
pub use resources::{GroupVersion, Resource, Subresource, group_versions};
pub use round_trip::{normalize, normalize_kind, normalize_stored};
pub use schemas::{schema, schema_named, schema_of};
pub use types::{Element, Field, FieldType, Reference, TypeDef, type_named, type_of};
pub use walk::visit_objects;
