//! Accepts the names of definitions, serves their types, and deletes the instances of deleted definitions.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{CLEANUP, TABLE, group_and_plural, types};
use crate::object;
use crate::server::{Inner, rfc3339};
use crate::store::{Change, Precondition, StoreError};

pub(super) fn is_established(definition: &Value) -> bool {
    condition(definition, "Established") == Some("True")
}

fn condition<'a>(definition: &'a Value, kind: &str) -> Option<&'a str> {
    let list = definition.pointer("/status/conditions")?.as_array()?;
    list.iter().find(|c| c["type"] == kind)?.get("status")?.as_str()
}

fn set_condition(definition: &mut Value, kind: &str, status: &str, reason: &str, message: &str, now: &str) {
    let fresh = json!({"type": kind, "status": status, "lastTransitionTime": now, "reason": reason, "message": message});
    let list = &mut definition["status"]["conditions"];
    if !list.is_array() {
        *list = json!([]);
    }
    let Some(list) = list.as_array_mut() else { return };
    match list.iter_mut().find(|c| c["type"] == kind) {
        Some(old) if old["status"] == status && old["reason"] == reason && old["message"] == message => {}
        Some(old) => {
            let since = if old["status"] == status { old["lastTransitionTime"].clone() } else { json!(now) };
            *old = fresh;
            old["lastTransitionTime"] = since;
        }
        None => list.push(fresh),
    }
}

/// Why the names of a definition cannot be accepted: reason and message.
fn conflict(inner: &Inner, definition: &Value) -> Option<(&'static str, String)> {
    let names = &definition["spec"]["names"];
    let (group, _) = group_and_plural(definition);
    let (mut resources, mut kinds) = (Vec::new(), Vec::new());
    for rt in inner.registry().iter().filter(|rt| rt.group == group && !rt.is_custom()) {
        resources.extend([json!(rt.plural), json!(rt.singular)]);
        resources.extend(rt.short_names.iter().map(|name| json!(name)));
        kinds.extend([json!(rt.kind), json!(rt.list_kind)]);
    }
    for (_, entry) in inner.store.list(TABLE, "", None, 0).1 {
        let other = entry.value();
        if object::name(&other) == object::name(definition) || group_and_plural(&other).0 != group {
            continue;
        }
        let accepted = &other["status"]["acceptedNames"];
        resources.extend([accepted["plural"].clone(), accepted["singular"].clone()]);
        resources.extend(accepted["shortNames"].as_array().cloned().unwrap_or_default());
        kinds.extend([accepted["kind"].clone(), accepted["listKind"].clone()]);
    }
    let taken =
        |list: &[Value], value: &Value| value.as_str().is_some_and(|s| !s.is_empty()) && list.contains(value);
    let in_use = |value: &Value| format!("{:?} is already in use", value.as_str().unwrap_or_default());
    let mut found = None;
    // Later conflicts overwrite earlier ones, as upstream does.
    if taken(&resources, &names["plural"]) {
        found = Some(("PluralConflict", in_use(&names["plural"])));
    }
    if taken(&resources, &names["singular"]) {
        found = Some(("SingularConflict", in_use(&names["singular"])));
    }
    for short in names["shortNames"].as_array().into_iter().flatten() {
        if taken(&resources, short) {
            found = Some(("ShortNamesConflict", in_use(short)));
        }
    }
    if taken(&kinds, &names["kind"]) {
        found = Some(("KindConflict", in_use(&names["kind"])));
    }
    if taken(&kinds, &names["listKind"]) {
        found = Some(("ListKindConflict", in_use(&names["listKind"])));
    }
    found
}

/// Updates a definition; retried on conflicts.
async fn update(inner: &Arc<Inner>, name: &str, change: impl Fn(&mut Value)) -> Option<Value> {
    let key = object::key("", name);
    loop {
        let entry = inner.store.latest(TABLE, &key)?;
        let old = entry.value();
        let mut new = old.clone();
        change(&mut new);
        if new == old {
            return Some(new);
        }
        track(&old, &mut new, &rfc3339(inner.now()));
        match inner
            .store
            .commit(TABLE, &key, Precondition::Revision(entry.revision), Change::Put(new.clone()))
            .await
        {
            Ok(_) => return Some(new),
            Err(StoreError::Conflict) => {}
            Err(_) => return None,
        }
    }
}

