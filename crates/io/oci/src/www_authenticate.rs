//! The `WWW-Authenticate` header of a registry.

use std::collections::BTreeMap;

/// One way to log in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Challenge {
    Basic,
    Bearer { realm: String, service: Option<String>, scope: Option<String> },
}

/// Reads a `WWW-Authenticate` header; unknown schemes are left out.
pub fn parse_challenges(header: &str) -> Vec<Challenge> {
    let mut found = Vec::new();
    let mut rest = header.trim();
    while !rest.is_empty() {
        let end = rest.find([' ', ',']).unwrap_or(rest.len());
        let scheme = rest[..end].to_ascii_lowercase();
        rest = rest[end..].trim_start();
        let mut parameters = BTreeMap::new();
        while let Some((key, value, after)) = parameter(rest) {
            parameters.insert(key, value);
            rest = after;
        }
        match scheme.as_str() {
            "basic" => found.push(Challenge::Basic),
            "bearer" => found.push(Challenge::Bearer {
                realm: parameters.remove("realm").unwrap_or_default(),
                service: parameters.remove("service").filter(|s| !s.is_empty()),
                scope: parameters.remove("scope").filter(|s| !s.is_empty()),
            }),
            _ => {}
        }
        rest = rest.trim_start_matches([',', ' ']);
    }
    found
}

/// `key=value` or `key="value"`, and what follows it; `None` where the next scheme begins.
fn parameter(text: &str) -> Option<(String, String, &str)> {
    let text = text.trim_start_matches([',', ' ']);
    let equals = text.find('=')?;
    let key = &text[..equals];
    if key.is_empty() || key.contains([' ', ',', '"']) {
        return None;
    }
    let value = &text[equals + 1..];
    let Some(quoted) = value.strip_prefix('"') else {
        let end = value.find([',', ' ']).unwrap_or(value.len());
        return Some((key.to_ascii_lowercase(), value[..end].to_owned(), &value[end..]));
    };
    let mut out = String::new();
    let mut letters = quoted.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((key.to_ascii_lowercase(), out, &quoted[at + 1..])),
            '\\' => out.extend(letters.next().map(|(_, l)| l)),
            other => out.push(other),
        }
    }
    Some((key.to_ascii_lowercase(), out, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_headers() {
        assert_eq!(parse_challenges("Basic realm=\"x, y\""), [Challenge::Basic]);
        let bearer = |scope: Option<&str>| Challenge::Bearer {
            realm: "https://auth.example/token".into(),
            service: Some("registry".into()),
            scope: scope.map(str::to_owned),
        };
        let header =
            r#"Bearer realm="https://auth.example/token",service="registry",scope="repository:a/b:pull""#;
        assert_eq!(parse_challenges(header), [bearer(Some("repository:a/b:pull"))]);
        let two = r#"Basic realm=x, Bearer service=registry, realm="https://auth.example/token""#;
        assert_eq!(parse_challenges(two), [Challenge::Basic, bearer(None)]);
        assert_eq!(parse_challenges("Negotiate"), []);
    }

    #[test]
    fn nonsense_ends() {
        for text in ["", "=", ",,,", "Bearer \"", "Bearer realm=\"\\", "a=b=c", "Bearer realm", "é=\"é"] {
            parse_challenges(text);
        }
    }
}
