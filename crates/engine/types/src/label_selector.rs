//! Label selectors in both forms: the text `a=b,c in (x,y),!d` and the struct with `matchLabels`.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::name::{NameError, check_label_value, check_qualified_name};
use crate::selector_parser;
use crate::text_serde::text_serde;

/// A parsed selector: every requirement must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    requirements: Vec<Requirement>,
    /// Set for an absent struct form, which selects nothing, while an empty one selects everything.
    nothing: bool,
}

/// One requirement on one label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    key: String,
    operator: Operator,
    values: Vec<String>,
}

/// Operator of a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `key in (a,b)`
    In,
    /// `key notin (a,b)`
    NotIn,
    /// `key=a`
    Equals,
    /// `key==a`
    DoubleEquals,
    /// `key!=a`
    NotEquals,
    /// `key`
    Exists,
    /// `!key`
    DoesNotExist,
    /// `key>1`
    GreaterThan,
    /// `key<1`
    LessThan,
}

/// Why a selector is invalid, with Kubernetes' messages.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum SelectorError {
    /// Invalid keys or values of one requirement.
    #[error("{}", join_messages(.0))]
    Requirement(Vec<String>),
    /// The key of a requirement in the text form is not a qualified name.
    #[error("<nil>: Invalid value: {key:?}: {error}")]
    Key {
        /// The key.
        key: String,
        /// Why it is not a qualified name.
        #[source]
        error: NameError,
    },
    /// The text has an unexpected token.
    #[error("found '{found}', expected: {expected}")]
    Token {
        /// The text of the token.
        found: String,
        /// The tokens that are possible instead.
        expected: &'static str,
    },
    /// The values of `in` and `notin` do not start with a parenthesis.
    #[error("found '{0}' expected: '('")]
    OpeningParenthesis(String),
    /// One requirement of the text form is invalid.
    #[error("unable to parse requirement: {0}")]
    ParseRequirement(#[source] Box<SelectorError>),
}

/// One message as it is, several as a list in brackets.
fn join_messages(messages: &[String]) -> String {
    match messages {
        [message] => message.clone(),
        _ => format!("[{}]", messages.join(", ")),
    }
}

impl Requirement {
    /// A validated requirement.
    ///
    /// # Errors
    /// The key, a value, or the number of values is invalid.
    pub fn new(
        key: impl Into<String>,
        operator: Operator,
        values: Vec<String>,
    ) -> Result<Self, SelectorError> {
        let key = key.into();
        let mut messages = Vec::new();
        if let Err(error) = check_qualified_name(&key) {
            messages.push(format!("key: Invalid value: {key:?}: {error}"));
        }
        let list = || serde_json::Value::from(values.clone());
        let mut count = |ok: bool, message: &str| {
            if !ok {
                messages.push(format!("values: Invalid value: {}: {message}", list()));
            }
        };
        match operator {
            Operator::In | Operator::NotIn => {
                count(!values.is_empty(), "for 'in', 'notin' operators, values set can't be empty");
            }
            Operator::Equals | Operator::DoubleEquals | Operator::NotEquals => {
                count(values.len() == 1, "exact-match compatibility requires one single value");
            }
            Operator::Exists | Operator::DoesNotExist => {
                count(values.is_empty(), "values set must be empty for exists and does not exist");
            }
            Operator::GreaterThan | Operator::LessThan => {
                count(values.len() == 1, "for 'Gt', 'Lt' operators, exactly one value is required");
                for (at, value) in values.iter().enumerate().filter(|(_, v)| v.parse::<i64>().is_err()) {
                    let message = "for 'Gt', 'Lt' operators, the value must be an integer";
                    messages.push(format!("values[{at}]: Invalid value: {value:?}: {message}"));
                }
            }
        }
        for (at, value) in values.iter().enumerate() {
            if let Err(error) = check_label_value(value) {
                messages.push(format!("values[{at}][{key}]: Invalid value: {value:?}: {error}"));
            }
        }
        if messages.is_empty() {
            Ok(Requirement { key, operator, values })
        } else {
            Err(SelectorError::Requirement(messages))
        }
    }

    /// The label's key.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The operator.
    #[must_use]
    pub fn operator(&self) -> Operator {
        self.operator
    }

    /// The values of the operator.
    #[must_use]
    pub fn values(&self) -> &[String] {
        &self.values
    }

    /// Whether a label with this value (`None` when absent) satisfies the requirement.
    #[must_use]
    pub fn matches(&self, label: Option<&str>) -> bool {
        let listed = |value: &str| self.values.iter().any(|v| v == value);
        let bound = || self.values.first().and_then(|v| v.parse::<i64>().ok());
        match (self.operator, label) {
            (Operator::In | Operator::Equals | Operator::DoubleEquals, Some(value)) => listed(value),
            (Operator::NotIn | Operator::NotEquals, Some(value)) => !listed(value),
            (Operator::Exists, label) => label.is_some(),
            (Operator::DoesNotExist, label) => label.is_none(),
            (Operator::GreaterThan, Some(value)) => {
                value.parse::<i64>().ok().zip(bound()).is_some_and(|(v, b)| v > b)
            }
            (Operator::LessThan, Some(value)) => {
                value.parse::<i64>().ok().zip(bound()).is_some_and(|(v, b)| v < b)
            }
            (operator, None) => matches!(operator, Operator::NotIn | Operator::NotEquals),
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sorted = self.values.iter().map(String::as_str).collect::<Vec<_>>();
        sorted.sort_unstable();
        let (key, values) = (&self.key, sorted.join(","));
        match self.operator {
            Operator::In => write!(f, "{key} in ({values})"),
            Operator::NotIn => write!(f, "{key} notin ({values})"),
            Operator::Equals => write!(f, "{key}={values}"),
            Operator::DoubleEquals => write!(f, "{key}=={values}"),
            Operator::NotEquals => write!(f, "{key}!={values}"),
            Operator::GreaterThan => write!(f, "{key}>{values}"),
            Operator::LessThan => write!(f, "{key}<{values}"),
            Operator::Exists => f.write_str(key),
            Operator::DoesNotExist => write!(f, "!{key}"),
        }
    }
}

impl Selector {
    /// A selector with these requirements; without any it selects everything.
    #[must_use]
    pub fn new(mut requirements: Vec<Requirement>) -> Self {
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Selector { requirements, nothing: false }
    }

