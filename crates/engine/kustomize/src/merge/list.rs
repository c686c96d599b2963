//! Merges lists by keys.

use fl_yaml::ThinVec;
use fl_yaml::{Node, Style, Value};

use super::directive::{Directive, take_directive};
use super::{MergeError, Walk, Walked, is_null};
use crate::schema::SchemaNode;

/// The values of an item's merge keys, empty if it lacks one.
type Tuple = Vec<String>;

impl Walk<'_> {
    pub(super) fn walk_list(
        &mut self,
        object: Option<Node>,
        patch: Option<Node>,
        schema: Option<SchemaNode>,
        keys: &[String],
    ) -> Result<Walked, MergeError> {
        let gone = Walked { node: None, own: false };
        let Some(object) = object.filter(|o| !is_null(o)) else {
            // Only the patch has the list; a null in the patch removes an absent list.
            let Some(patch) = patch.filter(|p| !is_null(p)) else { return Ok(gone) };
            return Ok(Walked { node: self.merge_items(patch, Other::Same, schema, keys)?, own: false });
        };
        let Some(mut patch) = patch else {
            return Ok(Walked { node: self.merge_items(object, Other::None, schema, keys)?, own: true });
        };
        if is_null(&patch) {
            return Ok(gone);
        }
        match take_directive(&mut patch, &self.path)? {
            Directive::Delete => Ok(gone),
            Directive::Replace => {
                Ok(Walked { node: self.merge_items(patch, Other::Same, schema, keys)?, own: false })
            }
            Directive::Merge => {
                Ok(Walked { node: self.merge_items(object, Other::Patch(patch), schema, keys)?, own: true })
            }
        }
    }

    pub(super) fn merge_list_with_itself(
        &mut self,
        mut node: Node,
        schema: Option<SchemaNode>,
        keys: &[String],
    ) -> Result<Option<Node>, MergeError> {
        match take_directive(&mut node, &self.path)? {
            Directive::Delete => Ok(None),
            _ => self.merge_items(node, Other::Same, schema, keys),
        }
    }

    fn merge_items(
        &mut self,
        list: Node,
        other: Other,
        schema: Option<SchemaNode>,
        keys: &[String],
    ) -> Result<Option<Node>, MergeError> {
        let Value::Seq(mut items) = list.value else { return Ok(Some(list)) };
        let same = matches!(other, Other::Same);
        let mut patch = match other {
            Other::Patch(node) => Some(match node.value {
                Value::Seq(items) => items,
                _ => ThinVec::new(),
            }),
            Other::Same | Other::None => None,
        };
        let mut tuples: Vec<Tuple> = Vec::new();
        // The items of the patch come first: additions are prepended.
        for source in patch.iter().chain([&items]) {
            if keys.is_empty() {
                collect_primitives(source, &mut tuples);
            } else {
                collect_tuples(source, keys, &mut tuples);
            }
        }
        let primitive = [String::new()];
        let keys = if keys.is_empty() { &primitive[..] } else { keys };
        if keys.len() > 1 {
            unify(&mut tuples);
        }
        let item_schema = schema.as_ref().and_then(|s| self.schemas.elements(s));
        let mut added: ThinVec<Node> = ThinVec::new();
        let mut used_keys: Vec<String> = Vec::new();
        self.path.push("[]".to_owned());
        for tuple in &tuples {
            let (valid_keys, valid_values) = valid(&tuples, tuple, keys);
            let (find_keys, find_values) =
                valid(std::slice::from_ref(&valid_values), &valid_values, &valid_keys);
            let ours = find(&items, &find_keys, &find_values);
            let theirs = patch.as_ref().and_then(|p| find(p, &find_keys, &find_values));
            let walked = match (ours, theirs) {
                (Some(i), _) if same => {
                    Walked { node: self.merge_with_itself(items[i].clone(), item_schema.clone())?, own: true }
                }
                (ours, theirs) => self.walk(
                    ours.map(|i| items[i].clone()),
                    theirs.and_then(|i| patch.as_mut().map(|p| p[i].clone())),
                    item_schema.clone(),
                )?,
            };
            used_keys.clone_from(&valid_keys);
            let Some(mut node) = walked.node.filter(|n| !is_empty(n)) else {
                set_item(&mut items, None, &valid_keys, &valid_values, &self.path)?;
                continue;
            };
            complete(&mut node, &valid_keys, &valid_values);
            if walked.own
                && let Some(i) = ours
            {
                items[i] = node.clone();
            }
            set_item(&mut added, Some(node), &valid_keys, &valid_values, &self.path)?;
        }
        let result = if tuples.is_empty() { items } else { append(added, items, &used_keys, &self.path)? };
        self.path.pop();
        // The result is a new list without the style of the old one.
        let mut list = Node::from(Value::Seq(result));
        list.style = Style::Plain;
        Ok(Some(list))
    }
}

