//! Content negotiation.

use crate::status::ApiError;

/// Encoding of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Form {
    #[default]
    Json,
    Yaml,
}

/// Representation of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum View {
    #[default]
    Object,
    Table,
    Partial,
    PartialList,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Accept {
    pub(crate) form: Form,
    pub(crate) view: View,
    /// Requested version of `meta.k8s.io` for a table or partial metadata.
    pub(crate) meta_version: String,
    /// Group, version and kind of an unsupported `as=` parameter, such as discovery.
    pub(crate) other: Option<(String, String, String)>,
    pub(crate) pretty: bool,
}

struct Clause<'a> {
    media: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
    weight: u32,
}

fn clauses(header: &str) -> Vec<Clause<'_>> {
    let mut all: Vec<Clause<'_>> = header
        .split(',')
        .filter_map(|part| {
            let mut pieces = part.split(';').map(str::trim);
            let media = pieces.next().filter(|m| !m.is_empty())?;
            let parameters: Vec<_> = pieces
                .filter_map(|p| p.split_once('='))
                .map(|(k, v)| (k.trim(), v.trim().trim_matches('"')))
                .collect();
            let quality = parameters.iter().find(|(k, _)| *k == "q").and_then(|(_, v)| v.parse::<f32>().ok());
            Some(Clause { media, parameters, weight: (quality.unwrap_or(1.0) * 1000.0) as u32 })
        })
        .collect();
    // Stable sort: clauses of the same weight keep their order.
    all.sort_by_key(|accepted| std::cmp::Reverse(accepted.weight));
    all
}

/// Selects the first clause that can be served.
pub(crate) fn accept(header: &str, pretty: bool) -> Result<Accept, ApiError> {
    let header = if header.trim().is_empty() { "*/*" } else { header };
    for clause in clauses(header) {
        let form = match clause.media {
            "application/json" | "*/*" | "application/*" => Form::Json,
            "application/yaml" => Form::Yaml,
            _ => continue,
        };
        let parameter =
            |name: &str| clause.parameters.iter().find(|(k, _)| *k == name).map_or("", |(_, v)| *v);
        let made =
            |view, other| Accept { form, view, meta_version: parameter("v").to_owned(), other, pretty };
        let (group, version, kind) = (parameter("g"), parameter("v"), parameter("as"));
        match (kind, group, version) {
            ("", _, _) => return Ok(made(View::Object, None)),
            ("Table", "meta.k8s.io", "v1" | "v1beta1") => return Ok(made(View::Table, None)),
            ("PartialObjectMetadata", "meta.k8s.io", "v1" | "v1beta1") => {
                return Ok(made(View::Partial, None));
            }
            ("PartialObjectMetadataList", "meta.k8s.io", "v1" | "v1beta1") => {
                return Ok(made(View::PartialList, None));
            }
            ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2") => {
                let other = (group.to_owned(), version.to_owned(), kind.to_owned());
                return Ok(made(View::Object, Some(other)));
            }
            _ => {}
        }
    }
    Err(not_served())
}

/// The error for an unsupported encoding or representation.
fn not_served() -> ApiError {
    let message = format!("only the following media types are accepted: {SERVED}");
    ApiError::new(406, "NotAcceptable", message)
}

/// Checks the `Accept` header of discovery requests. Clients that accept only protobuf get JSON.
pub(crate) fn discovery(header: &str, accept: Result<Accept, ApiError>) -> Result<(), ApiError> {
    if header.contains("protobuf") {
        return Ok(());
    }
    check_acceptable(header, false)?;
    match accept {
        Ok(accept) if accept.view == View::Object => Ok(()),
        Ok(_) => Err(not_served()),
        Err(error) => Err(error),
    }
}

const SERVED: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// Rejects what upstream's router for built-in types has no route for: it knows media types and `*/*`, but
/// not `application/*`.
pub(crate) fn check_acceptable(header: &str, collection: bool) -> Result<(), ApiError> {
    let known = |media: &str| media == "*/*" || SERVED.split(", ").any(|served| served == media);
    if header.trim().is_empty() || clauses(header).iter().any(|clause| known(clause.media)) {
        return Ok(());
    }
    const STREAMS: &str = ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";
    Err(not_acceptable(&format!("{SERVED}{}", if collection { STREAMS } else { "" })))
}

/// The 406 error.
pub(crate) fn not_acceptable(served: &str) -> ApiError {
    let message = format!("406: Not Acceptable\n\nAvailable representations: {served}");
    ApiError::new(406, "NotAcceptable", message).with_details(serde_json::json!({}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_supported_clause_wins() {
        let table =
            accept("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", false).expect("served");
        assert_eq!(table.view, View::Table);
        let fallback = accept("application/vnd.kubernetes.protobuf,application/json", false).expect("served");
        assert_eq!((fallback.form, fallback.view), (Form::Json, View::Object));
        let skipped =
            accept("application/json;as=Table;v=v9;g=meta.k8s.io, application/yaml", false).expect("served");
        assert_eq!(skipped.form, Form::Yaml);
        assert_eq!(accept("application/vnd.kubernetes.protobuf", false).expect_err("refused").code, 406);
        assert_eq!(accept("", false).expect("served").form, Form::Json);
    }

    #[test]
    fn partial_wildcards_are_not_acceptable() {
        assert!(
            check_acceptable("", false).is_ok() && check_acceptable("text/html, */*;q=0.1", false).is_ok()
        );
        assert!(check_acceptable("application/json;as=Table", false).is_ok());
        let refused = check_acceptable("application/*", false).expect_err("refused").message;
        assert!(refused.ends_with("application/vnd.kubernetes.protobuf"), "{refused}");
        let refused = check_acceptable("text/html", true).expect_err("refused").message;
        assert!(refused.ends_with("protobuf;stream=watch"), "{refused}");
    }
}
