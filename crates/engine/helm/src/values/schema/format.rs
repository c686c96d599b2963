//! The `format` keyword.

mod time;

use std::net::Ipv6Addr;

/// Formats checked here with the rules and messages of the validator that Helm uses; others are left to the
/// library.
pub(super) const SUPPORTED: &[&str] = &[
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "iri",
    "iri-reference",
    "json-pointer",
    "period",
    "regex",
    "relative-json-pointer",
    "semver",
    "time",
    "uri",
    "uri-reference",
    "uuid",
];

/// Checks that text has a format. Unknown formats accept everything.
pub(super) fn check(format: &str, text: &str) -> Result<(), String> {
    match format {
        "date" => time::date(text),
        "date-time" => time::date_time(text),
        "duration" => time::duration(text),
        "period" => time::period(text),
        "time" => time::time(text),
        "email" => email(text),
        "hostname" => hostname(text),
        "ipv4" => ipv4(text),
        "ipv6" => ipv6(text),
        "regex" => fl_go::regexp::compile(text).map(drop).map_err(|why| why.to_string()),
        "json-pointer" => pointer(text),
        "relative-json-pointer" => relative_pointer(text),
        "semver" => semver(text),
        "uri" | "iri" => uri(text),
        "uri-reference" | "iri-reference" => uri_reference(text),
        "uuid" => uuid(text),
        _ => Ok(()),
    }
}

fn fail<T>(why: &str) -> Result<T, String> {
    Err(why.to_owned())
}

fn invalid_character(c: char) -> String {
    format!("invalid character {c:?}")
}

fn ipv4(text: &str) -> Result<(), String> {
    let parts: Vec<&str> = text.split('.').collect();
    if parts.len() != 4 {
        return fail("expected four decimals");
    }
    for part in parts {
        if part.len() > 1 && part.starts_with('0') {
            return fail("leading zeros");
        }
        let number: i64 = part.parse().map_err(|_| {
            format!("strconv.Atoi: parsing {}: invalid syntax", fl_gotemplate::fmt::quoted(part.as_bytes()))
        })?;
        if !(0..=255).contains(&number) {
            return fail("decimal must be between 0 and 255");
        }
    }
    Ok(())
}

fn ipv6(text: &str) -> Result<(), String> {
    if !text.contains(':') {
        return fail("missing colon");
    }
    if text.contains('%') {
        return fail("zone id is not a part of ipv6 address");
    }
    let shown = || fl_gotemplate::fmt::quoted(text.as_bytes());
    text.parse::<Ipv6Addr>().map(drop).map_err(|_| format!("ParseAddr({}): unable to parse IP", shown()))
}

fn hostname(text: &str) -> Result<(), String> {
    let text = text.strip_suffix('.').unwrap_or(text);
    if text.len() > 253 {
        return fail("more than 253 characters long");
    }
    for label in text.split('.') {
        if label.is_empty() || label.len() > 63 {
            return fail("label must be 1 to 63 characters long");
        }
        if label.starts_with('-') {
            return fail("label starts with hyphen");
        }
        if label.ends_with('-') {
            return fail("label ends with hyphen");
        }
        if let Some(c) = label.chars().find(|c| !c.is_ascii_alphanumeric() && *c != '-') {
            return Err(invalid_character(c));
        }
    }
    Ok(())
}

fn email(text: &str) -> Result<(), String> {
    if text.len() > 254 {
        return fail("more than 255 characters long");
    }
    let Some((local, domain)) = text.rsplit_once('@') else { return fail("missing @") };
    if local.len() > 64 {
        return fail("local part more than 64 characters long");
    }
    if local.len() > 1 && local.starts_with('"') {
        let mut inner = local[1..].chars();
        inner.next_back();
        if inner.as_str().contains(['\\', '"']) {
            return fail("backslash and quote are not allowed within quoted local part");
        }
    } else {
        if local.starts_with('.') {
            return fail("starts with dot");
        }
        if local.ends_with('.') {
            return fail("ends with dot");
        }
        if local.contains("..") {
            return fail("consecutive dots");
        }
        let fine = |c: char| c.is_ascii_alphanumeric() || ".!#$%&'*+-/=?^_`{|}~".contains(c);
        if let Some(c) = local.chars().find(|c| !fine(*c)) {
            return Err(invalid_character(c));
        }
    }
    match domain.strip_prefix('[').and_then(|domain| domain.strip_suffix(']')) {
        Some(address) => match address.strip_prefix("IPv6:") {
            Some(address) => ipv6(address).map_err(|why| format!("invalid ipv6 address: {why}")),
            None => ipv4(address).map_err(|why| format!("invalid ipv4 address: {why}")),
        },
        None => hostname(domain).map_err(|why| format!("invalid domain: {why}")),
    }
}

