//! Transformer configuration from the OpenAPI definitions of custom resources (`crds`): annotations,
//! selectors, names, references.

use fl_yaml::Node;

use crate::config::{Config, Conflict, FieldSpec, NameReference, merge_one};
use crate::resid::Gvk;
use crate::tree::text;

/// Limit on nesting, to detect cycles of references.
const MAX_DEPTH: usize = 64;

/// The configuration in a document of definitions.
pub(super) fn configuration(document: &Node) -> Result<Config, Conflict> {
    let mut config = Config::default();
    for entry in document.as_map().into_iter().flatten() {
        let Some(name) = entry.name() else { continue };
        let Some(properties) = properties(document, name) else { continue };
        if ["kind", "apiVersion", "metadata"].iter().any(|p| properties.get(p).is_none()) {
            continue;
        }
        let kind = name.rsplit('.').next().unwrap_or(name);
        let gvk = Gvk { kind: kind.into(), ..Gvk::default() };
        read(document, name, &gvk, &mut Vec::new(), &mut config)?;
    }
    Ok(config)
}

fn properties<'a>(document: &'a Node, name: &str) -> Option<&'a Node> {
    let definition = document.get(name)?;
    let schema = definition.get("Schema").or_else(|| definition.get("schema"))?;
    schema.get("properties").filter(|p| p.as_map().is_some())
}

fn read(
    document: &Node,
    name: &str,
    gvk: &Gvk,
    path: &mut Vec<String>,
    config: &mut Config,
) -> Result<(), Conflict> {
    if path.len() > MAX_DEPTH {
        return Ok(());
    }
    for entry in properties(document, name).and_then(Node::as_map).into_iter().flatten() {
        let Some(property) = entry.name() else { continue };
        path.push(property.to_owned());
        let spec =
            |steps: &[String]| FieldSpec { gvk: gvk.clone(), path: steps.join("/").into(), create: false };
        let extension = |key: &str| entry.value.get(key).map(text);
        if extension("x-kubernetes-annotation").is_some() {
            merge_one(&mut config.common_annotations, &spec(path), "commonAnnotations")?;
        }
        if extension("x-kubernetes-label-selector").is_some() {
            merge_one(&mut config.common_labels, &spec(path), "commonLabels")?;
        }
        if extension("x-kubernetes-identity").is_some() {
            merge_one(&mut config.name_prefix, &spec(path), "namePrefix")?;
        }
        if let (Some(version), Some(kind)) =
            (extension("x-kubernetes-object-ref-api-version"), extension("x-kubernetes-object-ref-kind"))
        {
            path.push(extension("x-kubernetes-object-ref-name-key").unwrap_or("name").to_owned());
            let target = Gvk { version: version.into(), kind: kind.into(), ..Gvk::default() };
            let referrer = spec(path);
            match config.name_reference.iter_mut().find(|r| r.target == target) {
                Some(known) => merge_one(&mut known.referrers, &referrer, "nameReference")?,
                None => config.name_reference.push(NameReference { target, referrers: vec![referrer] }),
            }
            path.pop();
        }
        if let Some(reference) = extension("$ref") {
            read(document, reference, gvk, path, config)?;
        }
        path.pop();
    }
    Ok(())
}
