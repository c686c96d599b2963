//! Template errors in Helm's format: location first, then the message.

use fl_gotemplate::Excerpt;

use crate::error::Error;

const START: &str = "HELM_ERR_START";
const END: &str = "HELM_ERR_END";

/// `parse error at (chart/templates/file.yaml:3): …`
pub(super) fn from_parse_error(file: &str, error: &fl_gotemplate::Error) -> Error {
    let text = error.to_string();
    let mut tokens = text.split(": ");
    let text = match (tokens.nth(1), tokens.last()) {
        (Some(location), Some(message)) => format!("parse error at ({location}): {message}"),
        (Some(location), None) => format!("parse error at ({location}): {location}"),
        (None, _) => format!("parse error in ({file}): {text}"),
    };
    Error::Template(text, excerpt(error))
}

fn excerpt(error: &fl_gotemplate::Error) -> Option<Box<Excerpt>> {
    error.excerpt().cloned().map(Box::new)
}

/// `required` and `fail` keep only their message after the location; other errors keep Go's full chain.
pub(super) fn from_exec_error(file: &str, error: &fl_gotemplate::Error) -> Error {
    let text = error.to_string();
    if error.is_budget() {
        return if error.exceeded_stack() { Error::TooDeep(text) } else { Error::Budget(text) };
    }
    let mut tokens = text.splitn(3, ": ");
    let (Some(_), Some(location), Some(rest)) = (tokens.next(), tokens.next(), tokens.next()) else {
        return Error::Template(format!("execution error in ({file}): {text}"), excerpt(error));
    };
    if let Some(start) = rest.find(START)
        && let Some(end) = rest.rfind(END)
        && start + START.len() <= end
    {
        let said = &rest[start + START.len()..end];
        return Error::Template(format!("execution error at ({location}): {said}"), excerpt(error));
    }
    Error::Template(text, excerpt(error))
}

/// The error in Helm 4's format: one line per template, from the outermost to the failing one. If the chain
/// contains anything but templates, it stays on one line.
pub(super) fn with_call_chain(error: Error) -> Error {
    match error {
        Error::Template(text, excerpt) => {
            let lines = trace(&text);
            Error::Template(lines.unwrap_or(text), excerpt)
        }
        other => other,
    }
}

fn trace(text: &str) -> Option<String> {
    const CALL: &str = "error calling ";
    let mut lines = String::new();
    let mut rest = text;
    loop {
        let inner = rest.strip_prefix("template: ")?;
        if inner.starts_with("no template ") {
            lines.push_str(rest);
            break;
        }
        let Some((place, about)) = inner.split_once(": executing ") else {
            let (place, why) = inner.rsplit_once(": ")?;
            lines.push_str(&format!("{place}\n  {why}"));
            break;
        };
        let (name, about) = about.strip_prefix('"')?.split_once('"')?;
        let (what, why) = about.strip_prefix(" at <")?.split_once(">: ")?;
        let shown = why.split_once(" template:").map_or(why, |(shown, _)| shown);
        lines.push_str(&format!("{place}\n  executing \"{name}\" at <{what}>:\n    {shown}\n"));
        // The message of a function: another template's error, or any other text.
        let Some((_, said)) = why.strip_prefix(CALL).and_then(|call| call.split_once(": ")) else { break };
        rest = said;
    }
    Some(lines.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn template_chains_match_helm_4() {
        let nil = "template: c/templates/a.yaml:1:9: executing \"c/templates/a.yaml\" at <.Values.x.y>: nil pointer evaluating interface {}.y";
        assert_eq!(
            trace(nil).as_deref(),
            Some(
                "c/templates/a.yaml:1:9\n  executing \"c/templates/a.yaml\" at <.Values.x.y>:\n    nil pointer evaluating interface {}.y"
            )
        );
        let nested = "template: c/templates/a.yaml:1:3: executing \"c/templates/a.yaml\" at <include \"x\" .>: error calling include: \
template: c/templates/_h.tpl:2:5: executing \"x\" at <.Values.x.y>: nil pointer evaluating interface {}.y";
        assert_eq!(
            trace(nested).as_deref(),
            Some(
                "c/templates/a.yaml:1:3\n  executing \"c/templates/a.yaml\" at <include \"x\" .>:\n    error calling include:\n\
c/templates/_h.tpl:2:5\n  executing \"x\" at <.Values.x.y>:\n    nil pointer evaluating interface {}.y"
            )
        );
        let missing = "template: a:1:3: executing \"a\" at <include \"x\" .>: error calling include: template: no template \"x\" \
associated with template \"gotpl\"";
        assert_eq!(
            trace(missing).as_deref(),
            Some(
                "a:1:3\n  executing \"a\" at <include \"x\" .>:\n    error calling include:\n\
template: no template \"x\" associated with template \"gotpl\""
            )
        );
        for plain in [
            "template: a:1:3: executing \"a\" at <index .l 5>: error calling index: index out of range: 5",
            "execution error at (a:1:3): need: y",
            "parse error at (a:1): unexpected EOF",
        ] {
            assert_eq!(trace(plain), None, "{plain}");
        }
    }

    #[test]
    fn required_keeps_only_its_message() {
        let text = "template: c/templates/a.yaml:6:8: executing \"c/templates/a.yaml\" at <required \"x\" .Values.y>: error \
calling required: HELM_ERR_STARTneed: yHELM_ERR_END";
        let error = from_exec_error("c/templates/a.yaml", &fl_gotemplate::Error::Exec(text.into(), None));
        assert_eq!(error.to_string(), "execution error at (c/templates/a.yaml:6:8): need: y");
    }

    #[test]
    fn parse_errors_have_a_location() {
        let error = fl_gotemplate::Error::Parse(
            "template: c/templates/a.yaml:3: function \"x\" not defined".into(),
            None,
        );
        assert_eq!(
            from_parse_error("c/templates/a.yaml", &error).to_string(),
            "parse error at (c/templates/a.yaml:3): function \"x\" not defined"
        );
    }
}
