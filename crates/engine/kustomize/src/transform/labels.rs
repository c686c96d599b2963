//! Sets labels and annotations.

use fl_yaml::{Node, SmolStr};

use super::{TransformResult, failed};
use crate::config::FieldSpec;
use crate::field_error::FieldError;
use crate::fieldspec::{Create, Walker, walkers};
use crate::resmap::ResMap;
use crate::tree::{self, set_field};

/// Sets each key in every field of the specifications.
pub(crate) fn set(
    map: &mut ResMap,
    name: &str,
    pairs: &[(SmolStr, SmolStr)],
    specs: &[FieldSpec],
) -> TransformResult {
    if pairs.is_empty() {
        return Ok(());
    }
    let walkers = walkers(specs);
    for resource in map.iter_mut() {
        let gvk = resource.id.gvk.clone();
        let several = Walker::for_kind(&walkers, &gvk).nth(1).is_some();
        for (key, value) in pairs {
            let mut shared_nodes =
                SharedNodes { id: several.then_some(resource.shared_nodes.len()), added: 0, met: false };
            for walker in Walker::for_kind(&walkers, &gvk) {
                let mut set = |node: &mut Node| put(node, key, value, &mut shared_nodes);
                let walked = walker.walk(&mut resource.node, Create::Map, &mut set);
                walked.map_err(|e| failed(name, resource, e))?;
            }
            if shared_nodes.added > 0 && several {
                resource.shared_nodes.push(value.clone());
            }
            if shared_nodes.met {
                resource.sync_shared_nodes();
            }
        }
    }
    Ok(())
}

/// Fields that share one node.
struct SharedNodes {
    /// Number of the group, if there can be several fields.
    id: Option<usize>,
    added: usize,
    /// Whether a field had a shared node of an earlier step.
    met: bool,
}

fn put(
    node: &mut Node,
    key: &SmolStr,
    value: &SmolStr,
    shared_nodes: &mut SharedNodes,
) -> Result<(), FieldError> {
    if tree::is_null(node) {
        // A field that is not created remains null.
        return Ok(());
    }
    let shape = tree::shape(node);
    let map = node.as_map_mut().ok_or(FieldError::WrongKind { expected: "a mapping", found: shape })?;
    if key.is_empty() {
        return Err(FieldError::EmptyKey);
    }
    let mut new = Node::string(value.clone());
    match (map.get(key), shared_nodes.id) {
        (Some(old), _) => shared_nodes.met |= tree::shared_mark(old).is_some(),
        (None, Some(id)) => {
            tree::mark_shared(&mut new, id);
            shared_nodes.added += 1;
        }
        (None, None) => {}
    }
    set_field(map, key, new);
    Ok(())
}
