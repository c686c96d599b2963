//! Field paths of replacements and variables: `spec.containers.[name=app].image`, `spec.rules.0.host`,
//! `a.*.b`.

use fl_yaml::{Node, SmolStr, Value};

use crate::field_error::FieldError;
use crate::tree::{self, is_null, shape, text};

/// What is created for an absent field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Make {
    Nothing,
    Map,
    Seq,
    Scalar,
}

impl Make {
    /// The kind of node that a copy of this value needs.
    pub(crate) fn like(value: &Node) -> Self {
        match value.value {
            Value::Map(_) => Make::Map,
            Value::Seq(_) => Make::Seq,
            Value::Scalar(_) => Make::Scalar,
        }
    }

    fn node(self) -> Node {
        match self {
            Make::Map | Make::Nothing => Node::map(),
            Make::Seq => Node::seq([]),
            Make::Scalar => Node::plain(""),
        }
    }

    /// The kind of node that the step before `next` needs.
    fn before(self, next: Option<&SmolStr>) -> Self {
        match next {
            None => self,
            Some(step) if is_condition(step) || index(step).is_some() => Make::Seq,
            Some(_) => Make::Map,
        }
    }
}

fn is_condition(step: &str) -> bool {
    step.starts_with('[') && step.ends_with(']')
}

fn index(step: &str) -> Option<usize> {
    step.parse::<i64>().ok().and_then(|i| usize::try_from(i).ok())
}

fn condition(step: &str) -> Result<(&str, &str), FieldError> {
    step[1..step.len() - 1].split_once('=').ok_or_else(|| FieldError::Condition(step.to_owned()))
}

fn wrong_kind(node: &Node, expected: &'static str) -> FieldError {
    FieldError::WrongKind { expected, found: shape(node) }
}

/// The node at a path without wildcards; conditions are compared for equality.
pub(crate) fn lookup<'a>(root: &'a Node, path: &[SmolStr]) -> Result<Option<&'a Node>, FieldError> {
    let mut at = root;
    for step in path.iter().map(|s| s.trim()).filter(|s| !s.is_empty()) {
        let next = if step.parse::<i64>().is_ok() || step == "-" || is_condition(step) {
            if is_null(at) {
                return Ok(None);
            }
            let items = at.as_seq().ok_or_else(|| wrong_kind(at, "a sequence"))?;
            if step == "-" {
                items.last()
            } else if is_condition(step) {
                let (field, value) = condition(step)?;
                items.iter().find(|item| match field {
                    "" => item.is_scalar() && text(item) == value,
                    _ => item.get(field).is_some_and(|n| text(n) == value),
                })
            } else {
                let index = index(step).ok_or_else(|| FieldError::NegativeIndex(step.to_owned()))?;
                items.get(index)
            }
        } else if step == "*" {
            return Err(FieldError::Wildcard);
        } else if is_null(at) {
            None
        } else {
            at.as_map().ok_or_else(|| wrong_kind(at, "a mapping"))?.get(step)
        };
        let Some(next) = next else { return Ok(None) };
        at = next;
    }
    Ok(Some(at))
}

/// [`lookup`] with mutable access.
pub(crate) fn lookup_mut<'a>(root: &'a mut Node, path: &[SmolStr]) -> Option<&'a mut Node> {
    let mut at = root;
    for step in path.iter().map(|s| s.trim()).filter(|s| !s.is_empty()) {
        at = match &mut at.value {
            Value::Map(map) => map.get_mut(step)?,
            Value::Seq(items) => {
                let at = if step == "-" {
                    items.len().checked_sub(1)?
                } else if is_condition(step) {
                    let (field, value) = condition(step).ok()?;
                    items.iter().position(|item| match field {
                        "" => item.is_scalar() && text(item) == value,
                        _ => item.get(field).is_some_and(|n| text(n) == value),
                    })?
                } else {
                    index(step)?
                };
                items.get_mut(at)?
            }
            Value::Scalar(_) => return None,
        };
    }
    Some(at)
}

/// Changes a node.
pub(crate) type Visit<'a> = dyn FnMut(&mut Node) -> Result<(), FieldError> + 'a;

