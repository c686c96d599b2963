//! Structural schemas of Kubernetes: pruning, defaulting, validation.
//!
//! [`Schema`] is used for built-in types (built from tables, recursive through lazily resolved [`Node`]s) and
//! for custom resources (parsed from `openAPIV3Schema`). All functions are pure and operate on
//! [`serde_json::Value`].
//!
//! ```
//! use serde_json::json;
//! let schema = fl_schema::Schema::from_json(&json!({
//!     "type": "object", "properties": {"spec": {"type": "object", "properties": {"replicas": {"type": "integer"}}}}
//! })).expect("a valid schema");
//! assert_eq!(schema.property("spec").and_then(|s| s.property("replicas")).map(|r| r.ty), Some(fl_schema::Type::Integer));
//! ```

mod crd_validation;
mod custom_resource;
mod decode;
mod defaulting;
mod field_error;
pub mod formats;
pub mod list_correlation;
mod list_type;
mod node;
mod object_meta;
mod openapi;
mod parse;
mod print;
mod prune;
mod structural;
mod validate;

pub use crd_validation::{CompiledRule, RuleCheck, validate_crd, webhook_url_errors};
pub use custom_resource::{CoerceError, check_embedded, coerce};
pub use decode::{DecodeError, Decoded, Shape, StrictError, TypeMismatch, check_value, decode, decode_value};
pub use defaulting::default;
pub use field_error::{FieldError, FieldErrorKind};
pub use list_type::check_list_types;
pub use node::{Definitions, Node, Overrides};
pub use object_meta::object_meta;
pub use openapi::OpenApi;
pub use parse::ParseError;
pub use prune::{prune, prune_nulls};
pub use structural::{
    Additional, CelRule, ListType, MapType, Name, Number, Patch, PatchStrategy, Properties, Rules, Schema,
    Type,
};
pub use validate::validate;