/// The other side of a merge.
enum Other {
    /// The patch's list.
    Patch(Node),
    /// The list itself: only the patch has it.
    Same,
    /// Only the object has the list.
    None,
}

fn is_empty(node: &Node) -> bool {
    is_null(node) || node.as_map().is_some_and(fl_yaml::Map::is_empty)
}

/// The text of a scalar; empty for collections.
fn text(node: &Node) -> &str {
    node.as_text().unwrap_or_default()
}

fn collect_tuples(items: &[Node], keys: &[String], tuples: &mut Vec<Tuple>) {
    for item in items {
        let tuple: Tuple = keys
            .iter()
            .map(|key| item.get(key).filter(|n| !is_nil_or_empty(n)).map(text).unwrap_or_default().to_owned())
            .collect();
        if !tuples.contains(&tuple) {
            tuples.push(tuple);
        }
    }
}

fn is_nil_or_empty(node: &Node) -> bool {
    match &node.value {
        Value::Map(map) => map.is_empty(),
        Value::Seq(items) => items.is_empty(),
        Value::Scalar(_) => is_null(node),
    }
}

fn collect_primitives(items: &[Node], tuples: &mut Vec<Tuple>) {
    for item in items {
        let tuple = vec![text(item).to_owned()];
        if !tuples.contains(&tuple) {
            tuples.push(tuple);
        }
    }
}

/// Whether all items have all keys (or lack the same ones) and are distinct: a merge with itself does not
/// change such a list.
pub(super) fn items_are_distinct(items: &[Node], keys: &[String]) -> bool {
    let mut tuples: Vec<Tuple> = Vec::new();
    if keys.is_empty() {
        collect_primitives(items, &mut tuples);
        return tuples.len() == items.len() && items.iter().all(|i| i.is_scalar() && !text(i).is_empty());
    }
    collect_tuples(items, keys, &mut tuples);
    let uniform = |at: usize| {
        let filled = tuples.iter().filter(|t| !t[at].is_empty()).count();
        filled == tuples.len() || (at > 0 && filled == 0)
    };
    let full = (0..keys.len()).all(uniform);
    let alike = |t: &Tuple| tuples.iter().filter(|o| o[0] == t[0]).count() == 1;
    tuples.len() == items.len()
        && items.iter().all(|i| i.as_map().is_some_and(|m| !m.is_empty()))
        && full
        && (keys.len() == 1
            || tuples.iter().all(alike)
            || tuples.iter().all(|t| t.iter().all(|v| !v.is_empty())))
}

/// With several keys, items that agree on all keys that both have are the same item; each completes the
/// other.
fn unify(tuples: &mut [Tuple]) {
    for i in 0..tuples.len() {
        for j in 0..tuples.len() {
            if let Some(both) = unified(&tuples[i], &tuples[j]) {
                tuples[i].clone_from(&both);
                tuples[j] = both;
            }
        }
    }
}

fn unified(a: &Tuple, b: &Tuple) -> Option<Tuple> {
    let mut common = false;
    let mut both = Vec::with_capacity(a.len());
    for (x, y) in a.iter().zip(b) {
        if x == y {
            common = true;
        } else if !x.is_empty() && !y.is_empty() {
            return None;
        }
        both.push(if x.is_empty() { y.clone() } else { x.clone() });
    }
    common.then_some(both)
}

