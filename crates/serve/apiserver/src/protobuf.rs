//! Protobuf request bodies of the few kinds that Go clients send in that form even if JSON is negotiated:
//! reviews, token requests and delete options. All other protobuf is rejected, and responses are always JSON,
//! which such clients accept, too.

use serde_json::{Map, Value, json};

/// The type of a field.
#[derive(Debug, Clone, Copy)]
enum FieldType {
    Text,
    Texts,
    Int,
    Bool,
    Message(&'static [Field]),
}

type Field = (u64, &'static str, FieldType);

const RESOURCE: &[Field] = &[
    (1, "namespace", FieldType::Text),
    (2, "verb", FieldType::Text),
    (3, "group", FieldType::Text),
    (4, "version", FieldType::Text),
    (5, "resource", FieldType::Text),
    (6, "subresource", FieldType::Text),
    (7, "name", FieldType::Text),
];
const PATH: &[Field] = &[(1, "path", FieldType::Text), (2, "verb", FieldType::Text)];
const ATTRIBUTES: [Field; 2] = [
    (1, "resourceAttributes", FieldType::Message(RESOURCE)),
    (2, "nonResourceAttributes", FieldType::Message(PATH)),
];
const SELF_ACCESS: &[Field] = &[(2, "spec", FieldType::Message(&ATTRIBUTES))];
const ACCESS: &[Field] = &[(
    2,
    "spec",
    FieldType::Message(&[
        ATTRIBUTES[0],
        ATTRIBUTES[1],
        (3, "user", FieldType::Text),
        (4, "groups", FieldType::Texts),
        (6, "uid", FieldType::Text),
    ]),
)];
const RULES: &[Field] = &[(2, "spec", FieldType::Message(&[(1, "namespace", FieldType::Text)]))];
const TOKEN_REVIEW: &[Field] =
    &[(2, "spec", FieldType::Message(&[(1, "token", FieldType::Text), (2, "audiences", FieldType::Texts)]))];
const REFERENCE: &[Field] = &[
    (1, "kind", FieldType::Text),
    (2, "apiVersion", FieldType::Text),
    (3, "name", FieldType::Text),
    (4, "uid", FieldType::Text),
];
const TOKEN_REQUEST: &[Field] = &[(
    2,
    "spec",
    FieldType::Message(&[
        (1, "audiences", FieldType::Texts),
        (3, "boundObjectRef", FieldType::Message(REFERENCE)),
        (4, "expirationSeconds", FieldType::Int),
    ]),
)];
const DELETE: &[Field] = &[
    (1, "gracePeriodSeconds", FieldType::Int),
    (
        2,
        "preconditions",
        FieldType::Message(&[(1, "uid", FieldType::Text), (2, "resourceVersion", FieldType::Text)]),
    ),
    (3, "orphanDependents", FieldType::Bool),
    (4, "propagationPolicy", FieldType::Text),
    (5, "dryRun", FieldType::Texts),
];

fn fields_of(kind: &str) -> Option<&'static [Field]> {
    match kind {
        "SelfSubjectAccessReview" => Some(SELF_ACCESS),
        "SubjectAccessReview" | "LocalSubjectAccessReview" => Some(ACCESS),
        "SelfSubjectRulesReview" => Some(RULES),
        "SelfSubjectReview" => Some(&[]),
        "TokenReview" => Some(TOKEN_REVIEW),
        "TokenRequest" => Some(TOKEN_REQUEST),
        "DeleteOptions" => Some(DELETE),
        _ => None,
    }
}

/// One decoded field value.
enum WireValue<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    Skipped,
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (first, tail) = rest.split_first()?;
        *rest = tail;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn next<'a>(rest: &mut &'a [u8]) -> Option<(u64, WireValue<'a>)> {
    let tag = varint(rest)?;
    let mut take = |n: usize| {
        let (head, tail) = rest.split_at_checked(n)?;
        *rest = tail;
        Some(head)
    };
    let part = match tag & 7 {
        0 => WireValue::Number(varint(rest)?),
        1 => take(8).map(|_| WireValue::Skipped)?,
        5 => take(4).map(|_| WireValue::Skipped)?,
        2 => {
            let n = usize::try_from(varint(rest)?).ok()?;
            let (head, tail) = rest.split_at_checked(n)?;
            *rest = tail;
            WireValue::Bytes(head)
        }
        _ => return None,
    };
    Some((tag >> 3, part))
}

fn message(mut rest: &[u8], fields: &[Field]) -> Option<Map<String, Value>> {
    let mut out = Map::new();
    while !rest.is_empty() {
        let (number, part) = next(&mut rest)?;
        let Some((_, name, shape)) = fields.iter().find(|(n, _, _)| *n == number) else { continue };
        let text = |b: &[u8]| std::str::from_utf8(b).ok().map(str::to_owned);
        match (shape, part) {
            (FieldType::Text, WireValue::Bytes(b)) => {
                let value = text(b)?;
                if !value.is_empty() {
                    out.insert((*name).to_owned(), json!(value));
                }
            }
            (FieldType::Texts, WireValue::Bytes(b)) => {
                let list = out.entry((*name).to_owned()).or_insert_with(|| json!([]));
                list.as_array_mut()?.push(json!(text(b)?));
            }
            (FieldType::Int, WireValue::Number(n)) => {
                out.insert((*name).to_owned(), json!(n as i64));
            }
            (FieldType::Bool, WireValue::Number(n)) => {
                out.insert((*name).to_owned(), json!(n != 0));
            }
            (FieldType::Message(below), WireValue::Bytes(b)) => {
                out.insert((*name).to_owned(), Value::Object(message(b, below)?));
            }
            _ => return None,
        }
    }
    Some(out)
}

/// Converts a protobuf body to JSON; `None` if it is not supported.
pub(crate) fn to_json(body: &[u8]) -> Option<Vec<u8>> {
    let mut rest = body.strip_prefix(b"k8s\0")?;
    let (mut kind, mut api_version, mut raw) = (String::new(), String::new(), &[][..]);
    while !rest.is_empty() {
        match next(&mut rest)? {
            (1, WireValue::Bytes(b)) => {
                let meta = message(b, &[(1, "apiVersion", FieldType::Text), (2, "kind", FieldType::Text)])?;
                let text = |f: &str| meta.get(f).and_then(Value::as_str).unwrap_or_default().to_owned();
                (api_version, kind) = (text("apiVersion"), text("kind"));
            }
            (2, WireValue::Bytes(b)) => raw = b,
            _ => {}
        }
    }
    let mut object = message(raw, fields_of(&kind)?)?;
    object.insert("kind".to_owned(), json!(kind));
    object.insert("apiVersion".to_owned(), json!(api_version));
    Some(Value::Object(object).to_string().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, bytes.len() as u8], bytes].concat()
    }

    #[test]
    fn review_is_decoded() {
        let attributes = [field(2, b"list"), field(5, b"pods")].concat();
        let spec = field(1, &attributes);
        let raw = field(2, &spec);
        let meta = [field(1, b"authorization.k8s.io/v1"), field(2, b"SelfSubjectAccessReview")].concat();
        let body = [b"k8s\0".to_vec(), field(1, &meta), field(2, &raw)].concat();
        let value: Value = serde_json::from_slice(&to_json(&body).expect("understood")).expect("JSON");
        assert_eq!(value["spec"]["resourceAttributes"], json!({"verb": "list", "resource": "pods"}));
        // A truncated body is rejected without a panic.
        for end in 0..body.len() {
            let _ = to_json(&body[..end]);
        }
    }
}
