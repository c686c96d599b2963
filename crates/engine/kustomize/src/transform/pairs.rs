//! Labels and annotations.

use fl_yaml::{Node, SmolStr};

use super::{Outcome, failed};
use crate::config::FieldSpec;
use crate::fieldspec::{Create, Walker, walkers};
use crate::resmap::ResMap;
use crate::tree::{self, set_field};

/// Sets each pair in every field of the specifications.
pub(crate) fn set(map: &mut ResMap, name: &str, pairs: &[(SmolStr, SmolStr)], specs: &[FieldSpec]) -> Outcome {
    if pairs.is_empty() {
        return Ok(());
    }
    let walkers = walkers(specs);
    for resource in map.iter_mut() {
        let gvk = resource.id.gvk.clone();
        for (key, value) in pairs {
            for walker in Walker::for_kind(&walkers, &gvk) {
                let mut set = |node: &mut Node| put(node, key, value);
                let walked = walker.walk(&mut resource.node, Create::Map, &mut set);
                walked.map_err(|e| failed(name, resource, e))?;
            }
        }
    }
    Ok(())
}

fn put(node: &mut Node, key: &SmolStr, value: &SmolStr) -> Result<(), String> {
    if tree::is_null(node) {
        // A field that is not created stays null.
        return Ok(());
    }
    let shape = tree::shape(node);
    let map = node.as_map_mut().ok_or_else(|| format!("wrong node kind: expected a mapping but got {shape}"))?;
    if key.is_empty() {
        return Err("empty key".to_owned());
    }
    set_field(map, key, Node::string(value.clone()));
    Ok(())
}