fn uuid(text: &str) -> Result<(), String> {
    const LENGTHS: [usize; 5] = [8, 4, 4, 4, 12];
    let parts: Vec<&str> = text.split('-').collect();
    if parts.len() != LENGTHS.len() {
        return fail("must have 5 elements");
    }
    for (at, (part, length)) in parts.into_iter().zip(LENGTHS).enumerate() {
        if part.len() != length {
            return Err(format!("element {} must be {length} characters long", at + 1));
        }
        if let Some(c) = part.chars().find(|c| !c.is_ascii_hexdigit()) {
            return Err(format!("non-hex character {c:?}"));
        }
    }
    Ok(())
}

fn pointer(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Ok(());
    }
    if !text.starts_with('/') {
        return fail("not starting with /");
    }
    for (at, _) in text.match_indices('~') {
        if !matches!(text.as_bytes().get(at + 1), Some(b'0' | b'1')) {
            return fail("~ must be followed by 0 or 1");
        }
    }
    Ok(())
}

fn relative_pointer(text: &str) -> Result<(), String> {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    match text.len() - rest.len() {
        0 => fail("must start with non-negative integer"),
        2.. if text.starts_with('0') => fail("starts with zero"),
        _ if rest == "#" => Ok(()),
        _ => pointer(rest),
    }
}

fn semver(text: &str) -> Result<(), String> {
    let fine = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let (text, build) = text.split_once('+').map_or((text, None), |(text, build)| (text, Some(build)));
    if build == Some("") {
        return fail("build is empty");
    }
    for id in build.into_iter().flat_map(|build| build.split('.')) {
        if id.is_empty() {
            return fail("build identifier is empty");
        }
        if let Some(c) = id.chars().find(|c| !fine(*c)) {
            return Err(format!("{} in build identifier", invalid_character(c)));
        }
    }
    let (core, before) = text.split_once('-').map_or((text, None), |(core, before)| (core, Some(before)));
    for id in before.into_iter().flat_map(|before| before.split('.')) {
        if id.is_empty() {
            return fail("pre-release identifier is empty");
        }
        if let Some(c) = id.chars().find(|c| !fine(*c)) {
            return Err(format!("{} in pre-release identifier", invalid_character(c)));
        }
        if id.len() > 1 && id.starts_with('0') && id.bytes().all(|b| b.is_ascii_digit()) {
            return fail("pre-release numeric identifier starts with zero");
        }
    }
    let numbers: Vec<&str> = core.split('.').collect();
    if numbers.len() != 3 {
        return fail("versionCore must have 3 numbers separated by dot");
    }
    for (name, number) in ["major", "minor", "patch"].into_iter().zip(numbers) {
        if number.is_empty() {
            return Err(format!("{name} is empty"));
        }
        if number.len() > 1 && number.starts_with('0') {
            return Err(format!("{name} starts with zero"));
        }
        if !number.bytes().all(|b| b.is_ascii_digit()) {
            return Err(format!("{name} contains non-digit"));
        }
    }
    Ok(())
}

fn uri(text: &str) -> Result<(), String> {
    go_url(text)?;
    if scheme(text).is_some() { Ok(()) } else { fail("relative url") }
}

/// The scheme before the first colon, if there is one.
fn scheme(text: &str) -> Option<&str> {
    let (scheme, _) = text.split(['/', '?', '#']).next()?.split_once(':')?;
    let fine = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    (scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(fine)).then_some(scheme)
}

fn uri_reference(text: &str) -> Result<(), String> {
    if text.contains('\\') {
        return fail("contains \\");
    }
    go_url(text)
}

/// Rejects what Go's `url.Parse` rejects: control characters, invalid percent escapes, malformed hosts.
fn go_url(text: &str) -> Result<(), String> {
    let shown = || fl_gotemplate::fmt::quoted(text.as_bytes());
    if text.bytes().any(|b| b < b' ' || b == 0x7f) {
        return Err(format!("parse {}: net/url: invalid control character in URL", shown()));
    }
    let address = text.split_once('#').map_or(text, |(address, _)| address);
    for (at, _) in address.match_indices('%') {
        let code: String = address[at..].chars().take(3).collect();
        if code.len() != 3 || !code[1..].bytes().all(|b| b.is_ascii_hexdigit()) {
            let code = fl_gotemplate::fmt::quoted(code.as_bytes());
            return Err(format!("parse {}: invalid URL escape {code}", shown()));
        }
    }
    let wrong = |why: &str| Err(format!("parse {}: {why}", shown()));
    let rest = scheme(text).map_or(address, |scheme| &address[scheme.len() + 1..]);
    if rest.starts_with(':') {
        return wrong("missing protocol scheme");
    }
    if rest.len() == address.len() && rest.split('/').next().is_some_and(|first| first.contains(':')) {
        return wrong("first path segment in URL cannot contain colon");
    }
    let host = rest.strip_prefix("//").and_then(|rest| rest.split(['/', '?']).next()).unwrap_or_default();
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    if host.starts_with('[') && !host.contains(']') {
        return wrong("missing ']' in host");
    }
    match host.chars().find(|c| " <>\"^`{|}\\".contains(*c)) {
        Some(c) => wrong(&format!(
            "invalid character {} in host name",
            fl_gotemplate::fmt::quoted(c.to_string().as_bytes())
        )),
        None => Ok(()),
    }
}
