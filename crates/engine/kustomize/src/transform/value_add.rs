//! Writes a text into fields, or inserts it into paths.

use fl_yaml::Node;

use super::{TransformResult, failed};
use crate::config::split_path;
use crate::field_error::FieldError;
use crate::resmap::ResMap;
use crate::schema::Schemas;
use crate::selector::{Matcher, Selector};
use crate::tree::{self, text};
use crate::{error::ErrorKind, transform::namespace};

const NAME: &str = "ValueAddTransformer";

/// A field for the value.
#[derive(Debug, Clone, Default)]
pub(crate) struct Target {
    pub(crate) selector: Option<Selector>,
    pub(crate) field_path: String,
    /// Position in the path of the field at which the value is inserted, from 1; 0 replaces the whole.
    pub(crate) position: i64,
}

/// Writes the value into every target.
pub(crate) fn add(
    map: &mut ResMap,
    value: &str,
    targets: &[Target],
    schemas: &mut Schemas,
) -> TransformResult {
    for target in targets {
        let chosen = match &target.selector {
            None => (0..map.len()).collect(),
            Some(selector) => {
                let matcher = Matcher::new(selector).map_err(|error| ErrorKind::Invalid {
                    what: NAME.to_owned(),
                    reason: error.to_string(),
                })?;
                map.select(&matcher)
            }
        };
        for at in chosen {
            let resource = map.get_mut(at);
            if target.field_path == "metadata/namespace" {
                let settings = namespace::Settings { namespace: value.into(), ..Default::default() };
                namespace::apply(resource, &settings, &[])?;
            } else {
                write(&mut resource.node, value, target).map_err(|e| failed(NAME, resource, e))?;
            }
            resource.refresh(schemas);
            map.renamed(at);
        }
    }
    Ok(())
}

fn write(root: &mut Node, value: &str, target: &Target) -> Result<(), FieldError> {
    let steps = split_path(&target.field_path, '/');
    let mut at = root;
    for (i, step) in steps.iter().filter(|s| !s.trim().is_empty()).enumerate() {
        let last = i + 1 == steps.len();
        let shape = tree::shape(at);
        if at.as_seq().is_some() {
            let items =
                at.as_seq_mut().ok_or(FieldError::WrongKind { expected: "a sequence", found: shape })?;
            let index: usize = step.parse().map_err(|_| FieldError::NotAnIndex(step.clone()))?;
            at = items.get_mut(index).ok_or(FieldError::NoItem(index))?;
            continue;
        }
        let map = at.as_map_mut().ok_or(FieldError::WrongKind { expected: "a mapping", found: shape })?;
        let make = || if last { Node::plain("") } else { Node::map() };
        at = map.get_or_insert_with(step.trim(), make);
    }
    if !at.is_scalar() {
        return Err(FieldError::WrongKind { expected: "a scalar", found: tree::shape(at) });
    }
    let new = match usize::try_from(target.position) {
        Ok(position) if position > 0 => insert_part(text(at), position - 1, value),
        _ => value.to_owned(),
    };
    Ok(tree::replace_scalar(at, new, fl_yaml::Tag::Auto)?)
}

/// Inserts a part into a path.
fn insert_part(path: &str, position: usize, part: &str) -> String {
    let absolute = path.starts_with('/');
    let mut parts: Vec<&str> = path.split('/').filter(|p| !p.is_empty()).collect();
    parts.insert(position.min(parts.len()), part);
    format!("{}{}", if absolute { "/" } else { "" }, parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_parts_are_inserted() {
        assert_eq!(insert_part("a/b", 0, "x"), "x/a/b");
        assert_eq!(insert_part("/a/b", 1, "x"), "/a/x/b");
        assert_eq!(insert_part("a/b", 9, "x"), "a/b/x");
        assert_eq!(insert_part("", 0, "x"), "x");
    }
}
