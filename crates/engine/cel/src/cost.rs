//! Static worst-case cost estimate of a CEL rule, from its AST and the limits of the schema.
//!
//! The model is Kubernetes': one unit per step, a tenth of a unit per byte read, and the product for loops.
//! Lists, maps and strings without a limit are as large as a request can be.

use fl_schema::{Additional, Schema, Type as SchemaType};

use crate::ast::{Expr, Kind, Literal, Macro, MacroKind};

/// Maximum bytes of a request.
const MAX_REQUEST_BYTES: u64 = 3 * 1024 * 1024;

/// What is known statically about a value.
#[derive(Debug, Clone)]
enum SizeInfo<'s> {
    /// A value of a schema.
    Schema(&'s Schema),
    /// A value with a maximum number of elements or bytes, and what is known about each of them.
    Sized(u64, Option<Box<SizeInfo<'s>>>),
    Scalar,
}

/// Maximum cost of a rule for one value of its schema.
pub(crate) fn estimate(expr: &Expr, schema: &Schema) -> u64 {
    let vars =
        vec![("self".to_owned(), SizeInfo::Schema(schema)), ("oldSelf".to_owned(), SizeInfo::Schema(schema))];
    Estimator { vars }.visit(expr).0
}

/// Maximum number of values of a schema in one request.
pub(crate) fn max_values(schema: &Schema) -> u64 {
    MAX_REQUEST_BYTES / (min_bytes(schema) + 1)
}

/// Bytes of the shortest JSON of a schema.
fn min_bytes(schema: &Schema) -> u64 {
    if schema.int_or_string {
        return 1;
    }
    match schema.ty {
        SchemaType::Boolean => 4,
        SchemaType::Integer | SchemaType::Number | SchemaType::Any => 1,
        SchemaType::String | SchemaType::Array => 2,
        SchemaType::Object => {
            let required = schema.rules.as_deref().map(|r| r.required.as_slice()).unwrap_or_default();
            let named = required.iter().filter_map(|name| {
                let below = schema.property(name)?;
                below.default.is_none().then(|| name.len() as u64 + 4 + min_bytes(below))
            });
            2 + named.sum::<u64>()
        }
    }
}

/// Elements or bytes of the largest value of a schema.
fn max_elements(schema: &Schema) -> u64 {
    let rules = schema.rules.as_deref();
    match schema.ty {
        SchemaType::Array => rules.and_then(|r| bound(r.max_items)).unwrap_or_else(|| {
            let item = schema.items.as_deref().map_or(1, min_bytes);
            (MAX_REQUEST_BYTES - 2) / (item + 1)
        }),
        SchemaType::Object => rules.and_then(|r| bound(r.max_properties)).unwrap_or_else(|| {
            let value = match &schema.additional {
                Additional::Schema(values) => min_bytes(values),
                _ => 1,
            };
            (MAX_REQUEST_BYTES - 2) / (value + 6)
        }),
        SchemaType::String => {
            let longest = rules.and_then(|r| bound(r.max_length));
            match (schema.format.as_deref(), longest) {
                (Some("date"), _) => 12,
                (Some("date-time" | "duration"), _) => 32,
                (Some("byte"), Some(max)) => max,
                // Lengths are in characters, costs in bytes.
                (_, Some(max)) => max.saturating_mul(4),
                (_, None) => MAX_REQUEST_BYTES - 2,
            }
        }
        _ => 1,
    }
}

/// A limit of the schema; a negative one is ignored.
fn bound(given: Option<i64>) -> Option<u64> {
    given.and_then(|n| u64::try_from(n).ok())
}

impl<'s> SizeInfo<'s> {
    fn size(&self) -> u64 {
        match self {
            SizeInfo::Schema(schema) => max_elements(schema),
            SizeInfo::Sized(size, _) => *size,
            SizeInfo::Scalar => 1,
        }
    }

    fn is_list(&self) -> bool {
        match self {
            SizeInfo::Schema(schema) => schema.ty == SchemaType::Array,
            SizeInfo::Sized(_, element) => element.is_some(),
            SizeInfo::Scalar => false,
        }
    }

    fn is_text(&self) -> bool {
        match self {
            SizeInfo::Schema(schema) => schema.ty == SchemaType::String && !schema.int_or_string,
            SizeInfo::Sized(_, element) => element.is_none(),
            SizeInfo::Scalar => false,
        }
    }

    fn field(&self, name: &str) -> SizeInfo<'s> {
        let SizeInfo::Schema(schema) = self else { return SizeInfo::Sized(MAX_REQUEST_BYTES, None) };
        match schema.property(&crate::identifier_escaping::unescape(name)) {
            Some(below) => SizeInfo::Schema(below),
            None => match &schema.additional {
                Additional::Schema(values) => SizeInfo::Schema(values),
                // Object names are at most DNS subdomains.
                _ => SizeInfo::Sized(253, None),
            },
        }
    }

    /// Items of a list, or keys of a map.
    fn element(&self) -> SizeInfo<'s> {
        match self {
            SizeInfo::Schema(schema) => match (schema.ty, schema.items.as_ref()) {
                (SchemaType::Array, Some(items)) => SizeInfo::Schema(items),
                // Kubernetes counts a key as if it had no length; a rule that it accepts must not be rejected
                // here.
                (SchemaType::Object, _) => SizeInfo::Sized(0, None),
                _ => SizeInfo::Sized(MAX_REQUEST_BYTES - 2, None),
            },
            SizeInfo::Sized(_, Some(element)) => (**element).clone(),
            _ => SizeInfo::Sized(MAX_REQUEST_BYTES, None),
        }
    }

    /// Values of a map.
    fn value(&self) -> SizeInfo<'s> {
        match self {
            SizeInfo::Schema(schema) => match &schema.additional {
                Additional::Schema(values) => SizeInfo::Schema(values),
                _ => self.element(),
            },
            other => other.element(),
        }
    }
}

