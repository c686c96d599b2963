//! Sets replica counts.

use fl_yaml::{Node, Tag};

use super::{TransformResult, failed};
use crate::config::FieldSpec;
use crate::error::ErrorKind;
use crate::fieldspec::{Create, Walker};
use crate::kustomization::Replica;
use crate::resmap::ResMap;
use crate::tree::replace_scalar;

const NAME: &str = "ReplicaCountTransformer";

/// Sets the replicas of the objects with this name; there must be one.
pub(crate) fn set(map: &mut ResMap, replica: &Replica, specs: &[FieldSpec]) -> TransformResult {
    let candidates = map.with_any_name(&replica.name);
    let mut found = false;
    for spec in specs {
        let walker = Walker::new(spec);
        for at in &candidates {
            let resource = map.get_mut(*at);
            let fits = (resource.id.name == replica.name && resource.id.gvk.is_selected_by(&spec.gvk))
                || resource
                    .former_ids()
                    .any(|id| id.name == replica.name && id.gvk.is_selected_by(&spec.gvk));
            if !fits {
                continue;
            }
            found = true;
            if !resource.id.gvk.is_selected_by(&spec.gvk) {
                continue;
            }
            let count = replica.count.to_string();
            let mut set = |node: &mut Node| Ok(replace_scalar(node, count.as_str(), Tag::Int)?);
            walker
                .walk(&mut resource.node, Create::Scalar(Tag::Int), &mut set)
                .map_err(|e| failed(NAME, resource, e))?;
        }
    }
    if found {
        return Ok(());
    }
    let kinds = specs.iter().map(|s| s.gvk.to_string()).collect::<Vec<_>>().join(", ");
    Err(ErrorKind::Transform {
        transformer: NAME.to_owned(),
        object: replica.name.clone(),
        reason: format!("no object with this name is one of {kinds}"),
    })
}
