//! Go's `fmt` over template values: `Sprint`, `Sprintln`, `Sprintf` with every verb and flag.

mod number;
mod printf;
mod text;
mod value;

pub use number::format_float;
pub use printf::sprintf;
pub use text::{quote_into, quoted, unicode_sharp};

use crate::func::CallError;
use crate::value::{Kind, Value};

/// Maximum nesting of printed values; a map can contain itself.
const MAX_DEPTH: usize = 100;

/// Flags of one verb.
#[derive(Clone, Copy, Debug, Default)]
struct Flags {
    width: Option<usize>,
    precision: Option<usize>,
    plus: bool,
    minus: bool,
    sharp: bool,
    space: bool,
    zero: bool,
    /// `%+v`
    plus_v: bool,
    /// `%#v`
    sharp_v: bool,
}

/// Prints into a buffer up to a size limit.
struct Printer<'o> {
    out: &'o mut Vec<u8>,
    start: usize,
    limit: usize,
    flags: Flags,
    erroring: bool,
    trouble: Option<&'static str>,
}

impl<'o> Printer<'o> {
    fn new(out: &'o mut Vec<u8>, limit: u64) -> Self {
        let start = out.len();
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Printer { out, start, limit, flags: Flags::default(), erroring: false, trouble: None }
    }

    fn finish(self) -> Result<(), CallError> {
        if let Some(trouble) = self.trouble {
            return Err(CallError::budget(trouble));
        }
        if self.out.len() - self.start > self.limit {
            return Err(CallError::budget(format!(
                "printed text exceeds the budget of {} bytes",
                self.limit
            )));
        }
        Ok(())
    }

    /// Whether printing must stop.
    fn stopped(&mut self) -> bool {
        self.trouble.is_some() || self.out.len() - self.start > self.limit
    }
}

/// Appends a value as `%v` prints it.
///
/// # Errors
/// The text is longer than `limit` bytes, or the value is nested too deeply.
pub fn print_into(out: &mut Vec<u8>, value: &Value, limit: u64) -> Result<(), CallError> {
    if let Value::Object(object) = value
        && let Some(text) = object.addressed_string()
    {
        out.extend_from_slice(&text);
        return Ok(());
    }
    match value {
        Value::Str(text) => {
            out.extend_from_slice(text);
            Ok(())
        }
        Value::Bool(b) => {
            out.extend_from_slice(if *b { b"true" } else { b"false" });
            Ok(())
        }
        // Templates dereference a pointer to print it, where `Sprint` would show `&{…}`.
        Value::Object(object) if object.kind() == Kind::Pointer && object.string().is_none() => {
            let mut printer = Printer::new(out, limit);
            printer.print_struct(object.as_ref(), 'v', 0);
            printer.finish()
        }
        _ => {
            let mut printer = Printer::new(out, limit);
            printer.print_arg(value, 'v');
            printer.finish()
        }
    }
}

/// A value as `%v` prints it, for error messages; truncated if very long.
pub fn display(value: &Value) -> String {
    let mut out = Vec::new();
    let mut printer = Printer::new(&mut out, 4096);
    printer.print_arg(value, 'v');
    String::from_utf8_lossy(&out).into_owned()
}

/// `fmt.Sprint`: blanks between operands if neither is a string.
///
/// # Errors
/// See [`print_into`].
pub fn sprint(args: &[Value], limit: u64) -> Result<Vec<u8>, CallError> {
    let mut out = Vec::new();
    let mut printer = Printer::new(&mut out, limit);
    let mut previous_is_string = false;
    for (i, arg) in args.iter().enumerate() {
        let is_string = arg.kind() == Kind::String;
        if i > 0 && !is_string && !previous_is_string {
            printer.out.push(b' ');
        }
        printer.print_arg(arg, 'v');
        previous_is_string = is_string;
    }
    printer.finish()?;
    Ok(out)
}

/// `fmt.Sprintln`
///
/// # Errors
/// See [`print_into`].
pub fn sprintln(args: &[Value], limit: u64) -> Result<Vec<u8>, CallError> {
    let mut out = Vec::new();
    let mut printer = Printer::new(&mut out, limit);
    for (i, arg) in args.iter().enumerate() {
        if i > 0 {
            printer.out.push(b' ');
        }
        printer.print_arg(arg, 'v');
    }
    printer.out.push(b'\n');
    printer.finish()?;
    Ok(out)
}