/// Records the server as field manager of the status.
fn track(old: &Value, new: &mut Value, now: &str) {
    let Some(schema) = fl_kubeschema::schema("apiextensions.k8s.io", "v1", "CustomResourceDefinition") else {
        return;
    };
    let none = fl_ssa::Set::new();
    let request = fl_ssa::Request {
        schema: &schema,
        api_version: "apiextensions.k8s.io/v1",
        kind: "CustomResourceDefinition",
        subresource: "status",
        manager: "kube-apiserver",
        now,
        reset: &none,
        versions: &fl_ssa::OneVersion,
    };
    object::remove_meta(new, "managedFields");
    fl_ssa::update(request, old, new);
}

/// Called after a definition was written: serves it and sets its conditions.
pub(crate) async fn changed(inner: &Arc<Inner>, definition: &Value) {
    let name = object::name(definition).to_owned();
    if object::is_deleting(definition) {
        serve(inner, definition);
        clean_up(inner, name);
        return;
    }
    if is_established(definition)
        && !names_builtin(inner, definition)
        && definition.pointer("/status/acceptedNames/plural") == definition.pointer("/spec/names/plural")
    {
        // Names may still grow (short names, categories).
        let inner = inner.clone();
        let definition = definition.clone();
        serve(&inner, &definition);
        if definition.pointer("/status/acceptedNames") != definition.pointer("/spec/names") {
            tokio::spawn(async move { accept(&inner, &name).await });
        }
        return;
    }
    let inner = inner.clone();
    // The response shows the definition as it was written; the conditions are set right after.
    tokio::spawn(async move { accept(&inner, &name).await });
}

async fn accept(inner: &Arc<Inner>, name: &str) {
    let now = rfc3339(inner.now());
    let written = update(inner, name, |definition| match conflict(inner, definition) {
        Some((reason, message)) => {
            set_condition(definition, "NamesAccepted", "False", reason, &message, &now);
            // An established definition stays established, unless it has the names of a built-in kind.
            if !is_established(definition) || names_builtin(inner, definition) {
                let text = "not all names are accepted";
                set_condition(definition, "Established", "False", "NotAccepted", text, &now);
            }
        }
        None => {
            definition["status"]["acceptedNames"] = definition["spec"]["names"].clone();
            set_condition(definition, "NamesAccepted", "True", "NoConflicts", "no conflicts found", &now);
            let text = "the initial names have been accepted";
            set_condition(definition, "Established", "True", "InitialNamesAccepted", text, &now);
        }
    })
    .await;
    if let Some(definition) = written
        && is_established(&definition)
    {
        let (group, plural) = group_and_plural(&definition);
        if inner.registry().iter().all(|t| !(t.group == group && t.plural == plural)) {
            inner.store.begin_history(&format!("{group}/{plural}"));
        }
        super::provisional::hand_over(inner, &definition).await;
        serve(inner, &definition);
    }
}

fn serve(inner: &Arc<Inner>, definition: &Value) {
    if !is_established(definition) {
        return;
    }
    let (group, plural) = group_and_plural(definition);
    let types = types(definition);
    inner.change_registry(|registry| {
        registry.serve_custom(&group, &plural, types);
    });
}

/// Whether a definition has the names of a built-in kind. Such a definition is not served and has no
/// instances: the objects stored under its names are those of the built-in kind.
pub(super) fn names_builtin(inner: &Inner, definition: &Value) -> bool {
    let (group, plural) = group_and_plural(definition);
    inner.registry().is_builtin(&group, &plural)
}

/// Called after a definition was deleted: its types are no longer served.
pub(crate) async fn removed(inner: &Arc<Inner>, definition: &Value) {
    let (group, plural) = group_and_plural(definition);
    inner.change_registry(|registry| registry.remove_custom(&group, &plural));
    // Another definition may be waiting for the names.
    let waiting: Vec<String> = inner
        .store
        .list(TABLE, "", None, 0)
        .1
        .iter()
        .map(|(_, e)| e.value())
        .filter(|d| !is_established(d) && group_and_plural(d).0 == group)
        .map(|d| object::name(&d).to_owned())
        .collect();
    for name in waiting {
        let inner = inner.clone();
        tokio::spawn(async move { accept(&inner, &name).await });
    }
}

