//! Go slices. Templates cannot change elements in place, so the items are immutable and shared.

use std::fmt;
use std::rc::Rc;

use super::Value;

/// The Go type of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListType {
    /// `[]interface {}`
    Any,
    /// `[]string`
    Str,
    /// `[]int`
    Int,
    /// `[][]interface {}`
    Lists,
    /// Any other slice type; the flag says whether the elements are held as interfaces.
    Named(&'static str, bool),
}

impl ListType {
    /// The type as Go prints it.
    pub fn name(self) -> &'static str {
        match self {
            ListType::Any => "[]interface {}",
            ListType::Str => "[]string",
            ListType::Int => "[]int",
            ListType::Lists => "[][]interface {}",
            ListType::Named(name, _) => name,
        }
    }

    /// Whether the elements are held as `interface {}`.
    pub fn elements_are_any(self) -> bool {
        matches!(self, ListType::Any | ListType::Named(_, true))
    }
}

struct Inner {
    ty: ListType,
    nil: bool,
    items: Vec<Value>,
}

/// A handle to a Go slice.
#[derive(Clone)]
pub struct List(Rc<Inner>);

impl List {
    /// A new `[]interface {}`.
    pub fn new(items: Vec<Value>) -> Self {
        List::with_type(ListType::Any, items)
    }

    /// A new slice of the given Go type.
    pub fn with_type(ty: ListType, items: Vec<Value>) -> Self {
        List(Rc::new(Inner { ty, nil: false, items }))
    }

    /// A new `[]string`.
    pub fn of_strings<S: Into<super::Str>>(items: impl IntoIterator<Item = S>) -> Self {
        List::with_type(ListType::Str, items.into_iter().map(|s| Value::Str(s.into())).collect())
    }

    /// A nil slice: empty, prints as `[]`, JSON `null`.
    pub fn nil(ty: ListType) -> Self {
        List(Rc::new(Inner { ty, nil: true, items: Vec::new() }))
    }

    /// The Go type.
    pub fn ty(&self) -> ListType {
        self.0.ty
    }

    /// Whether this is Go's nil slice.
    pub fn is_nil(&self) -> bool {
        self.0.nil
    }

    /// The items.
    pub fn items(&self) -> &[Value] {
        &self.0.items
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        self.0.items.len()
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.0.items.is_empty()
    }

    /// An address-like number for `%p`.
    pub fn address(&self) -> usize {
        Rc::as_ptr(&self.0).cast::<()>() as usize
    }
}

impl fmt::Debug for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{} items]", self.0.ty.name(), self.len())
    }
}

impl FromIterator<Value> for List {
    fn from_iter<T: IntoIterator<Item = Value>>(iter: T) -> Self {
        List::new(iter.into_iter().collect())
    }
}
