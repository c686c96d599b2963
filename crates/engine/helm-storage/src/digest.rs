//! Digests of values and of parts of the spec, as Flux computes them.

use std::collections::BTreeMap;

use fl_api::helm::helm_release::PostRenderer;
use fl_api::meta::kustomize::{Image, Patch, PatchTarget};
use fl_api::meta::metadata::CommonMetadata;
use fl_yaml::{Dialect, from_json, to_sigs_yaml_in_order};
use serde::Serialize;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use fl_go::to_go_json;

/// The digest of empty values.
pub const EMPTY_VALUES_DIGEST: &str =
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

pub(crate) fn sha256(bytes: &[u8]) -> String {
    let sum = Sha256::digest(bytes);
    let mut text = String::with_capacity(7 + 64);
    text.push_str("sha256:");
    for byte in sum {
        for half in [byte >> 4, byte & 15] {
            text.push(char::from_digit(u32::from(half), 16).unwrap_or('0'));
        }
    }
    text
}

/// The digest of values: over their YAML with keys sorted by bytes; over nothing if there are none.
pub fn values_digest(values: &Map<String, Value>) -> String {
    if values.is_empty() {
        return EMPTY_VALUES_DIGEST.to_owned();
    }
    let yaml = to_go_json(values)
        .ok()
        .and_then(|json| String::from_utf8(json).ok())
        .and_then(|json| from_json(&json).ok())
        .and_then(|tree| to_sigs_yaml_in_order(&tree, Dialect::Sigs).ok());
    yaml.map_or_else(String::new, |yaml| sha256(yaml.as_bytes()))
}

/// Whether values have this digest.
pub fn verify_values(digest: &str, values: &Map<String, Value>) -> bool {
    !digest.is_empty() && values_digest(values) == digest
}

/// The digest of a value as compact JSON, as Go's encoder writes it.
pub fn json_digest<T: Serialize + ?Sized>(value: &T) -> String {
    to_go_json(value).map_or_else(
        |_| String::new(),
        |mut json| {
            json.push(b'\n');
            sha256(&json)
        },
    )
}

/// The digest of post-renderers: over their JSON in Flux's order of fields.
pub fn post_renderers_digest(renderers: &[PostRenderer]) -> String {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Selector<'a> {
        #[serde(skip_serializing_if = "Option::is_none")]
        group: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        version: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        kind: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        namespace: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        annotation_selector: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        label_selector: Option<&'a str>,
    }
    #[derive(Serialize)]
    struct GoPatch<'a> {
        patch: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        target: Option<Selector<'a>>,
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct GoImage<'a> {
        name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        new_name: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        new_tag: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        digest: Option<&'a str>,
    }
    #[derive(Serialize)]
    struct Kustomize<'a> {
        #[serde(skip_serializing_if = "Vec::is_empty")]
        patches: Vec<GoPatch<'a>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        images: Vec<GoImage<'a>>,
    }
    #[derive(Serialize)]
    struct Renderer<'a> {
        #[serde(skip_serializing_if = "Option::is_none")]
        kustomize: Option<Kustomize<'a>>,
    }
    fn given(text: Option<&String>) -> Option<&str> {
        text.map(String::as_str).filter(|text| !text.is_empty())
    }
    fn selector(target: &PatchTarget) -> Selector<'_> {
        Selector {
            group: given(target.group.as_ref()),
            version: given(target.version.as_ref()),
            kind: given(target.kind.as_ref()),
            namespace: given(target.namespace.as_ref()),
            name: given(target.name.as_ref()),
            annotation_selector: given(target.annotation_selector.as_ref()),
            label_selector: given(target.label_selector.as_ref()),
        }
    }
    fn patch(patch: &Patch) -> GoPatch<'_> {
        GoPatch { patch: &patch.patch, target: patch.target.as_ref().map(selector) }
    }
    fn image(image: &Image) -> GoImage<'_> {
        GoImage {
            name: &image.name,
            new_name: given(image.new_name.as_ref()),
            new_tag: given(image.new_tag.as_ref()),
            digest: given(image.digest.as_ref()),
        }
    }
    let list: Vec<Renderer<'_>> = renderers
        .iter()
        .map(|renderer| Renderer {
            kustomize: renderer.kustomize.as_ref().map(|kustomize| Kustomize {
                patches: kustomize.patches.iter().flatten().map(patch).collect(),
                images: kustomize.images.iter().flatten().map(image).collect(),
            }),
        })
        .collect();
    json_digest(&list)
}

/// The digest of common metadata, in Flux's order of fields.
pub fn common_metadata_digest(metadata: &CommonMetadata) -> String {
    #[derive(Serialize)]
    struct Common<'a> {
        #[serde(skip_serializing_if = "Option::is_none")]
        annotations: Option<&'a BTreeMap<String, String>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        labels: Option<&'a BTreeMap<String, String>>,
    }
    json_digest(&Common {
        annotations: metadata.annotations.as_ref().filter(|map| !map.is_empty()),
        labels: metadata.labels.as_ref().filter(|map| !map.is_empty()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn digests_match_flux() {
        assert_eq!(values_digest(&Map::new()), EMPTY_VALUES_DIGEST);
        assert_eq!(
            values_digest(&table(serde_json::json!({"replicaCount": 2}))),
            "sha256:e15c415d62760896bd8bec192a44c5716dc224db9e0fc609b9ac14718f8f9e56"
        );
        let values = table(serde_json::json!({
            "z": 1, "a": {"c": [3, {"true": true, "x": null}], "b": "1"}, "f": 1.5, "big": 12345678
        }));
        let digest = "sha256:3b3c98abda7d67dccd4ba415c63f135451973c8aa99663f16e1642914d882fef";
        assert_eq!(values_digest(&values), digest);
        assert!(verify_values(digest, &values));
    }
}
