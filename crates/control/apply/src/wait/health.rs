//! When an object counts as healthy: kstatus rules, and CEL expressions that replace them for some kinds.

use std::collections::HashMap;

use fl_api::meta::health::CustomHealthCheck;
use fl_cel::Expression;
use fl_kstatus::State;
use fl_types::api_group;
use serde_json::Value;

/// The verdict on one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HealthStatus {
    /// It was seen and judged; the text says why.
    State(State, String),
    /// It does not exist.
    NotFound,
    /// It could not be read or judged.
    Error(String),
}

impl HealthStatus {
    /// The word for messages.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            HealthStatus::State(state, _) => state.as_str(),
            HealthStatus::NotFound => "NotFound",
            HealthStatus::Error(_) => "Unknown",
        }
    }

    /// Whether the object is as wanted.
    #[must_use]
    pub fn is_current(&self) -> bool {
        matches!(self, HealthStatus::State(State::Current, _))
    }

    /// Whether it will not become so by itself.
    #[must_use]
    pub fn is_failed(&self) -> bool {
        matches!(self, HealthStatus::State(State::Failed, _))
    }
}

/// A health expression that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HealthRuleError {
    /// Two rules for one kind.
    #[error("duplicate custom health check for GroupKind {group_kind} at healthchecks[{index}]")]
    Duplicate {
        /// `Kind.group`
        group_kind: String,
        /// Which.
        index: usize,
    },
    /// An expression is missing.
    #[error(
        "failed to create custom status evaluator for healthchecks[{index}]: expression Current not specified"
    )]
    NoCurrent {
        /// Which.
        index: usize,
    },
    /// An expression that does not parse.
    #[error(
        "failed to create custom status evaluator for healthchecks[{index}]: failed to parse the expression {name}: failed to parse the CEL expression '{expression}': {cause}"
    )]
    Expression {
        /// Which.
        index: usize,
        /// `Current`, `Failed` or `InProgress`.
        name: &'static str,
        /// Its text.
        expression: String,
        /// What is wrong.
        cause: String,
    },
}

/// The rules of one owner.
#[derive(Clone, Debug, Default)]
pub struct HealthRules {
    /// By group and kind; an empty kind is the whole group.
    custom: HashMap<(String, String), Rule>,
}

#[derive(Clone, Debug)]
struct Rule {
    in_progress: Option<Expression>,
    failed: Option<Expression>,
    current: Expression,
}

impl HealthRules {
    /// Compiles the expressions.
    ///
    /// # Errors
    /// The first that cannot be used.
    pub fn compile(checks: &[CustomHealthCheck]) -> Result<Self, HealthRuleError> {
        let mut custom = HashMap::new();
        for (index, check) in checks.iter().enumerate() {
            let key = (api_group(&check.api_version).to_owned(), check.kind.clone().unwrap_or_default());
            if custom.contains_key(&key) {
                let group_kind = if key.0.is_empty() { key.1 } else { format!("{}.{}", key.1, key.0) };
                return Err(HealthRuleError::Duplicate { group_kind, index });
            }
            if check.current.is_empty() {
                return Err(HealthRuleError::NoCurrent { index });
            }
            let compiled = |name, text: Option<&str>| match text.filter(|t| !t.is_empty()) {
                Some(text) => compile(index, name, text).map(Some),
                None => Ok(None),
            };
            let current = compile(index, "Current", &check.current)?;
            let failed = compiled("Failed", check.failed.as_deref())?;
            let in_progress = compiled("InProgress", check.in_progress.as_deref())?;
            custom.insert(key, Rule { in_progress, failed, current });
        }
        Ok(HealthRules { custom })
    }

    /// Whether an expression decides for the kind.
    #[must_use]
    pub fn is_custom(&self, group: &str, kind: &str) -> bool {
        self.rule(group, kind).is_some()
    }

    /// Judges a live object; `now` in seconds since 1970.
    #[must_use]
    pub fn judge(&self, object: &Value, now: i64) -> HealthStatus {
        let group = api_group(object["apiVersion"].as_str().unwrap_or_default());
        let kind = object["kind"].as_str().unwrap_or_default();
        match self.rule(group, kind) {
            Some(rule) => rule.judge(object),
            None => {
                let health = fl_kstatus::health(object, now);
                HealthStatus::State(health.state, health.message)
            }
        }
    }