/// A tenth, rounded up.
fn tenth(size: u64) -> u64 {
    size.div_ceil(10)
}

struct Estimator<'s> {
    vars: Vec<(String, SizeInfo<'s>)>,
}

impl<'s> Estimator<'s> {
    fn visit(&mut self, expr: &Expr) -> (u64, SizeInfo<'s>) {
        match &expr.kind {
            Kind::Literal(Literal::Text(text)) => (0, SizeInfo::Sized(text.len() as u64, None)),
            Kind::Literal(Literal::Bytes(bytes)) => (0, SizeInfo::Sized(bytes.len() as u64, None)),
            Kind::Literal(_) => (0, SizeInfo::Scalar),
            Kind::Ident(name) => {
                let found = self.vars.iter().rev().find(|(n, _)| n == name).map(|(_, known)| known.clone());
                (1, found.unwrap_or(SizeInfo::Scalar))
            }
            Kind::Select { operand, field, .. } => {
                let (cost, base) = self.visit(operand);
                (cost.saturating_add(1), base.field(field))
            }
            // Kubernetes does not charge for `has` itself, only for its operand.
            Kind::Has { operand, .. } => (self.visit(operand).0, SizeInfo::Scalar),
            Kind::List(items) => {
                let mut cost = 10_u64;
                let mut element = None;
                for (item, _) in items {
                    let (more, known) = self.visit(item);
                    cost = cost.saturating_add(more);
                    element = Some(Box::new(known));
                }
                (cost, SizeInfo::Sized(items.len() as u64, element))
            }
            Kind::Map(entries) => {
                let mut cost = 30_u64;
                for (key, value, _) in entries {
                    cost = cost.saturating_add(self.visit(key).0).saturating_add(self.visit(value).0);
                }
                (cost, SizeInfo::Sized(entries.len() as u64, None))
            }
            Kind::Macro(call) => self.run_macro(call),
            Kind::Call { target, name, args } => self.call(target.as_deref(), name, args),
        }
    }

