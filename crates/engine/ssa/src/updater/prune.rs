//! Prunes fields that a manager applied before but not now, unless another manager owns them.

use serde_json::Value;

use super::Request;
use crate::managed::{Entry, Identity, Managed};
use crate::set::Set;
use crate::typed::{Ty, field_set, with_named_fields, without};

pub(super) fn prune(
    request: Request<'_>,
    merged: Value,
    managed: &Managed,
    me: &Identity,
    last: Option<&Entry>,
) -> Value {
    let Some(last) = last.filter(|e| !e.set().is_empty()) else { return merged };
    // Fast path: all fields of the last apply are applied again.
    if last.version == request.api_version
        && managed.get(me).is_some_and(|now| last.set().difference(now.set()).is_empty())
    {
        return merged;
    }
    if last.version == request.api_version {
        return prune_here(&merged, Ty::root(request.schema), managed, last, request);
    }
    // The last apply was in another version: convert, prune, and convert back.
    let Some((converted, schema)) = request.versions.convert(&merged, &last.version) else { return merged };
    let pruned = prune_here(&converted, Ty::root(&schema), managed, last, request);
    request.versions.convert(&pruned, request.api_version).map_or(merged, |(value, _)| value)
}

fn prune_here(merged: &Value, ty: Ty<'_>, managed: &Managed, last: &Entry, request: Request<'_>) -> Value {
    let last_set = with_named_fields(last.set(), ty);
    let pruned = without(merged, &last_set, ty);
    let pruned = add_back_owned(merged, pruned, ty, managed, last, request);
    // Only fields of the last apply may be pruned.
    let merged_set = with_named_fields(&field_set(merged, ty), ty);
    let pruned_set = with_named_fields(&field_set(&pruned, ty), ty);
    without(merged, &merged_set.difference(&pruned_set).intersection(&last_set), ty)
}

fn add_back_owned(
    merged: &Value,
    mut pruned: Value,
    ty: Ty<'_>,
    managed: &Managed,
    last: &Entry,
    request: Request<'_>,
) -> Value {
    let mut by_version: Vec<(&str, Set)> = Vec::new();
    for entry in &managed.entries {
        match by_version.iter_mut().find(|(v, _)| *v == entry.version) {
            Some((_, set)) => *set = set.union(entry.set()),
            None => by_version.push((&entry.version, entry.set().clone())),
        }
    }
    // The version of the last apply first: conversion of the others needs the fields it adds back.
    by_version.sort_by_key(|(version, _)| *version != last.version);
    for (version, owned) in by_version {
        if version == last.version {
            pruned = add_back(merged, &pruned, ty, &owned);
            continue;
        }
        let Some((m, schema)) = request.versions.convert(merged, version) else { continue };
        let Some((p, _)) = request.versions.convert(&pruned, version) else { continue };
        let kept = add_back(&m, &p, Ty::root(&schema), &owned);
        if let Some((back, _)) = request.versions.convert(&kept, &last.version) {
            pruned = back;
        }
    }
    pruned
}

fn add_back(merged: &Value, pruned: &Value, ty: Ty<'_>, owned: &Set) -> Value {
    let merged_set = with_named_fields(&field_set(merged, ty), ty);
    let keep = with_named_fields(&field_set(pruned, ty), ty).union(&with_named_fields(owned, ty));
    without(merged, &merged_set.difference(&keep), ty)
}
