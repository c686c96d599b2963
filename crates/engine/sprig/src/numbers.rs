//! Numbers: conversions, integer and float arithmetic, ranges.

use fl_gotemplate::{CallError, Context, Functions, IntKind, List, ListType, Type, Value, fmt, strconv};

use crate::args::{A, I, Out, S, bytes, fixed, int, string, variadic};
use crate::cast::{to_float, to_int};
use crate::decimal::Decimal;

pub(crate) fn add(f: &mut Functions) {
    fixed(f, "atoi", &[S], |_, a| Ok(Value::int(atoi(bytes(a, 0)))));
    fixed(f, "int", &[A], |_, a| Ok(Value::int(to_int(&a[0]))));
    fixed(f, "int64", &[A], |_, a| Ok(Value::int64(to_int(&a[0]))));
    fixed(f, "float64", &[A], |_, a| Ok(Value::Float(to_float(&a[0]))));
    fixed(f, "toDecimal", &[A], to_decimal);
    fixed(f, "add1", &[A], |_, a| Ok(Value::int64(to_int(&a[0]).wrapping_add(1))));
    variadic(f, "add", &[A], |_, a| {
        Ok(Value::int64(a.iter().fold(0i64, |sum, v| sum.wrapping_add(to_int(v)))))
    });
    fixed(f, "sub", &[A, A], |_, a| Ok(Value::int64(to_int(&a[0]).wrapping_sub(to_int(&a[1])))));
    fixed(f, "div", &[A, A], |_, a| divide(a, i64::wrapping_div));
    fixed(f, "mod", &[A, A], |_, a| divide(a, i64::wrapping_rem));
    variadic(f, "mul", &[A, A], |_, a| {
        Ok(Value::int64(a[1..].iter().fold(to_int(&a[0]), |product, v| product.wrapping_mul(to_int(v)))))
    });
    for name in ["max", "biggest"] {
        variadic(f, name, &[A, A], |_, a| Ok(Value::int64(a.iter().map(to_int).max().unwrap_or(0))));
    }
    variadic(f, "min", &[A, A], |_, a| Ok(Value::int64(a.iter().map(to_int).min().unwrap_or(0))));
    variadic(f, "maxf", &[A, A], |_, a| Ok(Value::Float(fold_floats(a, go_max))));
    variadic(f, "minf", &[A, A], |_, a| Ok(Value::Float(fold_floats(a, go_min))));
    fixed(f, "ceil", &[A], |_, a| Ok(Value::Float(to_float(&a[0]).ceil())));
    fixed(f, "floor", &[A], |_, a| Ok(Value::Float(to_float(&a[0]).floor())));
    variadic(f, "round", &[A, I, Type::Float64], round);
    fixed(f, "add1f", &[A], |cx, a| decimals(cx, &[a[0].clone(), Value::int(1)], Decimal::add));
    variadic(f, "addf", &[A], |cx, a| {
        let mut all = vec![Value::Float(0.0)];
        all.extend_from_slice(a);
        decimals(cx, &all, Decimal::add)
    });
    variadic(f, "subf", &[A, A], |cx, a| decimals(cx, a, Decimal::sub));
    variadic(f, "mulf", &[A, A], |cx, a| decimals(cx, a, Decimal::mul));
    variadic(f, "divf", &[A, A], |cx, a| decimals(cx, a, Decimal::div));
    fixed(f, "until", &[I], |cx, a| {
        let count = int(a, 0);
        until_list(cx, 0, count, if count < 0 { -1 } else { 1 })
    });
    fixed(f, "untilStep", &[I, I, I], |cx, a| until_list(cx, int(a, 0), int(a, 1), int(a, 2)));
    variadic(f, "seq", &[I], seq);
}

/// `strconv.Atoi` without its error: invalid text is zero, an out-of-range number is the nearest one.
fn atoi(s: &[u8]) -> i64 {
    match strconv::parse_int(s, 10) {
        Ok(n) => n,
        Err(strconv::NumError::Range) if s.first() == Some(&b'-') => i64::MIN,
        Err(strconv::NumError::Range) => i64::MAX,
        Err(strconv::NumError::Syntax) => 0,
    }
}

