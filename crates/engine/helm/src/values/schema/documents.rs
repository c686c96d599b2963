//! Schemas that references can resolve to: the chart's own and the metaschemas.

use std::collections::HashMap;
use std::rc::Rc;

use jsonschema::uri;
use referencing::meta;
use serde_json::Value as Json;

/// Base URI of a chart's schema in references and messages.
pub(super) const SCHEMA_URI: &str = "file:///values.schema.json";

/// Draft of a schema without `$schema`.
const DEFAULT_DRAFT: u16 = 2020;

/// Draft by its metaschema URI.
pub(super) fn draft_of(address: &str) -> Option<u16> {
    let address = address.trim_end_matches('#');
    let (_, name) = address.split_once("://json-schema.org/")?;
    match name {
        "draft-04/schema" => Some(4),
        "draft-06/schema" => Some(6),
        "draft-07/schema" => Some(7),
        "draft/2019-09/schema" => Some(2019),
        "draft/2020-12/schema" | "schema" => Some(DEFAULT_DRAFT),
        _ => None,
    }
}

/// Metaschema URI of a draft.
pub(super) fn metaschema_of(draft: u16) -> &'static str {
    match draft {
        4 => "http://json-schema.org/draft-04/schema",
        6 => "http://json-schema.org/draft-06/schema",
        7 => "http://json-schema.org/draft-07/schema",
        2019 => "https://json-schema.org/draft/2019-09/schema",
        _ => "https://json-schema.org/draft/2020-12/schema",
    }
}

/// A schema with its base URI and draft.
#[derive(Clone, Debug)]
pub(super) struct SchemaLocation<'s> {
    pub(super) schema: &'s Json,
    pub(super) base: Rc<str>,
    pub(super) draft: u16,
    /// Whether `format` is asserted: in old drafts, and for schemas themselves.
    pub(super) formats: bool,
}

impl<'s> SchemaLocation<'s> {
    /// A subschema.
    pub(super) fn inner(&self, schema: &'s Json) -> Self {
        let mut place = Self { schema, ..self.clone() };
        place.enter();
        place
    }

    /// Applies the schema's own `$id`, which changes the base URI.
    fn enter(&mut self) {
        if let Some(address) = address_in(self.schema, &self.base, self.draft) {
            self.base = address.into();
        }
        let written_in = self.schema.get("$schema").and_then(Json::as_str);
        if let Some(draft) = written_in.and_then(draft_of) {
            self.draft = draft;
            self.formats |= draft < 2019;
        }
    }
}

/// The absolute URI that a schema declares for itself.
fn address_in(schema: &Json, base: &str, draft: u16) -> Option<String> {
    let id = schema.get(if draft == 4 { "id" } else { "$id" })?.as_str()?;
    // In old drafts `$ref` hides its sibling keywords.
    let hidden = draft < 2019 && schema.get("$ref").is_some();
    if hidden || id.starts_with('#') {
        return None;
    }
    resolve(base, id).map(|(address, _)| address)
}

/// Splits a reference into its absolute URI and fragment.
fn resolve(base: &str, reference: &str) -> Option<(String, String)> {
    let base = uri::from_str(base).ok()?;
    let whole = uri::resolve_against(&base.borrow(), reference).ok()?;
    let whole = whole.as_str();
    let (address, fragment) = whole.split_once('#').unwrap_or((whole, ""));
    Some((address.to_owned(), fragment.to_owned()))
}

/// Error of resolving a reference.
#[derive(Debug)]
pub(super) enum RefError {
    Pointer(String),
    Anchor(String, String),
    Document(String),
}

/// All schemas by URI, and their anchors.
#[derive(Debug, Default)]
pub(super) struct Documents<'s> {
    schemas: HashMap<String, SchemaLocation<'s>>,
    anchors: HashMap<(String, String), SchemaLocation<'s>>,
}

