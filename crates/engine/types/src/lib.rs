//! Value types of Kubernetes and Flux: Go durations, quantities, label and field selectors, digests,
//! revisions, references.
//!
//! Each type is parsed when it is deserialized, so an invalid value is rejected when an object is read.
//! [`from_json`] and [`from_value`] add the path of the field to the error.

mod calendar;
mod duration;
mod field_path;
mod field_selector;
mod int_or_string;
mod label_selector;
mod name;
mod quantity;
mod reference;
mod revision;
#[cfg(feature = "schema")]
mod schema;
mod secret;
mod selector_parser;
mod text_serde;

pub use calendar::{date_of_days, days_of_date};
pub use duration::{Duration, DurationError};
pub use field_path::{FieldError, from_json, from_value};
pub use field_selector::{
    FieldOperator, FieldRequirement, FieldSelector, FieldSelectorError, escape_field_value,
};
pub use int_or_string::IntOrString;
pub use label_selector::{
    LabelSelector, LabelSelectorOperator, LabelSelectorRequirement, Operator, Requirement, Selector,
    SelectorError,
};
pub use name::{
    NameError, check_dns1035_label, check_dns1123_label, check_dns1123_subdomain, check_label_value,
    check_qualified_name,
};
pub use quantity::{Format, Quantity, QuantityError};
pub use reference::{ObjectReference, api_group, split_api_version};
pub use revision::{Algorithm, Digest, DigestError, Revision};
pub use secret::Secret;
