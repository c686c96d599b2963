//! Prefixes and suffixes of names.

use fl_yaml::{Node, SmolStr, Tag};

use super::{TransformResult, failed};
use crate::config::FieldSpec;
use crate::fieldspec::{Create, walkers};
use crate::resid::Gvk;
use crate::resmap::ResMap;
use crate::schema::Schemas;
use crate::tree::{replace_scalar, text};

/// Whether the text is a prefix or suffix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Prefix,
    Suffix,
}

impl End {
    fn transformer(self) -> &'static str {
        match self {
            End::Prefix => "PrefixTransformer",
            End::Suffix => "SuffixTransformer",
        }
    }

    fn join(self, affix: &str, name: &str) -> SmolStr {
        match self {
            End::Prefix => smol_str::format_smolstr!("{affix}{name}"),
            End::Suffix => smol_str::format_smolstr!("{name}{affix}"),
        }
    }
}

/// Kinds whose names are not changed.
fn is_exempt(gvk: &Gvk) -> bool {
    matches!(gvk.kind.as_str(), "CustomResourceDefinition" | "Namespace")
        || (gvk.kind == "APIService" && gvk.group == "apiregistration.k8s.io")
}

/// Adds the text to the fields of the specifications.
pub(crate) fn add(
    map: &mut ResMap,
    end: End,
    affix: &str,
    specs: &[FieldSpec],
    schemas: &mut Schemas,
) -> TransformResult {
    let walkers = walkers(specs);
    for at in 0..map.len() {
        let resource = map.get_mut(at);
        let original = resource.original_id().gvk;
        if is_exempt(&original) {
            continue;
        }
        let mut changed = false;
        for walker in walkers.iter().filter(|w| original.is_selected_by(&w.gvk)) {
            if walker.path == "metadata/name" && !affix.is_empty() {
                let notes = &mut resource.notes;
                match end {
                    End::Prefix => notes.prefixes.push(affix.into()),
                    End::Suffix => notes.suffixes.push(affix.into()),
                }
                resource.record_identity();
                changed = true;
            }
            // The walk checks the current kind of the object.
            if !resource.id.gvk.is_selected_by(&walker.gvk) {
                continue;
            }
            let mut set = |node: &mut Node| {
                let name = end.join(affix, text(node));
                Ok(replace_scalar(node, name, Tag::Auto)?)
            };
            walker
                .walk(&mut resource.node, Create::Scalar(Tag::Str), &mut set)
                .map_err(|e| failed(end.transformer(), resource, e))?;
        }
        if changed {
            resource.refresh(schemas);
            map.renamed(at);
        }
    }
    Ok(())
}
