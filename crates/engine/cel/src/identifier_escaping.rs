//! Escaping of property names that are not CEL identifiers.

/// Reserved words, which cannot be variable names.
pub(crate) const RESERVED: &[&str] = &[
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Whether a property of that name must be escaped because it is a keyword.
fn is_keyword(word: &str) -> bool {
    matches!(word, "true" | "false" | "null" | "in") || RESERVED.contains(&word)
}

/// Whether a name is a valid variable name.
#[must_use]
pub fn is_identifier(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !is_keyword(name)
}

/// The property name for an escaped name.
pub(crate) fn unescape(name: &str) -> String {
    if let Some(word) = name.strip_prefix("__").and_then(|n| n.strip_suffix("__"))
        && is_keyword(word)
    {
        return word.to_owned();
    }
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    const ESCAPES: &[(&str, &str)] =
        &[("__underscores__", "__"), ("__dot__", "."), ("__dash__", "-"), ("__slash__", "/")];
    while let Some(at) = rest.find("__") {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        match ESCAPES.iter().find(|(escaped, _)| rest.starts_with(escaped)) {
            Some((escaped, plain)) => {
                out.push_str(plain);
                rest = &rest[escaped.len()..];
            }
            None => {
                out.push_str("__");
                rest = &rest[2..];
            }
        }
    }
    out.push_str(rest);
    out
}

/// Whether a property can be accessed in a rule, escaped or not.
pub(crate) fn is_reachable(name: &str) -> bool {
    let mut chars = name.chars();
    let first =
        chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_' || c == '.' || c == '-' || c == '/');
    first && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '/'))
}

#[cfg(test)]
mod tests {
    use super::unescape;

    #[test]
    fn escaped_names_are_unescaped() {
        assert_eq!(unescape("a__dash__b__dot__c__slash__d__underscores__e"), "a-b.c/d__e");
        assert_eq!(unescape("__namespace__"), "namespace");
        assert_eq!(unescape("plain__x"), "plain__x");
    }
}