    /// A selector that selects nothing.
    #[must_use]
    pub fn nothing() -> Self {
        Selector { requirements: Vec::new(), nothing: true }
    }

    /// The requirements, sorted by key.
    #[must_use]
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// Whether everything is selected.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.nothing && self.requirements.is_empty()
    }

    /// Whether an object is selected. `get` returns the value of one of its labels.
    pub fn matches<'a>(&self, get: impl Fn(&str) -> Option<&'a str>) -> bool {
        !self.nothing && self.requirements.iter().all(|r| r.matches(get(&r.key)))
    }

    /// [`Selector::matches`] for labels in a map.
    #[must_use]
    pub fn matches_map(&self, labels: &BTreeMap<String, String>) -> bool {
        self.matches(|key| labels.get(key).map(String::as_str))
    }
}

impl FromStr for Selector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        selector_parser::parse(text).map(Selector::new)
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, requirement) in self.requirements.iter().enumerate() {
            write!(f, "{}{requirement}", if at == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

text_serde!(Selector, "a label selector such as \"app=web\"");

/// The struct form of a label selector, as in objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LabelSelector {
    /// Requirements beyond equality; all must hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub match_expressions: Option<Vec<LabelSelectorRequirement>>,
    /// Labels that must be present with exactly these values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub match_labels: Option<BTreeMap<String, String>>,
}

/// One expression of the struct form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LabelSelectorRequirement {
    /// The label's key.
    pub key: String,
    /// Relation between the label's value and `values`.
    pub operator: LabelSelectorOperator,
    /// The values; needed for `In` and `NotIn`, forbidden otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<String>>,
}

/// The operators of the struct form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LabelSelectorOperator {
    /// The value is one of the listed.
    In,
    /// The value is none of the listed, or the label is absent.
    NotIn,
    /// The label is present.
    Exists,
    /// The label is absent.
    DoesNotExist,
}

impl LabelSelector {
    /// Converts to a [`Selector`]. An empty struct selects everything.
    ///
    /// # Errors
    /// A key or value is not a valid label, or the values do not fit the operator.
    pub fn to_selector(&self) -> Result<Selector, SelectorError> {
        let mut requirements = Vec::new();
        for (key, value) in self.match_labels.iter().flatten() {
            requirements.push(Requirement::new(key, Operator::Equals, vec![value.clone()])?);
        }
        for expression in self.match_expressions.iter().flatten() {
            let operator = match expression.operator {
                LabelSelectorOperator::In => Operator::In,
                LabelSelectorOperator::NotIn => Operator::NotIn,
                LabelSelectorOperator::Exists => Operator::Exists,
                LabelSelectorOperator::DoesNotExist => Operator::DoesNotExist,
            };
            let values = expression.values.clone().unwrap_or_default();
            requirements.push(Requirement::new(&expression.key, operator, values)?);
        }
        Ok(Selector::new(requirements))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    fn selected(selector: &str, pairs: &[(&str, &str)]) -> bool {
        selector.parse::<Selector>().expect(selector).matches_map(&labels(pairs))
    }

    #[test]
    fn matching_follows_kubernetes() {
        let app = [("app", "web"), ("tier", "2")];
        for (selector, wanted) in [
            ("", true),
            ("app=web", true),
            ("app==web", true),
            ("app!=web", false),
            ("missing!=x", true),
            ("app in (api, web)", true),
            ("app notin (api)", true),
            ("missing notin (x)", true),
            ("app", true),
            ("!app", false),
            ("!missing", true),
            ("tier>1", true),
            ("tier<2", false),
            ("missing>1", false),
            ("app=web,tier=3", false),
            ("app in ()", false),
            ("missing=", false),
            ("sharding.fluxcd.io/key", false),
        ] {
            assert_eq!(selected(selector, &app), wanted, "{selector}");
        }
        assert!(selected("app=", &[("app", "")]));
        assert!(!Selector::nothing().matches_map(&labels(&app)));
    }

    #[test]
    fn struct_form_converts_to_a_selector() {
        let selector: LabelSelector = serde_json::from_str(
            r#"{"matchLabels":{"app":"web"},"matchExpressions":[{"key":"tier","operator":"In","values":["2","1"]}]}"#,
        )
        .expect("a selector");
        let parsed = selector.to_selector().expect("valid");
        assert_eq!(parsed.to_string(), "app=web,tier in (1,2)");
        assert!(parsed.matches_map(&labels(&[("app", "web"), ("tier", "2")])));
        let empty = LabelSelectorRequirement {
            key: "a".to_owned(),
            operator: LabelSelectorOperator::In,
            values: None,
        };
        let bad = LabelSelector { match_expressions: Some(vec![empty]), match_labels: None };
        assert_eq!(
            bad.to_selector().expect_err("no values").to_string(),
            "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"
        );
    }
}
