//! Decodes the protobuf encoding of built-in types: an envelope with the type, then the message.
//!
//! Typed Go clients, kubectl among them, send bodies in this encoding. Field numbers come from the tables, so
//! one decoder serves all types; it returns the JSON of the same object.

use base64::Engine as _;
use serde_json::{Map, Value, json};

use crate::types::{Field, FieldType, TypeDef, type_named, type_of};

/// Why bytes cannot be decoded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProtobufError {
    #[error("the body does not start as Kubernetes protobuf does")]
    NoMagic,
    #[error("the protobuf message ends too early")]
    Truncated,
    #[error("the protobuf message has a field of unknown form at byte {0}")]
    Wire(usize),
    #[error("no kind {kind:?} is registered for version {api_version:?}")]
    UnknownKind { api_version: String, kind: String },
    #[error("the protobuf message is nested too deeply")]
    TooDeep,
}

/// Limit on nesting, deeper than any real schema.
const MAX_DEPTH: usize = 100;

/// A field of a message.
#[derive(Debug, Clone, Copy)]
enum Wire<'a> {
    Number(u64),
    Fixed(u64),
    Bytes(&'a [u8]),
}

/// Decodes an object in its envelope.
///
/// # Errors
/// The bytes are invalid, or the type is not a built-in one.
pub fn protobuf_to_json(body: &[u8]) -> Result<Value, ProtobufError> {
    let message = body.strip_prefix(b"k8s\0").ok_or(ProtobufError::NoMagic)?;
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    for (number, wire) in fields(message)? {
        match (number, wire) {
            (1, Wire::Bytes(meta)) => {
                for (number, wire) in fields(meta)? {
                    match (number, wire) {
                        (1, Wire::Bytes(text)) => api_version = string(text),
                        (2, Wire::Bytes(text)) => kind = string(text),
                        _ => {}
                    }
                }
            }
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let Some(def) = type_of(group, version, &kind) else {
        return Err(ProtobufError::UnknownKind { api_version, kind });
    };
    let mut value = message_value(def, raw, 0)?;
    if let Some(map) = value.as_object_mut() {
        map.insert("apiVersion".to_owned(), json!(api_version));
        map.insert("kind".to_owned(), json!(kind));
    }
    Ok(value)
}

fn string(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn varint(bytes: &[u8], at: &mut usize) -> Result<u64, ProtobufError> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*at).ok_or(ProtobufError::Truncated)?;
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(ProtobufError::Wire(*at))
}

/// The fields of a message, in order.
fn fields(message: &[u8]) -> Result<Vec<(u64, Wire<'_>)>, ProtobufError> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < message.len() {
        let start = at;
        let tag = varint(message, &mut at)?;
        let wire = match tag & 7 {
            0 => Wire::Number(varint(message, &mut at)?),
            1 | 5 => {
                let width = if tag & 7 == 1 { 8 } else { 4 };
                let bytes = message.get(at..at + width).ok_or(ProtobufError::Truncated)?;
                at += width;
                let mut padded = [0; 8];
                padded[..width].copy_from_slice(bytes);
                Wire::Fixed(u64::from_le_bytes(padded))
            }
            2 => {
                let length =
                    usize::try_from(varint(message, &mut at)?).map_err(|_| ProtobufError::Truncated)?;
                let end = at.checked_add(length).ok_or(ProtobufError::Truncated)?;
                let bytes = message.get(at..end).ok_or(ProtobufError::Truncated)?;
                at = end;
                Wire::Bytes(bytes)
            }
            _ => return Err(ProtobufError::Wire(start)),
        };
        found.push((tag >> 3, wire));
    }
    Ok(found)
}

fn message_value(def: &'static TypeDef, message: &[u8], depth: usize) -> Result<Value, ProtobufError> {
    if depth > MAX_DEPTH {
        return Err(ProtobufError::TooDeep);
    }
    if def.literal.is_some() {
        return special(def, message, depth);
    }
    let mut map = Map::new();
    read_fields(def, "", message, &mut map, depth)?;
    Ok(Value::Object(map))
}