/// Starts the deletion of the instances of a deleted definition, and then of the definition.
fn clean_up(inner: &Arc<Inner>, name: String) {
    let mut cleaning = inner.custom.cleaning.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if !cleaning.insert(name.clone()) {
        return;
    }
    drop(cleaning);
    let inner = inner.clone();
    tokio::spawn(async move {
        delete_definition(&inner, &name).await;
        inner.custom.cleaning.lock().unwrap_or_else(std::sync::PoisonError::into_inner).remove(&name);
    });
}

/// Marks a definition as deleted. Its finalizer keeps it until its instances are deleted.
pub(crate) fn mark_deleted(definition: &mut Value, now: &str) {
    let mut finalizers: Vec<String> = object::finalizers(definition).into_iter().map(str::to_owned).collect();
    if !finalizers.iter().any(|f| f == CLEANUP) {
        finalizers.push(CLEANUP.to_owned());
        object::set_finalizers(definition, &finalizers);
    }
    object::set_meta(definition, "deletionTimestamp", now);
    let text = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
    set_condition(definition, "Terminating", "True", "InstanceDeletionPending", text, now);
}

/// Delay between marking a definition as deleted and the first deletion of an instance. Upstream's controller
/// takes 15 to 30 ms (measured), in which clients still read the instances and running writes complete.
const INSTANCE_DELETION_DELAY: Duration = Duration::from_millis(100);

async fn delete_definition(inner: &Arc<Inner>, name: &str) {
    let Some(entry) = inner.store.latest(TABLE, &object::key("", name)) else { return };
    let definition = entry.value();
    if !names_builtin(inner, &definition) {
        delete_instances(inner, name, &definition).await;
    }
    remove_finalizer(inner, name).await;
}

async fn delete_instances(inner: &Arc<Inner>, name: &str, definition: &Value) {
    let now = rfc3339(inner.now());
    let (group, plural) = group_and_plural(definition);
    let table = format!("{group}/{plural}");
    if !inner.store.list(&table, "", None, 1).1.is_empty() {
        tokio::time::sleep(INSTANCE_DELETION_DELAY).await;
    }
    let text = "CustomResource deletion is in progress";
    update(inner, name, |d| {
        set_condition(d, "Terminating", "True", "InstanceDeletionInProgress", text, &now);
    })
    .await;
    loop {
        let (_, items, _) = inner.store.list(&table, "", None, 0);
        if items.is_empty() {
            break;
        }
        for (key, _) in items {
            crate::controllers::delete_instance(inner, &table, &key).await;
        }
        if !inner.store.list(&table, "", None, 1).1.is_empty() {
            // Finalizers hold the rest back.
            let mut changes = inner.store.subscribe(&table);
            let _ = tokio::time::timeout(Duration::from_secs(5), changes.changed()).await;
        }
    }
}

/// Removes the finalizer of a definition without instances, and deletes the definition if it was the last
/// one.
async fn remove_finalizer(inner: &Arc<Inner>, name: &str) {
    let key = object::key("", name);
    loop {
        let Some(entry) = inner.store.latest(TABLE, &key) else { return };
        let mut definition = entry.value();
        let left: Vec<String> = object::finalizers(&definition)
            .into_iter()
            .filter(|f| *f != CLEANUP)
            .map(str::to_owned)
            .collect();
        object::set_finalizers(&mut definition, &left);
        let text = "removed all instances";
        set_condition(
            &mut definition,
            "Terminating",
            "False",
            "InstanceDeletionCompleted",
            text,
            &rfc3339(inner.now()),
        );
        let change = if left.is_empty() {
            Change::Delete(definition.clone())
        } else {
            Change::Put(definition.clone())
        };
        let expect = Precondition::Revision(entry.revision);
        match inner.store.commit_when_writable(TABLE, &key, expect, change).await {
            Ok(_) => {
                if left.is_empty() {
                    removed(inner, &definition).await;
                }
                return;
            }
            Err(StoreError::Conflict) => {}
            Err(_) => return,
        }
    }
}
