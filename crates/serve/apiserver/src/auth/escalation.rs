//! Escalation check: users can only grant rights that they hold.

use super::rbac::{Authorizer, Rule};
use super::{Attributes, User};

/// Splits a rule into single permissions: one verb on one resource of one group (and one name).
fn permissions(rule: &Rule) -> Vec<Rule> {
    let mut out = Vec::new();
    for verb in &rule.verbs {
        for url in &rule.urls {
            out.push(Rule { verbs: vec![verb.clone()], urls: vec![url.clone()], ..Rule::default() });
        }
        for group in &rule.groups {
            for resource in &rule.resources {
                let single = Rule {
                    verbs: vec![verb.clone()],
                    groups: vec![group.clone()],
                    resources: vec![resource.clone()],
                    ..Rule::default()
                };
                if rule.names.is_empty() {
                    out.push(single);
                } else {
                    out.extend(rule.names.iter().map(|n| Rule { names: vec![n.clone()], ..single.clone() }));
                }
            }
        }
    }
    out
}

fn covers(owner: &Rule, wanted: &Rule) -> bool {
    let any = |list: &[String], one: &[String]| one.iter().all(|w| list.iter().any(|x| x == "*" || x == w));
    if !any(&owner.verbs, &wanted.verbs) {
        return false;
    }
    if let Some(url) = wanted.urls.first() {
        return owner
            .urls
            .iter()
            .any(|u| u == "*" || u == url || u.strip_suffix('*').is_some_and(|p| url.starts_with(p)));
    }
    let resources = wanted.resources.iter().all(|w| {
        owner.resources.iter().any(|r| {
            r == "*"
                || r == w
                || matches!((r.strip_prefix("*/"), w.split_once('/')), (Some(a), Some((_, b))) if a == b)
        })
    });
    any(&owner.groups, &wanted.groups)
        && resources
        && (owner.names.is_empty() || (!wanted.names.is_empty() && any(&owner.names, &wanted.names)))
}

/// A rule as the error message shows it: `{APIGroups:["apps"], Resources:["deployments"], Verbs:["get"]}`.
fn show(rule: &Rule) -> String {
    let list = |items: &[String]| {
        format!("[{}]", items.iter().map(|i| format!("{i:?}")).collect::<Vec<_>>().join(" "))
    };
    let mut parts = Vec::new();
    for (name, items) in [
        ("APIGroups", &rule.groups),
        ("Resources", &rule.resources),
        ("NonResourceURLs", &rule.urls),
        ("ResourceNames", &rule.names),
        ("Verbs", &rule.verbs),
    ] {
        if !items.is_empty() {
            parts.push(format!("{name}:{}", list(items)));
        }
    }
    format!("{{{}}}", parts.join(", "))
}

/// Rejects rules that the user does not hold; the error follows `is forbidden: ` in the message.
pub(crate) fn check(auth: &Authorizer, user: &User, namespace: &str, rules: &[Rule]) -> Result<(), String> {
    if user.in_group("system:masters") {
        return Ok(());
    }
    let held: Vec<Rule> = auth.index().rules(user, namespace).iter().flat_map(permissions).collect();
    let missing: Vec<String> = rules
        .iter()
        .flat_map(permissions)
        .filter(|wanted| !held.iter().any(|h| covers(h, wanted)))
        .map(|r| show(&r))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let groups: Vec<String> = user.groups.iter().map(|g| format!("{g:?}")).collect();
    Err(format!(
        "user {:?} (groups=[{}]) is attempting to grant RBAC permissions not currently held:\n{}",
        user.name,
        groups.join(" "),
        missing.join("\n")
    ))
}

/// Whether the user has a verb (`escalate`, `bind`) that skips the check.
pub(crate) fn exempt(
    auth: &Authorizer,
    user: &User,
    verb: &str,
    resource: &str,
    namespace: &str,
    name: &str,
) -> bool {
    auth.allows(
        user,
        &Attributes {
            verb: verb.to_owned(),
            group: super::rbac::GROUP.to_owned(),
            resource: resource.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            ..Attributes::default()
        },
    )
}
