//! Variables: replaces `$(NAME)` by fields of objects.

use std::collections::{BTreeMap, HashSet};

use fl_yaml::{Dialect, Node, Scalar, SmolStr, Tag, Value};

use super::{TransformResult, failed};
use crate::config::{FieldSpec, split_field_path};
use crate::error::ErrorKind;
use crate::field_error::FieldError;
use crate::fieldspec::{Create, Walker, walkers};
use crate::kustomization::Variable;
use crate::path::lookup;
use crate::resmap::ResMap;
use crate::tree::{is_null, overwrite, text};

/// The variables of an accumulator by name.
pub(crate) type Variables = BTreeMap<SmolStr, Variable>;

/// Adds variables and records them in the objects they refer to.
pub(crate) fn declare(map: &mut ResMap, variables: &mut Variables, more: &[Variable]) -> TransformResult {
    for variable in more {
        let id = &variable.object;
        let mut found = map.with_any_name(&id.name);
        found.retain(|at| {
            let resource = &map.list()[*at];
            if id.namespace.is_empty() {
                // Without a namespace the object may be in any.
                let same = |gvk: &crate::resid::Gvk, name: &str| *gvk == id.gvk && name == id.name;
                same(&resource.id.gvk, &resource.id.name)
                    || resource.former_ids().any(|former| same(&former.gvk, &former.name))
            } else {
                resource.was(id)
            }
        });
        if found.len() > 1 {
            return Err(wrong(
                variable,
                format!("found {} resId matches (unable to disambiguate)", found.len()),
            ));
        }
        for at in found {
            map.get_mut(at).variables.push(variable.name.clone());
        }
    }
    merge(variables, more.iter().cloned())
}

/// Adds variables; names must be unique.
pub(crate) fn merge(variables: &mut Variables, more: impl IntoIterator<Item = Variable>) -> TransformResult {
    for variable in more {
        if variables.contains_key(&variable.name) {
            return Err(wrong(&variable, "already encountered"));
        }
        variables.insert(variable.name.clone(), variable);
    }
    Ok(())
}

fn wrong(variable: &Variable, reason: impl Into<String>) -> ErrorKind {
    ErrorKind::Invalid { what: format!("var '{}'", variable.name), reason: reason.into() }
}

/// Values by name; `None` if not a scalar.
type Values = BTreeMap<SmolStr, Option<VariableValue>>;

/// The value of a variable.
#[derive(Debug, Clone)]
struct VariableValue {
    text: SmolStr,
    tag: Tag,
}

/// Replaces all variables. Returns the names of unused ones.
pub(crate) fn resolve(
    map: &mut ResMap,
    variables: &Variables,
    specs: &[FieldSpec],
) -> Result<Vec<SmolStr>, ErrorKind> {
    let mut values = Values::new();
    for variable in variables.values() {
        values.insert(variable.name.clone(), value(map, variable)?);
    }
    if values.is_empty() {
        return Ok(Vec::new());
    }
    let walkers = walkers(specs);
    let mut used: HashSet<SmolStr> = HashSet::new();
    for resource in map.iter_mut() {
        let gvk = resource.id.gvk.clone();
        for walker in Walker::for_kind(&walkers, &gvk) {
            let mut set = |node: &mut Node| expand(node, &values, &mut used);
            let walked = walker.walk(&mut resource.node, Create::No, &mut set);
            walked.map_err(|e| failed("variables", resource, e))?;
        }
        resource.sync_shared_nodes();
    }
    Ok(values.into_keys().filter(|name| !used.contains(name)).collect())
}

fn value(map: &ResMap, variable: &Variable) -> Result<Option<VariableValue>, ErrorKind> {
    let resource = map
        .list()
        .iter()
        .find(|r| r.variables.contains(&variable.name))
        .ok_or_else(|| wrong(variable, "cannot be mapped to a field in the set of known resources"))?;
    let steps: Vec<SmolStr> =
        split_field_path(&variable.field_path).iter().flat_map(|s| indexed(s)).collect();
    let missing = || wrong(variable, format!("field {} not found in {}", variable.field_path, resource.id));
    let node =
        lookup(&resource.node, &steps).map_err(|e| wrong(variable, e.to_string()))?.ok_or_else(missing)?;
    if !node.is_scalar() {
        return Ok(None);
    }
    Ok(Some(match node.scalar(Dialect::V3) {
        Some(Scalar::Int(i)) => VariableValue { text: i.to_string().into(), tag: Tag::Int },
        Some(Scalar::Float(f)) => VariableValue { text: text(&Node::float(f)).into(), tag: Tag::Float },
        Some(Scalar::Bool(b)) => VariableValue { text: b.to_string().into(), tag: Tag::Bool },
        _ => VariableValue { text: text(node).into(), tag: Tag::Str },
    }))
}

