//! Protobuf bodies of the few kinds Go clients send in that form even where JSON is enough: reviews, token requests and
//! delete options. Everything else in protobuf is refused, and answers are always JSON, which such clients read too.

use serde_json::{Map, Value, json};

/// How the value of a field is read.
#[derive(Debug, Clone, Copy)]
enum Shape {
    Text,
    Texts,
    Int,
    Bool,
    Message(&'static [Field]),
}

type Field = (u64, &'static str, Shape);

const RESOURCE: &[Field] = &[
    (1, "namespace", Shape::Text),
    (2, "verb", Shape::Text),
    (3, "group", Shape::Text),
    (4, "version", Shape::Text),
    (5, "resource", Shape::Text),
    (6, "subresource", Shape::Text),
    (7, "name", Shape::Text),
];
const PATH: &[Field] = &[(1, "path", Shape::Text), (2, "verb", Shape::Text)];
const ATTRIBUTES: [Field; 2] =
    [(1, "resourceAttributes", Shape::Message(RESOURCE)), (2, "nonResourceAttributes", Shape::Message(PATH))];
const SELF_ACCESS: &[Field] = &[(2, "spec", Shape::Message(&ATTRIBUTES))];
const ACCESS: &[Field] = &[(
    2,
    "spec",
    Shape::Message(&[
        ATTRIBUTES[0],
        ATTRIBUTES[1],
        (3, "user", Shape::Text),
        (4, "groups", Shape::Texts),
        (6, "uid", Shape::Text),
    ]),
)];
const RULES: &[Field] = &[(2, "spec", Shape::Message(&[(1, "namespace", Shape::Text)]))];
const TOKEN_REVIEW: &[Field] =
    &[(2, "spec", Shape::Message(&[(1, "token", Shape::Text), (2, "audiences", Shape::Texts)]))];
const REFERENCE: &[Field] = &[
    (1, "kind", Shape::Text),
    (2, "apiVersion", Shape::Text),
    (3, "name", Shape::Text),
    (4, "uid", Shape::Text),
];
const TOKEN_REQUEST: &[Field] = &[(
    2,
    "spec",
    Shape::Message(&[
        (1, "audiences", Shape::Texts),
        (3, "boundObjectRef", Shape::Message(REFERENCE)),
        (4, "expirationSeconds", Shape::Int),
    ]),
)];
const DELETE: &[Field] = &[
    (1, "gracePeriodSeconds", Shape::Int),
    (2, "preconditions", Shape::Message(&[(1, "uid", Shape::Text), (2, "resourceVersion", Shape::Text)])),
    (3, "orphanDependents", Shape::Bool),
    (4, "propagationPolicy", Shape::Text),
    (5, "dryRun", Shape::Texts),
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

/// One field on the wire.
enum Part<'a> {
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

fn next<'a>(rest: &mut &'a [u8]) -> Option<(u64, Part<'a>)> {
    let tag = varint(rest)?;
    let mut take = |n: usize| {
        let (head, tail) = rest.split_at_checked(n)?;
        *rest = tail;
        Some(head)
    };
    let part = match tag & 7 {
        0 => Part::Number(varint(rest)?),
        1 => take(8).map(|_| Part::Skipped)?,
        5 => take(4).map(|_| Part::Skipped)?,
        2 => {
            let n = usize::try_from(varint(rest)?).ok()?;
            let (head, tail) = rest.split_at_checked(n)?;
            *rest = tail;
            Part::Bytes(head)
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
            (Shape::Text, Part::Bytes(b)) => {
                let value = text(b)?;
                if !value.is_empty() {
                    out.insert((*name).to_owned(), json!(value));
                }
            }
            (Shape::Texts, Part::Bytes(b)) => {
                let list = out.entry((*name).to_owned()).or_insert_with(|| json!([]));
                list.as_array_mut()?.push(json!(text(b)?));
            }
            (Shape::Int, Part::Number(n)) => {
                out.insert((*name).to_owned(), json!(n as i64));
            }
            (Shape::Bool, Part::Number(n)) => {
                out.insert((*name).to_owned(), json!(n != 0));
            }
            (Shape::Message(below), Part::Bytes(b)) => {
                out.insert((*name).to_owned(), Value::Object(message(b, below)?));
            }
            _ => return None,
        }
    }
    Some(out)
}

/// The JSON of a protobuf body; `None` for what is not understood.
pub(crate) fn to_json(body: &[u8]) -> Option<Vec<u8>> {
    let mut rest = body.strip_prefix(b"k8s\0")?;
    let (mut kind, mut api_version, mut raw) = (String::new(), String::new(), &[][..]);
    while !rest.is_empty() {
        match next(&mut rest)? {
            (1, Part::Bytes(b)) => {
                let meta = message(b, &[(1, "apiVersion", Shape::Text), (2, "kind", Shape::Text)])?;
                let text = |f: &str| meta.get(f).and_then(Value::as_str).unwrap_or_default().to_owned();
                (api_version, kind) = (text("apiVersion"), text("kind"));
            }
            (2, Part::Bytes(b)) => raw = b,
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
    fn a_review_is_read() {
        let attributes = [field(2, b"list"), field(5, b"pods")].concat();
        let spec = field(1, &attributes);
        let raw = field(2, &spec);
        let meta = [field(1, b"authorization.k8s.io/v1"), field(2, b"SelfSubjectAccessReview")].concat();
        let body = [b"k8s\0".to_vec(), field(1, &meta), field(2, &raw)].concat();
        let value: Value = serde_json::from_slice(&to_json(&body).expect("understood")).expect("JSON");
        assert_eq!(value["spec"]["resourceAttributes"], json!({"verb": "list", "resource": "pods"}));
        // Cut anywhere, it is refused, never a panic.
        for end in 0..body.len() {
            let _ = to_json(&body[..end]);
        }
    }
}
