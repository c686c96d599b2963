//! Static types, and the overloads of every function.

use std::collections::HashMap;
use std::fmt;
use std::sync::OnceLock;

use fl_schema::{Additional, Schema, Type as SchemaType};

/// The type of an expression.
#[derive(Debug, Clone)]
pub(crate) enum Type<'s> {
    Dyn,
    /// Scalars and opaque types, by their name in error messages.
    Named(&'static str),
    List(Box<Type<'s>>),
    Map(Box<Type<'s>>, Box<Type<'s>>),
    Optional(Box<Type<'s>>),
    /// An object with known fields; resources also have type and name.
    Object {
        schema: &'s Schema,
        resource: bool,
    },
    /// A group of separately declared names.
    Record(std::sync::Arc<Vec<(String, Type<'static>)>>),
    /// A type parameter of an overload.
    Param(char),
}

pub(crate) const BOOL: Type<'static> = Type::Named("bool");
pub(crate) const INT: Type<'static> = Type::Named("int");
pub(crate) const TEXT: Type<'static> = Type::Named("string");
const TIMESTAMP: &str = "google.protobuf.Timestamp";
const DURATION: &str = "google.protobuf.Duration";
/// Type of an expression whose error was reported already.
pub(crate) const ERROR: Type<'static> = Type::Named("!error!");

impl<'s> Type<'s> {
    /// The type of values of a schema; `None` if rules cannot access them.
    pub(crate) fn of(schema: &'s Schema, resource: bool) -> Option<Type<'s>> {
        if schema.int_or_string {
            return Some(Type::Dyn);
        }
        Some(match schema.ty {
            SchemaType::Boolean => BOOL,
            SchemaType::Integer => INT,
            SchemaType::Number => Type::Named("double"),
            SchemaType::String => match schema.format.as_deref() {
                Some("byte") => Type::Named("bytes"),
                Some("duration") => Type::Named("google.protobuf.Duration"),
                Some("date" | "date-time") => Type::Named("google.protobuf.Timestamp"),
                _ => TEXT,
            },
            SchemaType::Array => Type::List(Box::new(Type::of(
                schema.items.as_deref()?,
                schema.items.as_deref()?.embedded_resource,
            )?)),
            SchemaType::Object => match &schema.additional {
                Additional::Schema(values) => {
                    Type::Map(Box::new(TEXT), Box::new(Type::of(values, values.embedded_resource)?))
                }
                _ => Type::Object { schema, resource: resource || schema.embedded_resource },
            },
            SchemaType::Any => return None,
        })
    }

    /// The type as shown in messages of the type checker.
    pub(crate) fn shown(&self) -> String {
        match self {
            Type::Named(TIMESTAMP) => "timestamp".to_owned(),
            Type::Named(DURATION) => "duration".to_owned(),
            Type::Named("null_type") => "null".to_owned(),
            Type::List(item) => format!("list({})", item.shown()),
            Type::Map(key, value) => format!("map({}, {})", key.shown(), value.shown()),
            Type::Optional(inner) => format!("optional_type({})", inner.shown()),
            other => other.to_string(),
        }
    }

    /// Whether the type is dynamic or its error was reported already.
    pub(crate) fn is_dynamic(&self) -> bool {
        matches!(self, Type::Dyn | Type::Named("!error!"))
    }

    /// Whether two types are exactly equal.
    pub(crate) fn is_same(&self, other: &Type<'_>) -> bool {
        match (self, other) {
            (Type::Dyn, Type::Dyn) => true,
            (Type::Named(a), Type::Named(b)) => a == b,
            (Type::Param(a), Type::Param(b)) => a == b,
            (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => a.is_same(b),
            (Type::Map(ak, av), Type::Map(bk, bv)) => ak.is_same(bk) && av.is_same(bv),
            (Type::Object { schema: a, .. }, Type::Object { schema: b, .. }) => std::ptr::eq(*a, *b),
            (Type::Record(a), Type::Record(b)) => std::sync::Arc::ptr_eq(a, b),
            _ => false,
        }
    }

    /// The type without borrowed data: objects of a schema become dynamic.
    pub(crate) fn to_static(&self) -> Type<'static> {
        match self {
            Type::Dyn | Type::Param(_) | Type::Object { .. } => Type::Dyn,
            Type::Named(name) => Type::Named(name),
            Type::List(item) => Type::List(Box::new(item.to_static())),
            Type::Map(key, value) => Type::Map(Box::new(key.to_static()), Box::new(value.to_static())),
            Type::Optional(inner) => Type::Optional(Box::new(inner.to_static())),
            Type::Record(members) => Type::Record(members.clone()),
        }
    }

    /// A field of an object type.
    pub(crate) fn field(&self, name: &str) -> Option<Type<'s>> {
        if let Type::Record(members) = self {
            return members.iter().find(|(known, _)| known == name).map(|(_, ty)| ty.clone());
        }
        let Type::Object { schema, resource } = self else { return None };
        let plain = crate::identifier_escaping::unescape(name);
        if *resource {
            match name {
                "apiVersion" | "kind" => return Some(TEXT),
                "metadata" => return Some(Type::Object { schema: reachable_meta(), resource: false }),
                _ => {}
            }
        }
        let node = schema.property(&plain).filter(|_| crate::identifier_escaping::is_reachable(&plain))?;
        Type::of(node, node.embedded_resource)
    }
}

/// Of `metadata`, rules can only access `name` and `generateName`.
fn reachable_meta() -> &'static Schema {
    static META: OnceLock<Schema> = OnceLock::new();
    META.get_or_init(|| {
        let text = || Schema { ty: SchemaType::String, ..Schema::default() };
        Schema {
            ty: SchemaType::Object,
            properties: std::sync::Arc::new(
                [("name".into(), text().into()), ("generateName".into(), text().into())]
                    .into_iter()
                    .collect(),
            ),
            ..Schema::default()
        }
    })
}

impl fmt::Display for Type<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Dyn => f.write_str("dyn"),
            Type::Named(name) => f.write_str(name),
            Type::List(item) => write!(f, "list({item})"),
            Type::Map(key, value) => write!(f, "map({key}, {value})"),
            Type::Optional(inner) => write!(f, "optional_type({inner})"),
            Type::Object { .. } | Type::Record(_) => f.write_str("object"),
            Type::Param(name) => write!(f, "{name}"),
        }
    }
}

