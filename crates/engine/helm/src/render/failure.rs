//! Errors of templates in Helm's form: the place first, then what was said.

use fl_gotemplate::Finding;

use crate::error::Error;

const START: &str = "HELM_ERR_START";
const END: &str = "HELM_ERR_END";

/// `parse error at (chart/templates/file.yaml:3): …`
pub(super) fn of_parsing(file: &str, error: &fl_gotemplate::Error) -> Error {
    let text = error.to_string();
    let mut tokens = text.split(": ");
    let text = match (tokens.nth(1), tokens.last()) {
        (Some(location), Some(message)) => format!("parse error at ({location}): {message}"),
        (Some(location), None) => format!("parse error at ({location}): {location}"),
        (None, _) => format!("parse error in ({file}): {text}"),
    };
    Error::Template(text, finding(error))
}

fn finding(error: &fl_gotemplate::Error) -> Option<Box<Finding>> {
    error.finding().cloned().map(Box::new)
}

/// What `required` and `fail` say stands alone behind the place; other errors keep Go's full chain.
pub(super) fn of_execution(file: &str, error: &fl_gotemplate::Error) -> Error {
    let text = error.to_string();
    if error.is_budget() {
        return if error.wants_deeper_stack() { Error::TooDeep(text) } else { Error::Budget(text) };
    }
    let mut tokens = text.splitn(3, ": ");
    let (Some(_), Some(location), Some(rest)) = (tokens.next(), tokens.next(), tokens.next()) else {
        return Error::Template(format!("execution error in ({file}): {text}"), finding(error));
    };
    if let Some(start) = rest.find(START)
        && let Some(end) = rest.rfind(END)
        && start + START.len() <= end
    {
        let said = &rest[start + START.len()..end];
        return Error::Template(format!("execution error at ({location}): {said}"), finding(error));
    }
    Error::Template(text, finding(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_required_stand_alone() {
        let text = "template: c/templates/a.yaml:6:8: executing \"c/templates/a.yaml\" at <required \"x\" .Values.y>: error \
calling required: HELM_ERR_STARTneed: yHELM_ERR_END";
        let error = of_execution("c/templates/a.yaml", &fl_gotemplate::Error::Exec(text.into(), None));
        assert_eq!(error.to_string(), "execution error at (c/templates/a.yaml:6:8): need: y");
    }

    #[test]
    fn parse_errors_name_the_place() {
        let error = fl_gotemplate::Error::Parse(
            "template: c/templates/a.yaml:3: function \"x\" not defined".into(),
            None,
        );
        assert_eq!(
            of_parsing("c/templates/a.yaml", &error).to_string(),
            "parse error at (c/templates/a.yaml:3): function \"x\" not defined"
        );
    }
}
