//! Functions on lists, maps' sizes, and sets.

use std::cmp::Ordering;

use crate::error::EvalError;
use crate::eval::{Eval, Scope, items};
use crate::value::{List, Value};

/// A list an expression builds may not be longer.
const MAX_RANGE: i64 = 1_000_000;

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
        ("lists.range", Value::Int(n), []) => {
            if *n > MAX_RANGE {
                return Some(Err(EvalError::CostExceeded));
            }
            return Some(
                scope
                    .charge(u64::try_from(*n).unwrap_or(0))
                    .map(|()| Value::list((0..*n).map(Value::Int).collect())),
            );
        }
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
        ("slice", [Value::Int(from), Value::Int(to)]) => slice(list, *from, *to),
        ("flatten", []) => Ok(Value::list(flatten(list, 1))),
        ("flatten", [Value::Int(depth)]) => match u32::try_from(*depth) {
            Ok(depth) => Ok(Value::list(flatten(list, depth))),
            Err(_) => Err(EvalError::new("level must be non-negative")),
        },
        ("reverse", []) => Ok(Value::list(items(list).into_iter().rev().collect())),
        ("distinct", []) => {
            if let Err(error) = scope.charge((list.len() as u64).saturating_mul(list.len() as u64) / 2) {
                return Some(Err(error));
            }
            let mut out: Vec<Value<'a>> = Vec::new();
            for item in list.iter() {
                if !out.iter().any(|v| v.equals(&item)) {
                    out.push(item);
                }
            }
            Ok(Value::list(out))
        }
        ("sort", []) => {
            let mut pairs: Vec<(Value<'a>, Value<'a>)> = list.iter().map(|v| (v.clone(), v)).collect();
            sort_pairs(&mut pairs).map(|()| Value::list(pairs.into_iter().map(|(_, v)| v).collect()))
        }
        _ => return None,
    })
}

/// Sorts by the first of each pair; all must be comparable.
pub(crate) fn sort_pairs<'a>(pairs: &mut [(Value<'a>, Value<'a>)]) -> Result<(), EvalError> {
    let comparable = pairs.windows(2).all(|w| w[0].0.compare(&w[1].0).is_some());
    if !comparable {
        return Err(EvalError::new("list elements must be comparable"));
    }
    pairs.sort_by(|a, b| a.0.compare(&b.0).unwrap_or(Ordering::Equal));
    Ok(())
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

fn slice<'a>(list: &List<'a>, from: i64, to: i64) -> Eval<'a> {
    let length = list.len() as i64;
    if from < 0 || to < 0 {
        return Err(EvalError::new(format!("cannot slice({from}, {to}), negative indexes not supported")));
    }
    if from > to {
        return Err(EvalError::new(format!(
            "cannot slice({from}, {to}), start index must be less than or equal to end index"
        )));
    }
    if to > length {
        return Err(EvalError::new(format!("cannot slice({from}, {to}), list is length {length}")));
    }
    Ok(Value::list(list.iter().skip(from as usize).take((to - from) as usize).collect()))
}

fn flatten<'a>(list: &List<'a>, depth: u32) -> Vec<Value<'a>> {
    let mut out = Vec::new();
    for item in list.iter() {
        match item {
            Value::List(inner) if depth > 0 => out.extend(flatten(&inner, depth - 1)),
            other => out.push(other),
        }
    }
    out
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
