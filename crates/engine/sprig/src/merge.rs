//! Merges maps as `mergo` does for `merge` and `mergeOverwrite`.

use fl_gotemplate::{CallError, Context, Kind, List, Map, Value};

use crate::cast::empty;

/// Maximum depth of merges; a map can contain itself.
const MAX_DEPTH: usize = 100;

/// Merges `source` into `target` in place. Maps missing in `target` are shared with `source`, not copied.
pub(crate) fn merge_into(
    cx: &mut Context<'_>,
    target: &Map,
    source: &Map,
    overwrite: bool,
    depth: usize,
) -> Result<(), CallError> {
    if depth > MAX_DEPTH {
        return Err(CallError::budget("maps are nested too deeply to merge"));
    }
    if target.same(source) {
        return Ok(());
    }
    cx.step(source.len() as u64)?;
    for (key, value) in source.snapshot() {
        if let Value::Nil = value {
            if overwrite {
                target.insert(key, value);
            }
            continue;
        }
        let old = target.get(&key);
        let filled = old.as_ref().is_some_and(|v| !empty(v));
        match (&value, &old) {
            (Value::Map(from), Some(Value::Map(into))) => {
                if !into.is_nil() {
                    merge_into(cx, into, from, overwrite, depth + 1)?;
                }
                if filled {
                    continue;
                }
            }
            (Value::List(_) | Value::Bytes(_), _) => {
                // Even if the old value is kept, mergo replaces nil by an empty list.
                if overwrite || target.is_empty() {
                    target.insert(key.clone(), value.clone());
                } else if matches!(old, None | Some(Value::Nil)) {
                    target.insert(key.clone(), Value::List(List::new(Vec::new())));
                }
                if filled {
                    continue;
                }
            }
            _ => {}
        }
        let pointer = value.kind() == Kind::Pointer;
        if (overwrite && !pointer) || !filled {
            target.insert(key, value);
        }
    }
    Ok(())
}
