//! Changes names, tags and digests of images.

use fl_yaml::{Node, Tag, Value};
use regex::Regex;

use super::{TransformResult, failed};
use crate::config::FieldSpec;
use crate::error::ErrorKind;
use crate::field_error::FieldError;
use crate::fieldspec::{Create, Walker, walkers};
use crate::kustomization::Image;
use crate::resmap::ResMap;
use crate::selector::SelectorError;
use crate::tree::{self, replace_scalar, text};

const NAME: &str = "ImageTagTransformer";

/// Matches image names. The name is a regular expression, but most are plain.
enum Match {
    Plain(String),
    Expression(Regex),
}

impl Match {
    fn new(name: &str) -> Result<Self, SelectorError> {
        let plain =
            name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'/' | b':' | b'.'));
        if plain {
            return Ok(Match::Plain(name.to_owned()));
        }
        let expression = format!("^{name}(:[a-zA-Z0-9_.{{}}-]*)?(@sha256:[a-zA-Z0-9_.{{}}-]*)?$");
        crate::selector::compile(&expression).map(Match::Expression)
    }

    fn matches(&self, image: &str) -> bool {
        match self {
            Match::Expression(expression) => expression.is_match(image),
            Match::Plain(name) => {
                // A dot in the name matches any character.
                let prefix = image.get(..name.len());
                let same = prefix.is_some_and(|p| {
                    p.bytes().zip(name.bytes()).all(|(a, b)| a == b || (b == b'.' && a != b'\n'))
                });
                same && is_tag_and_digest(&image[name.len()..])
            }
        }
    }
}

/// `:tag` and `@sha256:digest`, each of them optional.
fn is_tag_and_digest(rest: &str) -> bool {
    let word = |s: &str| {
        s.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'{' | b'}' | b'-'))
    };
    let (tag, digest) = match rest.split_once("@sha256:") {
        Some((tag, digest)) => (tag, digest),
        None => (rest, ""),
    };
    word(digest) && (tag.is_empty() || tag.strip_prefix(':').is_some_and(word))
}

/// Changes an image in all fields.
pub(crate) fn set(map: &mut ResMap, image: &Image, specs: &[FieldSpec]) -> TransformResult {
    let matcher = Match::new(&image.name).map_err(|error| ErrorKind::Transform {
        transformer: NAME.to_owned(),
        object: image.name.clone(),
        reason: error.to_string(),
    })?;
    let walkers = walkers(specs);
    for resource in map.iter_mut() {
        if resource.id.gvk.kind == "CustomResourceDefinition" {
            continue;
        }
        let gvk = resource.id.gvk.clone();
        let mut update = |node: &mut Node| update(node, image, &matcher);
        containers(&mut resource.node, &mut update).map_err(|e| failed(NAME, resource, e))?;
        for walker in Walker::for_kind(&walkers, &gvk) {
            walker
                .walk(&mut resource.node, Create::No, &mut update)
                .map_err(|e| failed(NAME, resource, e))?;
        }
    }
    Ok(())
}

type Update<'a> = dyn FnMut(&mut Node) -> Result<(), FieldError> + 'a;

/// Visits the images of `containers` and `initContainers` at any depth.
fn containers(node: &mut Node, update: &mut Update<'_>) -> Result<(), FieldError> {
    match &mut node.value {
        Value::Map(map) => {
            for entry in map.iter_mut() {
                containers(&mut entry.value, update)?;
                if !matches!(entry.name(), Some("containers" | "initContainers")) {
                    continue;
                }
                let Some(items) = entry.value.as_seq_mut() else { continue };
                for item in items {
                    if tree::is_null(item) {
                        continue;
                    }
                    let shape = tree::shape(item);
                    let Some(map) = item.as_map_mut() else {
                        return Err(FieldError::WrongKind { expected: "a mapping", found: shape });
                    };
                    if let Some(image) = map.get_mut("image") {
                        update(image)?;
                    }
                }
            }
            Ok(())
        }
        Value::Seq(items) => items.iter_mut().try_for_each(|item| containers(item, update)),
        Value::Scalar(_) => Ok(()),
    }
}

fn update(node: &mut Node, image: &Image, matcher: &Match) -> Result<(), FieldError> {
    if !tree::is_null(node) && !node.is_scalar() {
        return Err(FieldError::WrongKind { expected: "a scalar", found: tree::shape(node) });
    }
    let old = text(node);
    if !matcher.matches(old) {
        return Ok(());
    }
    let (mut name, mut tag, mut digest) = split(old);
    if !image.new_name.is_empty() {
        name.clone_from(&image.new_name);
    }
    if !image.new_tag.is_empty() || !image.digest.is_empty() {
        (tag, digest) = (image.new_tag.clone(), image.digest.clone());
    } else if !image.tag_suffix.is_empty() {
        tag.push_str(&image.tag_suffix);
        digest.clear();
    }
    if !tag.is_empty() {
        name.push(':');
        name.push_str(&tag);
    }
    if !digest.is_empty() {
        name.push('@');
        name.push_str(&digest);
    }
    Ok(replace_scalar(node, name, Tag::Auto)?)
}

/// Name, tag and digest of an image.
fn split(image: &str) -> (String, String, String) {
    // A colon before the first slash separates the port of the registry.
    let from = image.find('/').filter(|i| *i > 0).unwrap_or(0);
    let search = &image[from..];
    let (at, colon) = (search.find('@').map(|i| i + from), search.find(':').map(|i| i + from));
    let own = |s: &str| s.to_owned();
    match (at, colon) {
        (None, None) => (own(image), String::new(), String::new()),
        (Some(at), colon) if colon.is_none_or(|c| at < c) => {
            (own(&image[..at]), String::new(), own(&image[at + 1..]))
        }
        (Some(at), Some(colon)) => (own(&image[..colon]), own(&image[colon + 1..at]), own(&image[at + 1..])),
        (None, Some(colon)) => (own(&image[..colon]), own(&image[colon + 1..]), String::new()),
        (Some(_), None) => (own(image), String::new(), String::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_split() {
        let parts = |image: &str| {
            let (name, tag, digest) = split(image);
            [name, tag, digest].join("|")
        };
        assert_eq!(parts("nginx"), "nginx||");
        assert_eq!(parts("nginx:1"), "nginx|1|");
        assert_eq!(parts("reg:5000/a/b"), "reg:5000/a/b||");
        assert_eq!(parts("reg:5000/a/b:2@sha256:aa"), "reg:5000/a/b|2|sha256:aa");
        assert_eq!(parts("a/b@sha256:aa"), "a/b||sha256:aa");
    }

    #[test]
    fn image_names_match_completely() {
        let fits = |name: &str, image: &str| Match::new(name).expect("valid").matches(image);
        assert!(fits("nginx", "nginx") && fits("nginx", "nginx:1.2") && fits("nginx", "nginx@sha256:ab"));
        assert!(fits("nginx", "nginx:1@sha256:ab") && !fits("nginx", "nginx2") && !fits("nginx", "a/nginx"));
        assert!(fits("a.b/c", "axb/c:1") && fits(".*/c", "x/y/c:1") && !fits("nginx", "nginx:a/b"));
    }
}