/// Decodes the fields whose numbers start with `prefix` (that of an embedded struct, or empty).
fn read_fields(
    def: &'static TypeDef,
    prefix: &str,
    message: &[u8],
    map: &mut Map<String, Value>,
    depth: usize,
) -> Result<(), ProtobufError> {
    for (number, wire) in fields(message)? {
        let path = format!("{prefix}{number}");
        if let Some(field) = def.fields.iter().find(|f| f.number == Some(path.as_str())) {
            add_field(field, wire, map, depth)?;
            continue;
        }
        let embedded = format!("{path}.");
        let is_embedded = def.fields.iter().any(|f| f.number.is_some_and(|n| n.starts_with(&embedded)));
        if let (Wire::Bytes(inner), true) = (wire, is_embedded) {
            read_fields(def, &embedded, inner, map, depth)?;
        }
    }
    Ok(())
}

fn add_field(
    field: &'static Field,
    wire: Wire<'_>,
    map: &mut Map<String, Value>,
    depth: usize,
) -> Result<(), ProtobufError> {
    match &field.ty {
        FieldType::List(element) => {
            let items = elements(&element.ty, wire, depth)?;
            let list = map.entry(field.name).or_insert_with(|| json!([]));
            if let Some(list) = list.as_array_mut() {
                list.extend(items);
            }
        }
        FieldType::Map(element) => {
            let Wire::Bytes(entry) = wire else { return Ok(()) };
            let (mut key, mut value) = (String::new(), None);
            for (number, wire) in fields(entry)? {
                match (number, wire) {
                    (1, Wire::Bytes(text)) => key = string(text),
                    (2, wire) => value = Some(map_value(&element.ty, wire, depth)?),
                    _ => {}
                }
            }
            let value = value.unwrap_or_else(|| crate::schemas::zero(&element.ty));
            if let Some(entries) = map.entry(field.name).or_insert_with(|| json!({})).as_object_mut() {
                entries.insert(key, value);
            }
        }
        ty => {
            map.insert(field.name.to_owned(), scalar(ty, wire, depth)?);
        }
    }
    Ok(())
}

/// The items of one occurrence of a repeated field; numbers may be packed.
fn elements(ty: &'static FieldType, wire: Wire<'_>, depth: usize) -> Result<Vec<Value>, ProtobufError> {
    let numeric = matches!(ty, FieldType::Int32 | FieldType::Int64 | FieldType::Bool);
    if let (true, Wire::Bytes(packed)) = (numeric, wire) {
        let (mut at, mut items) = (0, Vec::new());
        while at < packed.len() {
            items.push(scalar(ty, Wire::Number(varint(packed, &mut at)?), depth)?);
        }
        return Ok(items);
    }
    Ok(vec![scalar(ty, wire, depth)?])
}

/// The value of a map; a list of strings is wrapped in a message.
fn map_value(ty: &'static FieldType, wire: Wire<'_>, depth: usize) -> Result<Value, ProtobufError> {
    if let (FieldType::List(element), Wire::Bytes(inner)) = (ty, wire) {
        let mut items = Vec::new();
        for (_, wire) in fields(inner)? {
            items.extend(elements(&element.ty, wire, depth)?);
        }
        return Ok(Value::Array(items));
    }
    scalar(ty, wire, depth)
}

fn scalar(ty: &'static FieldType, wire: Wire<'_>, depth: usize) -> Result<Value, ProtobufError> {
    Ok(match (ty, wire) {
        (FieldType::String, Wire::Bytes(bytes)) => json!(string(bytes)),
        (FieldType::Bytes, Wire::Bytes(bytes)) => {
            json!(base64::engine::general_purpose::STANDARD.encode(bytes))
        }
        (FieldType::Bool, Wire::Number(number)) => json!(number != 0),
        (FieldType::Int32 | FieldType::Int64, Wire::Number(number)) => json!(number.cast_signed()),
        (FieldType::Double, Wire::Fixed(bits)) => json!(f64::from_bits(bits)),
        (FieldType::Ref(to), Wire::Bytes(message)) => match to.def() {
            Some(def) => message_value(def, message, depth + 1)?,
            None => Value::Null,
        },
        _ => Value::Null,
    })
}

