//! Checks and rewrites of flag values, with flux's words.

use std::path::{Component, Path};

type Checked = Result<String, String>;

/// `[kind/]name[.namespace]`.
pub(super) struct Reference<'a> {
    pub(super) kind: &'a str,
    pub(super) name: &'a str,
    pub(super) namespace: &'a str,
}

/// Splits kind and name; anything but one slash is all name.
pub(super) fn kind_name(text: &str) -> (&str, &str) {
    match text.split_once('/') {
        Some((kind, name)) if !name.contains('/') => (kind, name),
        _ => ("", text),
    }
}

pub(super) fn reference(text: &str) -> Reference<'_> {
    let (kind, name) = kind_name(text);
    match name.rsplit_once('.') {
        Some((name, namespace)) => Reference { kind, name, namespace },
        None => Reference { kind, name, namespace: "" },
    }
}

/// The parts of a value that a check here has given its kind; further slashes belong to the name.
pub(super) fn spelled_reference(text: &str) -> Reference<'_> {
    let (kind, name) = text.split_once('/').unwrap_or(("", text));
    let (name, namespace) = name.rsplit_once('.').unwrap_or((name, ""));
    Reference { kind, name, namespace }
}

/// The spelling of a kind as the API has it.
pub(super) fn spelled<'a>(known: &[&'a str], kind: &str) -> Option<&'a str> {
    known.iter().find(|k| k.eq_ignore_ascii_case(kind)).copied()
}

fn joined(reference: &Reference<'_>, kind: &str) -> String {
    match reference.namespace {
        "" => format!("{kind}/{}", reference.name),
        namespace => format!("{kind}/{}.{namespace}", reference.name),
    }
}

const KUSTOMIZATION_SOURCES: &[&str] = &["OCIRepository", "GitRepository", "Bucket"];
const CHART_SOURCES: &[&str] = &["HelmRepository", "GitRepository", "Bucket"];

fn unsupported_kind(kind: &str, known: &[&str]) -> String {
    format!("source kind '{kind}' is not supported, must be one of: {}", known.join(", "))
}

pub(super) fn kustomization_source(text: &str) -> Checked {
    if text.trim().is_empty() {
        return Err(format!(
            "no Kustomization source given, please specify source that contains the Kubernetes manifests in the format \
             '[<kind>/]<name>.<namespace>', where kind must be one of: ({}), if kind is not specified it defaults to GitRepository",
            KUSTOMIZATION_SOURCES.join(", ")
        ));
    }
    let found = reference(text);
    if found.name.is_empty() {
        return Err(format!("no name given for source of kind '{}'", found.kind));
    }
    if found.kind.is_empty() && KUSTOMIZATION_SOURCES.contains(&found.name) {
        return Err(format!("no kind specified for source '{}'", found.name));
    }
    let kind = if found.kind.is_empty() { "GitRepository" } else { found.kind };
    let kind =
        spelled(KUSTOMIZATION_SOURCES, kind).ok_or_else(|| unsupported_kind(kind, KUSTOMIZATION_SOURCES))?;
    Ok(joined(&found, kind))
}

pub(super) fn chart_source(text: &str) -> Checked {
    if text.trim().is_empty() {
        return Err(format!(
            "no helm chart source given, please specify source that contains the chart in the format \
             '<kind>/<name>.<namespace>', where kind must be one of: ({})",
            CHART_SOURCES.join(", ")
        ));
    }
    let found = reference(text);
    if found.kind.is_empty() || found.name.is_empty() {
        return Err(format!("invalid helm chart source '{text}', must be in format <kind>/<name>"));
    }
    let kind =
        spelled(CHART_SOURCES, found.kind).ok_or_else(|| unsupported_kind(found.kind, CHART_SOURCES))?;
    Ok(joined(&found, kind))
}

