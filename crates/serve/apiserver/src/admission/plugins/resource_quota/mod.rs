//! `ResourceQuota`: the usage of an object must fit into the quotas of its namespace.
//!
//! As upstream, the limits are those in the status of a quota, which the quota controller writes, not the
//! server. Where workloads are simulated, so is that controller.

mod usage;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::pod_defaults;
use crate::server::{Inner, Target};
use crate::status::{ApiError, ApiResult};
use crate::store::{Change, Precondition, StoreError};
use usage::{Amounts, compute, is_in_scope, is_measured, one, scopes, usage};
pub(crate) use usage::{tables, total};

pub(crate) const TABLE: &str = "/resourcequotas";

/// Charges an object to the quotas of its namespace, or rejects it.
pub(crate) async fn charge(
    inner: &Arc<Inner>,
    target: &Target,
    object: &Value,
    old: Option<&Value>,
    dry_run: bool,
) -> ApiResult<()> {
    if !target.rt.namespaced || !is_counted(target, old.is_some()) {
        return Ok(());
    }
    let quotas = inner.store.list(TABLE, &format!("{}/", target.namespace), None, 0).1;
    if quotas.is_empty() {
        return Ok(());
    }
    let taken = taken(target, object, old);
    let mut concerned = Vec::new();
    for (key, entry) in quotas {
        if fit(target, object, &entry.value(), &taken)?.is_some() {
            concerned.push(key);
        }
    }
    let exists = old.is_none() && inner.store.latest(target.table(), &target.key()).is_some();
    if dry_run || exists {
        return Ok(());
    }
    for key in concerned {
        // Other requests charge the same quota concurrently: check again after a conflict.
        while let Some(entry) = inner.store.latest(TABLE, &key) {
            let mut quota = entry.value();
            let Some(used) = fit(target, object, &quota, &taken)? else { break };
            quota["status"]["used"] = used;
            match inner
                .store
                .commit(TABLE, &key, Precondition::Revision(entry.revision), Change::Put(quota))
                .await
            {
                Ok(_) => break,
                Err(StoreError::Conflict) => {}
                Err(other) => return Err(other.into()),
            }
        }
    }
    Ok(())
}

/// Whether a write of this kind can have usage.
fn is_counted(target: &Target, update: bool) -> bool {
    let resizable = target.rt.group.is_empty()
        && matches!(
            (target.rt.plural.as_str(), target.subresource.as_str()),
            ("services" | "persistentvolumeclaims", "") | ("pods", "resize")
        );
    if update { resizable } else { target.subresource.is_empty() }
}

/// The usage of an object; for an update, the increase.
fn taken(target: &Target, object: &Value, old: Option<&Value>) -> Amounts {
    let mut now = usage(&target.rt, object);
    if let Some(old) = old {
        for (name, before) in usage(&target.rt, old) {
            let left = now.get(&name).map_or_else(|| one(0).minus(&before), |held| held.minus(&before));
            now.insert(name, left);
        }
    }
    now.retain(|_, amount| amount.sign() != std::cmp::Ordering::Equal);
    now
}

/// The new usage of a quota; `None` if the quota does not apply to the object.
fn fit(target: &Target, object: &Value, quota: &Value, taken: &Amounts) -> ApiResult<Option<Value>> {
    let amounts = |field: &str| -> Amounts {
        let held = quota["status"][field].as_object().into_iter().flatten();
        held.filter_map(|(name, value)| Some((name.clone(), pod_defaults::amount(value)?))).collect()
    };
    let (hard, mut used) = (amounts("hard"), amounts("used"));
    let measured: Vec<&String> = hard.keys().filter(|name| is_measured(&target.rt, name)).collect();
    if measured.is_empty() || !scopes(quota).all(|scope| is_in_scope(&target.rt, object, &scope)) {
        return Ok(None);
    }
    let name = crate::object::name(quota);
    let forbidden = |why: String| {
        let of = crate::object::name(object);
        let of = if of.is_empty() { &target.name } else { of };
        Err(ApiError::forbidden(&target.rt, of, &why))
    };
    let missing = unspecified(target, object, &measured);
    if !missing.is_empty() {
        return forbidden(format!("failed quota: {name}: must specify {}", missing.join("; ")));
    }
    if measured.iter().any(|resource| !used.contains_key(*resource)) {
        let all: Vec<&str> = measured.iter().map(|m| m.as_str()).collect();
        return forbidden(format!("status unknown for quota: {name}, resources: {}", all.join(",")));
    }
    let mut exceeded: [Vec<String>; 3] = Default::default();
    for (resource, more) in taken.iter().filter(|(resource, _)| hard.contains_key(*resource)) {
        let before = used.get(resource).cloned().unwrap_or_else(|| one(0));
        let sum = before.plus(more);
        if sum > hard[resource] {
            for (list, amount) in exceeded.iter_mut().zip([more, &before, &hard[resource]]) {
                list.push(format!("{resource}={amount}"));
            }
        }
        used.insert(resource.clone(), sum);
    }
    let [requested, held, limited] = exceeded.map(|list| list.join(","));
    if !requested.is_empty() {
        return forbidden(format!(
            "exceeded quota: {name}, requested: {requested}, used: {held}, limited: {limited}"
        ));
    }
    let used: BTreeMap<&String, String> = used.iter().map(|(k, v)| (k, v.to_string())).collect();
    Ok(Some(json!(used)))
}

/// Containers without the requests or limits that a quota for CPU or memory demands.
fn unspecified(target: &Target, object: &Value, measured: &[&String]) -> Vec<String> {
    if !target.rt.group.is_empty() || target.rt.plural != "pods" {
        return Vec::new();
    }
    let mut out = Vec::new();
    for resource in measured {
        let plain = resource.strip_prefix("requests.").or_else(|| resource.strip_prefix("limits."));
        if !matches!(plain.unwrap_or(resource), "cpu" | "memory") {
            continue;
        }
        let without: Vec<&str> = pod_defaults::containers(object)
            .into_iter()
            .filter(|container| !compute(&container["resources"]).contains_key(*resource))
            .filter_map(|container| container["name"].as_str())
            .collect();
        if !without.is_empty() {
            out.push(format!("{resource} for: {}", without.join(",")));
        }
    }
    out
}
