//! Patches: strategic merges and JSON patches, applied to the objects they name or select.

use fl_yaml::{Node, SmolStr};

use super::json_patch::JsonPatch;
use super::{TransformResult, failed};
use crate::error::ErrorKind;
use crate::merge::merge;
use crate::resmap::ResMap;
use crate::resource::Resource;
use crate::schema::Schemas;
use crate::selector::{Matcher, Selector};
use crate::tree;

/// Applies a strategic merge to the one object it names.
pub(crate) fn merge_into_named(
    map: &mut ResMap,
    patch: &Resource,
    in_place: bool,
    schemas: &mut Schemas,
) -> TransformResult {
    let id = patch.original_id();
    let found = map.with_any_id(&id);
    let [at] = found[..] else {
        let reason = if found.is_empty() { "no matches for Id" } else { "multiple matches for Id" };
        return Err(ErrorKind::PatchTarget {
            patch: format!("strategic merge patch \"{id}\""),
            reason: format!("{reason} {id}; failed to find unique target for patch {id}"),
        });
    };
    // A patch of the `patches` field is applied as it is; the older field goes through the path of selected
    // ones.
    let patch = if in_place { patch.clone() } else { fitted(patch, map.get_mut(at)) };
    merge_one(map, at, patch, schemas)
}

/// Applies a strategic merge to all selected objects.
pub(crate) fn merge_into_selected(
    map: &mut ResMap,
    patch: &Resource,
    selector: &Selector,
    schemas: &mut Schemas,
) -> TransformResult {
    let matcher = compile(selector)?;
    for at in map.select(&matcher) {
        let patch = fitted(patch, map.get_mut(at));
        merge_one(map, at, patch, schemas)?;
    }
    Ok(())
}

fn compile(selector: &Selector) -> Result<Matcher, ErrorKind> {
    Matcher::new(selector)
        .map_err(|error| ErrorKind::PatchTarget { patch: "the target".to_owned(), reason: error.to_string() })
}

/// A patch for one selected object: it takes over the object's type and keeps its own kind.
fn fitted(patch: &Resource, target: &Resource) -> Resource {
    let mut copy = patch.clone();
    for field in ["labels", "annotations"] {
        let pairs: Vec<(SmolStr, SmolStr)> =
            tree::metadata_pairs(&patch.node, field).map(|(k, v)| (k.into(), v.into())).collect();
        tree::set_metadata_pairs(&mut copy.node, field, pairs);
    }
    copy.set_name(&patch.id.name);
    copy.set_namespace(&patch.id.namespace);
    copy.set_api_version(&target.id.gvk.api_version());
    copy.set_kind(&patch.id.gvk.kind);
    copy
}

fn merge_one(map: &mut ResMap, at: usize, patch: Resource, schemas: &mut Schemas) -> TransformResult {
    let target = map.get_mut(at);
    let before = target.id.clone();
    let (may_rename, may_change_kind) = (patch.notes.allow_name_change, patch.notes.allow_kind_change);
    if may_rename || may_change_kind {
        target.record_identity();
    }
    // Only a patch that speaks of annotations can see or remove the notes there.
    let touches_notes = touches_annotations(&patch.node);
    if touches_notes {
        target.expose_notes();
    }
    let patch_name = format!("strategic merge patch {}", patch.id);
    let object = std::mem::take(&mut target.node);
    let merged = merge(object, patch.node, schemas).map_err(|e| ErrorKind::Patch {
        patch: patch_name,
        target: before.to_string(),
        reason: e.to_string(),
    })?;
    let Some(merged) = merged else { return Ok(()) };
    target.node = merged;
    target.sync_shared_nodes();
    if touches_notes {
        target.absorb_notes();
    }
    if target.is_deleted() {
        return Ok(());
    }
    if !may_change_kind {
        target.set_kind(&before.gvk.kind);
    }
    if !may_rename {
        target.set_name(&before.name);
    }
    target.set_namespace(&before.namespace);
    target.refresh(schemas);
    if target.id != before {
        map.renamed(at);
    }
    Ok(())
}

/// Whether a patch could see the annotations of an object: it has some, or a directive above them.
fn touches_annotations(patch: &Node) -> bool {
    if patch.get("$patch").is_some() {
        return true;
    }
    match patch.get("metadata") {
        None => false,
        Some(metadata) => {
            tree::is_null(metadata)
                || metadata.get("annotations").is_some()
                || metadata.get("$patch").is_some()
        }
    }
}

/// Applies a JSON patch to all selected objects.
pub(crate) fn json_into_selected(
    map: &mut ResMap,
    patch: &JsonPatch,
    selector: &Selector,
    record_identity: bool,
    schemas: &mut Schemas,
) -> TransformResult {
    let matcher = compile(selector)?;
    for at in map.select(&matcher) {
        let target = map.get_mut(at);
        let before = target.id.clone();
        if record_identity {
            target.record_identity();
        }
        target.expose_notes();
        tree::through_json(&mut target.node).map_err(|e| failed("JSON patch", target, e))?;
        patch
            .apply(&mut target.node)
            .map_err(|error| ErrorKind::JsonPatch { target: before.to_string(), error })?;
        if target.node.as_map().is_none() {
            return Err(failed("JSON patch", target, "the result is no object"));
        }
        // What came back from JSON shares nothing.
        target.shared_nodes.clear();
        target.strip_notes();
        tree::normalise_pairs(&mut target.node, "annotations");
        target.refresh(schemas);
        if target.id != before || record_identity {
            map.renamed(at);
        }
    }
    Ok(())
}
