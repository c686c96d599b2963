//! Visits the fields of a field specification and calls a setter for them.

use fl_yaml::SmolStr;
use fl_yaml::{Node, Style, Tag, Value};

use crate::config::{FieldSpec, split_path};
use crate::field_error::FieldError;
use crate::resid::Gvk;
use crate::tree::is_null;

/// What is created for an absent field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Create {
    /// Nothing.
    No,
    /// A mapping.
    Map,
    /// A scalar; a null that becomes one gets this tag.
    Scalar(Tag),
}

/// Why a walk failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WalkError {
    /// The path leads into a scalar.
    #[error("field '{0}': expected a sequence or mapping")]
    IntoScalar(String),
    /// A step without a name.
    #[error("field '{0}': cannot set or create an empty field name")]
    EmptyName(String),
    /// The setter failed.
    #[error("field '{path}': {reason}")]
    Setter { path: String, reason: FieldError },
}

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Step {
    name: SmolStr,
    /// `name[]`: the field is a list and is never created.
    list: bool,
}

/// A parsed field specification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Walker {
    pub(crate) gvk: Gvk,
    pub(crate) path: SmolStr,
    steps: Vec<Step>,
    create: bool,
}

/// Changes a field.
pub(crate) type Setter<'a> = dyn FnMut(&mut Node) -> Result<(), FieldError> + 'a;

impl Walker {
    pub(crate) fn new(spec: &FieldSpec) -> Self {
        let steps = split_path(&spec.path, '/')
            .into_iter()
            .map(|step| match step.strip_suffix("[]") {
                Some(name) => Step { name: name.into(), list: true },
                None => Step { name: step, list: false },
            })
            .collect();
        Self { gvk: spec.gvk.clone(), path: spec.path.clone(), steps, create: spec.create }
    }

    /// The walkers that apply to a kind.
    pub(crate) fn for_kind<'a>(all: &'a [Walker], gvk: &'a Gvk) -> impl Iterator<Item = &'a Walker> {
        all.iter().filter(|w| gvk.is_selected_by(&w.gvk))
    }

    /// Calls `set` for every node of the path.
    pub(crate) fn walk(
        &self,
        object: &mut Node,
        make: Create,
        set: &mut Setter<'_>,
    ) -> Result<(), WalkError> {
        self.step(object, 0, make, set)
    }

    fn step(&self, node: &mut Node, at: usize, make: Create, set: &mut Setter<'_>) -> Result<(), WalkError> {
        let Some(step) = self.steps.get(at) else {
            return set(node).map_err(|reason| WalkError::Setter { path: self.path.to_string(), reason });
        };
        if is_null(node) {
            return Ok(());
        }
        match &mut node.value {
            Value::Seq(items) => {
                for item in items {
                    self.step(item, at, make, set)?;
                }
                Ok(())
            }
            Value::Map(map) => {
                if step.name.is_empty() {
                    return Err(WalkError::EmptyName(self.path.to_string()));
                }
                let last = at + 1 == self.steps.len();
                let creates = self.create && make != Create::No && !step.list;
                let kind = if last { make } else { Create::Map };
                let field = if creates {
                    map.get_or_insert_with(&step.name, || empty(kind))
                } else {
                    let Some(field) = map.get_mut(&step.name) else { return Ok(()) };
                    field
                };
                if is_null(field) {
                    if creates {
                        fill_null(field, kind);
                    } else if step.list {
                        // A null that is declared as a list becomes an empty one.
                        *field = Node::seq([]);
                    }
                }
                self.step(field, at + 1, make, set)
            }
            Value::Scalar(_) => Err(WalkError::IntoScalar(self.path.to_string())),
        }
    }
}

fn empty(kind: Create) -> Node {
    match kind {
        Create::Map | Create::No => Node::map(),
        Create::Scalar(_) => Node::plain(""),
    }
}

fn fill_null(field: &mut Node, kind: Create) {
    match kind {
        Create::Map | Create::No => *field = Node::map(),
        Create::Scalar(tag) => {
            field.tag = tag;
            field.style = Style::Plain;
        }
    }
}

/// Parses field specifications.
pub(crate) fn walkers(specs: &[FieldSpec]) -> Vec<Walker> {
    specs.iter().map(Walker::new).collect()
}
