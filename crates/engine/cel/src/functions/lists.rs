//! Functions on lists and sets, and sizes of maps.

use std::cmp::Ordering;

use crate::error::EvalError;
use crate::eval::{Eval, Scope, items};
use crate::value::{List, Value};

pub(super) fn call<'a>(scope: &mut Scope<'a, '_>, name: &str, args: &[Value<'a>]) -> Option<Eval<'a>> {
    if let ("sets.contains" | "sets.equivalent" | "sets.intersects", [Value::List(a), Value::List(b)]) =
        (name, args)
    {
        // Every item is compared with every other.
        let cost = (a.len() as u64).saturating_mul(b.len() as u64);
        return Some(scope.charge(cost).map(|()| Value::Bool(sets(name, a, b))));
    }
    let (first, rest) = args.split_first()?;
    match (name, first, rest) {
        ("size", Value::Map(map), []) => return Some(Ok(Value::Int(map.len() as i64))),
        ("size", Value::Bytes(bytes), []) => return Some(Ok(Value::Int(bytes.len() as i64))),
        _ => {}
    }
    let Value::List(list) = first else { return None };
    Some(match (name, rest) {
        ("size", []) => Ok(Value::Int(list.len() as i64)),
        ("isSorted", []) => is_sorted(list),
        ("sum", []) => sum(list),
        ("min" | "max", []) => extreme(name, list),
        ("indexOf", [item]) => Ok(place(list.iter().position(|v| v.equals(item)))),
        ("lastIndexOf", [item]) => Ok(place(items(list).iter().rposition(|v| v.equals(item)))),
        ("first", []) => Ok(Value::Optional(list.get(0).map(Box::new))),
        ("last", []) => {
            Ok(Value::Optional(list.len().checked_sub(1).and_then(|at| list.get(at)).map(Box::new)))
        }
        _ => return None,
    })
}

fn place<'a>(found: Option<usize>) -> Value<'a> {
    Value::Int(found.map_or(-1, |at| at as i64))
}

fn is_sorted<'a>(list: &List<'a>) -> Eval<'a> {
    let all = items(list);
    for pair in all.windows(2) {
        match pair[0].compare(&pair[1]) {
            Some(Ordering::Greater) => return Ok(Value::Bool(false)),
            Some(_) => {}
            None => return Err(EvalError::no_overload()),
        }
    }
    Ok(Value::Bool(true))
}

fn sum<'a>(list: &List<'a>) -> Eval<'a> {
    let mut all = list.iter();
    let Some(mut total) = all.next() else { return Ok(Value::Int(0)) };
    for item in all {
        total = match (total, item) {
            (Value::Int(a), Value::Int(b)) => {
                Value::Int(a.checked_add(b).ok_or_else(|| EvalError::new("integer overflow"))?)
            }
            (Value::Uint(a), Value::Uint(b)) => {
                Value::Uint(a.checked_add(b).ok_or_else(|| EvalError::new("unsigned integer overflow"))?)
            }
            (Value::Double(a), Value::Double(b)) => Value::Double(a + b),
            (Value::Duration(a), Value::Duration(b)) => {
                Value::Duration(a.checked_add(b).ok_or_else(|| EvalError::new("duration overflow"))?)
            }
            _ => return Err(EvalError::no_overload()),
        };
    }
    Ok(total)
}

fn extreme<'a>(name: &str, list: &List<'a>) -> Eval<'a> {
    let wanted = if name == "min" { Ordering::Less } else { Ordering::Greater };
    let mut all = list.iter();
    let mut best = all.next().ok_or_else(|| EvalError::new(format!("{name} called on empty list")))?;
    for item in all {
        match item.compare(&best) {
            Some(order) if order == wanted => best = item,
            Some(_) => {}
            None => return Err(EvalError::no_overload()),
        }
    }
    Ok(best)
}

fn sets<'a>(name: &str, a: &List<'a>, b: &List<'a>) -> bool {
    let within =
        |inner: &List<'a>, outer: &List<'a>| inner.iter().all(|x| outer.iter().any(|y| y.equals(&x)));
    match name {
        "sets.contains" => within(b, a),
        "sets.intersects" => a.iter().any(|x| b.iter().any(|y| y.equals(&x))),
        _ => within(a, b) && within(b, a),
    }
}
