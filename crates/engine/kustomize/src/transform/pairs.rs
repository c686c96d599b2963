//! Labels and annotations.

use fl_yaml::{Node, SmolStr};

use super::{Outcome, failed};
use crate::config::FieldSpec;
use crate::fieldspec::{Create, Walker, walkers};
use crate::resmap::ResMap;
use crate::tree::{self, set_field};

/// Sets each pair in every field of the specifications.
pub(crate) fn set(
    map: &mut ResMap,
    name: &str,
    pairs: &[(SmolStr, SmolStr)],
    specs: &[FieldSpec],
) -> Outcome {
    if pairs.is_empty() {
        return Ok(());
    }
    let walkers = walkers(specs);
    for resource in map.iter_mut() {
        let gvk = resource.id.gvk.clone();
        let several = Walker::for_kind(&walkers, &gvk).nth(1).is_some();
        for (key, value) in pairs {
            let mut twins = Twins { id: several.then_some(resource.twins.len()), added: 0, met: false };
            for walker in Walker::for_kind(&walkers, &gvk) {
                let mut set = |node: &mut Node| put(node, key, value, &mut twins);
                let walked = walker.walk(&mut resource.node, Create::Map, &mut set);
                walked.map_err(|e| failed(name, resource, e))?;
            }
            if twins.added > 0 && several {
                resource.twins.push(value.clone());
            }
            if twins.met {
                resource.sync_twins();
            }
        }
    }
    Ok(())
}

/// The places that got one and the same node.
struct Twins {
    /// Their number, when there can be several.
    id: Option<usize>,
    added: usize,
    /// Whether a place had a twin of an earlier step.
    met: bool,
}

fn put(node: &mut Node, key: &SmolStr, value: &SmolStr, twins: &mut Twins) -> Result<(), String> {
    if tree::is_null(node) {
        // A field that is not created stays null.
        return Ok(());
    }
    let shape = tree::shape(node);
    let map =
        node.as_map_mut().ok_or_else(|| format!("wrong node kind: expected a mapping but got {shape}"))?;
    if key.is_empty() {
        return Err("empty key".to_owned());
    }
    let mut new = Node::string(value.clone());
    match (map.get(key), twins.id) {
        (Some(old), _) => twins.met |= tree::twin_mark(old).is_some(),
        (None, Some(id)) => {
            tree::mark_twin(&mut new, id);
            twins.added += 1;
        }
        (None, None) => {}
    }
    set_field(map, key, new);
    Ok(())
}
