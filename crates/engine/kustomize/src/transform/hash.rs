//! Hash suffixes of the names of generated objects.

use fl_yaml::{Dialect, JsonStyle, Node};
use sha2::{Digest, Sha256};

use super::{TransformResult, failed};
use crate::resmap::ResMap;
use crate::schema::Schemas;
use crate::tree::text;

/// Adds the hash to the names of objects that need it.
pub(crate) fn add(map: &mut ResMap, schemas: &mut Schemas) -> TransformResult {
    for at in 0..map.len() {
        let resource = map.get_mut(at);
        if !resource.notes.needs_hash || resource.is_deleted() {
            continue;
        }
        let hash = hash(&resource.node).map_err(|e| failed("HashTransformer", resource, e))?;
        resource.record_identity();
        let name = format!("{}-{hash}", resource.id.name);
        resource.set_name(&name);
        resource.refresh(schemas);
        map.renamed(at);
    }
    Ok(())
}

/// The hash of an object: ten characters without vowels.
fn hash(node: &Node) -> Result<String, fl_yaml::Error> {
    let kind = node.get("kind").map(text).unwrap_or_default();
    let mut content = Node::map();
    let map = content.as_map_mut().expect("just made");
    map.insert("kind", Node::string(kind));
    let mut put = |key: &'static str, value: Node| {
        map.insert(key, value);
    };
    // kustomize looks for a field "metadata/name", which does not exist: names are not hashed.
    put("name", Node::string(""));
    match kind {
        "ConfigMap" => {
            put("data", part(node, "data"));
            if let Some(data) = node.get("binaryData").filter(|n| n.as_map().is_some()) {
                put("binaryData", data.clone());
            }
        }
        "Secret" => {
            put("data", part(node, "data"));
            put("type", part(node, "type"));
            if let Some(data) = node.get("stringData").filter(|n| n.as_map().is_some()) {
                put("stringData", data.clone());
            }
        }
        _ => put("object", node.clone()),
    }
    let json = fl_yaml::to_json(&content, Dialect::V3, JsonStyle::GO)?;
    Ok(encode(&Sha256::digest(json.as_bytes())))
}

/// A field in the input of the hash: absent ones are empty strings, scalars are strings.
fn part(node: &Node, field: &str) -> Node {
    match node.get(field) {
        None => Node::string(""),
        Some(value) if value.is_scalar() => Node::string(text(value)),
        Some(value) => value.clone(),
    }
}

fn encode(digest: &[u8]) -> String {
    digest
        .iter()
        .take(5)
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|nibble| match char::from_digit(u32::from(nibble), 16).unwrap_or('0') {
            '0' => 'g',
            '1' => 'h',
            '3' => 'k',
            'a' => 'm',
            'e' => 't',
            other => other,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_that_could_form_words_are_replaced() {
        assert_eq!(encode(&[0x01, 0x3a, 0xe2, 0x45, 0x67]), "ghkmt24567");
    }
}