/// As [`chart_source`], but a dot belongs to the name: the source lives in the same namespace.
pub(super) fn local_chart_source(text: &str) -> Checked {
    if text.trim().is_empty() {
        return Err(format!(
            "no helm chart source given, please specify source that contains the chart in the format \
             '<kind>/<name>', where kind must be one of: ({})",
            CHART_SOURCES.join(", ")
        ));
    }
    let (kind, name) = kind_name(text);
    if kind.is_empty() || name.is_empty() {
        return Err(format!("invalid helm chart source '{text}', must be in format <kind>/<name>"));
    }
    let kind = spelled(CHART_SOURCES, kind).ok_or_else(|| unsupported_kind(kind, CHART_SOURCES))?;
    Ok(format!("{kind}/{name}"))
}

/// A path that cannot leave the repository: `..` stops at the root, the result starts with `./`.
pub(crate) fn safe_path(text: &str) -> Checked {
    let mut parts: Vec<&str> = Vec::new();
    for part in Path::new(text.trim()).components() {
        match part {
            Component::Normal(name) => parts.push(name.to_str().unwrap_or_default()),
            Component::ParentDir => {
                parts.pop();
            }
            _ => {}
        }
    }
    Ok(format!("./{}", parts.join("/")))
}

/// A value out of a list; `empty` and `bad` are the sentences for none and for a wrong one.
fn one_of(text: &str, known: &[&str], empty: &str, bad: &str, list: &str) -> Checked {
    if text.trim().is_empty() {
        return Err(empty.to_owned());
    }
    if known.contains(&text) {
        return Ok(text.to_owned());
    }
    Err(format!("{} must be one of: {list}", bad.replace("{}", text)))
}

pub(super) fn git_provider(text: &str) -> Checked {
    let known = ["generic", "github", "aws", "azure"];
    let empty = "no source Git provider given, please specify the Git provider name";
    one_of(text, &known, empty, "source Git provider '{}' is not supported,", &known.join("|"))
}

pub(crate) fn oci_provider(text: &str) -> Checked {
    let known = ["generic", "aws", "azure", "gcp"];
    let empty = "no source OCI provider given, please specify the OCI provider name";
    one_of(text, &known, empty, "source OCI provider '{}' is not supported,", &known.join(", "))
}

pub(super) fn bucket_provider(text: &str) -> Checked {
    let known = ["generic", "aws", "azure", "gcp"];
    let empty = "no source bucket provider given, please specify the S3 compatible storage provider name";
    one_of(text, &known, empty, "source bucket provider '{}' is not supported,", &known.join(", "))
}

pub(super) fn verify_provider(text: &str) -> Checked {
    let empty = "no source OCI verify provider given, please specify the OCI verify provider name to use for signature \
                 verification, available options are: (cosign)";
    one_of(text, &["cosign"], empty, "source OCI verify provider '{}' is not supported,", "cosign")
}

pub(super) fn decryption_provider(text: &str) -> Checked {
    let empty = "no decryption provider given, must be one of: sops";
    one_of(text, &["sops"], empty, "unsupported decryption provider '{}',", "sops")
}

pub(super) fn crds_policy(text: &str) -> Checked {
    let known = ["Skip", "Create", "CreateReplace"];
    let empty = "no upgrade CRDs policy given, must be one of: Skip, Create, CreateReplace";
    one_of(text, &known, empty, "unsupported upgrade CRDs policy '{}',", &known.join(", "))
}

pub(super) fn receiver_type(text: &str) -> Checked {
    let known = [
        "generic",
        "generic-hmac",
        "github",
        "gitlab",
        "bitbucket",
        "harbor",
        "dockerhub",
        "quay",
        "gcr",
        "nexus",
        "acr",
        "cdevents",
    ];
    let empty = "no receiver type given, please specify the receiver type";
    one_of(text, &known, empty, "receiver type '{}' is not supported,", &known.join(", "))
}

pub(crate) fn key_algorithm(text: &str) -> Checked {
    let known = ["rsa", "ecdsa", "ed25519"];
    let empty = "no public key algorithm given, must be one of: rsa, ecdsa, ed25519";
    one_of(text, &known, empty, "unsupported public key algorithm '{}',", &known.join(", "))
}

pub(crate) fn ecdsa_curve(text: &str) -> Checked {
    match text {
        "p256" | "p384" | "p521" => Ok(text.to_owned()),
        _ => Err(format!("unsupported curve '{text}', must be one of: p256, p384, p521")),
    }
}