impl<'s> Documents<'s> {
    /// Indexes a chart's schema and the metaschemas.
    pub(super) fn new(schema: &'s Json) -> Self {
        let mut documents = Self::default();
        let known: [(&str, &'static Json); 16] = [
            (metaschema_of(4), &meta::DRAFT4),
            (metaschema_of(6), &meta::DRAFT6),
            (metaschema_of(7), &meta::DRAFT7),
            (metaschema_of(2019), &meta::DRAFT201909),
            ("https://json-schema.org/draft/2019-09/meta/applicator", &meta::DRAFT201909_APPLICATOR),
            ("https://json-schema.org/draft/2019-09/meta/content", &meta::DRAFT201909_CONTENT),
            ("https://json-schema.org/draft/2019-09/meta/core", &meta::DRAFT201909_CORE),
            ("https://json-schema.org/draft/2019-09/meta/meta-data", &meta::DRAFT201909_META_DATA),
            ("https://json-schema.org/draft/2019-09/meta/validation", &meta::DRAFT201909_VALIDATION),
            (metaschema_of(2020), &meta::DRAFT202012),
            ("https://json-schema.org/draft/2020-12/meta/applicator", &meta::DRAFT202012_APPLICATOR),
            ("https://json-schema.org/draft/2020-12/meta/content", &meta::DRAFT202012_CONTENT),
            ("https://json-schema.org/draft/2020-12/meta/core", &meta::DRAFT202012_CORE),
            ("https://json-schema.org/draft/2020-12/meta/meta-data", &meta::DRAFT202012_META_DATA),
            ("https://json-schema.org/draft/2020-12/meta/unevaluated", &meta::DRAFT202012_UNEVALUATED),
            ("https://json-schema.org/draft/2020-12/meta/validation", &meta::DRAFT202012_VALIDATION),
        ];
        for (address, schema) in known {
            documents.add(address, schema, true);
        }
        documents.add("https://json-schema.org/draft/2019-09/meta/format", &meta::DRAFT201909_FORMAT, true);
        let annotation = &meta::DRAFT202012_FORMAT_ANNOTATION;
        documents.add("https://json-schema.org/draft/2020-12/meta/format-annotation", annotation, true);
        documents.add(SCHEMA_URI, schema, false);
        documents
    }

    fn add(&mut self, address: &str, schema: &'s Json, formats: bool) {
        let mut place = SchemaLocation { schema, base: address.into(), draft: DEFAULT_DRAFT, formats };
        place.enter();
        self.schemas.insert(address.to_owned(), place.clone());
        self.walk(&place);
    }

    fn walk(&mut self, place: &SchemaLocation<'s>) {
        let base = || place.base.to_string();
        match place.schema {
            Json::Object(entries) => {
                if address_in(place.schema, &place.base, place.draft).is_some() {
                    self.schemas.entry(base()).or_insert_with(|| place.clone());
                }
                let names = ["$anchor", "$dynamicAnchor", "$id", "id"];
                for (key, name) in names.iter().filter_map(|key| Some((*key, entries.get(*key)?.as_str()?))) {
                    let name = match key {
                        "$anchor" | "$dynamicAnchor" if place.draft < 2019 => continue,
                        "$anchor" | "$dynamicAnchor" => name,
                        "id" if place.draft != 4 => continue,
                        "$id" if place.draft == 4 || place.draft > 7 => continue,
                        _ => match name.strip_prefix('#') {
                            Some(name) => name,
                            None => continue,
                        },
                    };
                    self.anchors.entry((base(), name.to_owned())).or_insert_with(|| place.clone());
                }
                for (_, value) in entries.iter().filter(|(key, _)| !matches!(key.as_str(), "enum" | "const"))
                {
                    self.walk(&place.inner(value));
                }
            }
            Json::Array(items) => items.iter().for_each(|item| self.walk(&place.inner(item))),
            _ => {}
        }
    }

    /// The schema at a URI.
    pub(super) fn at(&self, address: &str) -> Option<&SchemaLocation<'s>> {
        self.schemas.get(address)
    }

    /// Resolves a reference found in a schema.
    pub(super) fn find(
        &self,
        from: &SchemaLocation<'s>,
        reference: &str,
    ) -> Result<SchemaLocation<'s>, RefError> {
        let Some((address, fragment)) = resolve(&from.base, reference) else {
            return Err(RefError::Document(reference.to_owned()));
        };
        let Some(document) = self.schemas.get(&address) else { return Err(RefError::Document(address)) };
        if fragment.is_empty() {
            return Ok(document.clone());
        }
        let unresolved_reference = || format!("{address}#{fragment}");
        let Some(pointer) = fragment.strip_prefix('/') else {
            let anchor = self.anchor(&document.base, &fragment).cloned();
            return anchor.ok_or_else(|| RefError::Anchor(unresolved_reference(), address.clone()));
        };
        let mut place = document.clone();
        for token in pointer.split('/') {
            let token = unescaped(token).replace("~1", "/").replace("~0", "~");
            let inner = match place.schema {
                Json::Array(items) => token.parse::<usize>().ok().and_then(|at| items.get(at)),
                other => other.get(token.as_str()),
            };
            place = place.inner(inner.ok_or_else(|| RefError::Pointer(unresolved_reference()))?);
        }
        Ok(place)
    }

    /// The first reference of the chart's schema that cannot be resolved.
    pub(super) fn unresolved_reference(&self) -> Option<RefError> {
        let mut open = vec![self.schemas.get(SCHEMA_URI)?.clone()];
        while let Some(place) = open.pop() {
            match place.schema {
                Json::Object(entries) => {
                    for keyword in ["$ref", "$dynamicRef", "$recursiveRef"] {
                        let reference = entries.get(keyword).and_then(Json::as_str);
                        let unresolved_reference =
                            reference.and_then(|reference| self.find(&place, reference).err());
                        if unresolved_reference.is_some() {
                            return unresolved_reference;
                        }
                    }
                    open.extend(entries.values().map(|value| place.inner(value)));
                }
                Json::Array(items) => open.extend(items.iter().map(|item| place.inner(item))),
                _ => {}
            }
        }
        None
    }

    /// The schema of an anchor in a document.
    pub(super) fn anchor(&self, base: &str, name: &str) -> Option<&SchemaLocation<'s>> {
        self.anchors.get(&(base.to_owned(), name.to_owned()))
    }
}

/// Percent-decodes a part of a fragment.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let code = tail.get(..2).filter(|_| *first == b'%').and_then(|two| std::str::from_utf8(two).ok());
        match code.and_then(|two| u8::from_str_radix(two, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