/// The keys that at least one of the tuples has, with this tuple's values; all keys if none has any.
fn valid(tuples: &[Tuple], tuple: &Tuple, keys: &[String]) -> (Vec<String>, Tuple) {
    let used: Vec<bool> =
        (0..keys.len()).map(|i| tuples.iter().any(|t| t.get(i).is_some_and(|v| !v.is_empty()))).collect();
    if !used.contains(&true) {
        return (keys.to_vec(), tuple.clone());
    }
    let pick = |list: &[String]| {
        list.iter().zip(&used).filter(|(_, used)| **used).map(|(s, _)| s.clone()).collect::<Vec<_>>()
    };
    (pick(keys), pick(tuple))
}

/// The first item with these values of the keys.
fn find(items: &[Node], keys: &[String], values: &[String]) -> Option<usize> {
    if keys.first().is_none_or(String::is_empty) {
        let value = values.first().map(String::as_str).unwrap_or_default();
        return items.iter().position(|item| text(item) == value);
    }
    items.iter().position(|item| {
        item.as_map().is_some()
            && !is_null(item)
            && keys.iter().zip(values).all(|(key, value)| item.get(key).is_some_and(|n| text(n) == value))
    })
}

/// Sets the keys by which an item was found.
fn complete(node: &mut Node, keys: &[String], values: &[String]) {
    let Some(map) = node.as_map_mut() else { return };
    for (key, value) in keys.iter().zip(values) {
        if !value.is_empty() && !map.contains(key) {
            map.push(Node::string(key.as_str()), crate::tree::untagged(value));
        }
    }
}

/// Replaces the items with the same keys, or appends; `None` removes them. Empty items are dropped.
pub(super) fn set_item(
    items: &mut ThinVec<Node>,
    item: Option<Node>,
    keys: &[String],
    values: &[String],
    path: &[String],
) -> Result<(), MergeError> {
    let by_field = keys.first().is_some_and(|k| !k.is_empty());
    let mapping_setter = by_field && values.first().is_some_and(|v| !v.is_empty());
    let mut kept = ThinVec::with_capacity(items.len() + 1);
    let mut found_any = false;
    for old in items.drain(..) {
        if is_empty(&old) {
            continue;
        }
        let is_map = old.as_map().is_some();
        if !is_map && mapping_setter {
            kept.push(old);
            continue;
        }
        let matches = if by_field {
            if !is_map {
                return Err(MergeError::Item { path: path.join(".") });
            }
            // With fewer values than keys, the given ones decide.
            !values.is_empty()
                && keys
                    .iter()
                    .zip(values)
                    .all(|(key, value)| old.get(key).is_some_and(|n| value.is_empty() || text(n) == value))
        } else {
            if is_map || old.as_seq().is_some() {
                return Err(MergeError::Item { path: path.join(".") });
            }
            values.first().is_some_and(|value| text(&old) == value)
        };
        if matches {
            found_any = true;
            kept.extend(item.clone());
        } else if !values.is_empty() {
            kept.push(old);
        }
    }
    if let Some(item) = item.filter(|n| !is_null(n))
        && !found_any
    {
        kept.push(item);
    }
    *items = kept;
    Ok(())
}

/// Appends the items of the object to the added ones; each replaces an added one with the same keys.
fn append(
    mut added: ThinVec<Node>,
    items: ThinVec<Node>,
    keys: &[String],
    path: &[String],
) -> Result<ThinVec<Node>, MergeError> {
    for item in items {
        if keys.first().is_none_or(String::is_empty) {
            let value = [text(&item).to_owned()];
            set_item(&mut added, Some(item), &[String::new()], &value, path)?;
            continue;
        }
        let mut values: Tuple = Vec::with_capacity(keys.len());
        for key in keys {
            match item.get(key) {
                Some(value) => values.push(text(value).to_owned()),
                // An item without the key cannot be matched: it is appended.
                None => added.push(item.clone()),
            }
        }
        if keys.len() > 1 {
            set_item(&mut added, None, keys, &values, path)?;
        }
        set_item(&mut added, Some(item), keys, &values, path)?;
    }
    Ok(added)
}
