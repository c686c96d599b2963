//! Maps: access, changes in place, selection, copies.

use fl_gotemplate::{CallError, Context, Entries, Functions, List, Map, Str, Type, Value};

use crate::args::{A, D, Out, S, bytes, dict, fixed, list, strval, variadic};
use crate::merge::merge_into;

pub(crate) fn add(f: &mut Functions) {
    variadic(f, "dict", &[A], make);
    fixed(f, "get", &[D, S], |_, a| {
        Ok(dict(a, 0).and_then(|d| d.get(bytes(a, 1))).unwrap_or_else(|| "".into()))
    });
    fixed(f, "set", &[D, S, A], set);
    fixed(f, "unset", &[D, S], |_, a| {
        if let Some(d) = dict(a, 0) {
            d.borrow_mut().remove(bytes(a, 1));
        }
        Ok(plain(a, 0))
    });
    fixed(f, "hasKey", &[D, S], |_, a| {
        Ok(dict(a, 0).is_some_and(|d| d.borrow().contains_key(bytes(a, 1))).into())
    });
    variadic(f, "pluck", &[S, D], |cx, a| {
        let found = (1..a.len()).filter_map(|i| dict(a, i)?.get(bytes(a, 0))).collect();
        list(cx, found)
    });
    variadic(f, "keys", &[D], keys);
    fixed(f, "values", &[D], |cx, a| {
        let values = dict(a, 0).map(|d| d.borrow().values().cloned().collect()).unwrap_or_default();
        list(cx, values)
    });
    variadic(f, "pick", &[D, S], |_, a| {
        let picked = dict(a, 0).map(|d| {
            let d = d.borrow();
            a[1..]
                .iter()
                .filter_map(|k| k.as_str())
                .filter_map(|k| Some((k.clone(), d.get(k)?.clone())))
                .collect()
        });
        Ok(Map::new(picked.unwrap_or_default()).into())
    });
    variadic(f, "omit", &[D, S], |_, a| {
        let mut kept: Entries = dict(a, 0).map(|d| d.borrow().clone()).unwrap_or_default();
        for key in a[1..].iter().filter_map(Value::as_str) {
            kept.remove(key);
        }
        Ok(Map::new(kept).into())
    });
    const DICTS: &[Type] = &[D, D];
    for name in ["merge", "mustMerge"] {
        variadic(f, name, DICTS, |cx, a| merge(cx, a, false));
    }
    for name in ["mergeOverwrite", "mustMergeOverwrite"] {
        variadic(f, name, DICTS, |cx, a| merge(cx, a, true));
    }
    for name in ["deepCopy", "mustDeepCopy"] {
        fixed(f, name, &[A], |cx, a| match &a[0] {
            Value::Nil => Err(CallError::new("reflect: call of reflect.Value.Type on zero Value")),
            value => deep_copy(cx, value, 0),
        });
    }
    variadic(f, "dig", &[A], dig);
}

fn make(cx: &mut Context<'_>, a: &[Value]) -> Out {
    let mut entries = Entries::new();
    for pair in a.chunks(2) {
        entries.insert(strval(cx, &pair[0])?, pair.get(1).cloned().unwrap_or_else(|| "".into()));
    }
    cx.reserve(a.len() as u64 * size_of::<Value>() as u64)?;
    Ok(Map::new(entries).into())
}

/// The map without its named type; nil is a nil map.
fn plain(a: &[Value], i: usize) -> Value {
    match &a[i] {
        Value::Map(map) => Value::Map(map.clone()),
        _ => Value::Map(Map::nil(fl_gotemplate::MapType::Any)),
    }
}

fn set(cx: &mut Context<'_>, a: &[Value]) -> Out {
    let Some(d) = dict(a, 0) else { return Err(CallError::new("assignment to entry in nil map")) };
    cx.reserve(size_of::<Value>() as u64)?;
    d.insert(bytes(a, 1), a[2].clone());
    Ok(plain(a, 0))
}

fn keys(cx: &mut Context<'_>, a: &[Value]) -> Out {
    let mut keys: Vec<Str> = Vec::new();
    for i in 0..a.len() {
        if let Some(d) = dict(a, i) {
            keys.extend(d.borrow().keys().cloned());
        }
    }
    cx.step(keys.len() as u64)?;
    Ok(Value::List(List::of_strings(keys)))
}

fn merge(cx: &mut Context<'_>, a: &[Value], overwrite: bool) -> Out {
    let target = match dict(a, 0) {
        Some(d) => d.clone(),
        None if a.len() > 1 => Map::new(Entries::new()),
        None => return Ok(plain(a, 0)),
    };
    for i in 1..a.len() {
        if let Some(source) = dict(a, i) {
            merge_into(cx, &target, source, overwrite, 0)?;
        }
    }
    Ok(target.into())
}

/// Maximum depth of copies; a map can contain itself.
const MAX_DEPTH: usize = 100;

pub(crate) fn deep_copy(cx: &mut Context<'_>, value: &Value, depth: usize) -> Out {
    if depth > MAX_DEPTH {
        return Err(CallError::budget("value is nested too deeply to copy"));
    }
    match value {
        Value::List(l) if !l.is_nil() => {
            cx.step(l.len() as u64)?;
            let copies = l.items().iter().map(|v| deep_copy(cx, v, depth + 1)).collect::<Result<_, _>>()?;
            Ok(Value::List(List::with_type(l.ty(), copies)))
        }
        Value::Map(map) if !map.is_nil() => {
            cx.step(map.len() as u64)?;
            let mut copies = Entries::new();
            for (key, item) in map.snapshot() {
                copies.insert(key, deep_copy(cx, &item, depth + 1)?);
            }
            Ok(Map::with_type(map.ty(), copies).into())
        }
        other => Ok(other.clone()),
    }
}

fn conversion(value: &Value, wanted: &str) -> CallError {
    let is = match value {
        Value::Nil => "nil".to_owned(),
        other => other.type_name().into_owned(),
    };
    CallError::new(format!("interface conversion: interface {{}} is {is}, not {wanted}"))
}

fn dig(_: &mut Context<'_>, a: &[Value]) -> Out {
    const DICT: &str = "map[string]interface {}";
    let [path @ .., fallback, last] = a else {
        return Err(CallError::new("dig needs at least three arguments"));
    };
    if path.is_empty() {
        return Err(CallError::new("dig needs at least three arguments"));
    }
    let mut current = last.clone();
    // Go asserts the type of the map first, then of all keys, then walks.
    let as_dict = |value: &Value| match value {
        Value::Map(map) if matches!(map.ty(), fl_gotemplate::MapType::Any) => Ok(map.clone()),
        other => Err(conversion(other, DICT)),
    };
    as_dict(&current)?;
    let mut keys = Vec::with_capacity(path.len());
    for key in path {
        keys.push(key.as_str().ok_or_else(|| conversion(key, "string"))?);
    }
    for (i, key) in keys.iter().enumerate() {
        let map = as_dict(&current)?;
        match map.get(key) {
            None => return Ok(fallback.clone()),
            Some(value) if i + 1 == keys.len() => return Ok(value),
            Some(value) => current = value,
        }
    }
    Ok(fallback.clone())
}
