//! `$patch` directives: delete, replace or merge the containing map or list.

use fl_yaml::{Node, Value};

use super::MergeError;

const KEY: &str = "$patch";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Directive {
    Delete,
    Replace,
    Merge,
}

impl Directive {
    fn read(word: &str, path: &[String]) -> Result<Self, MergeError> {
        match word {
            "delete" => Ok(Directive::Delete),
            "replace" => Ok(Directive::Replace),
            "merge" => Ok(Directive::Merge),
            _ => Err(MergeError::Directive { word: word.to_owned(), path: path.join(".") }),
        }
    }
}

/// Removes the directive from a map or list of a patch; the default is to merge.
pub(super) fn take_directive(patch: &mut Node, path: &[String]) -> Result<Directive, MergeError> {
    match &mut patch.value {
        Value::Map(map) => {
            let Some(word) = map.get(KEY) else { return Ok(Directive::Merge) };
            let directive = Directive::read(word.as_text().unwrap_or_default(), path)?;
            map.remove(KEY);
            Ok(directive)
        }
        Value::Seq(items) => {
            // Only an item with no other fields applies to the whole list.
            let Some(holder) = items.iter().find(|item| item.get(KEY).is_some()) else {
                return Ok(Directive::Merge);
            };
            if holder.as_map().is_some_and(|m| m.len() > 1) {
                return Ok(Directive::Merge);
            }
            let word = holder.get(KEY).and_then(Node::as_text).unwrap_or_default().to_owned();
            let directive = Directive::read(&word, path)?;
            super::list::set_item(items, None, &[KEY.to_owned()], &[word], path)?;
            Ok(directive)
        }
        Value::Scalar(_) => Ok(Directive::Merge),
    }
}
