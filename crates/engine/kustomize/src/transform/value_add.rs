//! A text written into fields, or inserted into the paths they hold.

use fl_yaml::Node;

use super::{Outcome, failed};
use crate::config::split_path;
use crate::resmap::ResMap;
use crate::schema::Schemas;
use crate::selector::{Matcher, Selector};
use crate::tree::{self, text};
use crate::{error::ErrorKind, transform::namespace};

const NAME: &str = "ValueAddTransformer";

/// One place for the value.
#[derive(Debug, Clone, Default)]
pub(crate) struct Target {
    pub(crate) selector: Option<Selector>,
    pub(crate) field_path: String,
    /// Where in the path of the field the value is inserted, from 1; 0 replaces the whole.
    pub(crate) position: i64,
}

/// Writes the value into every target.
pub(crate) fn add(map: &mut ResMap, value: &str, targets: &[Target], schemas: &mut Schemas) -> Outcome {
    for target in targets {
        let chosen = match &target.selector {
            None => (0..map.len()).collect(),
            Some(selector) => {
                let matcher = Matcher::new(selector)
                    .map_err(|reason| ErrorKind::Invalid { what: NAME.to_owned(), reason })?;
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

fn write(root: &mut Node, value: &str, target: &Target) -> Result<(), String> {
    let steps = split_path(&target.field_path, '/');
    let mut at = root;
    for (i, step) in steps.iter().filter(|s| !s.trim().is_empty()).enumerate() {
        let last = i + 1 == steps.len();
        let shape = tree::shape(at);
        if at.as_seq().is_some() {
            let items = at.as_seq_mut().ok_or("a list")?;
            let index: usize = step.parse().map_err(|_| format!("`{step}` is no index of a list"))?;
            at = items.get_mut(index).ok_or_else(|| format!("the list has no item {index}"))?;
            continue;
        }
        let map =
            at.as_map_mut().ok_or_else(|| format!("wrong node kind: expected a mapping but got {shape}"))?;
        let make = || if last { Node::plain("") } else { Node::map() };
        at = map.get_or_insert_with(step.trim(), make);
    }
    if !at.is_scalar() {
        return Err(format!("wrong node kind: expected a scalar but got {}", tree::shape(at)));
    }
    let new = match usize::try_from(target.position) {
        Ok(position) if position > 0 => insert_part(text(at), position - 1, value),
        _ => value.to_owned(),
    };
    tree::replace_scalar(at, new, fl_yaml::Tag::Auto).map_err(|e| e.to_string())
}

/// Inserts a part into a slash-separated path.
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
    fn parts_are_inserted() {
        assert_eq!(insert_part("a/b", 0, "x"), "x/a/b");
        assert_eq!(insert_part("/a/b", 1, "x"), "/a/x/b");
        assert_eq!(insert_part("a/b", 9, "x"), "a/b/x");
        assert_eq!(insert_part("", 0, "x"), "x");
    }
}
