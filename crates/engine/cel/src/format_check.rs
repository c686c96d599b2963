//! Static check of `format` clauses against the types of constant arguments.

/// An issue of a call of `format`; the flag says whether it is about one of its arguments.
pub(crate) struct FormatIssue {
    pub(crate) message: String,
    pub(crate) argument: Option<usize>,
}

/// Checks the clauses of `text` against the types of the arguments; an unknown type is `None`.
pub(crate) fn check(text: &str, types: &[Option<&str>]) -> Option<FormatIssue> {
    let whole = |message: String| Some(FormatIssue { message, argument: None });
    let mut rest = text.chars().peekable();
    let mut used = 0;
    while let Some(c) = rest.next() {
        if c != '%' {
            continue;
        }
        let Some(mut clause) = rest.next() else { return whole("unexpected end of string".to_owned()) };
        if clause == '%' {
            continue;
        }
        let Some(given) = types.get(used) else { return whole(format!("index {used} out of range")) };
        if clause == '.' {
            const WRONG: &str = "could not parse formatting clause: error while parsing precision";
            let mut digits = String::new();
            while let Some(digit) = rest.next_if(char::is_ascii_digit) {
                digits.push(digit);
            }
            let Some(end) = rest.next() else {
                return whole(format!("{WRONG}: could not find end of precision specifier"));
            };
            if digits.is_empty() {
                return whole(format!(
                    "{WRONG}: error while converting precision to integer: strconv.Atoi: parsing \"\": invalid syntax"
                ));
            }
            clause = end;
        }
        let (fits, wanted): (&[&str], &str) = match clause {
            's' => (&[], ""),
            'd' => (&["int", "uint"], "decimal clause can only be used on integers"),
            // Infinity and NaN are passed as strings.
            'f' => (&["double", "string"], "fixed-point clause can only be used on doubles"),
            'e' => (&["double", "string"], "scientific clause can only be used on doubles"),
            'b' => (&["int", "uint", "bool"], "only integers and bools can be formatted as binary"),
            'o' => (&["int", "uint"], "octal clause can only be used on integers"),
            'x' | 'X' => (
                &["int", "uint", "bytes", "string"],
                "only integers, byte buffers, and strings can be formatted as hex",
            ),
            other => {
                return whole(format!(
                    "could not parse formatting clause: unrecognized formatting clause {:?}",
                    other.to_string()
                ));
            }
        };
        if let Some(given) = given.filter(|given| clause != 's' && !fits.contains(given)) {
            let message = format!("error during formatting: {wanted}, was given {given}");
            return Some(FormatIssue { message, argument: Some(used) });
        }
        used += 1;
    }
    if used < types.len() {
        return whole(format!(
            "too many arguments supplied to string.format (expected {used}, got {})",
            types.len()
        ));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clauses_match_argument_types() {
        let said = |text: &str, types: &[Option<&str>]| check(text, types).map(|f| (f.message, f.argument));
        assert_eq!(said("%d and %% of %s", &[Some("int"), None]), None);
        assert_eq!(said("%.2f", &[Some("double")]), None);
        assert_eq!(
            said("%s %d", &[Some("int"), Some("string")]),
            Some((
                "error during formatting: decimal clause can only be used on integers, was given string"
                    .into(),
                Some(1)
            ))
        );
        assert_eq!(said("%s", &[]), Some(("index 0 out of range".into(), None)));
        assert_eq!(said("%", &[None]), Some(("unexpected end of string".into(), None)));
        assert_eq!(
            said("%s", &[None, None]),
            Some(("too many arguments supplied to string.format (expected 1, got 2)".into(), None))
        );
    }
}
