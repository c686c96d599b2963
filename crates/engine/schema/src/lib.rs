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

pub mod correlate;
mod custom;
mod decode;
mod defaulting;
mod definition;
mod field_error;
pub mod formats;
mod go_syntax;
mod golang;
mod lists;
mod model;
mod node;
mod object_meta;
mod openapi;
mod parse;
mod prune;
mod validate;

pub use custom::{check_embedded, coerce};
pub use decode::{DecodeError, Decoded, Misfit, Shape, StrictError, check_value, decode, decode_value};
pub use defaulting::default;
pub use definition::{RuleCheck, RuleVerdict, validate_definition, webhook_url_problems};
pub use field_error::{FieldError, FieldErrorKind};
pub use go_syntax::go_syntax_error;
pub use lists::check_list_types;
pub use model::{
    Additional, CelRule, ListType, MapType, Name, Number, Patch, PatchStrategy, Properties, Rules, Schema,
    Type,
};
pub use node::{Definitions, Node, Overrides};
pub use object_meta::object_meta;
pub use openapi::OpenApi;
pub use parse::ParseError;
pub use prune::{prune, prune_nulls};
pub use validate::validate;
