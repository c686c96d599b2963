//! Validation of webhook URLs, for conversion and admission webhooks.

/// The errors of a URL: the invalid part and the message.
pub fn webhook_url_errors(url: &str) -> Vec<(&str, String)> {
    const FORM: &str = "; desired format: https://host[/path]";
    let mut problems = Vec::new();
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    if scheme != "https" {
        problems.push((scheme, format!("'https' is the only allowed URL scheme{FORM}")));
    }
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = if scheme.is_empty() { "" } else { rest.split('/').next().unwrap_or_default() };
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    if host.is_empty() {
        problems.push((host, format!("host must be specified{FORM}")));
    }
    for (part, why) in [
        (user, "user information is not permitted in the URL"),
        (fragment, "fragments are not permitted in the URL"),
        (query, "query parameters are not permitted in the URL"),
    ] {
        if !part.is_empty() {
            problems.push((part, why.to_owned()));
        }
    }
    problems
}