/// Splits `ports[0]` into the steps `ports` and `0`.
fn indexed(step: &str) -> Vec<SmolStr> {
    let cut = step.strip_suffix(']').and_then(|s| s.rsplit_once('['));
    match cut {
        Some((name, index)) if !index.is_empty() && index.bytes().all(|b| b.is_ascii_digit()) => {
            let name = (!name.is_empty()).then(|| SmolStr::new(name));
            name.into_iter().chain([SmolStr::new(index)]).collect()
        }
        _ => vec![SmolStr::new(step)],
    }
}

fn expand(node: &mut Node, values: &Values, used: &mut HashSet<SmolStr>) -> Result<(), FieldError> {
    if is_null(node) {
        return Ok(());
    }
    match &mut node.value {
        Value::Scalar(_) => {
            if is_string(node) {
                let new = expanded(text(node), values, used);
                overwrite(node, new);
            }
            Ok(())
        }
        Value::Map(map) => {
            for entry in map.iter_mut() {
                if !is_string(&entry.key) {
                    return Err(FieldError::MapKey(text(&entry.key).to_owned()));
                }
                if is_string(&entry.value) {
                    let new = expanded(text(&entry.value), values, used);
                    overwrite(&mut entry.value, new);
                }
            }
            Ok(())
        }
        Value::Seq(items) => {
            for item in items {
                if !is_string(item) {
                    return Err(FieldError::NotAString);
                }
                *item = expanded(text(item), values, used);
            }
            Ok(())
        }
    }
}

fn is_string(node: &Node) -> bool {
    node.is_scalar()
        && (node.short_tag(Dialect::V3) == Tag::Str || (node.tag == Tag::Auto && node.line() == 0))
}

/// Replaces variables in a text: a single `$(A)` takes the type of its value, `$$` is a dollar sign.
fn expanded(input: &str, values: &Values, used: &mut HashSet<SmolStr>) -> Node {
    let mut out = String::with_capacity(input.len());
    let mut rest = input;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let Some(next) = after.chars().next() else {
            out.push('$');
            rest = "";
            break;
        };
        match next {
            '$' => {
                out.push('$');
                rest = &after[1..];
            }
            '(' => match after.find(')') {
                None => {
                    out.push_str("$(");
                    rest = &after[1..];
                }
                Some(end) => {
                    let name = &after[1..end];
                    rest = &after[end + 1..];
                    match values.get(name) {
                        Some(Some(found)) => {
                            used.insert(name.into());
                            if out.is_empty() && rest.is_empty() && input.len() == end + 2 {
                                let mut node = Node::plain(found.text.clone());
                                node.tag = found.tag;
                                return node;
                            }
                            out.push_str(&found.text);
                        }
                        _ => {
                            out.push_str("$(");
                            out.push_str(name);
                            out.push(')');
                        }
                    }
                }
            },
            other => {
                out.push('$');
                out.push(other);
                rest = &after[other.len_utf8()..];
            }
        }
    }
    out.push_str(rest);
    Node::string(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_expanded() {
        let mut values = Values::new();
        values.insert("A".into(), Some(VariableValue { text: "1".into(), tag: Tag::Int }));
        values.insert("B".into(), Some(VariableValue { text: "x".into(), tag: Tag::Str }));
        let mut used = HashSet::new();
        let cases = [
            ("$(A)", "1"),
            ("a$(A)$(B)", "a1x"),
            ("$$(A)", "$(A)"),
            ("$(C)", "$(C)"),
            ("$(", "$("),
            ("$x$", "$x$"),
            ("é$(B)é", "éxé"),
        ];
        for (input, want) in cases {
            assert_eq!(text(&expanded(input, &values, &mut used)), want);
        }
        assert_eq!(expanded("$(A)", &values, &mut used).tag, Tag::Int);
        assert_eq!(expanded("$(A) ", &values, &mut used).tag, Tag::Str);
    }

    #[test]
    fn indexes_in_brackets_are_split() {
        assert_eq!(indexed("ports[0]"), ["ports", "0"]);
        assert_eq!(indexed("[1]"), ["1"]);
        assert_eq!(indexed("a[b]"), ["a[b]"]);
    }
}
