//! Helm's own functions: `include`, `tpl`, `required`, `lookup` and relatives.

use fl_gotemplate::{CallError, Context, Functions, Str, Value, fmt};

use crate::args::{A, Out, S, bytes, fixed, string, text};
use crate::host::{HostContext, Mode};

/// Maximum recursion of a template name in `include`, as in Helm.
const MAX_NESTED: u32 = 1000;

/// Helm marks messages of `fail` and `required` so that it can extract them from errors.
pub const MESSAGE_START: &str = "HELM_ERR_START";
/// End of such a message.
pub const MESSAGE_END: &str = "HELM_ERR_END";

pub(crate) fn add(f: &mut Functions) {
    fixed(f, "include", &[S, A], include);
    fixed(f, "tpl", &[S, A], tpl);
    fixed(f, "required", &[S, A], required);
    fixed(f, "fail", &[S], |cx, a| match mode(cx) {
        Mode::Lint => Ok("".into()),
        Mode::Render => Err(marked(bytes(a, 0))),
    });
    fixed(f, "lookup", &[S, S, S, S], |cx, a| {
        let host = HostContext::of(cx)?;
        if host.mode() == Mode::Lint {
            return Ok(Value::dict());
        }
        Ok(host.host().lookup(&text(a, 0), &text(a, 1), &text(a, 2), &text(a, 3))?)
    });
    // Names are never resolved: a render must neither depend on the network nor leak to it.
    fixed(f, "getHostByName", &[S], |_, _| Ok("".into()));
}

fn mode(cx: &Context<'_>) -> Mode {
    HostContext::of(cx).map_or(Mode::Render, |host| host.mode())
}

fn marked(message: &[u8]) -> CallError {
    CallError::new(format!("{MESSAGE_START}{}{MESSAGE_END}", String::from_utf8_lossy(message)))
}

fn include(cx: &mut Context<'_>, a: &[Value]) -> Out {
    let Some(name) = a[0].as_str() else { return Ok("".into()) };
    if cx.count_name(name, 1) > MAX_NESTED + 1 {
        cx.count_name(name, -1);
        return Err(CallError::new(format!(
            "rendering template has a nested reference name: {name}: unable to execute template"
        )));
    }
    let result = cx.execute_template(name, a[1].clone());
    cx.count_name(name, -1);
    string(cx, result?)
}

fn tpl(cx: &mut Context<'_>, a: &[Value]) -> Out {
    let Some(source) = a[0].as_str() else { return Ok("".into()) };
    if memchr::memmem::find(source, b"{{").is_none() {
        return string(cx, without_no_value(source));
    }
    let shown = || fmt::quoted(source);
    match cx.execute_text("gotpl", source, a[1].clone()) {
        Ok(Ok(out)) => string(cx, without_no_value(&out)),
        Ok(Err(error)) => Err(error.context(&format!("cannot parse template {}", shown()))),
        Err(error) => Err(error.context(&format!("error during tpl function execution for {}", shown()))),
    }
}

/// Helm removes `<no value>` from rendered text.
pub fn without_no_value(out: &[u8]) -> Str {
    const MARK: &[u8] = b"<no value>";
    let mut kept = Vec::with_capacity(out.len());
    let mut from = 0;
    for at in memchr::memmem::find_iter(out, MARK) {
        kept.extend_from_slice(&out[from..at]);
        from = at + MARK.len();
    }
    kept.extend_from_slice(&out[from..]);
    kept.into()
}

fn required(cx: &mut Context<'_>, a: &[Value]) -> Out {
    let missing = match &a[1] {
        Value::Nil => true,
        Value::Str(text) => text.is_empty(),
        _ => false,
    };
    match (missing, mode(cx)) {
        (false, _) => Ok(a[1].clone()),
        (true, Mode::Lint) => Ok("".into()),
        (true, Mode::Render) => Err(marked(bytes(a, 0))),
    }
}
