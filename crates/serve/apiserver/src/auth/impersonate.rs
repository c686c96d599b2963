//! Impersonation by `Impersonate-*` headers.

use super::rbac::Authorizer;
use super::{Attributes, User};
use crate::resource_type::ResourceType;
use crate::server::headers::Impersonate;
use crate::status::{ApiError, ApiResult};

/// The effective user of a request: the caller, or the impersonated user if the caller may impersonate it.
pub(crate) fn effective(
    auth: &Authorizer,
    caller: User,
    asked_for: &Impersonate,
    path: &str,
) -> ApiResult<User> {
    if !asked_for.is_requested() {
        return Ok(caller);
    }
    let Impersonate { user, uid, mut groups, extra } = asked_for.clone();
    let uid = uid.unwrap_or_default();
    let Some(name) = user else {
        let mut asked: Vec<String> = groups.iter().map(|g| format!("{{Group  {g}    }}")).collect();
        for (key, values) in &extra {
            asked.extend(
                values.iter().map(|v| format!("{{UserExtra  {v}  authentication.k8s.io/v1  {key}}}")),
            );
        }
        if !uid.is_empty() {
            asked.push(format!("{{UID  {uid}  authentication.k8s.io/v1  }}"));
        }
        let message = format!(
            "Internal Server Error: {path:?}: requested [{}] without impersonating a user\n",
            asked.join(" ")
        );
        return Err(ApiError { plain: true, ..ApiError::new(500, "", message) });
    };
    let may = |group: &str, resource: &str, sub: &str, namespace: &str, name: &str| {
        let wanted = Attributes {
            verb: "impersonate".to_owned(),
            group: group.to_owned(),
            resource: resource.to_owned(),
            subresource: sub.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            path: String::new(),
        };
        if auth.allows(&caller, &wanted) { Ok(()) } else { Err(denied(&caller, &wanted)) }
    };
    let account = name.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'));
    match account {
        Some((namespace, account)) => may("", "serviceaccounts", "", namespace, account)?,
        None => may("", "users", "", "", &name)?,
    }
    for group in &groups {
        may("", "groups", "", "", group)?;
    }
    for (key, values) in &extra {
        for value in values {
            may("authentication.k8s.io", "userextras", key, "", value)?;
        }
    }
    if !uid.is_empty() {
        may("authentication.k8s.io", "uids", "", "", &uid)?;
    }
    if groups.is_empty()
        && let Some((namespace, _)) = account
    {
        groups = vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
    }
    let special = ["system:authenticated", "system:unauthenticated"];
    if !groups.iter().any(|g| special.contains(&g.as_str())) {
        let add = if name == "system:anonymous" { special[1] } else { special[0] };
        groups.push(add.to_owned());
    }
    Ok(User { name, groups, uid, extra })
}

fn denied(user: &User, at: &Attributes) -> ApiError {
    let rt = resource_named(&at.group, &at.resource);
    ApiError::forbidden(&rt, &at.name, &why(user, at))
}

/// A resource type for error messages only.
pub(crate) fn resource_named(group: &str, plural: &str) -> ResourceType {
    ResourceType {
        group: group.to_owned(),
        version: String::new(),
        kind: String::new(),
        list_kind: String::new(),
        plural: plural.to_owned(),
        singular: String::new(),
        short_names: Vec::new(),
        categories: Vec::new(),
        namespaced: false,
        verbs: Vec::new(),
        subresources: Vec::new(),
        storage: fl_builtin::StorageKey {
            prefix: String::new(),
            api_version: String::new(),
            kind: String::new(),
        },
        conversion: None,
        strategy: std::sync::Arc::new(fl_builtin::DefaultStrategy),
    }
}

/// `User "x" cannot list resource "pods" in API group "" in the namespace "y"`.
pub(crate) fn why(user: &User, at: &Attributes) -> String {
    let place = if at.namespace.is_empty() {
        "at the cluster scope".to_owned()
    } else {
        format!("in the namespace {:?}", at.namespace)
    };
    format!(
        "User {:?} cannot {} resource {:?} in API group {:?} {place}",
        user.name,
        at.verb,
        at.combined(),
        at.group
    )
}
