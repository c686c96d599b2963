//! Image references, with the error messages of Go's container registry library.

const REPOSITORY_CHARS: &str = "abcdefghijklmnopqrstuvwxyz0123456789_-./";
const TAG_CHARS: &str = "abcdefghijklmnopqrstuvwxyz0123456789_-.ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const DEFAULT_REGISTRY: &str = "index.docker.io";

/// Registry and repository of a name without tag.
pub(crate) fn repository(name: &str) -> (String, String) {
    match name.split_once('/') {
        Some((host, rest)) if host.contains(['.', ':']) || host == "localhost" => {
            (host.to_owned(), rest.to_owned())
        }
        Some(_) => (DEFAULT_REGISTRY.to_owned(), name.to_owned()),
        None => (DEFAULT_REGISTRY.to_owned(), format!("library/{name}")),
    }
}

fn check(what: &str, text: &str, allowed: &str, min: usize, max: usize) -> Result<(), String> {
    let count = text.chars().count();
    if count < min || count > max {
        return Err(format!("{what} must be between {min} and {max} characters in length: {text}"));
    }
    if text.chars().any(|c| !allowed.contains(c)) {
        return Err(format!("{what} can only contain the characters `{allowed}`: {text}"));
    }
    Ok(())
}

/// # Errors
/// The name is no repository.
pub(crate) fn check_repository(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("a repository name must be specified".to_owned());
    }
    let written = match name.split_once('/') {
        Some((host, rest)) if host.contains(['.', ':']) || host == "localhost" => rest,
        _ => name,
    };
    check("repository", written, REPOSITORY_CHARS, 2, 255)
}

/// # Errors
/// The text is neither `name[:tag]` nor `name@digest`.
pub(crate) fn check_reference(text: &str) -> Result<(), String> {
    let sentence = |why: String| format!("could not parse reference: {text}: {why}");
    let (name, digest) = match text.split_once('@') {
        Some((name, digest)) => (name, Some(digest)),
        None => (text, None),
    };
    if let Some(digest) = digest
        && !digest
            .strip_prefix("sha256:")
            .is_some_and(|hex| hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_hexdigit()))
    {
        return Err(sentence(format!("unsupported digest: {digest}")));
    }
    let (name, tag) = split_tag(name);
    if let Some(tag) = tag {
        check("tag", tag, TAG_CHARS, 1, 128).map_err(sentence)?;
    }
    check_repository(name).map_err(|_| format!("could not parse reference: {text}"))
}

/// The tag behind the last colon, unless that colon belongs to the registry's port.
pub(crate) fn split_tag(name: &str) -> (&str, Option<&str>) {
    match name.rsplit_once(':') {
        Some((base, tag)) if !tag.contains('/') => (base, Some(tag)),
        _ => (name, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_names_are_validated_like_go_containerregistry() {
        assert_eq!(
            check_repository("bad image!").unwrap_err(),
            "repository can only contain the characters `abcdefghijklmnopqrstuvwxyz0123456789_-./`: bad image!"
        );
        assert!(check_repository("registry.example.com:5000/acme/app").is_ok());
        assert_eq!(split_tag("localhost:5000/app"), ("localhost:5000/app", None));
        assert_eq!(split_tag("localhost:5000/app:1"), ("localhost:5000/app", Some("1")));
        assert_eq!(repository("alpine"), ("index.docker.io".to_owned(), "library/alpine".to_owned()));
    }
}