/// One signature.
#[derive(Debug)]
pub(crate) struct Overload {
    pub(crate) member: bool,
    pub(crate) args: Vec<Type<'static>>,
    pub(crate) result: Type<'static>,
}

/// Bindings of type parameters during one match.
pub(crate) type Bindings<'s> = HashMap<char, Type<'s>>;

/// Whether a value of type `given` can be passed as `wanted`.
pub(crate) fn fits<'s>(wanted: &Type<'s>, given: &Type<'s>, bound: &mut Bindings<'s>) -> bool {
    match (wanted, given) {
        (Type::Param(name), given) => match bound.get(name).cloned() {
            None => {
                bound.insert(*name, given.clone());
                true
            }
            Some(known) if known.is_dynamic() => true,
            Some(known) => {
                if given.is_dynamic() {
                    bound.insert(*name, Type::Dyn);
                    return true;
                }
                fits(&known, given, bound) || fits(given, &known, bound)
            }
        },
        (wanted, given) if wanted.is_dynamic() || given.is_dynamic() => true,
        // Null is assignable to objects, times and opaque types.
        (Type::Object { .. } | Type::Named(TIMESTAMP | DURATION), Type::Named("null_type")) => true,
        (Type::Named(a), Type::Named(b)) => a == b,
        (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => fits(a, b, bound),
        (Type::Map(ak, av), Type::Map(bk, bv)) => fits(ak, bk, bound) && fits(av, bv, bound),
        (Type::Object { schema: a, .. }, Type::Object { schema: b, .. }) => std::ptr::eq(*a, *b),
        _ => false,
    }
}

/// Substitutes type parameters in a result type.
pub(crate) fn substitute<'s>(ty: &Type<'s>, bound: &Bindings<'s>) -> Type<'s> {
    match ty {
        Type::Param(name) => bound.get(name).cloned().unwrap_or(Type::Dyn),
        Type::List(item) => Type::List(Box::new(substitute(item, bound))),
        Type::Optional(inner) => Type::Optional(Box::new(substitute(inner, bound))),
        Type::Map(key, value) => {
            Type::Map(Box::new(substitute(key, bound)), Box::new(substitute(value, bound)))
        }
        other => other.clone(),
    }
}

/// The overloads of a function; `None` if it does not exist.
pub(crate) fn overloads(name: &str) -> Option<&'static [Overload]> {
    static TABLE: OnceLock<HashMap<&'static str, Vec<Overload>>> = OnceLock::new();
    TABLE.get_or_init(build).get(name).map(Vec::as_slice)
}

fn build() -> HashMap<&'static str, Vec<Overload>> {
    let mut table: HashMap<&'static str, Vec<Overload>> = HashMap::new();
    for line in include_str!("overloads.txt").lines() {
        let mut words = line.split_whitespace();
        let (Some(name), Some(style)) = (words.next(), words.next()) else { continue };
        let mut types: Vec<Type<'static>> = words.filter_map(parse_type).collect();
        let Some(result) = types.pop() else { continue };
        table.entry(name).or_default().push(Overload { member: style == "m", args: types, result });
    }
    table
}

fn parse_type(word: &'static str) -> Option<Type<'static>> {
    if let Some(inner) = word.strip_prefix("list<").and_then(|w| w.strip_suffix('>')) {
        return Some(Type::List(Box::new(parse_type(inner)?)));
    }
    if let Some(inner) = word.strip_prefix("opt<").and_then(|w| w.strip_suffix('>')) {
        return Some(Type::Optional(Box::new(parse_type(inner)?)));
    }
    if let Some(inner) = word.strip_prefix("map<").and_then(|w| w.strip_suffix('>')) {
        let (key, value) = inner.split_once(',')?;
        return Some(Type::Map(Box::new(parse_type(key)?), Box::new(parse_type(value)?)));
    }
    Some(match word {
        "dyn" => Type::Dyn,
        "A" | "B" => Type::Param(word.chars().next()?),
        "ts" => Type::Named("google.protobuf.Timestamp"),
        "dur" => Type::Named("google.protobuf.Duration"),
        "ip" => Type::Named("net.IP"),
        "cidr" => Type::Named("net.CIDR"),
        "url" => Type::Named("kubernetes.URL"),
        "quantity" => Type::Named("kubernetes.Quantity"),
        "semver" => Type::Named("kubernetes.Semver"),
        "format" => Type::Named("kubernetes.NamedFormat"),
        name => Type::Named(name),
    })
}
