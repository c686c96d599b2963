//! Validation errors of a schema, in the order and nesting of the validator that Helm uses.
//!
//! A faster library decides whether a value is valid; this walk only produces the error message.

mod members;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::ptr;

use serde_json::{Map as Object, Value as Json};

use super::documents::{Documents, SchemaLocation};
use super::format;
use super::rules::{bounds, equal, has_type};
use super::violation::{Violation, below, quoted, shown, type_name};

/// Maximum nesting of schemas.
const MAX_DEPTH: usize = 200;

/// Walks a schema and a value together and collects violations.
pub(super) struct ErrorCollector<'d, 's> {
    documents: &'d Documents<'s>,
    /// Set when a keyword was found whose errors cannot be reproduced here.
    unsupported: Cell<bool>,
}

/// The schemas on the way to the current one, innermost first.
struct Scope<'p, 's> {
    place: SchemaLocation<'s>,
    value: *const Json,
    depth: usize,
    parent: Option<&'p Scope<'p, 's>>,
}

/// Members and items that no schema has evaluated yet.
#[derive(Default)]
struct Unevaluated {
    names: BTreeSet<String>,
    items: BTreeSet<usize>,
}

impl Unevaluated {
    fn of(value: &Json) -> Self {
        Self {
            names: value.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect(),
            items: (0..value.as_array().map_or(0, Vec::len)).collect(),
        }
    }

    fn also(&mut self, other: &Self) {
        self.names.retain(|name| other.names.contains(name));
        self.items.retain(|item| other.items.contains(item));
    }
}

impl<'d, 's> ErrorCollector<'d, 's> {
    pub(super) fn new(documents: &'d Documents<'s>) -> Self {
        Self { documents, unsupported: Cell::new(false) }
    }

    /// Returns the lines of the error message, or `None` if it cannot be reproduced.
    pub(super) fn error_lines(&self, place: &SchemaLocation<'s>, value: &Json) -> Option<String> {
        let scope = Scope { place: place.clone(), value, depth: 0, parent: None };
        let failure = self.check(&scope, value, "").err()?;
        let mut text = String::new();
        failure.ungrouped().iter().for_each(|failure| failure.print(0, &mut text));
        (!self.unsupported.get()).then_some(text)
    }

    /// Validates a member or item of the current value.
    fn inside(
        &self,
        scope: &Scope<'_, 's>,
        schema: &'s Json,
        value: &Json,
        at: &str,
    ) -> Result<(), Violation> {
        let place = scope.place.inner(schema);
        let scope = Scope { place, value, depth: scope.depth + 1, parent: Some(scope) };
        self.check(&scope, value, at).map(drop)
    }

    /// Validates the same value against another schema.
    fn same(
        &self,
        scope: &Scope<'_, 's>,
        place: SchemaLocation<'s>,
        value: &Json,
        at: &str,
        unevaluated: &mut Unevaluated,
    ) -> Result<(), Violation> {
        let scope = Scope { place, value, depth: scope.depth + 1, parent: Some(scope) };
        self.check(&scope, value, at).map(|left| unevaluated.also(&left))
    }

    fn check(&self, scope: &Scope<'_, 's>, value: &Json, at: &str) -> Result<Unevaluated, Violation> {
        let mut unevaluated = Unevaluated::of(value);
        let schema = match scope.place.schema {
            Json::Bool(true) => return Ok(unevaluated),
            Json::Bool(false) => return Err(Violation::new(at, "false schema")),
            Json::Object(schema) => schema,
            _ => return self.give_up(unevaluated),
        };
        if scope.depth > MAX_DEPTH || scope.is_recursive() {
            return self.give_up(unevaluated);
        }
        let draft = scope.place.draft;
        let reference = schema.get("$ref").and_then(Json::as_str);
        if draft < 2019 && reference.is_some() {
            // `$ref` hides its sibling keywords.
            return self.follow(scope, reference, value, at, &mut unevaluated).map(|()| unevaluated);
        }
        self.check_first_failure(scope, schema, value, at)?;
        let mut failures = Vec::new();
        failures.extend(self.follow(scope, reference, value, at, &mut unevaluated).err());
        match value {
            Json::Object(entries) => {
                self.object(scope, schema, value, entries, at, &mut unevaluated, &mut failures);
            }
            Json::Array(items) => self.array(scope, schema, items, at, &mut unevaluated, &mut failures),
            Json::String(text) => self.text(schema, text, at, &mut failures),
            Json::Number(_) => bounds(schema, value, draft, at, &mut failures),
            _ => {}
        }
        if draft >= 2019 {
            let dynamic = self.dynamic_target(scope, schema);
            if let Some(place) = dynamic {
                let failed = self.same(scope, place, value, at, &mut unevaluated).err();
                failures.extend(failed.map(|failure| failure.referenced(at)));
            }
        }
        self.conditions(scope, schema, value, at, &mut unevaluated, &mut failures);
        if draft >= 2019 {
            self.unevaluated(scope, schema, value, at, &mut unevaluated, &mut failures);
        }
        Violation::of(at, failures).map(|()| unevaluated)
    }

