//! Template functions: signatures as declared in Go, and the registry.

use rustc_hash::FxHashMap;

use crate::error::{Error, Excerpt};
use crate::exec::Context;
use crate::value::{IntKind, Value};

/// A Go parameter type. The executor checks and converts arguments by it, with Go's error messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// `interface {}`
    Any,
    /// `reflect.Value`: accepts everything, including constants.
    Reflect,
    Bool,
    Int(IntKind),
    Float64,
    Str,
    /// `[]uint8`
    Bytes,
    /// `[]interface {}`
    List,
    /// `[]string`
    Strings,
    /// `map[string]interface {}`
    Dict,
    /// `map[string]string`
    StrDict,
    /// An object type by its Go name, for example `time.Time`.
    Named(&'static str),
}

impl Type {
    /// A Go `int` parameter.
    pub const INT: Type = Type::Int(IntKind::Int);
    /// A Go `int64` parameter.
    pub const INT64: Type = Type::Int(IntKind::Int64);

    /// The type as Go prints it.
    pub fn name(self) -> &'static str {
        match self {
            Type::Any => "interface {}",
            Type::Reflect => "reflect.Value",
            Type::Bool => "bool",
            Type::Int(kind) => kind.name(),
            Type::Float64 => "float64",
            Type::Str => "string",
            Type::Bytes => "[]uint8",
            Type::List => "[]interface {}",
            Type::Strings => "[]string",
            Type::Dict => "map[string]interface {}",
            Type::StrDict => "map[string]string",
            Type::Named(name) => name,
        }
    }

    /// Whether nil is a value of the type.
    pub fn can_be_nil(self) -> bool {
        match self {
            Type::Any
            | Type::Reflect
            | Type::Bytes
            | Type::List
            | Type::Strings
            | Type::Dict
            | Type::StrDict => true,
            Type::Named(name) => name.starts_with('*'),
            Type::Bool | Type::Int(_) | Type::Float64 | Type::Str => false,
        }
    }
}

/// Parameters of a function. With `variadic` the last type is repeated zero or more times.
#[derive(Clone, Copy, Debug)]
pub struct Signature {
    pub params: &'static [Type],
    pub variadic: bool,
}

impl Signature {
    /// Exactly these parameters.
    pub const fn fixed(params: &'static [Type]) -> Self {
        Signature { params, variadic: false }
    }

    /// The last parameter repeats.
    pub const fn variadic(params: &'static [Type]) -> Self {
        Signature { params, variadic: true }
    }
}

/// Error of a function. The executor adds `error calling NAME:` and the location.
#[derive(Debug)]
pub struct CallError {
    message: String,
    budget: bool,
    excerpt: Option<Box<Excerpt>>,
}

impl CallError {
    /// An error with Go's message.
    pub fn new(message: impl Into<String>) -> Self {
        CallError { message: message.into(), budget: false, excerpt: None }
    }

    /// An error of a limit, which stays recognisable as such.
    pub fn budget(message: impl Into<String>) -> Self {
        CallError { message: message.into(), budget: true, excerpt: None }
    }

    /// The message.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Whether a limit was reached.
    pub fn is_budget(&self) -> bool {
        self.budget
    }

    /// The same error with a prefix.
    #[must_use]
    pub fn context(self, before: &str) -> Self {
        CallError { message: format!("{before}: {}", self.message), ..self }
    }

    /// The excerpt of the template in which the error occurred.
    pub(crate) fn take_excerpt(&mut self) -> Option<Box<Excerpt>> {
        self.excerpt.take()
    }
}

impl From<Error> for CallError {
    fn from(error: Error) -> Self {
        CallError { budget: error.is_budget(), message: error.to_string(), excerpt: error.into_excerpt() }
    }
}

impl From<String> for CallError {
    fn from(message: String) -> Self {
        CallError::new(message)
    }
}

impl From<&str> for CallError {
    fn from(message: &str) -> Self {
        CallError::new(message)
    }
}

/// Implementation of a function. Arguments were checked against the signature; a nil slice or map may arrive
/// as [`Value::Nil`].
pub type NativeFn = fn(&mut Context<'_>, &[Value]) -> Result<Value, CallError>;

/// A function with its signature.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    pub signature: Signature,
    pub code: NativeFn,
}

/// Functions by name, added to a template set before parsing. Later entries replace earlier ones and the
/// built-ins.
#[derive(Clone, Debug, Default)]
pub struct Functions {
    rows: FxHashMap<&'static str, Function>,
}

impl Functions {
    /// No functions; the built-ins are always available.
    pub fn new() -> Self {
        Functions::default()
    }

    /// Adds or replaces a function.
    pub fn add(&mut self, name: &'static str, signature: Signature, code: NativeFn) {
        self.rows.insert(name, Function { signature, code });
    }

    /// Removes a function.
    pub fn remove(&mut self, name: &str) {
        self.rows.remove(name);
    }

    /// Looks up a function.
    pub fn get(&self, name: &str) -> Option<Function> {
        self.rows.get(name).copied()
    }

    /// All names, unordered.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.rows.keys().copied()
    }
}
