//! Go values: kinds and types matter to comparison, printing and error messages.

mod list;
mod map;
mod str;

use std::borrow::Cow;
use std::fmt;
use std::rc::Rc;

pub use list::{List, ListType};
pub use map::{Entries, Map, MapClass, MapMethod, MapType};
pub use str::Str;

use crate::object::Object;

/// Go's integer types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntKind {
    Int,
    Int8,
    Int16,
    Int32,
    Int64,
    Uint,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
}

impl IntKind {
    /// The type as Go prints it.
    pub fn name(self) -> &'static str {
        match self {
            IntKind::Int => "int",
            IntKind::Int8 => "int8",
            IntKind::Int16 => "int16",
            IntKind::Int32 => "int32",
            IntKind::Int64 => "int64",
            IntKind::Uint => "uint",
            IntKind::Uint8 => "uint8",
            IntKind::Uint16 => "uint16",
            IntKind::Uint32 => "uint32",
            IntKind::Uint64 => "uint64",
        }
    }

    /// Whether the type is signed.
    pub fn signed(self) -> bool {
        matches!(self, IntKind::Int | IntKind::Int8 | IntKind::Int16 | IntKind::Int32 | IntKind::Int64)
    }
}

/// Go's `reflect.Kind`, limited to the kinds that occur in templates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Invalid,
    Bool,
    Int(IntKind),
    Float64,
    Complex128,
    String,
    Slice,
    Map,
    Struct,
    Pointer,
    Func,
}

impl Kind {
    /// The kind as Go prints it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Invalid => "invalid",
            Kind::Bool => "bool",
            Kind::Int(kind) => kind.name(),
            Kind::Float64 => "float64",
            Kind::Complex128 => "complex128",
            Kind::String => "string",
            Kind::Slice => "slice",
            Kind::Map => "map",
            Kind::Struct => "struct",
            Kind::Pointer => "ptr",
            Kind::Func => "func",
        }
    }
}

/// A Go value. Cloning is cheap: compound values are shared handles.
#[derive(Clone)]
pub enum Value {
    /// nil without a type.
    Nil,
    Bool(bool),
    /// An integer; unsigned kinds keep their bits in the `i64`.
    Int(IntKind, i64),
    Float(f64),
    Complex(f64, f64),
    Str(Str),
    /// `[]uint8`
    Bytes(Str),
    List(List),
    Map(Map),
    /// A Go struct, a defined type with methods, a time, a function: anything with its own behaviour.
    Object(Rc<dyn Object>),
}

impl Value {
    /// A Go `int`.
    pub fn int(n: i64) -> Self {
        Value::Int(IntKind::Int, n)
    }

    /// A Go `int64`.
    pub fn int64(n: i64) -> Self {
        Value::Int(IntKind::Int64, n)
    }

    /// A Go string.
    pub fn str(text: impl Into<Str>) -> Self {
        Value::Str(text.into())
    }

    /// A `[]interface {}`.
    pub fn list(items: Vec<Value>) -> Self {
        Value::List(List::new(items))
    }

    /// An empty `map[string]interface {}`.
    pub fn dict() -> Self {
        Value::Map(Map::new(Entries::new()))
    }

    /// Wraps an object.
    pub fn object(object: impl Object + 'static) -> Self {
        Value::Object(Rc::new(object))
    }

    /// The kind that `reflect` reports.
    pub fn kind(&self) -> Kind {
        match self {
            Value::Nil => Kind::Invalid,
            Value::Bool(_) => Kind::Bool,
            Value::Int(kind, _) => Kind::Int(*kind),
            Value::Float(_) => Kind::Float64,
            Value::Complex(..) => Kind::Complex128,
            Value::Str(_) => Kind::String,
            Value::Bytes(_) | Value::List(_) => Kind::Slice,
            Value::Map(_) => Kind::Map,
            Value::Object(object) => object.kind(),
        }
    }

    /// The type as `%T` prints it.
    pub fn type_name(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Value::Nil => "<nil>",
            Value::Bool(_) => "bool",
            Value::Int(kind, _) => kind.name(),
            Value::Float(_) => "float64",
            Value::Complex(..) => "complex128",
            Value::Str(_) => "string",
            Value::Bytes(_) => "[]uint8",
            Value::List(list) => list.ty().name(),
            Value::Map(map) => map.ty().name(),
            Value::Object(object) => return object.type_name(),
        })
    }

    /// The string, if this is one.
    pub fn as_str(&self) -> Option<&Str> {
        match self {
            Value::Str(s) => Some(s),
            _ => None,
        }
    }

    /// The map, if this is one.
    pub fn as_map(&self) -> Option<&Map> {
        match self {
            Value::Map(map) => Some(map),
            _ => None,
        }
    }

    /// The slice, if this is one.
    pub fn as_list(&self) -> Option<&List> {
        match self {
            Value::List(list) => Some(list),
            _ => None,
        }
    }

    /// The object downcast to its Rust type.
    pub fn as_object<T: Object + 'static>(&self) -> Option<&T> {
        match self {
            Value::Object(object) => object.as_any().downcast_ref(),
            _ => None,
        }
    }

    /// Whether this is nil, or a nil slice, map or pointer.
    pub fn is_nil(&self) -> bool {
        match self {
            Value::Nil => true,
            Value::List(list) => list.is_nil(),
            Value::Map(map) => map.is_nil(),
            Value::Object(object) => object.is_nil(),
            _ => false,
        }
    }

    /// Truth value for `if`: not the zero value, not empty.
    pub fn truth(&self) -> bool {
        match self {
            Value::Nil => false,
            Value::Bool(b) => *b,
            Value::Int(_, n) => *n != 0,
            Value::Float(f) => *f != 0.0,
            Value::Complex(re, im) => *re != 0.0 || *im != 0.0,
            Value::Str(s) | Value::Bytes(s) => !s.is_empty(),
            Value::List(list) => !list.is_empty(),
            Value::Map(map) => !map.is_empty(),
            Value::Object(object) => object.truth(),
        }
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Nil => f.write_str("nil"),
            Value::Bool(b) => write!(f, "{b}"),
            Value::Int(kind, n) => write!(f, "{}({n})", kind.name()),
            Value::Float(x) => write!(f, "{x:?}"),
            Value::Complex(re, im) => write!(f, "({re:?}+{im:?}i)"),
            Value::Str(s) => write!(f, "{s:?}"),
            Value::Bytes(s) => write!(f, "bytes{s:?}"),
            Value::List(list) => write!(f, "{list:?}"),
            Value::Map(map) => write!(f, "{map:?}"),
            Value::Object(object) => f.write_str(&object.type_name()),
        }
    }
}

impl From<bool> for Value {
    fn from(b: bool) -> Self {
        Value::Bool(b)
    }
}

impl From<f64> for Value {
    fn from(x: f64) -> Self {
        Value::Float(x)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::str(text)
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::str(text)
    }
}

impl From<Str> for Value {
    fn from(text: Str) -> Self {
        Value::Str(text)
    }
}

impl From<Map> for Value {
    fn from(map: Map) -> Self {
        Value::Map(map)
    }
}

impl From<List> for Value {
    fn from(list: List) -> Self {
        Value::List(list)
    }
}

impl From<Vec<u8>> for Value {
    fn from(text: Vec<u8>) -> Self {
        Value::str(text)
    }
}
