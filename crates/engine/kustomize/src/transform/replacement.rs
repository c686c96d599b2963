//! Replacements: copies a value of one object into fields of others.

use fl_yaml::{Dialect, JsonStyle, Node, SmolStr};

use super::{TransformResult, failed};
use crate::config::split_field_path;
use crate::error::ErrorKind;
use crate::field_error::FieldError;
use crate::kustomization::{FieldOptions, Replacement, Source, Target};
use crate::path::{Make, lookup, lookup_mut, matching};
use crate::resmap::ResMap;
use crate::resource::Resource;
use crate::schema::Schemas;
use crate::selector::Matcher;
use crate::tree::{self, is_nil_or_empty, set_text, text};

const NAME: &str = "ReplacementTransformer";

fn invalid(reason: impl Into<String>) -> ErrorKind {
    ErrorKind::Invalid { what: "replacement".to_owned(), reason: reason.into() }
}

/// Runs one replacement.
pub(crate) fn replace(map: &mut ResMap, replacement: &Replacement, schemas: &mut Schemas) -> TransformResult {
    let (Some(targets), true) =
        (&replacement.targets, replacement.source.is_some() || replacement.source_value.is_some())
    else {
        return Err(invalid("replacements must specify a source and at least one target"));
    };
    let value = match (&replacement.source, &replacement.source_value) {
        (Some(_), Some(_)) => return Err(invalid("value and resource selectors are mutually exclusive")),
        (None, Some(value)) => tree::untagged(value),
        (Some(source), None) => read(map, source)?,
        (None, None) => return Err(invalid("replacements must specify a source")),
    };
    targets.iter().try_for_each(|target| write(map, target, &value, schemas))
}

fn read(map: &mut ResMap, source: &Source) -> Result<Node, ErrorKind> {
    let selector = &source.id;
    let found: Vec<usize> =
        if selector.name.is_empty() { (0..map.len()).collect() } else { map.with_any_name(&selector.name) };
    let mut found = found.into_iter().filter(|at| {
        let resource = &map.list()[*at];
        resource.id.is_selected_by(selector) || resource.former_ids().any(|id| id.is_selected_by(selector))
    });
    let at = found.next().ok_or_else(|| invalid(format!("nothing selected by {selector}")))?;
    if found.next().is_some() {
        return Err(invalid(format!("multiple matches for selector {selector}")));
    }
    let path = if source.field_path.is_empty() { "metadata.name" } else { &source.field_path };
    let value = lookup(&map.list()[at].node, &split_field_path(path))
        .map_err(|e| invalid(format!("error looking up replacement source {selector}: {e}")))?
        .filter(|n| !is_nil_or_empty(n))
        .ok_or_else(|| invalid(format!("fieldPath `{path}` is missing for replacement source {selector}")))?;
    let mut value = value.clone();
    tree::clear_shared_marks(&mut value);
    let Some(options) = source.options.as_ref().filter(|o| !o.delimiter.is_empty()) else { return Ok(value) };
    if !value.is_scalar() {
        return Err(invalid("delimiter option can only be used with scalar nodes"));
    }
    let part =
        usize::try_from(options.index).ok().and_then(|i| text(&value).split(&options.delimiter).nth(i));
    let part = part.map(SmolStr::new).ok_or_else(|| {
        invalid(format!("options.index {} is out of bounds for value {}", options.index, text(&value)))
    })?;
    set_text(&mut value, part);
    Ok(value)
}

fn write(map: &mut ResMap, target: &Target, value: &Node, schemas: &mut Schemas) -> TransformResult {
    let select = target.select.as_ref().ok_or_else(|| invalid("target must specify resources to select"))?;
    let matcher = Matcher::new(select).map_err(|error| invalid(error.to_string()))?;
    let rejects = target
        .reject
        .iter()
        .map(|r| Ok((r, Matcher::new(r).map_err(|error| invalid(error.to_string()))?)))
        .collect::<Result<Vec<_>, ErrorKind>>()?;
    for at in map.candidates(&matcher) {
        let resource = &map.list()[at];
        if !matcher.matches_pairs(resource) || !any_id(resource, &matcher) {
            continue;
        }
        let rejected = rejects.iter().any(|(reject, matcher)| {
            let by_pairs = !(reject.labels.is_empty() && reject.annotations.is_empty());
            (by_pairs && matcher.matches_pairs(resource))
                || (!reject.has_no_identity() && any_id(resource, matcher))
        });
        if rejected {
            continue;
        }
        let resource = map.get_mut(at);
        write_fields(&mut resource.node, target, value).map_err(|error| failed(NAME, resource, error))?;
        resource.sync_shared_nodes();
        let before = resource.id.clone();
        resource.refresh(schemas);
        if resource.id != before {
            map.renamed(at);
        }
    }
    Ok(())
}

