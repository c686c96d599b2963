//! Go structs and types with methods, implemented by the crates that provide them to templates.

use std::any::Any;
use std::borrow::Cow;

use crate::exec::Context;
use crate::func::{CallError, Signature};
use crate::value::{Kind, Value};

/// A Go value with fields or methods: chart metadata, `.Files`, API versions, times.
///
/// Only [`type_name`](Object::type_name) and [`as_any`](Object::as_any) are required; the defaults describe a struct
/// without fields.
pub trait Object {
    /// The type as `%T` prints it, for example `*chart.Metadata`.
    fn type_name(&self) -> Cow<'static, str>;

    /// For downcasts.
    fn as_any(&self) -> &dyn Any;

    /// The kind that `reflect` reports: a struct by default.
    fn kind(&self) -> Kind {
        Kind::Struct
    }

    /// Whether this is a nil pointer, slice or map.
    fn is_nil(&self) -> bool {
        false
    }

    /// Truth for `if`: structs and pointers are true, others if they are not empty.
    fn truth(&self) -> bool {
        match self.kind() {
            Kind::Struct | Kind::Pointer | Kind::Func => !self.is_nil(),
            _ => match self.plain() {
                Some(value) => value.truth(),
                None => self.entries().is_some_and(|e| !e.is_empty()),
            },
        }
    }

    /// An exported struct field.
    fn field(&self, _name: &str) -> Option<Value> {
        None
    }

    /// All fields in declaration order, for printing.
    fn fields(&self) -> Vec<(&'static str, Value)> {
        Vec::new()
    }

    /// The signature of a method; `None` if there is no such method.
    fn method(&self, _name: &str) -> Option<Signature> {
        None
    }

    /// Calls a method of [`method`](Object::method); arguments were checked against the signature.
    fn call(&self, name: &str, _args: &[Value], _cx: &mut Context<'_>) -> Result<Value, CallError> {
        Err(CallError::new(format!("no method {name}")))
    }

    /// `fmt.Stringer`: if present, `%v` and `%s` print this.
    fn string(&self) -> Option<Vec<u8>> {
        None
    }

    /// A `String` method on the pointer: used if a template prints the field itself, but not by functions
    /// that get a copy.
    fn addressed_string(&self) -> Option<Vec<u8>> {
        None
    }

    /// The value of a defined type over a basic type, map or slice (a duration's int64, `.Files` as a map).
    fn plain(&self) -> Option<Value> {
        None
    }

    /// For map kinds: the entries in key order, each key and value as `range` yields them.
    fn entries(&self) -> Option<Vec<(Value, Value)>> {
        None
    }

    /// JSON names and values of a struct in the order of its fields, without those that `omitempty` omits.
    fn json_fields(&self) -> Option<Vec<(&'static str, Value)>> {
        None
    }

    /// The result of `json.Marshal` (a `map[string]interface {}` for a struct); `None` uses
    /// [`plain`](Object::plain) or the fields.
    fn json(&self) -> Option<Value> {
        None
    }
}
