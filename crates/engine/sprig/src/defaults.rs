//! Defaults, conditions and reflection.

use fl_gotemplate::{Functions, Type, Value};

use crate::args::{A, S, bytes, fixed, variadic};
use crate::cast::empty;
use crate::equal::deep_equal;

pub(crate) fn add(f: &mut Functions) {
    variadic(f, "default", &[A, A], |_, a| {
        let given = a.get(1).filter(|v| !empty(v));
        Ok(given.unwrap_or(&a[0]).clone())
    });
    fixed(f, "empty", &[A], |_, a| Ok(empty(&a[0]).into()));
    variadic(f, "coalesce", &[A], |_, a| Ok(a.iter().find(|v| !empty(v)).cloned().unwrap_or(Value::Nil)));
    variadic(f, "all", &[A], |_, a| Ok((!a.iter().any(empty)).into()));
    variadic(f, "any", &[A], |_, a| Ok(a.iter().any(|v| !empty(v)).into()));
    fixed(f, "ternary", &[A, A, Type::Bool], |_, a| Ok(a[usize::from(!a[2].truth())].clone()));
    fixed(f, "typeOf", &[A], |_, a| Ok(a[0].type_name().into_owned().into()));
    fixed(f, "typeIs", &[S, A], |_, a| Ok((bytes(a, 0) == a[1].type_name().as_bytes()).into()));
    fixed(f, "typeIsLike", &[S, A], |_, a| {
        let name = a[1].type_name();
        let like = name.as_bytes() == bytes(a, 0) || name.as_bytes().strip_prefix(b"*") == Some(bytes(a, 0));
        Ok(like.into())
    });
    fixed(f, "kindOf", &[A], |_, a| Ok(a[0].kind().name().into()));
    fixed(f, "kindIs", &[S, A], |_, a| Ok((bytes(a, 0) == a[1].kind().name().as_bytes()).into()));
    fixed(f, "deepEqual", &[A, A], |_, a| Ok(deep_equal(&a[0], &a[1]).into()));
}
