//! JSON Schemas of the types for CRDs. Patterns and bounds are set by the field that uses a type.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::*;

macro_rules! schema {
    ($type:ty, $name:literal, $schema:expr) => {
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                let build: fn(&mut SchemaGenerator) -> Schema = $schema;
                build(generator)
            }
        }
    };
}

const QUANTITY_PATTERN: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

schema!(Duration, "Duration", |_| json_schema!({"type": "string"}));
schema!(Digest, "Digest", |_| json_schema!({"type": "string"}));
schema!(Revision, "Revision", |_| json_schema!({"type": "string"}));
schema!(Selector, "Selector", |_| json_schema!({"type": "string"}));
schema!(FieldSelector, "FieldSelector", |_| json_schema!({"type": "string"}));
schema!(IntOrString, "IntOrString", |_| json_schema!({
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": true
}));
schema!(Quantity, "Quantity", |_| json_schema!({
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "pattern": QUANTITY_PATTERN,
    "x-kubernetes-int-or-string": true
}));
schema!(LabelSelector, "LabelSelector", |_| json_schema!({
    "type": "object",
    "x-kubernetes-map-type": "atomic",
    "properties": {
        "matchExpressions": {
            "type": "array",
            "description": "Requirements beyond equality; all must hold.",
            "x-kubernetes-list-type": "atomic",
            "items": {
                "type": "object",
                "required": ["key", "operator"],
                "properties": {
                    "key": {"type": "string", "description": "The label's key."},
                    "operator": {
                        "type": "string",
                        "description": "How the value relates to the listed ones: In, NotIn, Exists or DoesNotExist."
                    },
                    "values": {
                        "type": "array",
                        "description": "The values; needed for In and NotIn, forbidden otherwise.",
                        "items": {"type": "string"},
                        "x-kubernetes-list-type": "atomic"
                    }
                }
            }
        },
        "matchLabels": {
            "type": "object",
            "description": "Labels that must be present with exactly these values.",
            "additionalProperties": {"type": "string"}
        }
    }
}));

impl<T: JsonSchema> JsonSchema for Secret<T> {
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}
