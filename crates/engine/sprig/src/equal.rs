//! `reflect.DeepEqual` for values: types must be equal, then contents.

use fl_gotemplate::Value;

/// Maximum depth of comparisons; a map can contain itself.
const MAX_DEPTH: usize = 200;

pub(crate) fn deep_equal(a: &Value, b: &Value) -> bool {
    equal(a, b, 0)
}

fn equal(a: &Value, b: &Value, depth: usize) -> bool {
    if depth > MAX_DEPTH {
        return true;
    }
    match (a, b) {
        (Value::Nil, Value::Nil) => true,
        (Value::Bool(x), Value::Bool(y)) => x == y,
        (Value::Int(k, x), Value::Int(l, y)) => k == l && x == y,
        (Value::Float(x), Value::Float(y)) => x == y,
        (Value::Complex(a, b), Value::Complex(c, d)) => a == c && b == d,
        (Value::Str(x), Value::Str(y)) | (Value::Bytes(x), Value::Bytes(y)) => x == y,
        (Value::List(x), Value::List(y)) => {
            x.ty() == y.ty()
                && x.is_nil() == y.is_nil()
                && x.len() == y.len()
                && x.items().iter().zip(y.items()).all(|(a, b)| equal(a, b, depth + 1))
        }
        (Value::Map(x), Value::Map(y)) => {
            if x.same(y) {
                return true;
            }
            let (m, n) = (x.borrow(), y.borrow());
            x.ty().name() == y.ty().name()
                && x.is_nil() == y.is_nil()
                && m.len() == n.len()
                && m.iter().zip(n.iter()).all(|((k, a), (l, b))| k == l && equal(a, b, depth + 1))
        }
        (Value::Object(x), Value::Object(y)) => {
            if std::rc::Rc::ptr_eq(x, y) {
                return true;
            }
            if x.type_name() != y.type_name() {
                return false;
            }
            match (x.plain(), y.plain()) {
                (Some(a), Some(b)) => equal(&a, &b, depth + 1),
                _ => {
                    let (m, n) = (x.fields(), y.fields());
                    m.len() == n.len()
                        && x.string() == y.string()
                        && m.iter().zip(&n).all(|((_, a), (_, b))| equal(a, b, depth + 1))
                }
            }
        }
        _ => false,
    }
}
