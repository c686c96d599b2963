//! Go maps with string keys: shared, mutable, iterated in key order.

use std::cell::{Ref, RefCell, RefMut};
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

use super::{Str, Value};
use crate::exec::Context;
use crate::func::{CallError, Signature};

/// A method of a defined map type.
#[derive(Clone, Copy, Debug)]
pub struct MapMethod {
    pub name: &'static str,
    pub signature: Signature,
    pub code: fn(&Map, &[Value], &mut Context<'_>) -> Result<Value, CallError>,
}

/// A defined Go type over `map[string]interface {}`: its name and methods, which hide keys of the same name.
#[derive(Debug)]
pub struct MapClass {
    pub name: &'static str,
    pub methods: &'static [MapMethod],
}

/// The Go type of a map, as shown by `printf "%T"`, `typeOf` and error messages.
#[derive(Clone, Copy, Debug)]
pub enum MapType {
    /// `map[string]interface {}`
    Any,
    /// `map[string]string`
    Str,
    /// A defined type over `map[string]interface {}`, for example `chartutil.Values`.
    Named(&'static MapClass),
}

impl MapType {
    /// The type as Go prints it.
    pub fn name(self) -> &'static str {
        match self {
            MapType::Any => "map[string]interface {}",
            MapType::Str => "map[string]string",
            MapType::Named(class) => class.name,
        }
    }

    /// Whether the elements are held as `interface {}`.
    pub fn elements_are_any(self) -> bool {
        !matches!(self, MapType::Str)
    }
}

/// The entries of a map; byte order of the keys is Go's order too.
pub type Entries = BTreeMap<Str, Value>;

struct Inner {
    nil: bool,
    entries: RefCell<Entries>,
}

/// A handle to a Go map. Clones share the entries, as Go's maps do: Sprig's `set` through one handle is seen by all.
/// The type belongs to the handle: passing a `chartutil.Values` as `map[string]interface {}` keeps the entries.
#[derive(Clone)]
pub struct Map {
    class: &'static MapClass,
    inner: Rc<Inner>,
}

static ANY: MapClass = MapClass { name: "map[string]interface {}", methods: &[] };
static STR: MapClass = MapClass { name: "map[string]string", methods: &[] };

fn class_of(ty: MapType) -> &'static MapClass {
    match ty {
        MapType::Any => &ANY,
        MapType::Str => &STR,
        MapType::Named(class) => class,
    }
}

impl Map {
    /// A new `map[string]interface {}`.
    pub fn new(entries: Entries) -> Self {
        Map::with_type(MapType::Any, entries)
    }

    /// A new map of the given Go type.
    pub fn with_type(ty: MapType, entries: Entries) -> Self {
        Map { class: class_of(ty), inner: Rc::new(Inner { nil: false, entries: RefCell::new(entries) }) }
    }

    /// A nil map: empty, prints as `map[]`, JSON `null`.
    pub fn nil(ty: MapType) -> Self {
        Map { class: class_of(ty), inner: Rc::new(Inner { nil: true, entries: RefCell::default() }) }
    }

    /// The same entries under another type.
    #[must_use]
    pub fn retyped(&self, ty: MapType) -> Self {
        Map { class: class_of(ty), inner: Rc::clone(&self.inner) }
    }

    /// The Go type.
    pub fn ty(&self) -> MapType {
        if std::ptr::eq(self.class, &ANY) {
            MapType::Any
        } else if std::ptr::eq(self.class, &STR) {
            MapType::Str
        } else {
            MapType::Named(self.class)
        }
    }

    /// Whether this is Go's nil map.
    pub fn is_nil(&self) -> bool {
        self.inner.nil
    }

    /// Reads the entries. Do not call functions that may write to this map while holding it.
    pub fn borrow(&self) -> Ref<'_, Entries> {
        self.inner.entries.borrow()
    }

    /// Writes the entries.
    pub fn borrow_mut(&self) -> RefMut<'_, Entries> {
        self.inner.entries.borrow_mut()
    }

    /// The value under `key`.
    pub fn get(&self, key: &[u8]) -> Option<Value> {
        self.borrow().get(key).cloned()
    }

    /// Stores `value` under `key`.
    pub fn insert(&self, key: impl Into<Str>, value: Value) {
        self.borrow_mut().insert(key.into(), value);
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.borrow().len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.borrow().is_empty()
    }

    /// Whether both handles are the same map.
    pub fn same(&self, other: &Map) -> bool {
        Rc::ptr_eq(&self.inner, &other.inner)
    }

    /// A copy of the entries; safe to iterate over while the map changes.
    pub fn snapshot(&self) -> Vec<(Str, Value)> {
        self.borrow().iter().map(|(k, v)| (k.clone(), v.clone())).collect()
    }

    /// An address-like number for `%p`, stable for the life of the map.
    pub fn address(&self) -> usize {
        Rc::as_ptr(&self.inner).cast::<()>() as usize
    }
}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A map can contain itself, so only its size is shown.
        write!(f, "{}[{} entries]", self.class.name, self.len())
    }
}

impl<K: Into<Str>> FromIterator<(K, Value)> for Map {
    fn from_iter<T: IntoIterator<Item = (K, Value)>>(iter: T) -> Self {
        Map::new(iter.into_iter().map(|(k, v)| (k.into(), v)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_size_is_bounded() {
        assert_eq!(size_of::<Value>(), 24, "lists of values are copied often");
    }
}