/// Visits every node that a path matches, and returns their number; conditions are regular expressions.
pub(crate) fn matching(
    node: &mut Node,
    path: &[SmolStr],
    make: Make,
    visit: &mut Visit<'_>,
) -> Result<usize, FieldError> {
    let Some((step, rest)) = path.split_first() else {
        visit(node)?;
        return Ok(1);
    };
    if let Some(at) = index(step) {
        return matching_index(node, at, rest, make, visit);
    }
    if is_condition(step) {
        return matching_items(node, step, rest, make, visit);
    }
    if step == "*" {
        if is_null(node) {
            return Ok(0);
        }
        let error = wrong_kind(node, "a sequence");
        let items = node.as_seq_mut().ok_or(error)?;
        return items.iter_mut().try_fold(0, |n, item| Ok(n + matching(item, rest, make, visit)?));
    }
    matching_field(node, step, rest, make, visit)
}

fn matching_field(
    node: &mut Node,
    step: &SmolStr,
    rest: &[SmolStr],
    make: Make,
    visit: &mut Visit<'_>,
) -> Result<usize, FieldError> {
    if is_null(node) {
        return Ok(0);
    }
    let error = wrong_kind(node, "a mapping");
    let map = node.as_map_mut().ok_or(error)?;
    if make == Make::Nothing && !map.contains(step) {
        return Ok(0);
    }
    let field = map.get_or_insert_with(step, || make.before(rest.first()).node());
    if field.is_scalar() && !rest.is_empty() {
        // Data inside of a string: searched, but changes are not written back.
        let mut inner =
            fl_yaml::parse_first(text(field).as_bytes(), &fl_yaml::Options::v3())?.unwrap_or_default();
        return matching(&mut inner, rest, make, visit);
    }
    matching(field, rest, make, visit)
}

fn matching_index(
    node: &mut Node,
    at: usize,
    rest: &[SmolStr],
    make: Make,
    visit: &mut Visit<'_>,
) -> Result<usize, FieldError> {
    let error = wrong_kind(node, "a sequence");
    let items = node.as_seq_mut().ok_or(error)?;
    if items.len() == at && make != Make::Nothing {
        items.push(make.before(rest.first()).node());
    }
    let count = items.len();
    let item = items.get_mut(at).ok_or(FieldError::IndexOutOfRange { index: at, count })?;
    matching(item, rest, make, visit)
}

fn matching_items(
    node: &mut Node,
    step: &SmolStr,
    rest: &[SmolStr],
    make: Make,
    visit: &mut Visit<'_>,
) -> Result<usize, FieldError> {
    let (field, pattern) = condition(step)?;
    let expression = crate::selector::compile(pattern)?;
    let error = wrong_kind(node, "a sequence");
    if is_null(node) {
        return Ok(0);
    }
    let items = node.as_seq_mut().ok_or(error)?;
    let mut found = 0;
    for item in items.iter_mut() {
        if field.is_empty() {
            if expression.is_match(&as_yaml(item)) {
                visit(item)?;
                found += 1;
            }
        } else if item.get(field).is_some_and(|value| expression.is_match(&as_yaml(value))) {
            found += matching(item, rest, make, visit)?;
        }
    }
    if found > 0 || make == Make::Nothing {
        return Ok(found);
    }
    let mut item = tree::untagged(pattern);
    if !field.is_empty() {
        item = Node::from(Value::Map([(SmolStr::new(field), item)].into_iter().collect()));
    }
    if !expression.is_match(&as_yaml(item.get(field).unwrap_or(&item))) {
        return Err(FieldError::NoSelfMatch(step.clone()));
    }
    items.push(item);
    matching_items(node, step, rest, Make::Nothing.or(make, rest), visit)
}

impl Make {
    /// After an element was created, its absent fields may be created, but no second element.
    fn or(self, make: Make, rest: &[SmolStr]) -> Make {
        if rest.is_empty() { self } else { make }
    }
}

/// A scalar as YAML, which conditions are compared with.
fn as_yaml(node: &Node) -> String {
    let body = crate::embedded_data::to_text(node);
    match node.extra() {
        Some(extra) if !extra.line_comment.is_empty() => format!("{body} {}", extra.line_comment),
        _ => body,
    }
}
