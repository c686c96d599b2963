//! Kubernetes' named formats: `format.dns1123Label().validate("x")`.

use crate::error::EvalError;
use crate::eval::Eval;
use crate::functions::opaque;
use crate::functions::strings::compiled;
use crate::value::{Opaque, Value};

const DNS1123_LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const DNS1123_SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const DNS1035_LABEL: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const QUALIFIED: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const LABEL_VALUE: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";

const NAMES: &[&str] = &[
    "dns1123Label",
    "dns1123Subdomain",
    "dns1035Label",
    "qualifiedName",
    "dns1123LabelPrefix",
    "dns1123SubdomainPrefix",
    "dns1035LabelPrefix",
    "labelValue",
    "uri",
    "uuid",
    "byte",
    "date",
    "datetime",
];

pub(super) fn call<'a>(name: &str, args: &[Value<'a>]) -> Option<Eval<'a>> {
    match (name, args) {
        ("format.named", [Value::Text(wanted)]) => {
            let found = NAMES.iter().find(|n| **n == wanted.as_ref());
            Some(Ok(Value::Optional(found.map(|n| Box::new(opaque(Opaque::Format(n)))))))
        }
        (_, []) => {
            let format = name.strip_prefix("format.")?;
            NAMES.iter().find(|n| **n == format).map(|n| Ok(opaque(Opaque::Format(n))))
        }
        ("validate", [Value::Opaque(Opaque::Format(format)), Value::Text(text)]) => {
            Some(validate(format, text))
        }
        _ => None,
    }
}

fn validate<'a>(format: &str, text: &str) -> Eval<'a> {
    let whole = |pattern: &str| compiled(&format!("^{pattern}$")).map(|r| r.is_match(text));
    // A prefix may end in a dash, since a generated suffix follows.
    let masked = match text.strip_suffix('-').filter(|stem| !stem.is_empty()) {
        Some(stem) => {
            let mut chars = stem.chars();
            chars.next_back();
            format!("{}a", chars.as_str())
        }
        None => text.to_owned(),
    };
    let prefix = |pattern: &str| compiled(&format!("^{pattern}$")).map(|r| r.is_match(&masked));
    let label = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
    let subdomain = r"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    let label1035 = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
    let (limit, fits, complaint): (usize, bool, &str) = match format {
        "dns1123Label" => (63, whole(DNS1123_LABEL)?, label),
        "dns1123LabelPrefix" => (63, prefix(DNS1123_LABEL)?, label),
        "dns1123Subdomain" => (253, whole(DNS1123_SUBDOMAIN)?, subdomain),
        "dns1123SubdomainPrefix" => (253, prefix(DNS1123_SUBDOMAIN)?, subdomain),
        "dns1035Label" => (63, whole(DNS1035_LABEL)?, label1035),
        "dns1035LabelPrefix" => (63, prefix(DNS1035_LABEL)?, label1035),
        "labelValue" => (
            63,
            whole(LABEL_VALUE)?,
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
        ),
        "qualifiedName" => {
            let (space, name) = text.split_once('/').map_or((None, text), |(s, n)| (Some(s), n));
            let space_fine = space.map_or(Ok(true), |s| {
                compiled(&format!("^{DNS1123_SUBDOMAIN}$")).map(|r| r.is_match(s) && s.len() <= 253)
            })?;
            let name_fine = compiled(&format!("^{QUALIFIED}$"))?.is_match(name) && name.len() <= 63;
            (
                usize::MAX,
                space_fine && name_fine,
                "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
            )
        }
        "uri" => (usize::MAX, fl_schema::formats::check("uri", text) == Some(true), "invalid URI"),
        "uuid" => (
            usize::MAX,
            fl_schema::formats::check("uuid", text) == Some(true),
            "does not match the UUID format",
        ),
        "byte" => (usize::MAX, fl_schema::formats::check("byte", text) == Some(true), "invalid base64"),
        "date" => (usize::MAX, fl_schema::formats::check("date", text) == Some(true), "invalid date"),
        "datetime" => {
            (usize::MAX, fl_schema::formats::check("date-time", text) == Some(true), "invalid datetime")
        }
        _ => return Err(EvalError::no_overload()),
    };
    let mut complaints = Vec::new();
    if text.len() > limit {
        complaints.push(Value::text(format!("must be no more than {limit} characters")));
    }
    if !fits {
        complaints.push(Value::text(complaint));
    }
    Ok(if complaints.is_empty() { Value::Optional(None) } else { Value::some(Value::list(complaints)) })
}
