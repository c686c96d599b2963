//! Structural schemas as Kubernetes means them: prune, default, validate.
//!
//! One [`Schema`] type serves built-in types (built from tables, recursive through lazily resolved [`Node`]s) and
//! custom resources (parsed from `openAPIV3Schema`). Everything works on [`serde_json::Value`] and touches nothing else.
//!
//! ```
//! use serde_json::json;
//! let schema = fl_schema::Schema::from_json(&json!({
//!     "type": "object", "properties": {"spec": {"type": "object", "properties": {"replicas": {"type": "integer"}}}}
//! })).expect("a valid schema");
//! assert_eq!(schema.property("spec").and_then(|s| s.property("replicas")).map(|r| r.ty), Some(fl_schema::Type::Integer));
//! ```

mod field_error;
mod model;
mod node;
mod openapi;
mod parse;

pub use field_error::{FieldError, FieldErrorKind};
pub use model::{
    Additional, CelRule, ListType, MapType, Name, Number, Patch, PatchStrategy, Properties, Rules, Schema,
    Type,
};
pub use node::{Definitions, Node, Overrides};
pub use openapi::OpenApi;
pub use parse::ParseError;