    fn give_up(&self, unevaluated: Unevaluated) -> Result<Unevaluated, Violation> {
        self.unsupported.set(true);
        Ok(unevaluated)
    }

    /// Checks the keywords of which only the first failure is reported.
    fn check_first_failure(
        &self,
        scope: &Scope<'_, 's>,
        schema: &Object<String, Json>,
        value: &Json,
        at: &str,
    ) -> Result<(), Violation> {
        if let Some(wanted) = schema.get("type") {
            let wanted: Vec<&str> = match wanted {
                Json::Array(names) => names.iter().filter_map(Json::as_str).collect(),
                one => one.as_str().into_iter().collect(),
            };
            if !wanted.is_empty() && !wanted.iter().any(|wanted| has_type(value, wanted)) {
                let order = ["null", "boolean", "number", "integer", "string", "array", "object"];
                let wanted: Vec<_> = order.into_iter().filter(|name| wanted.contains(name)).collect();
                let words = format!("got {}, want {}", type_name(value), wanted.join(" or "));
                return Err(Violation::new(at, words));
            }
        }
        let draft = scope.place.draft;
        if let Some(wanted) = schema.get("const").filter(|wanted| draft > 4 && !equal(wanted, value)) {
            return Err(Violation::new(
                at,
                match wanted {
                    Json::Array(_) | Json::Object(_) => "'const' failed".to_owned(),
                    wanted => format!("value must be {}", shown(wanted)),
                },
            ));
        }
        if let Some(Json::Array(wanted)) = schema.get("enum")
            && !wanted.iter().any(|wanted| equal(wanted, value))
        {
            let words = match wanted.as_slice() {
                many if many.iter().any(|one| one.is_array() || one.is_object()) => {
                    "'enum' failed".to_owned()
                }
                [one] => format!("value must be {}", shown(one)),
                many => {
                    let many: Vec<_> = many.iter().map(shown).collect();
                    format!("value must be one of {}", many.join(", "))
                }
            };
            return Err(Violation::new(at, words));
        }
        let format = schema.get("format").and_then(Json::as_str).filter(|_| scope.place.formats);
        if let (Some(format), Some(text)) = (format, value.as_str())
            && let Err(why) = format::check(format, text)
        {
            return Err(Violation::new(at, format!("{} is not valid {format}: {why}", quoted(text))));
        }
        Ok(())
    }

    fn follow(
        &self,
        scope: &Scope<'_, 's>,
        reference: Option<&str>,
        value: &Json,
        at: &str,
        unevaluated: &mut Unevaluated,
    ) -> Result<(), Violation> {
        let Some(reference) = reference else { return Ok(()) };
        // Helm accepts URNs that cannot be resolved.
        if reference.starts_with("urn:") && self.documents.find(&scope.place, reference).is_err() {
            return Ok(());
        }
        let Ok(place) = self.documents.find(&scope.place, reference) else {
            self.unsupported.set(true);
            return Ok(());
        };
        self.same(scope, place, value, at, unevaluated).map_err(|failure| failure.referenced(at))
    }

