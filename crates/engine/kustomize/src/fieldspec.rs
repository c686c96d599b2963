//! Walks to the fields of a specification and lets a setter change them.

use fl_yaml::SmolStr;
use fl_yaml::{Node, Style, Tag, Value};

use crate::config::{FieldSpec, split_path};
use crate::ident::Gvk;
use crate::tree::is_null;

/// What is made where a field is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Create {
    /// Nothing.
    No,
    /// A mapping.
    Map,
    /// A scalar; a null that becomes one gets this tag.
    Scalar(Tag),
}

/// Why a walk stopped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WalkError {
    /// The path leads into a scalar.
    #[error("field '{0}': expected a sequence or mapping")]
    IntoScalar(String),
    /// A step without name.
    #[error("field '{0}': cannot set or create an empty field name")]
    EmptyName(String),
    /// The setter refused.
    #[error("field '{path}': {reason}")]
    Setter {
        /// The path.
        path: String,
        /// Why.
        reason: String,
    },
}

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Step {
    name: SmolStr,
    /// Written `name[]`: the field is a list and is never created.
    list: bool,
}

/// A specification ready to be walked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Walker {
    pub(crate) gvk: Gvk,
    pub(crate) path: SmolStr,
    steps: Vec<Step>,
    create: bool,
}

/// Changes a node that a walk found.
pub(crate) type Setter<'a> = dyn FnMut(&mut Node) -> Result<(), String> + 'a;

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

    /// Those of some specifications that concern this kind of object.
    pub(crate) fn for_kind<'a>(all: &'a [Walker], gvk: &'a Gvk) -> impl Iterator<Item = &'a Walker> {
        all.iter().filter(|w| gvk.is_selected_by(&w.gvk))
    }

    /// Lets `set` change every node the path leads to.
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
                        // Asked for as a list, a null becomes an empty one.
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

/// Prepares a list of specifications.
pub(crate) fn walkers(specs: &[FieldSpec]) -> Vec<Walker> {
    specs.iter().map(Walker::new).collect()
}
