//! A built-in type, as parsed from the tables.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use fl_schema::Schema;
use serde_json::Value;

use crate::table::{full_name, index};

/// A type: an object with fields, or one with its own JSON representation (times, quantities, raw JSON).
#[derive(Debug)]
pub struct TypeDef {
    /// `io.k8s.api.apps.v1.Deployment`.
    pub name: String,
    /// Sorted by name.
    pub fields: Vec<Field>,
    /// `x-kubernetes-map-type` of the type.
    pub map_type: Option<&'static str>,
    /// `group/version/Kind` for types that are kinds.
    pub kinds: Vec<&'static str>,
    /// `x-kubernetes-unions` as JSON.
    pub unions: Option<&'static str>,
    /// The whole schema as JSON where the type is not an object with fields.
    pub literal: Option<&'static str>,
    pub(crate) derived: Derived,
}

/// Values derived from a type once, because they are needed for every object.
#[derive(Debug, Default)]
pub(crate) struct Derived {
    /// The fields that Go writes even if they are not set.
    pub(crate) always: OnceLock<Vec<&'static Field>>,
    defaults: OnceLock<Vec<(usize, Value)>>,
    pub(crate) schema: OnceLock<Option<Arc<Schema>>>,
    /// The [`prefix_key`] of every field's name, in the order of the fields.
    prefix_keys: Vec<u64>,
}

/// The first eight bytes of a name as a number with the same order: names are looked up in every walk over an
/// object, and numbers compare faster than strings.
fn prefix_key(name: &str) -> u64 {
    let mut bytes = [0; 8];
    let length = name.len().min(8);
    bytes[..length].copy_from_slice(&name.as_bytes()[..length]);
    u64::from_be_bytes(bytes)
}

impl TypeDef {
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Field> {
        let (all, wanted) = (&self.derived.prefix_keys, prefix_key(name));
        let first = all.partition_point(|&b| b < wanted);
        let alike = all[first..].iter().take_while(|&&b| b == wanted).count();
        self.fields[first..first + alike].iter().find(|f| f.name == name)
    }

    /// The fields with a default other than the zero value, with that default.
    pub fn defaults(&self) -> impl Iterator<Item = (&Field, &Value)> {
        let found = self.derived.defaults.get_or_init(|| {
            let default =
                |(at, field): (usize, &Field)| Some((at, serde_json::from_str(field.default?).ok()?));
            self.fields.iter().enumerate().filter_map(default).collect()
        });
        found.iter().map(|(at, value)| (&self.fields[*at], value))
    }
}

/// A reference to a type by name.
#[derive(Debug, Clone)]
pub struct Reference {
    name: String,
    def: OnceLock<Option<&'static TypeDef>>,
}

impl Reference {
    fn new(name: String) -> Self {
        Self { name, def: OnceLock::new() }
    }

    /// The full name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The type, resolved once, because objects are walked with every write.
    #[must_use]
    pub fn def(&self) -> Option<&'static TypeDef> {
        *self.def.get_or_init(|| type_named(&self.name))
    }
}

impl PartialEq for Reference {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Reference {}

/// The JSON type of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldType {
    String,
    Int32,
    Int64,
    Bool,
    Double,
    Bytes,
    /// Another type.
    Ref(Reference),
    List(Box<Element>),
    Map(Box<Element>),
}

/// The element type of a list or map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Element {
    pub ty: FieldType,
    /// Whether the schema gives the zero value as default.
    pub zero_default: bool,
}

/// One field of a type.
#[derive(Debug)]
pub struct Field {
    pub name: &'static str,
    pub ty: FieldType,
    pub required: bool,
    /// A Go pointer: the zero value is kept and differs from absence.
    pub pointer: bool,
    /// `omitempty`: an empty value is not written.
    pub omit_empty: bool,
    pub omit_zero: bool,
    pub zero_default: bool,
    /// A default other than the zero value, as JSON.
    pub default: Option<&'static str>,
    pub list_type: Option<&'static str>,
    pub map_type: Option<&'static str>,
    pub map_keys: Vec<&'static str>,
    pub patch_strategy: Option<&'static str>,
    pub merge_key: Option<&'static str>,
    pub enumeration: Vec<&'static str>,
    pub element_enumeration: Vec<&'static str>,
    /// Go's type where its name cannot be derived, such as `v1.PullPolicy` or `[]v1.Container`.
    pub go_type: Option<&'static str>,
    /// Protobuf field number; `2.5` is field 5 of the struct embedded as field 2.
    pub number: Option<&'static str>,
}

/// The type with this full name.
#[must_use]
pub fn type_named(name: &str) -> Option<&'static TypeDef> {
    index().by_name.get(name).map(|&at| parsed(at))
}

/// The type of a kind.
#[must_use]
pub fn type_of(group: &str, version: &str, kind: &str) -> Option<&'static TypeDef> {
    index().by_kind.get(format!("{group}/{version}/{kind}").as_str()).map(|&at| parsed(at))
}

/// Every type's name, sorted.
pub(crate) fn names() -> impl Iterator<Item = String> {
    index().types.iter().map(|p| full_name(p.head.split(' ').next().unwrap_or_default()))
}

