//! Generators: ConfigMaps and Secrets from files, lines and literals; service accounts of IAM policies.

mod iam;
mod key_values;

use fl_yaml::{Node, SmolStr, Style};

pub(crate) use iam::{IamArgs, service_account};
pub(crate) use key_values::{LoadError, load};

use crate::kustomization::{GeneratorArgs, GeneratorOptions};
use crate::resource::{Behavior, Resource};
use crate::schema::Schemas;
use crate::tree;

/// The kind of the generated object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    ConfigMap,
    Secret,
}

/// Creates the object of a generator from its keys and values.
pub(crate) fn object(
    kind: Kind,
    args: &GeneratorArgs,
    pairs: Vec<(String, Vec<u8>)>,
    schemas: &mut Schemas,
) -> Resource {
    let mut root = Node::map();
    let map = root.as_map_mut().expect("just made");
    map.insert("apiVersion", Node::string("v1"));
    map.insert("kind", Node::string(if kind == Kind::Secret { "Secret" } else { "ConfigMap" }));
    let mut metadata = Node::map();
    let meta = metadata.as_map_mut().expect("just made");
    meta.insert("name", Node::string(args.name.as_str()));
    if !args.namespace.is_empty() {
        meta.insert("namespace", Node::string(args.namespace.as_str()));
    }
    if let Some(options) = &args.options {
        for (field, pairs) in [("labels", &options.labels), ("annotations", &options.annotations)] {
            let pairs = pairs.iter().flatten();
            let pairs: Vec<_> = pairs.map(|(k, v)| (k.clone(), Node::string(v.clone()))).collect();
            if !pairs.is_empty() {
                meta.insert(field, Node::from(fl_yaml::Value::Map(pairs.into_iter().collect())));
            }
        }
    }
    map.insert("metadata", metadata);
    if kind == Kind::Secret {
        let word = if args.kind.is_empty() { "Opaque" } else { args.kind.as_str() };
        map.insert("type", Node::string(word));
    }
    fill_data(map, kind, pairs);
    if args.options.as_ref().is_some_and(|o| o.immutable) {
        map.insert("immutable", Node::bool(true));
    }
    let mut resource = Resource::new(root, schemas);
    resource.notes.needs_hash = !args.options.as_ref().is_some_and(|o| o.disable_name_suffix_hash);
    resource.notes.behavior = Some(Behavior::read(&args.behavior));
    resource
}

/// Fills `data` and `binaryData`, sorted by key.
fn fill_data(map: &mut fl_yaml::Map, kind: Kind, mut pairs: Vec<(String, Vec<u8>)>) {
    pairs.sort();
    if kind == Kind::Secret {
        map.insert("data", Node::map());
    }
    for (key, value) in pairs {
        let (field, text) = match (kind, String::from_utf8(value)) {
            (Kind::ConfigMap, Ok(text)) => ("data", text),
            (Kind::ConfigMap, Err(e)) => ("binaryData", base64_lines(e.as_bytes())),
            (Kind::Secret, Ok(text)) => ("data", base64_lines(text.as_bytes())),
            (Kind::Secret, Err(e)) => ("data", base64_lines(e.as_bytes())),
        };
        put_text(map, field, &key, text);
    }
}

fn put_text(map: &mut fl_yaml::Map, field: &str, key: &str, text: String) {
    let mut node = Node::string(SmolStr::from(text));
    if tree::text(&node).contains('\n') {
        node.style = Style::Literal;
    }
    if let Some(data) = map.get_or_insert_with(field, Node::map).as_map_mut() {
        data.insert(SmolStr::new(key), node);
    }
}

/// Base64 in lines of 70 characters, as kustomize writes it if it needs more than one.
fn base64_lines(bytes: &[u8]) -> String {
    use base64::Engine as _;
    let encoded = base64::engine::general_purpose::STANDARD.encode(bytes);
    const LINE: usize = 70;
    if encoded.len() < LINE {
        return encoded;
    }
    let mut out = String::with_capacity(encoded.len() + encoded.len() / LINE + 1);
    for line in encoded.as_bytes().chunks(LINE) {
        out.push_str(std::str::from_utf8(line).expect("base64 is ASCII"));
        out.push('\n');
    }
    out
}

/// The options of a generator, completed by those of the kustomization.
pub(crate) fn with_global_options(
    mut args: GeneratorArgs,
    global: Option<&GeneratorOptions>,
) -> GeneratorArgs {
    let Some(global) = global else { return args };
    let options = args.options.get_or_insert_default();
    for (local, global) in
        [(&mut options.labels, &global.labels), (&mut options.annotations, &global.annotations)]
    {
        let Some(global) = global else { continue };
        let local = local.get_or_insert_default();
        for (key, value) in global {
            if !local.iter().any(|(k, _)| k == key) {
                local.push((key.clone(), value.clone()));
            }
        }
        local.sort();
    }
    options.disable_name_suffix_hash |= global.disable_name_suffix_hash;
    options.immutable |= global.immutable;
    args
}

/// Adds the data of the existing object that a generated one does not have.
pub(crate) fn merge_data(new: &mut Resource, old: &Resource) {
    for field in ["data", "binaryData"] {
        let mut merged: Vec<(SmolStr, SmolStr)> = Vec::new();
        for resource in [old, &*new] {
            let map = resource.node.get(field).and_then(Node::as_map);
            for entry in map.into_iter().flatten() {
                let (key, value) = (tree::text(&entry.key), non_null_text(&entry.value));
                match merged.iter_mut().find(|(k, _)| k == key) {
                    Some(pair) => pair.1 = value.into(),
                    None => merged.push((key.into(), value.into())),
                }
            }
        }
        let Some(map) = new.node.as_map_mut() else { return };
        map.remove(field);
        merged.sort();
        for (key, value) in merged {
            put_text(map, field, &key, value.into());
        }
    }
}

fn non_null_text(node: &Node) -> &str {
    if tree::is_null(node) { "" } else { tree::text(node) }
}
