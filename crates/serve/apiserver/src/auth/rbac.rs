//! The RBAC authorizer. Rules are indexed once and again only after a role or binding changed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::sync::watch;

use super::{Attributes, User};
use crate::object;
use crate::store::Store;

pub(crate) const GROUP: &str = "rbac.authorization.k8s.io";
const TABLES: [&str; 4] = [
    "rbac.authorization.k8s.io/roles",
    "rbac.authorization.k8s.io/clusterroles",
    "rbac.authorization.k8s.io/rolebindings",
    "rbac.authorization.k8s.io/clusterrolebindings",
];

/// One policy rule.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) verbs: Vec<String>,
    pub(crate) groups: Vec<String>,
    pub(crate) resources: Vec<String>,
    pub(crate) names: Vec<String>,
    pub(crate) urls: Vec<String>,
}

fn strings(value: &Value, field: &str) -> Vec<String> {
    let list = value.get(field).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

impl Rule {
    pub(crate) fn read(rule: &Value) -> Self {
        Self {
            verbs: strings(rule, "verbs"),
            groups: strings(rule, "apiGroups"),
            resources: strings(rule, "resources"),
            names: strings(rule, "resourceNames"),
            urls: strings(rule, "nonResourceURLs"),
        }
    }

    pub(crate) fn list(role: &Value) -> Vec<Self> {
        role.get("rules").and_then(Value::as_array).into_iter().flatten().map(Self::read).collect()
    }

    pub(crate) fn allows(&self, at: &Attributes) -> bool {
        let any = |list: &[String], wanted: &str| list.iter().any(|x| x == "*" || x == wanted);
        if !any(&self.verbs, &at.verb) {
            return false;
        }
        if !at.path.is_empty() {
            return self.urls.iter().any(|url| {
                url == "*" || *url == at.path || url.strip_suffix('*').is_some_and(|p| at.path.starts_with(p))
            });
        }
        let combined = at.combined();
        any(&self.groups, &at.group)
            && self.resources.iter().any(|r| {
                r == "*"
                    || *r == combined
                    || (!at.subresource.is_empty()
                        && r.strip_prefix("*/").is_some_and(|sub| sub == at.subresource))
            })
            && (self.names.is_empty() || (!at.name.is_empty() && self.names.contains(&at.name)))
    }
}

#[derive(Debug)]
struct Binding {
    namespace: String,
    subjects: Vec<Value>,
    /// Role kind and name.
    role: (String, String),
}

impl Binding {
    fn binds(&self, user: &User) -> bool {
        self.subjects.iter().any(|subject| {
            let field = |f: &str| subject.get(f).and_then(Value::as_str).unwrap_or_default();
            match field("kind") {
                "User" => field("name") == user.name,
                "Group" => user.in_group(field("name")),
                "ServiceAccount" => {
                    let namespace =
                        if field("namespace").is_empty() { &self.namespace } else { field("namespace") };
                    user.name == format!("system:serviceaccount:{namespace}:{}", field("name"))
                }
                _ => false,
            }
        })
    }
}

/// All roles and bindings.
#[derive(Debug, Default)]
pub(crate) struct Index {
    /// By namespace (empty for cluster roles) and name.
    roles: HashMap<(String, String), Arc<Vec<Rule>>>,
    bindings: Vec<Binding>,
}

impl Index {
    fn read(store: &Store) -> Self {
        let mut index = Self::default();
        for (table, cluster) in [(TABLES[0], false), (TABLES[1], true)] {
            let aggregate: Vec<Value> =
                store.list(table, "", None, 0).1.iter().map(|(_, e)| e.value()).collect();
            for role in &aggregate {
                let namespace = if cluster { String::new() } else { object::namespace(role).to_owned() };
                let id = (namespace, object::name(role).to_owned());
                index.roles.insert(id, Arc::new(Rule::list(role)));
            }
        }
        for table in [TABLES[2], TABLES[3]] {
            for (_, entry) in store.list(table, "", None, 0).1 {
                let binding = entry.value();
                let field = |f: &str| {
                    binding
                        .get("roleRef")
                        .and_then(|r| r.get(f))
                        .and_then(Value::as_str)
                        .unwrap_or_default()
                        .to_owned()
                };
                index.bindings.push(Binding {
                    namespace: object::namespace(&binding).to_owned(),
                    subjects: binding.get("subjects").and_then(Value::as_array).cloned().unwrap_or_default(),
                    role: (field("kind"), field("name")),
                });
            }
        }
        index
    }

    fn rules_of(&self, binding: &Binding) -> Option<&Arc<Vec<Rule>>> {
        let namespace = if binding.role.0 == "Role" { binding.namespace.clone() } else { String::new() };
        self.roles.get(&(namespace, binding.role.1.clone()))
    }

    pub(crate) fn role(&self, namespace: &str, name: &str) -> Option<Arc<Vec<Rule>>> {
        self.roles.get(&(namespace.to_owned(), name.to_owned())).cloned()
    }

    /// The rules that hold for a user: cluster-wide, and inside a namespace if one is given.
    pub(crate) fn rules(&self, user: &User, namespace: &str) -> Vec<Rule> {
        let here =
            |b: &&Binding| b.namespace.is_empty() || (!namespace.is_empty() && b.namespace == namespace);
        let bindings = self.bindings.iter().filter(here).filter(|b| b.binds(user));
        bindings.filter_map(|b| self.rules_of(b)).flat_map(|rules| rules.iter().cloned()).collect()
    }

    pub(crate) fn allows(&self, user: &User, at: &Attributes) -> bool {
        if user.in_group("system:masters") {
            return true;
        }
        self.bindings
            .iter()
            .filter(|b| b.namespace.is_empty() || (!at.namespace.is_empty() && b.namespace == at.namespace))
            .filter(|b| b.binds(user))
            .filter_map(|b| self.rules_of(b))
            .any(|rules| rules.iter().any(|rule| rule.allows(at)))
    }
}

/// Keeps the index up to date.
#[derive(Debug)]
pub(crate) struct Authorizer {
    store: Store,
    changes: Vec<watch::Receiver<u64>>,
    index: Mutex<(Vec<u64>, Arc<Index>)>,
}

impl Authorizer {
    pub(crate) fn new(store: &Store) -> Self {
        let changes = TABLES.iter().map(|t| store.subscribe(t)).collect();
        Self { store: store.clone(), changes, index: Mutex::new((Vec::new(), Arc::default())) }
    }

    pub(crate) fn index(&self) -> Arc<Index> {
        let now: Vec<u64> = self.changes.iter().map(|c| *c.borrow()).collect();
        let mut kept = self.index.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if kept.0 != now {
            *kept = (now, Arc::new(Index::read(&self.store)));
        }
        kept.1.clone()
    }

    pub(crate) fn allows(&self, user: &User, at: &Attributes) -> bool {
        // The usual caller of a private server; no index is needed for it.
        user.in_group("system:masters") || self.index().allows(user, at)
    }
}
