//! Keywords for members of objects, items of arrays, and strings.

use serde_json::{Map as Object, Value as Json};

use super::super::rules::{count, equal_items, sized};
use super::super::violation::{Violation, below, listed, quoted};
use super::{ErrorCollector, Scope, Unevaluated};

impl<'s> ErrorCollector<'_, 's> {
    #[allow(clippy::too_many_arguments)] // the state of one check
    pub(super) fn object(
        &self,
        scope: &Scope<'_, 's>,
        schema: &'s Object<String, Json>,
        value: &Json,
        entries: &Object<String, Json>,
        at: &str,
        unevaluated: &mut Unevaluated,
        failures: &mut Vec<Violation>,
    ) {
        let draft = scope.place.draft;
        sized(schema, "minProperties", entries.len(), |size, limit| size < limit, at, failures);
        sized(schema, "maxProperties", entries.len(), |size, limit| size > limit, at, failures);
        let missing = |names: &'s Json| -> Vec<&'s str> {
            let names = names.as_array().into_iter().flatten().filter_map(Json::as_str);
            names.filter(|name| !entries.contains_key(*name)).collect()
        };
        match schema.get("required").map(missing).unwrap_or_default().as_slice() {
            [] => {}
            [one] => failures.push(Violation::new(at, format!("missing property {}", quoted(one)))),
            many => {
                let many = listed(many.iter().copied());
                failures.push(Violation::new(at, format!("missing properties {many}")));
            }
        }
        let wants = |keyword: &str| -> Vec<(&'s String, &'s Json)> {
            let wants = schema.get(keyword).and_then(Json::as_object).into_iter().flatten();
            wants.filter(|(name, _)| entries.contains_key(name.as_str())).collect()
        };
        let mut depends = |keyword: &str, failures: &mut Vec<Violation>| {
            for (name, wanted) in wants(keyword) {
                if wanted.is_array() {
                    let missing = missing(wanted);
                    if !missing.is_empty() {
                        let words =
                            format!("properties {} required, if {} exists", listed(missing), quoted(name));
                        failures.push(Violation::new(at, words));
                    }
                } else {
                    let place = scope.place.inner(wanted);
                    failures.extend(self.same(scope, place, value, at, unevaluated).err());
                }
            }
        };
        depends("dependencies", failures);
        if draft >= 2019 {
            depends("dependentSchemas", failures);
            depends("dependentRequired", failures);
        }
        let mut unexpected = Vec::new();
        for (name, value) in entries {
            let at = &below(at, name);
            let mut seen = false;
            if let Some(schema) = schema.get("properties").and_then(|known| known.get(name)) {
                seen = true;
                failures.extend(self.inside(scope, schema, value, at).err());
            }
            for (pattern, schema) in
                schema.get("patternProperties").and_then(Json::as_object).into_iter().flatten()
            {
                if self.matches(pattern, name) {
                    seen = true;
                    failures.extend(self.inside(scope, schema, value, at).err());
                }
            }
            match schema.get("additionalProperties") {
                Some(Json::Bool(false)) if !seen => unexpected.push(name.as_str()),
                Some(schema) if !seen => failures.extend(self.inside(scope, schema, value, at).err()),
                _ if !seen => continue,
                _ => {}
            }
            unevaluated.names.remove(name);
        }
        if !unexpected.is_empty() {
            let words = format!("additional properties {} not allowed", listed(unexpected));
            failures.push(Violation::new(at, words));
        }
        if let Some(schema) = schema.get("propertyNames").filter(|_| draft > 4) {
            for name in entries.keys() {
                let place = scope.place.inner(schema);
                let text = Json::String(name.clone());
                let scope = Scope { place, value: &text, depth: scope.depth + 1, parent: Some(scope) };
                if let Err(failure) = self.check(&scope, &text, "") {
                    let words = format!("invalid propertyName {}", quoted(name));
                    failures.push(Violation::new(at, words).because(failure.ungrouped()));
                }
            }
        }
    }

    pub(super) fn array(
        &self,
        scope: &Scope<'_, 's>,
        schema: &'s Object<String, Json>,
        items: &[Json],
        at: &str,
        unevaluated: &mut Unevaluated,
        failures: &mut Vec<Violation>,
    ) {
        let draft = scope.place.draft;
        sized(schema, "minItems", items.len(), |size, limit| size < limit, at, failures);
        sized(schema, "maxItems", items.len(), |size, limit| size > limit, at, failures);
        if schema.get("uniqueItems") == Some(&Json::Bool(true))
            && let Some((first, second)) = equal_items(items)
        {
            failures.push(Violation::new(at, format!("items at {first} and {second} are equal")));
        }
        let (first, rest) =
            if draft < 2020 { ("items", "additionalItems") } else { ("prefixItems", "items") };
        let mut told = 0;
        let mut check = |schema: &'s Json, item: usize, failures: &mut Vec<Violation>| {
            unevaluated.items.remove(&item);
            failures.extend(self.inside(scope, schema, &items[item], &below(at, &item.to_string())).err());
        };
        match schema.get(first) {
            Some(Json::Array(schemas)) => {
                told = schemas.len().min(items.len());
                (0..told).for_each(|item| check(&schemas[item], item, failures));
            }
            Some(schema) if draft < 2020 => {
                told = items.len();
                (0..told).for_each(|item| check(schema, item, failures));
            }
            _ => {}
        }
        match schema.get(rest) {
            Some(Json::Bool(false)) if draft < 2020 && told < items.len() => {
                let words = format!("last {} additionalItem(s) not allowed", items.len() - told);
                failures.push(Violation::new(at, words));
            }
            Some(schema) => (told..items.len()).for_each(|item| check(schema, item, failures)),
            None => {}
        }
        if let Some(schema_of_one) = schema.get("contains").filter(|_| draft > 4) {
            self.contains(scope, schema, schema_of_one, items, at, unevaluated, failures);
        }
    }

    #[allow(clippy::too_many_arguments)] // the state of one check
    fn contains(
        &self,
        scope: &Scope<'_, 's>,
        schema: &Object<String, Json>,
        wanted: &'s Json,
        items: &[Json],
        at: &str,
        unevaluated: &mut Unevaluated,
        failures: &mut Vec<Violation>,
    ) {
        let limit = |keyword: &str| schema.get(keyword).filter(|_| scope.place.draft >= 2019).and_then(count);
        let mut causes = Vec::new();
        let mut found = Vec::new();
        for (number, item) in items.iter().enumerate() {
            match self.inside(scope, wanted, item, &below(at, &number.to_string())) {
                Err(failure) => causes.push(failure),
                Ok(()) => {
                    found.push(number.to_string());
                    if scope.place.draft >= 2020 {
                        unevaluated.items.remove(&number);
                    }
                }
            }
        }
        let places = found.join(" ");
        let say = |most: &str, limit: usize| {
            let needed = format!("{most} {limit} items required to match contains schema");
            match found.len() {
                0 => format!("{needed}, but none matched"),
                found => format!("{needed}, but matched {found} items at {places}"),
            }
        };
        match limit("minContains") {
            Some(least) if found.len() < least => {
                failures.push(Violation::new(at, say("min", least)).because(causes));
            }
            None if found.is_empty() => {
                failures.push(Violation::new(at, "no items match contains schema").because(causes));
            }
            _ => {}
        }
        if let Some(most) = limit("maxContains").filter(|most| found.len() > *most) {
            failures.push(Violation::new(at, say("max", most)));
        }
    }

    pub(super) fn text(
        &self,
        schema: &Object<String, Json>,
        text: &str,
        at: &str,
        failures: &mut Vec<Violation>,
    ) {
        let size = text.chars().count();
        sized(schema, "minLength", size, |size, limit| size < limit, at, failures);
        sized(schema, "maxLength", size, |size, limit| size > limit, at, failures);
        if let Some(pattern) = schema.get("pattern").and_then(Json::as_str)
            && !self.matches(pattern, text)
        {
            let words = format!("{} does not match pattern {}", quoted(text), quoted(pattern));
            failures.push(Violation::new(at, words));
        }
    }

    fn matches(&self, pattern: &str, text: &str) -> bool {
        fl_go::regexp::compile(pattern).map(|found| found.is_match(text)).unwrap_or_else(|_| {
            self.unsupported.set(true);
            true
        })
    }
}