    fn rule(&self, group: &str, kind: &str) -> Option<&Rule> {
        let exact = self.custom.get(&(group.to_owned(), kind.to_owned()));
        exact.or_else(|| self.custom.get(&(group.to_owned(), String::new())))
    }
}

impl Rule {
    fn judge(&self, object: &Value) -> HealthStatus {
        let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64);
        let (observed, generation) = (number("/status/observedGeneration"), number("/metadata/generation"));
        if let (Some(observed), Some(generation)) = (observed, generation)
            && observed != generation
        {
            return HealthStatus::State(
                State::InProgress,
                "the latest generation was not observed yet".to_owned(),
            );
        }
        let fields: Vec<(&str, &Value)> =
            object.as_object().into_iter().flatten().map(|(key, value)| (key.as_str(), value)).collect();
        let in_order = [
            (self.in_progress.as_ref(), State::InProgress),
            (self.failed.as_ref(), State::Failed),
            (Some(&self.current), State::Current),
        ];
        for (expression, state) in in_order {
            let Some(expression) = expression else { continue };
            match expression.decide(&fields, false) {
                Ok(true) => return HealthStatus::State(state, format!("`{}` holds", expression.source())),
                Ok(false) => {}
                Err(text) => return HealthStatus::Error(text),
            }
        }
        HealthStatus::State(State::InProgress, "no health expression holds".to_owned())
    }
}

fn compile(index: usize, name: &'static str, text: &str) -> Result<Expression, HealthRuleError> {
    // Not every kind has the usual fields, so names are only checked when an object is there.
    Expression::parse(text).map_err(|cause| HealthRuleError::Expression {
        index,
        name,
        expression: text.to_owned(),
        cause: cause.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(current: &str, failed: Option<&str>) -> CustomHealthCheck {
        CustomHealthCheck {
            api_version: "example.com/v1".to_owned(),
            kind: Some("Thing".to_owned()),
            current: current.to_owned(),
            failed: failed.map(str::to_owned),
            in_progress: None,
        }
    }

    #[test]
    fn expressions_decide() {
        let rules =
            HealthRules::compile(&[check("data.state == 'ok'", Some("data.state == 'bad'"))]).expect("good");
        let thing =
            |state: &str| json!({"apiVersion": "example.com/v2", "kind": "Thing", "data": {"state": state}});
        assert!(rules.judge(&thing("ok"), 0).is_current());
        assert!(rules.judge(&thing("bad"), 0).is_failed());
        assert_eq!(rules.judge(&thing("wait"), 0).word(), "InProgress");
        assert_eq!(
            rules.judge(&json!({"apiVersion": "example.com/v1", "kind": "Thing"}), 0).word(),
            "Unknown"
        );
        let old = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"generation": 2},
            "status": {"observedGeneration": 1}, "data": {"state": "ok"}});
        assert_eq!(rules.judge(&old, 0).word(), "InProgress");
        let other = json!({"apiVersion": "v1", "kind": "ConfigMap"});
        assert!(rules.judge(&other, 0).is_current());
    }

    #[test]
    fn errors_as_flux_words_them() {
        let rules = HealthRules::compile(&[check("1 + 1", None)]).expect("any type is taken");
        let verdict = rules.judge(&json!({"apiVersion": "example.com/v1", "kind": "Thing"}), 0);
        let HealthStatus::Error(text) = verdict else { panic!("{verdict:?}") };
        assert_eq!(text, "failed to evaluate CEL expression as boolean: '1 + 1'");
        let error = HealthRules::compile(&[check("status. ==", None)]).unwrap_err().to_string();
        let prefix = "failed to create custom status evaluator for healthchecks[0]: failed to parse the expression Current: failed to parse the CEL expression 'status. ==': ";
        assert!(error.starts_with(prefix), "{error}");
        let twice =
            HealthRules::compile(&[check("true", None), check("true", None)]).unwrap_err().to_string();
        assert_eq!(twice, "duplicate custom health check for GroupKind Thing.example.com at healthchecks[1]");
    }
}