fn any_id(resource: &Resource, matcher: &Matcher) -> bool {
    matcher.matches_id(&resource.id) || resource.former_ids().any(|id| matcher.matches_id(&id))
}

fn write_fields(root: &mut Node, target: &Target, value: &Node) -> Result<(), FieldError> {
    let name = [String::from("metadata.name")];
    let paths = if target.field_paths.is_empty() { &name[..] } else { &target.field_paths };
    let create = target.options.as_ref().is_some_and(|o| o.create);
    let make = if create { Make::like(value) } else { Make::Nothing };
    for path in paths {
        let steps = split_field_path(path);
        if write_into_text(root, &steps, value, make).is_some() {
            continue;
        }
        let verb = if create { "find or create" } else { "find" };
        let mut visit = |node: &mut Node| put(node, value, target.options.as_ref());
        let found = matching(root, &steps, make, &mut visit).map_err(|error| FieldError::Target {
            verb,
            path: path.clone(),
            source: Box::new(error),
        })?;
        if found == 0 {
            return Err(FieldError::TargetNotFound { verb, path: path.clone() });
        }
    }
    Ok(())
}

fn put(field: &mut Node, value: &Node, options: Option<&FieldOptions>) -> Result<(), FieldError> {
    let mut new = text(value).to_owned();
    if let Some(options) = options.filter(|o| !o.delimiter.is_empty()) {
        if !field.is_scalar() {
            return Err(FieldError::Delimiter);
        }
        let part = if tree::is_null(value) { "" } else { new.as_str() };
        let mut parts: Vec<&str> = text(field).split(&options.delimiter).collect();
        match usize::try_from(options.index) {
            Err(_) => parts.insert(0, part),
            Ok(index) if index >= parts.len() => parts.push(part),
            Ok(index) => parts[index] = part,
        }
        new = parts.join(&options.delimiter);
    }
    if field.is_scalar() {
        set_text(field, new);
    } else {
        *field = value.clone();
        if field.is_scalar() {
            set_text(field, new);
        }
    }
    Ok(())
}

/// Writes into JSON or YAML inside of a string field. `None` if the path does not lead into a string, or
/// matches nothing.
fn write_into_text(root: &mut Node, steps: &[SmolStr], value: &Node, make: Make) -> Option<()> {
    let holder = (1..steps.len()).find(|i| {
        lookup(root, &steps[..*i]).ok().flatten().is_some_and(|n| {
            n.is_scalar() && fl_yaml::parse_first(text(n).as_bytes(), &fl_yaml::Options::editing()).is_ok()
        })
    })?;
    let field = lookup_mut(root, &steps[..holder])?;
    let original = text(field).to_owned();
    let mut data = fl_yaml::parse_first(original.as_bytes(), &fl_yaml::Options::editing()).ok()??;
    let mut visit = |node: &mut Node| {
        if node.is_scalar() {
            set_text(node, text(value));
        } else {
            *node = value.clone();
        }
        Ok(())
    };
    let found = matching(&mut data, &steps[holder..], make, &mut visit).ok()?;
    if found == 0 {
        return None;
    }
    let written = if original.trim_start().starts_with(['{', '[']) {
        if original.contains('\n') && original.contains("  ") {
            indented_json(&data)?
        } else {
            fl_yaml::to_json(&data, Dialect::V3, JsonStyle::GO).ok()?
        }
    } else {
        crate::embedded_data::to_text(&data)
    };
    set_text(field, written);
    Some(())
}

/// JSON with sorted keys, indented by two spaces.
fn indented_json(node: &Node) -> Option<String> {
    let compact = fl_yaml::to_json(node, Dialect::V3, JsonStyle::GO).ok()?;
    let mut out = String::with_capacity(compact.len() * 2);
    let (mut depth, mut in_text, mut escaped) = (0_usize, false, false);
    let mut chars = compact.chars().peekable();
    let newline = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    };
    while let Some(c) = chars.next() {
        if in_text {
            out.push(c);
            in_text = escaped || c != '"';
            escaped = c == '\\' && !escaped;
            continue;
        }
        match c {
            '"' => {
                in_text = true;
                out.push(c);
            }
            '{' | '[' => {
                out.push(c);
                if let Some(close) = chars.next_if(|n| matches!(n, '}' | ']')) {
                    out.push(close);
                } else {
                    depth += 1;
                    newline(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                newline(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                newline(&mut out, depth);
            }
            ':' => out.push_str(": "),
            other => out.push(other),
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_indented() {
        let node = crate::input::read_one(br#"{"b": [1, {}], "a": "x,{\"y"}"#).expect("valid");
        let want = "{\n  \"a\": \"x,{\\\"y\",\n  \"b\": [\n    1,\n    {}\n  ]\n}";
        assert_eq!(indented_json(&node).as_deref(), Some(want));
    }
}