    /// Target of `$recursiveRef` and `$dynamicRef`: the outermost schema with that anchor in the dynamic
    /// scope.
    fn dynamic_target(
        &self,
        scope: &Scope<'_, 's>,
        schema: &Object<String, Json>,
    ) -> Option<SchemaLocation<'s>> {
        let outermost = |found: &dyn Fn(&SchemaLocation<'s>) -> Option<SchemaLocation<'s>>| {
            let scopes = std::iter::successors(Some(scope), |scope| scope.parent);
            scopes.filter_map(|scope| found(&scope.place)).last()
        };
        let document = |place: &SchemaLocation<'s>| self.documents.at(&place.base).cloned();
        if let Some(reference) = schema.get("$recursiveRef").and_then(Json::as_str) {
            let target = self.documents.find(&scope.place, reference).ok()?;
            let anchored =
                |place: &SchemaLocation<'s>| place.schema.get("$recursiveAnchor") == Some(&Json::Bool(true));
            if !anchored(&target) {
                return Some(target);
            }
            return outermost(&|place| document(place).filter(anchored)).or(Some(target));
        }
        let reference = schema.get("$dynamicRef").and_then(Json::as_str)?;
        let Ok(target) = self.documents.find(&scope.place, reference) else {
            self.unsupported.set(true);
            return None;
        };
        let name = reference.split_once('#').map_or("", |(_, name)| name);
        let anchored = |place: &SchemaLocation<'s>| {
            place.schema.get("$dynamicAnchor").and_then(Json::as_str) == Some(name)
        };
        if name.is_empty() || !anchored(&target) {
            return Some(target);
        }
        outermost(&|place| self.documents.anchor(&place.base, name).filter(|place| anchored(place)).cloned())
            .or(Some(target))
    }

    fn conditions(
        &self,
        scope: &Scope<'_, 's>,
        schema: &'s Object<String, Json>,
        value: &Json,
        at: &str,
        unevaluated: &mut Unevaluated,
        failures: &mut Vec<Violation>,
    ) {
        let branches =
            |keyword: &str| schema.get(keyword).and_then(Json::as_array).filter(|all| !all.is_empty());
        let mut check =
            |schema: &'s Json| self.same(scope, scope.place.inner(schema), value, at, &mut *unevaluated);
        if let Some(schema) = schema.get("not")
            && check(schema).is_ok()
        {
            failures.push(Violation::new(at, "'not' failed"));
        }
        if let Some(all) = branches("allOf") {
            let causes: Vec<_> = all.iter().filter_map(|schema| check(schema).err()).collect();
            if !causes.is_empty() {
                failures.push(Violation::new(at, "'allOf' failed").because(causes));
            }
        }
        if let Some(any) = branches("anyOf") {
            let causes: Vec<_> = any.iter().filter_map(|schema| check(schema).err()).collect();
            if causes.len() == any.len() {
                failures.push(Violation::new(at, "'anyOf' failed").because(causes));
            }
        }
        if let Some(one) = branches("oneOf") {
            let results: Vec<_> = one.iter().map(|schema| check(schema).err()).collect();
            let fit: Vec<usize> = (0..results.len()).filter(|number| results[*number].is_none()).collect();
            match fit.as_slice() {
                [] => {
                    let causes = results.into_iter().flatten().collect();
                    failures.push(Violation::new(at, "'oneOf' failed, none matched").because(causes));
                }
                [first, second, ..] => {
                    let words = format!("'oneOf' failed, subschemas {first}, {second} matched");
                    failures.push(Violation::new(at, words));
                }
                _ => {}
            }
        }
        if let Some(condition) = schema.get("if").filter(|_| scope.place.draft >= 7) {
            let then = if check(condition).is_ok() { "then" } else { "else" };
            failures.extend(schema.get(then).and_then(|schema| check(schema).err()));
        }
    }

    fn unevaluated(
        &self,
        scope: &Scope<'_, 's>,
        schema: &'s Object<String, Json>,
        value: &Json,
        at: &str,
        unevaluated: &mut Unevaluated,
        failures: &mut Vec<Violation>,
    ) {
        if let (Some(schema), Some(entries)) = (schema.get("unevaluatedProperties"), value.as_object()) {
            for name in std::mem::take(&mut unevaluated.names) {
                let failed =
                    entries.get(&name).map(|value| self.inside(scope, schema, value, &below(at, &name)));
                failures.extend(failed.and_then(Result::err));
            }
        }
        if let (Some(schema), Some(items)) = (schema.get("unevaluatedItems"), value.as_array()) {
            for number in std::mem::take(&mut unevaluated.items) {
                let at = below(at, &number.to_string());
                failures.extend(self.inside(scope, schema, &items[number], &at).err());
            }
        }
    }
}

impl Scope<'_, '_> {
    /// Whether this schema is already being applied to the same value.
    fn is_recursive(&self) -> bool {
        let outer = std::iter::successors(self.parent, |scope| scope.parent);
        outer
            .take_while(|scope| ptr::eq(scope.value, self.value))
            .any(|scope| ptr::eq(scope.place.schema, self.place.schema))
    }
}
