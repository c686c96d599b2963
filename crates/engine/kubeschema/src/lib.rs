//! Tables of Kubernetes' built-in types: fields, merge keys, resources.
//!
//! The tables are one compact text (see `data/README.md`), compiled in. Nothing of it is read before it is needed: the
//! first question scans the text once for line positions, a type is parsed when it is first asked for.
//!
//! ```
//! let schema = fl_kubeschema::schema("apps", "v1", "Deployment").expect("a built-in kind");
//! assert!(schema.property("spec").and_then(|s| s.property("replicas")).is_some());
//! assert!(fl_kubeschema::group_versions().iter().any(|g| g.group == "batch"));
//! ```

mod descriptions;
mod discovery;
mod normal;
mod openapi;
mod operations;
mod protobuf;
mod resources;
mod schemas;
mod table;
mod types;
mod walk;

pub use descriptions::Descriptions;
pub use discovery::{aggregated_group, aggregated_version, plain_resources};
pub use normal::{normalize, normalize_kind, seal};
pub use openapi::{definition_v3, openapi_v2, openapi_v3, openapi_v3_paths};
pub use protobuf::{ProtobufError, protobuf_to_json};
pub use resources::{GroupVersion, Resource, Subresource, group_versions};
pub use schemas::{schema, schema_named, schema_of};
pub use types::{Element, Field, FieldType, Reference, TypeDef, type_named, type_of};
pub use walk::visit_objects;
