//! Go's text/template: lexer, parser, executor, and values that behave as Go's do.
//!
//! A [`TemplateSet`] is parsed once and executed many times, from any thread. Data is a [`Value`], which keeps Go's kinds
//! and types; structs and types with methods are given as [`Object`]s. Functions come from a [`Functions`] table and may
//! re-enter the set through their [`Context`]. [`Limits`] bound steps, depth, output and time.
//!
//! ```
//! use std::sync::Arc;
//! use fl_gotemplate::{Functions, Limits, Map, TemplateSet, Value};
//!
//! let mut set = TemplateSet::new(Arc::new(Functions::new()));
//! set.parse("hello", "Hello {{ .name | printf \"%q\" }}!")?;
//! let data = Map::from_iter([("name", Value::str("world"))]);
//! let mut out = Vec::new();
//! set.execute("hello", data.into(), &Limits::default(), None, &mut out)?;
//! assert_eq!(out, b"Hello \"world\"!");
//! # Ok::<(), fl_gotemplate::Error>(())
//! ```

mod builtins;
mod error;
mod exec;
pub mod fmt;
mod func;
mod limits;
mod object;
mod parse;
pub mod runes;
pub mod strconv;
mod value;

pub use builtins::{compare_equal, html_escape, js_escape, less_than, query_escape};
pub use error::{Error, Excerpt};
pub use exec::{Context, MissingKey, TemplateSet};
pub use func::{CallError, Function, Functions, NativeFn, Signature, Type};
pub use limits::{DEEP_STACK_BUDGET, Limits, on_deep_stack};
pub use object::Object;
pub use value::{Entries, IntKind, Kind, List, ListType, Map, MapClass, MapMethod, MapType, Str, Value};
