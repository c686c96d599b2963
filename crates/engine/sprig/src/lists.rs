//! Lists. Each function has a `must` variant with the same code: a failure is an error either way.

use fl_gotemplate::{CallError, Context, Functions, Kind, List, ListType, Type, Value};

use crate::args::{A, I, Out, fixed, int, items, list, nil_dereference, variadic};
use crate::cast::{empty, to_int};
use crate::equal::deep_equal;

pub(crate) fn add(f: &mut Functions) {
    const L: &[Type] = &[A];
    const LV: &[Type] = &[A, A];
    for name in ["list", "tuple"] {
        variadic(f, name, L, |cx, a| list(cx, a.to_vec()));
    }
    for name in ["append", "push", "mustAppend", "mustPush"] {
        fixed(f, name, LV, |cx, a| {
            let mut all = list_items(&a[0], "Cannot push on type")?;
            all.push(a[1].clone());
            list(cx, all)
        });
    }
    for name in ["prepend", "mustPrepend"] {
        fixed(f, name, LV, |cx, a| {
            let mut all = list_items(&a[0], "Cannot prepend on type")?;
            all.insert(0, a[1].clone());
            list(cx, all)
        });
    }
    for name in ["first", "mustFirst"] {
        fixed(f, name, L, |_, a| {
            Ok(list_items(&a[0], "Cannot find first on type")?.into_iter().next().unwrap_or(Value::Nil))
        });
    }
    for name in ["last", "mustLast"] {
        fixed(f, name, L, |_, a| {
            Ok(list_items(&a[0], "Cannot find last on type")?.pop().unwrap_or(Value::Nil))
        });
    }
    for name in ["rest", "mustRest"] {
        fixed(f, name, L, |cx, a| {
            let mut all = list_items(&a[0], "Cannot find rest on type")?;
            if all.is_empty() {
                return Ok(Value::List(List::nil(ListType::Any)));
            }
            all.remove(0);
            list(cx, all)
        });
    }
    for name in ["initial", "mustInitial"] {
        fixed(f, name, L, |cx, a| {
            let mut all = list_items(&a[0], "Cannot find initial on type")?;
            if all.pop().is_none() {
                return Ok(Value::List(List::nil(ListType::Any)));
            }
            list(cx, all)
        });
    }
    for name in ["reverse", "mustReverse"] {
        fixed(f, name, L, |cx, a| {
            let mut all = list_items(&a[0], "Cannot find reverse on type")?;
            all.reverse();
            list(cx, all)
        });
    }
    for name in ["compact", "mustCompact"] {
        fixed(f, name, L, |cx, a| {
            let mut all = list_items(&a[0], "Cannot compact on type")?;
            all.retain(|v| !empty(v));
            list(cx, all)
        });
    }
    for name in ["uniq", "mustUniq"] {
        fixed(f, name, L, |cx, a| uniq(cx, &a[0]));
    }
    for name in ["without", "mustWithout"] {
        variadic(f, name, LV, |cx, a| {
            let mut all = list_items(&a[0], "Cannot find without on type")?;
            cx.step((all.len() * a.len()) as u64)?;
            all.retain(|v| !a[1..].iter().any(|o| deep_equal(o, v)));
            list(cx, all)
        });
    }
    for name in ["has", "mustHas"] {
        fixed(f, name, LV, |cx, a| {
            if let Value::Nil = a[1] {
                return Ok(false.into());
            }
            let all = list_items(&a[1], "Cannot find has on type")?;
            cx.step(all.len() as u64)?;
            Ok(all.iter().any(|v| deep_equal(&a[0], v)).into())
        });
    }
    for name in ["slice", "mustSlice"] {
        variadic(f, name, LV, slice);
    }
    for name in ["chunk", "mustChunk"] {
        fixed(f, name, &[I, A], chunk);
    }
    variadic(f, "concat", L, concat);
}

/// The items, or Go's error.
fn list_items(value: &Value, message: &str) -> Result<Vec<Value>, CallError> {
    match items(value) {
        Ok(items) => Ok(items),
        Err(Kind::Invalid) => Err(nil_dereference()),
        Err(kind) => Err(CallError::new(format!("{message} {}", kind.name()))),
    }
}

fn uniq(cx: &mut Context<'_>, value: &Value) -> Out {
    let all = list_items(value, "Cannot find uniq on type")?;
    let mut kept: Vec<Value> = Vec::new();
    for item in all {
        cx.step(kept.len() as u64)?;
        if !kept.iter().any(|k| deep_equal(k, &item)) {
            kept.push(item);
        }
    }
    list(cx, kept)
}

fn slice(cx: &mut Context<'_>, a: &[Value]) -> Out {
    let all = list_items(&a[0], "list should be type of slice or array but")?;
    if all.is_empty() {
        return Ok(Value::Nil);
    }
    let start = a.get(1).map_or(0, to_int);
    let end = a.get(2).map_or(all.len() as i64, to_int);
    if start < 0 || end < start || end > all.len() as i64 {
        return Err(CallError::new("reflect.Value.Slice: slice index out of bounds"));
    }
    let part = all[start as usize..end as usize].to_vec();
    cx.reserve(part.len() as u64 * size_of::<Value>() as u64)?;
    Ok(match &a[0] {
        Value::Bytes(bytes) => Value::Bytes(bytes[start as usize..end as usize].into()),
        Value::List(list) => Value::List(List::with_type(list.ty(), part)),
        _ => Value::list(part),
    })
}

fn chunk(cx: &mut Context<'_>, a: &[Value]) -> Out {
    let all = list_items(&a[1], "Cannot chunk type")?;
    let size = int(a, 0);
    let none = || Value::List(List::with_type(ListType::Lists, Vec::new()));
    if all.is_empty() && size > 0 {
        return Ok(none());
    }
    let Ok(size @ 1..) = usize::try_from(size) else {
        // Go computes the number of pieces without checking the size. A sufficiently negative size gives
        // none, or one with a single item; all others give an impossible length.
        let most = i64::try_from(all.len()).unwrap_or(i64::MAX) - 1;
        return match most {
            0 if size < -1 => Ok(Value::List(List::with_type(ListType::Lists, vec![Value::list(all)]))),
            1.. if size <= -most => Ok(none()),
            _ => Err(CallError::new("runtime error: makeslice: len out of range")),
        };
    };
    cx.reserve(all.len() as u64 * size_of::<Value>() as u64)?;
    let chunks = all.chunks(size).map(|c| Value::list(c.to_vec())).collect();
    Ok(Value::List(List::with_type(ListType::Lists, chunks)))
}

fn concat(cx: &mut Context<'_>, a: &[Value]) -> Out {
    let mut all = Vec::new();
    for value in a {
        match items(value) {
            Ok(items) => all.extend(items),
            Err(Kind::Invalid) => return Err(nil_dereference()),
            Err(kind) => return Err(CallError::new(format!("Cannot concat type {} as list", kind.name()))),
        }
    }
    if all.is_empty() {
        return Ok(Value::List(List::nil(ListType::Any)));
    }
    list(cx, all)
}
