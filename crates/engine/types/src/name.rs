//! Validation of names and labels, with Kubernetes' messages.

/// Why a name is invalid, with the messages of the API server.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("{}", .0.join("; "))]
pub struct NameError(Vec<String>);

impl NameError {
    /// The single messages.
    #[must_use]
    pub fn messages(&self) -> &[String] {
        &self.0
    }
}

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const QUALIFIED: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";

fn regex_message(message: &str, regex: &str, examples: &[&str]) -> String {
    let examples = examples.iter().map(|e| format!("'{e}', ")).collect::<Vec<_>>().join(" or ");
    format!("{message} (e.g. {examples}regex used for validation is '{regex}')")
}

fn too_long(limit: usize) -> String {
    format!("must be no more than {limit} characters")
}

fn result(messages: Vec<String>) -> Result<(), NameError> {
    if messages.is_empty() { Ok(()) } else { Err(NameError(messages)) }
}

/// Whether a text starts and ends with `edge` and has only `inner` in between; false for an empty text.
fn bounded(text: &str, edge: impl Fn(u8) -> bool, inner: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    match (bytes.first(), bytes.last()) {
        (Some(first), Some(last)) => {
            edge(*first) && edge(*last) && bytes.iter().all(|b| edge(*b) || inner(*b))
        }
        _ => false,
    }
}

fn is_lower_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

fn is_label(text: &str) -> bool {
    bounded(text, is_lower_alphanumeric, |b| b == b'-')
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

fn is_qualified(text: &str) -> bool {
    bounded(text, |b| b.is_ascii_alphanumeric(), |b| matches!(b, b'-' | b'_' | b'.'))
}

/// Checks a DNS-1123 label of at most 63 bytes: namespaces, container names.
///
/// # Errors
/// The messages of the API server.
pub fn check_dns1123_label(text: &str) -> Result<(), NameError> {
    let mut messages = Vec::new();
    if text.len() > 63 {
        messages.push(too_long(63));
    }
    if !is_label(text) {
        messages.push(if is_subdomain(text) {
            "must not contain dots".to_owned()
        } else {
            regex_message(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', \
                 and must start and end with an alphanumeric character",
                LABEL,
                &["my-name", "123-abc"],
            )
        });
    }
    result(messages)
}

/// Checks a DNS-1123 subdomain of at most 253 bytes: most object names.
///
/// # Errors
/// The messages of the API server.
pub fn check_dns1123_subdomain(text: &str) -> Result<(), NameError> {
    let mut messages = Vec::new();
    if text.len() > 253 {
        messages.push(too_long(253));
    }
    if !is_subdomain(text) {
        messages.push(regex_message(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
             and must start and end with an alphanumeric character",
            SUBDOMAIN,
            &["example.com"],
        ));
    }
    result(messages)
}

/// Checks a DNS-1035 label, which starts with a letter: Service names.
///
/// # Errors
/// The messages of the API server.
pub fn check_dns1035_label(text: &str) -> Result<(), NameError> {
    let mut messages = Vec::new();
    if text.len() > 63 {
        messages.push(too_long(63));
    }
    if !(is_label(text) && text.as_bytes()[0].is_ascii_lowercase()) {
        messages.push(regex_message(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', \
             start with an alphabetic character, and end with an alphanumeric character",
            "[a-z]([-a-z0-9]*[a-z0-9])?",
            &["my-name", "abc-123"],
        ));
    }
    result(messages)
}

/// Checks `[prefix/]name`: label and annotation keys.
///
/// # Errors
/// The messages of the API server.
pub fn check_qualified_name(text: &str) -> Result<(), NameError> {
    let regex = || {
        regex_message(
            "must consist of alphanumeric characters, '-', '_' or '.', \
             and must start and end with an alphanumeric character",
            QUALIFIED,
            &["MyName", "my.name", "123-abc"],
        )
    };
    let mut messages = Vec::new();
    let parts = text.split('/').collect::<Vec<_>>();
    let name = match parts[..] {
        [name] => name,
        [prefix, name] => {
            if prefix.is_empty() {
                messages.push("prefix part must be non-empty".to_owned());
            } else if let Err(error) = check_dns1123_subdomain(prefix) {
                messages.extend(error.0.iter().map(|m| format!("prefix part {m}")));
            }
            name
        }
        _ => {
            let tail = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return Err(NameError(vec![format!("a qualified name {}{tail}", regex())]));
        }
    };
    if name.is_empty() {
        messages.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        messages.push(format!("name part {}", too_long(63)));
    }
    if !is_qualified(name) {
        messages.push(format!("name part {}", regex()));
    }
    result(messages)
}

/// Checks a label value: empty, or up to 63 bytes.
///
/// # Errors
/// The messages of the API server.
pub fn check_label_value(text: &str) -> Result<(), NameError> {
    let mut messages = Vec::new();
    if text.len() > 63 {
        messages.push(too_long(63));
    }
    if !(text.is_empty() || is_qualified(text)) {
        messages.push(regex_message(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
             and must start and end with an alphanumeric character",
            "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?",
            &["MyValue", "my_value", "12345"],
        ));
    }
    result(messages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_validated() {
        for good in ["a", "a-b", "0a", "a--b"] {
            assert_eq!(check_dns1123_label(good), Ok(()), "{good}");
        }
        assert_eq!(check_dns1123_label("a.b").expect_err("dots").to_string(), "must not contain dots");
        for bad in ["", "-a", "a-", "A", "a_b", "ä"] {
            assert!(check_dns1123_label(bad).is_err(), "{bad}");
        }
        for (good, text) in [(true, "a.b.c"), (false, "a..b"), (false, ".a"), (true, "1.2")] {
            assert_eq!(check_dns1123_subdomain(text).is_ok(), good, "{text}");
        }
        assert!(check_dns1035_label("1a").is_err());
        assert!(check_dns1035_label("").is_err());
        assert_eq!(
            check_dns1123_subdomain("A").expect_err("upper case").to_string(),
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and \
             must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
             '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
        );
    }

    #[test]
    fn label_keys_and_values_are_validated() {
        for good in ["a", "example.com/a", "A_b.c-d"] {
            assert_eq!(check_qualified_name(good), Ok(()), "{good}");
        }
        for bad in ["", "/a", "a/", "a/b/c", "Ex.com/a", "-a", "a b"] {
            assert!(check_qualified_name(bad).is_err(), "{bad}");
        }
        assert_eq!(check_label_value(""), Ok(()));
        assert!(check_label_value("a b").is_err());
        assert!(check_label_value(&"a".repeat(64)).is_err());
    }
}