    fn call(&mut self, target: Option<&Expr>, name: &str, args: &[Expr]) -> (u64, SizeInfo<'s>) {
        if let ("_?_:_", [condition, yes, no]) = (name, args) {
            let (condition, (yes, result), no) = (self.visit(condition).0, self.visit(yes), self.visit(no).0);
            return (condition.saturating_add(yes.max(no)), result);
        }
        let mut costs = 0_u64;
        let mut known: Vec<SizeInfo<'s>> = Vec::new();
        for part in target.into_iter().chain(args) {
            let (cost, value) = self.visit(part);
            costs = costs.saturating_add(cost);
            known.push(value);
        }
        let size = |at: usize| known.get(at).map_or(1, SizeInfo::size);
        let (own, result) = match name {
            "_&&_" | "_||_" => (0, SizeInfo::Scalar),
            "_==_" | "_!=_" | "_<_" | "_<=_" | "_>_" | "_>=_" => {
                (tenth(size(0).min(size(1))), SizeInfo::Scalar)
            }
            "_in_" | "@in" | "_in" => (size(1).max(1), SizeInfo::Scalar),
            "_+_" => {
                let sum = size(0).saturating_add(size(1));
                let list = matches!(known.first(), Some(SizeInfo::Schema(s)) if s.ty == SchemaType::Array);
                (if list { 1 } else { tenth(sum) }, SizeInfo::Sized(sum, None))
            }
            "_[_]" => (1, known.first().map_or(SizeInfo::Scalar, SizeInfo::value)),
            "contains" => (tenth(size(0)).saturating_mul(tenth(size(1))), SizeInfo::Scalar),
            "matches" | "find" | "findAll" => {
                let pattern = size(1).div_ceil(4).max(1);
                (tenth(size(0).saturating_add(1)).saturating_mul(pattern), SizeInfo::Sized(size(0), None))
            }
            "startsWith" | "endsWith" => (tenth(size(1)).max(1), SizeInfo::Scalar),
            "string" | "bytes" => (tenth(size(0)).max(1), SizeInfo::Sized(size(0), None)),
            "isSorted" | "sum" | "min" | "max" | "indexOf" | "lastIndexOf"
                if known.first().is_some_and(SizeInfo::is_list) =>
            {
                // Strings are read completely to compare them.
                let element = known.first().map(SizeInfo::element).filter(SizeInfo::is_text);
                let each = element.map_or(1, |text| 1 + tenth(text.size()));
                (size(0).saturating_mul(each), SizeInfo::Scalar)
            }
            "join" => {
                let element = known.first().map_or(1, |list| list.element().size());
                let between = known.get(1).map_or(0, SizeInfo::size);
                let total = size(0).saturating_mul(element.saturating_add(between));
                (tenth(total).max(1), SizeInfo::Sized(total, None))
            }
            "lowerAscii" | "upperAscii" | "trim" | "replace" | "split" | "substring" | "charAt"
            | "indexOf" | "lastIndexOf" | "reverse" => {
                (tenth(size(0)).max(1), SizeInfo::Sized(size(0), None))
            }
            "quantity" | "isQuantity" | "url" | "isURL" | "ip" | "isIP" | "cidr" | "isCIDR" | "semver"
            | "isSemver" => (tenth(size(0)).max(1), SizeInfo::Scalar),
            "size" | "timestamp" | "duration" => (1, SizeInfo::Scalar),
            _ => (1, known.first().cloned().unwrap_or(SizeInfo::Scalar)),
        };
        (costs.saturating_add(own), result)
    }

    fn run_macro(&mut self, call: &Macro) -> (u64, SizeInfo<'s>) {
        let (range_cost, range) = self.visit(&call.range);
        let map = matches!(&range, SizeInfo::Schema(s) if s.ty == SchemaType::Object);
        let mark = self.vars.len();
        for (at, name) in call.vars.iter().enumerate() {
            let known = match (call.vars.len(), at, map) {
                (2, 0, false) => SizeInfo::Scalar,
                (2, 1, _) => range.value(),
                _ => range.element(),
            };
            self.vars.push((name.clone(), known));
        }
        let mut step = 0_u64;
        let mut last = SizeInfo::Scalar;
        for arg in &call.args {
            let (cost, known) = self.visit(arg);
            step = step.saturating_add(cost);
            last = known;
        }
        self.vars.truncate(mark);
        // The overhead of the expanded macro in cel-go.
        let around = match call.kind {
            MacroKind::All => 3,
            MacroKind::Exists => 4,
            MacroKind::ExistsOne => 3,
            MacroKind::Map | MacroKind::TransformList if call.args.len() == 1 => 12,
            _ => 13,
        };
        let times =
            if matches!(call.kind, MacroKind::OptMap | MacroKind::OptFlatMap) { 1 } else { range.size() };
        let total =
            range_cost.saturating_add(times.saturating_mul(step.saturating_add(around))).saturating_add(1);
        let result = match call.kind {
            MacroKind::All | MacroKind::Exists | MacroKind::ExistsOne => SizeInfo::Scalar,
            MacroKind::Filter => range,
            MacroKind::Map | MacroKind::TransformList => SizeInfo::Sized(range.size(), Some(Box::new(last))),
            _ => SizeInfo::Sized(range.size(), None),
        };
        (total, result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fl_schema::Node;
    use serde_json::json;

    fn cost(schema: serde_json::Value, rule: &str) -> u64 {
        let node = Node::new(Schema::from_json(&schema).expect("a schema"));
        estimate(&crate::parser::parse(rule).expect("a rule"), &node)
    }

    #[test]
    fn schema_limits_bound_the_cost() {
        assert!(cost(json!({"type": "integer"}), "self > 0") < 10);
        let open = json!({"type": "array", "items": {"type": "string"}});
        assert!(cost(open, "self.all(x, x.contains('abc'))") > 10_000_000);
        let closed = json!({"type": "array", "maxItems": 10, "items": {"type": "string", "maxLength": 20}});
        assert!(cost(closed, "self.all(x, x.contains('abc'))") < 10_000);
        // Conversions cost one step regardless of the length.
        assert!(cost(json!({"type": "string"}), "duration(self) >= duration('1ms')") < 10);
        // Only one of the branches is counted, and `has` is free.
        let object =
            json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}});
        assert_eq!(cost(object.clone(), "has(self.a)"), 1);
        assert_eq!(cost(object, "(has(self.a) ? 1 : 0) + (has(self.b) ? 1 : 0) <= 1"), 4);
    }
}