fn parsed(at: usize) -> &'static TypeDef {
    static PARSED: OnceLock<Mutex<HashMap<usize, &'static TypeDef>>> = OnceLock::new();
    let mut parsed = PARSED.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    // Leaked deliberately: the tables are static.
    parsed.entry(at).or_insert_with(|| Box::leak(Box::new(parse(at))))
}

fn parse(at: usize) -> TypeDef {
    let text = index().types[at];
    let (name, mut rest) = text.head.split_once(' ').unwrap_or((text.head, ""));
    let mut def = TypeDef {
        name: full_name(name),
        fields: Vec::new(),
        map_type: None,
        kinds: Vec::new(),
        unions: None,
        literal: None,
        derived: Derived::default(),
    };
    while !rest.is_empty() {
        // JSON may contain blanks, so it takes the rest of the line.
        let (word, more) = match rest.as_bytes()[0] {
            b'U' | b'J' => (rest, ""),
            _ => rest.split_once(' ').unwrap_or((rest, "")),
        };
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        match key {
            "X" => def.map_type = Some(value),
            "V" => def.kinds = value.split(',').collect(),
            "U" => def.unions = Some(value),
            "J" => def.literal = Some(value),
            _ => {}
        }
        rest = more;
    }
    def.fields = text.body.lines().map(parse_field).collect();
    def.fields.sort_by_key(|f| f.name);
    def.derived.prefix_keys = def.fields.iter().map(|f| prefix_key(f.name)).collect();
    def
}

fn parse_field(line: &'static str) -> Field {
    let mut words = line.split(' ');
    let name = words.next().unwrap_or_default();
    let flags = words.next().unwrap_or_default();
    let ty = parse_type(words.next().unwrap_or_default());
    let mut field = Field {
        name,
        ty,
        required: flags.contains('!'),
        pointer: flags.contains('*'),
        omit_empty: flags.contains('o'),
        omit_zero: flags.contains('z'),
        zero_default: flags.contains('d'),
        default: None,
        list_type: None,
        map_type: None,
        map_keys: Vec::new(),
        patch_strategy: None,
        merge_key: None,
        enumeration: Vec::new(),
        element_enumeration: Vec::new(),
        go_type: None,
        number: None,
    };
    for word in words {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        match key {
            "L" => field.list_type = Some(value),
            "X" => field.map_type = Some(value),
            "K" => field.map_keys = value.split(',').collect(),
            "P" => field.patch_strategy = Some(value),
            "M" => field.merge_key = Some(value),
            "E" => field.enumeration = value.split(',').collect(),
            "e" => field.element_enumeration = value.split(',').collect(),
            "D" => field.default = Some(value),
            "G" => field.go_type = Some(value),
            "N" => field.number = Some(value),
            _ => {}
        }
    }
    field
}

fn parse_type(code: &str) -> FieldType {
    let element = |code: &str| {
        let (zero_default, code) = match code.strip_prefix('~') {
            Some(code) => (true, code),
            None => (false, code),
        };
        Box::new(Element { ty: parse_type(code), zero_default })
    };
    if code.is_empty() {
        return FieldType::String;
    }
    match code.split_at(1) {
        ("i", _) => FieldType::Int32,
        ("l", _) => FieldType::Int64,
        ("b", _) => FieldType::Bool,
        ("f", _) => FieldType::Double,
        ("y", _) => FieldType::Bytes,
        ("@", name) => FieldType::Ref(Reference::new(full_name(name))),
        ("[", rest) => FieldType::List(element(rest)),
        ("{", rest) => FieldType::Map(element(rest)),
        _ => FieldType::String,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_parses_and_every_reference_resolves() {
        fn references(ty: &FieldType) -> Option<&str> {
            match ty {
                FieldType::Ref(to) => Some(to.name()),
                FieldType::List(e) | FieldType::Map(e) => references(&e.ty),
                _ => None,
            }
        }
        let all: Vec<String> = names().collect();
        assert!(all.len() > 500, "{}", all.len());
        for name in all {
            let def = type_named(&name).expect("indexed");
            assert!(def.fields.is_empty() == def.literal.is_some(), "{name}");
            for field in &def.fields {
                assert!(def.field(field.name).is_some_and(|found| std::ptr::eq(found, field)), "{name}");
                if let Some(target) = references(&field.ty) {
                    assert!(type_named(target).is_some(), "{name}.{} -> {target}", field.name);
                }
            }
        }
    }

    #[test]
    fn well_known_fields_are_parsed() {
        let spec = type_named("io.k8s.api.core.v1.PodSpec").expect("PodSpec");
        let containers = spec.field("containers").expect("containers");
        assert_eq!((containers.list_type, containers.map_keys.as_slice()), (Some("map"), &["name"][..]));
        assert!(containers.required && !containers.pointer);
        assert!(spec.field("automountServiceAccountToken").is_some_and(|f| f.pointer));
        for unknown in ["", "a", "automountServiceAccountTokens", "automoun", "container", "zzzzzzzzz"] {
            assert!(spec.field(unknown).is_none(), "{unknown}");
        }
        let deployment = type_of("apps", "v1", "Deployment").expect("Deployment");
        assert_eq!(deployment.name, "io.k8s.api.apps.v1.Deployment");
        assert!(type_of("apps", "v1", "Nope").is_none());
    }
}