pub(crate) fn rsa_bits(text: &str) -> Checked {
    if text.trim().is_empty() {
        return Ok("2048".to_owned());
    }
    let bits: i64 = text.parse().map_err(|_| format!("strconv.Atoi: parsing {text:?}: invalid syntax"))?;
    if bits < 1024 {
        return Err("RSA key bit size must be at least 1024".to_owned());
    }
    if bits % 8 != 0 {
        return Err("RSA key bit size must be a multiples of 8".to_owned());
    }
    Ok(bits.to_string())
}

/// What Go's URL parser says about a text that is no URL to it.
pub(super) fn check_url(url: &str) -> Result<(), String> {
    let refused = |why: &str| Err(format!("parse {url:?}: {why}"));
    if url.starts_with(':') {
        return refused("missing protocol scheme");
    }
    if url.bytes().any(|b| b < 0x20 || b == 0x7f) {
        return refused("net/url: invalid control character in URL");
    }
    let (scheme, host) = scheme_and_host(url);
    // Before the query, a percent sign begins two hexadecimal digits.
    let escapes = |text: &str| {
        text.match_indices('%')
            .map(|(i, _)| text[i..].chars().take(3).collect::<String>())
            .collect::<Vec<_>>()
    };
    let broken = |escape: &String| escape.len() < 3 || !escape[1..].bytes().all(|b| b.is_ascii_hexdigit());
    if let Some(escape) = escapes(url.split('?').next().unwrap_or_default()).iter().find(|e| broken(e)) {
        return refused(&format!("invalid URL escape {escape:?}"));
    }
    if let Some((_, port)) = host.rsplit_once(':')
        && !port.ends_with(']')
        && !port.bytes().all(|b| b.is_ascii_digit())
    {
        return refused(&format!("invalid port {:?} after host", format!(":{port}")));
    }
    if scheme.is_empty() {
        let first = url.split('/').next().unwrap_or_default();
        if first.contains(':') {
            return refused("first path segment in URL cannot contain colon");
        }
    } else if host.contains(' ') {
        return refused("invalid character \" \" in host name");
    }
    Ok(())
}

/// The scheme and host of a URL as Go splits them, without asking for more.
pub(super) fn scheme_and_host(url: &str) -> (&str, &str) {
    let Some((scheme, rest)) = url.split_once(':') else { return ("", "") };
    let valid = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    if !valid {
        return ("", "");
    }
    let host = rest.strip_prefix("//").map_or("", |r| r.split(['/', '?', '#']).next().unwrap_or_default());
    (scheme, host.rsplit_once('@').map_or(host, |(_, host)| host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_spelled_as_the_api_spells_them() {
        assert_eq!(kustomization_source("app").unwrap(), "GitRepository/app");
        assert_eq!(kustomization_source("ocirepository/a.b.team").unwrap(), "OCIRepository/a.b.team");
        assert_eq!(
            kustomization_source("GitRepository").unwrap_err(),
            "no kind specified for source 'GitRepository'"
        );
        assert!(chart_source("charts").is_err() && chart_source("Helmrepository/charts.ns").is_ok());
    }

    #[test]
    fn paths_stay_inside() {
        for (text, want) in [
            ("./deploy", "./deploy"),
            ("/abs/path", "./abs/path"),
            ("../../x", "./x"),
            ("./", "./"),
            ("a/../b/", "./b"),
        ] {
            assert_eq!(safe_path(text).unwrap(), want);
        }
    }

    #[test]
    fn urls_are_split_without_validation() {
        assert_eq!(scheme_and_host("ssh://git@host:22/org"), ("ssh", "host:22"));
        assert_eq!(scheme_and_host("https://"), ("https", ""));
        assert_eq!(scheme_and_host("git@host:org/repo").0, "");
        let refused = "parse \"git@host:org/repo\": first path segment in URL cannot contain colon";
        assert_eq!(check_url("git@host:org/repo").unwrap_err(), refused);
        assert!(check_url("https://host/x").is_ok() && check_url("ssh://git@host:22/x").is_ok());
    }
}