/// Types whose JSON representation does not follow from their message.
fn special(def: &TypeDef, message: &[u8], depth: usize) -> Result<Value, ProtobufError> {
    let found = fields(message)?;
    let number = |wanted: u64| {
        found.iter().find_map(|(n, wire)| match wire {
            Wire::Number(value) if *n == wanted => Some(value.cast_signed()),
            _ => None,
        })
    };
    let bytes = |wanted: u64| {
        found.iter().find_map(|(n, wire)| match wire {
            Wire::Bytes(bytes) if *n == wanted => Some(*bytes),
            _ => None,
        })
    };
    let props = || type_named("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps");
    let schema = |bytes: &[u8]| match props() {
        Some(def) => message_value(def, bytes, depth + 1),
        None => Ok(Value::Null),
    };
    Ok(match def.name.rsplit('.').next().unwrap_or_default() {
        "Quantity" => json!(bytes(1).map(string).unwrap_or_default()),
        "Time" => time(number(1), 0),
        "MicroTime" => time(number(1), number(2).unwrap_or(0)),
        "IntOrString" if number(1) == Some(1) => json!(bytes(3).map(string).unwrap_or_default()),
        "IntOrString" => json!(number(2).unwrap_or(0)),
        "RawExtension" | "FieldsV1" | "JSON" => {
            bytes(1).and_then(|raw| serde_json::from_slice(raw).ok()).unwrap_or_default()
        }
        "JSONSchemaPropsOrBool" => match bytes(2) {
            Some(bytes) => schema(bytes)?,
            None => json!(number(1).unwrap_or(0) != 0),
        },
        "JSONSchemaPropsOrArray" => match bytes(1) {
            Some(bytes) => schema(bytes)?,
            None => Value::Array(all_bytes(&found, 2).into_iter().map(schema).collect::<Result<_, _>>()?),
        },
        "JSONSchemaPropsOrStringArray" => match bytes(1) {
            Some(bytes) => schema(bytes)?,
            None => json!(all_bytes(&found, 2).into_iter().map(string).collect::<Vec<_>>()),
        },
        _ => Value::Object(Map::new()),
    })
}

fn all_bytes<'a>(found: &[(u64, Wire<'a>)], wanted: u64) -> Vec<&'a [u8]> {
    found
        .iter()
        .filter_map(|(n, wire)| match wire {
            Wire::Bytes(bytes) if *n == wanted => Some(*bytes),
            _ => None,
        })
        .collect()
}

fn time(seconds: Option<i64>, nanos: i64) -> Value {
    // The zero time has no fields.
    let Some(at) = seconds.and_then(|s| jiff::Timestamp::new(s, i32::try_from(nanos).unwrap_or(0)).ok())
    else {
        return Value::Null;
    };
    json!(at.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(number: u8, body: &[u8]) -> Vec<u8> {
        let mut out = vec![number << 3 | 2, u8::try_from(body.len()).expect("short")];
        out.extend_from_slice(body);
        out
    }

    fn envelope(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
        let meta = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
        [b"k8s\0".to_vec(), field(1, &meta), field(2, raw)].concat()
    }

    #[test]
    fn decodes_a_config_map() {
        let metadata = field(1, b"c1");
        let entry = [field(1, b"a"), field(2, b"b")].concat();
        let raw = [field(1, &metadata), field(2, &entry)].concat();
        let got = protobuf_to_json(&envelope("v1", "ConfigMap", &raw)).expect("read");
        assert_eq!(
            got,
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c1"}, "data": {"a": "b"}})
        );
    }

    #[test]
    fn decodes_embedded_structs_and_ports() {
        // spec.containers[0].livenessProbe.httpGet.port = 8080, as int-or-string
        let port = [vec![1 << 3, 0], vec![2 << 3, 0x90, 0x3f]].concat();
        let action = field(2, &port);
        let probe = [field(1, &field(2, &action)), vec![2 << 3, 5]].concat();
        let container = [field(1, b"c"), field(10, &probe)].concat();
        let raw = field(2, &field(2, &container));
        let got = protobuf_to_json(&envelope("v1", "Pod", &raw)).expect("read");
        let probe = &got["spec"]["containers"][0]["livenessProbe"];
        assert_eq!((&probe["httpGet"]["port"], &probe["initialDelaySeconds"]), (&json!(8080), &json!(5)));
    }

    #[test]
    fn invalid_bytes_are_rejected() {
        assert!(matches!(protobuf_to_json(b"{}"), Err(ProtobufError::NoMagic)));
        assert!(matches!(protobuf_to_json(b"k8s\0\x0a\xff"), Err(ProtobufError::Truncated)));
        assert!(matches!(
            protobuf_to_json(&envelope("v1", "Nope", b"")),
            Err(ProtobufError::UnknownKind { .. })
        ));
    }
}
