//! Sorts the output.

use crate::error::ErrorKind;
use crate::kustomization::SortOptions;
use crate::resid::{ORDER_FIRST, ORDER_LAST, ResId, kind_order};
use crate::resmap::ResMap;

/// Sorts by `sortOptions`, by default in the legacy order.
pub(crate) fn sort(map: &mut ResMap, options: Option<&SortOptions>) -> Result<(), ErrorKind> {
    let invalid = |reason: String| ErrorKind::Invalid { what: "sortOptions".to_owned(), reason };
    let Some(options) = options else {
        legacy(map, &ORDER_FIRST, &ORDER_LAST);
        return Ok(());
    };
    match (options.order.as_str(), &options.legacy) {
        ("legacy", None) => legacy(map, &ORDER_FIRST, &ORDER_LAST),
        ("legacy", Some((first, last))) => legacy(map, first, last),
        ("fifo", None) => {}
        ("fifo", Some(_)) => {
            return Err(invalid(
                "the field 'sortOptions.legacySortOptions' is set but the selected sort order is 'fifo', not 'legacy'"
                    .to_owned(),
            ));
        }
        _ => return Err(invalid("the field 'sortOptions.order' must be one of [fifo, legacy]".to_owned())),
    }
    Ok(())
}

/// Sorts by kind in the order of the two lists, then by group, version and kind, then by namespace and name.
fn legacy<A: AsRef<str>, B: AsRef<str>>(map: &mut ResMap, first: &[A], last: &[B]) {
    let mut list = std::mem::take(map).into_list();
    list.sort_by_cached_key(|resource| key(&resource.id, first, last));
    map.replace_all(list);
}

/// Against the alphabet, namespaces of the core group come before those of other groups.
type Key = (i64, bool, String, String);

fn key<A: AsRef<str>, B: AsRef<str>>(id: &ResId, first: &[A], last: &[B]) -> Key {
    let or = |text: &str, none: &'static str| if text.is_empty() { none.to_owned() } else { text.to_owned() };
    let core_namespace = id.gvk.kind == "Namespace" && id.gvk.group.is_empty();
    let object = format!("{}|{}|{}", id.gvk, or(&id.namespace, "~X"), or(&id.name, "~N"));
    (kind_order(&id.gvk.kind, first, last), !core_namespace, id.gvk.sort_text(), object)
}