/// Parses the printed value as octal.
fn to_decimal(cx: &mut Context<'_>, a: &[Value]) -> Out {
    let text = fmt::sprint(a, cx.max_value_bytes())?;
    Ok(Value::int64(strconv::parse_int(&text, 8).unwrap_or(0)))
}

fn divide(a: &[Value], operation: fn(i64, i64) -> i64) -> Out {
    let divisor = to_int(&a[1]);
    if divisor == 0 {
        return Err(CallError::new("runtime error: integer divide by zero"));
    }
    Ok(Value::int64(operation(to_int(&a[0]), divisor)))
}

fn fold_floats(a: &[Value], pick: fn(f64, f64) -> f64) -> f64 {
    a[1..].iter().fold(to_float(&a[0]), |x, v| pick(x, to_float(v)))
}

/// `math.Max`: NaN wins, and zero is larger than minus zero.
fn go_max(x: f64, y: f64) -> f64 {
    if x.is_nan() || y.is_nan() {
        return if x == f64::INFINITY || y == f64::INFINITY { f64::INFINITY } else { f64::NAN };
    }
    if x == 0.0 && y == 0.0 {
        return if x.is_sign_negative() { y } else { x };
    }
    x.max(y)
}

fn go_min(x: f64, y: f64) -> f64 {
    -go_max(-x, -y)
}

fn round(_: &mut Context<'_>, a: &[Value]) -> Out {
    let on = match a.get(2) {
        Some(Value::Float(on)) => *on,
        _ => 0.5,
    };
    let pow = 10f64.powi(i32::try_from(int(a, 1)).unwrap_or(i32::MAX));
    let digit = pow * to_float(&a[0]);
    let rounded = if digit.fract() >= on { digit.ceil() } else { digit.floor() };
    Ok(Value::Float(rounded / pow))
}

fn decimals(
    cx: &mut Context<'_>,
    a: &[Value],
    operation: fn(&Decimal, &Decimal) -> Result<Decimal, CallError>,
) -> Out {
    let mut total = Decimal::from_float(to_float(&a[0]))?;
    for value in &a[1..] {
        cx.step(16)?;
        total = operation(&total, &Decimal::from_float(to_float(value))?)?;
    }
    Ok(Value::Float(total.to_float()))
}

/// The numbers of Sprig's `untilStep`; fails before allocating if there are too many.
fn until(cx: &mut Context<'_>, start: i64, stop: i64, step: i64) -> Result<Vec<i64>, CallError> {
    if stop < start && step >= 0 || stop >= start && step <= 0 {
        return Ok(Vec::new());
    }
    let count = stop.abs_diff(start).div_ceil(step.unsigned_abs());
    cx.reserve(count.saturating_mul(size_of::<Value>() as u64))?;
    cx.step(count)?;
    Ok((0..count).map(|i| start.wrapping_add(step.wrapping_mul(i as i64))).collect())
}

fn until_list(cx: &mut Context<'_>, start: i64, stop: i64, step: i64) -> Out {
    let numbers = until(cx, start, stop, step)?;
    let items = numbers.into_iter().map(|n| Value::Int(IntKind::Int, n)).collect();
    Ok(Value::List(List::with_type(ListType::Int, items)))
}

fn seq(cx: &mut Context<'_>, a: &[Value]) -> Out {
    let toward = |start: i64, end: i64| if end < start { -1 } else { 1 };
    let numbers = match a.len() {
        1 => {
            let end = int(a, 0);
            let step = toward(1, end);
            until(cx, 1, end.wrapping_add(step), step)?
        }
        2 => {
            let (start, end) = (int(a, 0), int(a, 1));
            let step = toward(start, end);
            until(cx, start, end.wrapping_add(step), step)?
        }
        3 => {
            let (start, step, end) = (int(a, 0), int(a, 1), int(a, 2));
            let direction = toward(start, end);
            if direction < 0 && step > 0 {
                return Ok("".into());
            }
            until(cx, start, end.wrapping_add(direction), step)?
        }
        _ => return Ok("".into()),
    };
    let words: Vec<String> = numbers.iter().map(i64::to_string).collect();
    string(cx, words.join(" "))
}
