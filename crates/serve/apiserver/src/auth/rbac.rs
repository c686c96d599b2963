//! The RBAC authorizer. Rules are indexed, and indexed again when a role or binding changed.

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
    name: String,
    namespace: String,
    subjects: Vec<Value>,
    /// Kind and name of the role.
    role: (String, String),
}

impl Binding {
    fn binds(&self, user: &User) -> bool {
        self.subject(user).is_some()
    }

    /// The subject that matches the user.
    fn subject(&self, user: &User) -> Option<&Value> {
        self.subjects.iter().find(|subject| {
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
                    name: object::name(&binding).to_owned(),
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

    /// The rules of a user: cluster-wide, and in a namespace if one is given.
    pub(crate) fn rules(&self, user: &User, namespace: &str) -> Vec<Rule> {
        let here =
            |b: &&Binding| b.namespace.is_empty() || (!namespace.is_empty() && b.namespace == namespace);
        let bindings = self.bindings.iter().filter(here).filter(|b| b.binds(user));
        bindings.filter_map(|b| self.rules_of(b)).flat_map(|rules| rules.iter().cloned()).collect()
    }

    pub(crate) fn allows(&self, user: &User, at: &Attributes) -> bool {
        user.in_group("system:masters") || self.binding_for(user, at).is_some()
    }

    /// The binding that allows a request, cluster-wide bindings first.
    fn binding_for(&self, user: &User, at: &Attributes) -> Option<&Binding> {
        let grants = |b: &&Binding| {
            (b.namespace.is_empty() || (!at.namespace.is_empty() && b.namespace == at.namespace))
                && b.binds(user)
                && self.rules_of(b).is_some_and(|rules| rules.iter().any(|rule| rule.allows(at)))
        };
        let cluster = self.bindings.iter().filter(|b| b.namespace.is_empty()).find(grants);
        cluster.or_else(|| self.bindings.iter().filter(|b| !b.namespace.is_empty()).find(grants))
    }

    /// Why a request is allowed, as access reviews report it.
    pub(crate) fn reason(&self, user: &User, at: &Attributes) -> Option<String> {
        let binding = self.binding_for(user, at)?;
        let subject = binding.subject(user)?;
        let field = |f: &str| subject.get(f).and_then(Value::as_str).unwrap_or_default();
        let who = match field("kind") {
            "ServiceAccount" => {
                let namespace =
                    if field("namespace").is_empty() { &binding.namespace } else { field("namespace") };
                format!("ServiceAccount \"{}/{namespace}\"", field("name"))
            }
            kind => format!("{kind} {:?}", field("name")),
        };
        let (kind, name) = if binding.namespace.is_empty() {
            ("ClusterRoleBinding", format!("{:?}", binding.name))
        } else {
            ("RoleBinding", format!("\"{}/{}\"", binding.name, binding.namespace))
        };
        Some(format!("RBAC: allowed by {kind} {name} of {} {:?} to {who}", binding.role.0, binding.role.1))
    }
}

/// Authorizes requests with an index that is kept up to date.
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
        // `system:masters` is the common case on a private server and needs no index.
        user.in_group("system:masters") || self.index().allows(user, at)
    }
}
