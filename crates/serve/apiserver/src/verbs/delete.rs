//! The `delete` and `deletecollection` verbs.

use std::sync::Arc;

use fl_schema::FieldError;
use serde_json::{Value, json};

use super::options::check_dry_run;
use super::read::{self, Selection};
use crate::admission;
use crate::admission::plugins::namespace_lifecycle::IMMORTAL_NAMESPACES;
use crate::crd::convert;
use crate::object;
use crate::response::{ApiResponse, deleted, to_bytes};
use crate::server::{Inner, RequestContext, Target};
use crate::status::{ApiError, ApiResult};
use crate::store::{Change, Precondition, StoreError};

/// Kubernetes' `DeleteOptions`, from the query and the body.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeleteOptions {
    pub(crate) grace: Option<i64>,
    pub(crate) uid: Option<String>,
    pub(crate) revision: Option<String>,
    pub(crate) propagation: Option<String>,
    pub(crate) dry_run: bool,
}

impl DeleteOptions {
    fn read(ctx: &RequestContext) -> ApiResult<Self> {
        let mut body = json!({});
        if !ctx.body.is_empty() {
            let text = super::decode::json_text(ctx)?;
            body = serde_json::from_slice(&text).map_err(|_| {
                let why = fl_go::json_syntax_error(&text);
                ApiError::new(500, "", format!("couldn't get version/kind; json parse error: {why}"))
            })?;
            if !body.is_object() && !body.is_null() {
                let why = super::decode::not_a_type(super::decode::go_type(&body));
                return Err(ApiError::new(500, "", why));
            }
            let kind = object::kind(&body);
            if !kind.is_empty() && kind != "DeleteOptions" {
                let api_version = object::api_version(&body);
                let (group, version) = object::split_api_version(api_version);
                let known = fl_kubeschema::group_versions().iter().any(|gv| {
                    gv.group == group && gv.version == version && gv.resources.iter().any(|r| r.kind == kind)
                });
                let why = if known {
                    format!(
                        "converting ({version}.{kind}) to (internalversion.DeleteOptions): unknown conversion"
                    )
                } else {
                    format!(
                        "no kind {kind:?} is registered for version {api_version:?} in scheme \"pkg/runtime/scheme.go:110\""
                    )
                };
                return Err(ApiError::new(500, "", why));
            }
            check_types(&body)?;
        } else {
            let query = &ctx.query;
            if query.has("gracePeriodSeconds") {
                let text = query.get("gracePeriodSeconds");
                let seconds: i64 = text.parse().map_err(|_| {
                    ApiError::bad_request(format!("strconv.ParseInt: parsing {text:?}: invalid syntax"))
                })?;
                body["gracePeriodSeconds"] = json!(seconds);
            }
            if query.has("propagationPolicy") {
                body["propagationPolicy"] = json!(query.get("propagationPolicy"));
            }
            if query.has("orphanDependents") {
                body["orphanDependents"] = json!(query.flag("orphanDependents"));
            }
            if query.has("dryRun") {
                body["dryRun"] = json!(query.all("dryRun"));
            }
        }
        Self::from_json(&body)
    }

    pub(crate) fn from_json(body: &Value) -> ApiResult<Self> {
        let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let mut errors = Vec::new();
        let orphan = body.get("orphanDependents").and_then(Value::as_bool);
        let propagation = text("/propagationPolicy");
        if let (Some(_), Some(policy)) = (orphan, &propagation) {
            errors.push(FieldError::invalid(
                "propagationPolicy",
                &json!(policy),
                "orphanDependents and deletionPropagation cannot be both set",
            ));
        }
        if let Some(policy) = &propagation
            && !["Foreground", "Background", "Orphan"].contains(&policy.as_str())
        {
            let supported = ["Foreground", "Background", "Orphan", "nil"];
            errors.push(FieldError::not_supported("propagationPolicy", &json!(policy), &supported));
        }
        let dry_run: Vec<String> = body
            .get("dryRun")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect();
        errors.extend(check_dry_run(&dry_run));
        if !errors.is_empty() {
            return Err(ApiError::invalid_kind("meta.k8s.io", "DeleteOptions", "", &errors));
        }
        Ok(Self {
            grace: body.get("gracePeriodSeconds").and_then(Value::as_i64),
            uid: text("/preconditions/uid"),
            revision: text("/preconditions/resourceVersion"),
            propagation: propagation
                .or(orphan.map(|o| if o { "Orphan".to_owned() } else { "Background".to_owned() })),
            dry_run: !dry_run.is_empty(),
        })
    }
}

/// Rejects options of a wrong type, with the error messages of Go's decoder.
fn check_types(body: &Value) -> ApiResult<()> {
    let at = |pointer: &str| body.pointer(pointer).filter(|given| !given.is_null());
    let element = at("/dryRun").and_then(|l| l.as_array()?.iter().find(|word| !word.is_string()));
    for (given, owner, field, wanted) in [
        (at("/gracePeriodSeconds"), "DeleteOptions", "gracePeriodSeconds", "int64"),
        (at("/preconditions"), "DeleteOptions", "preconditions", "v1.Preconditions"),
        (at("/preconditions/uid"), "Preconditions", "preconditions.uid", "types.UID"),
        (at("/preconditions/resourceVersion"), "Preconditions", "preconditions.resourceVersion", "string"),
        (at("/orphanDependents"), "DeleteOptions", "orphanDependents", "bool"),
        (at("/propagationPolicy"), "DeleteOptions", "propagationPolicy", "v1.DeletionPropagation"),
        (at("/dryRun"), "DeleteOptions", "dryRun", "[]string"),
        (element, "DeleteOptions", "dryRun", "string"),
    ] {
        let Some(given) = given else { continue };
        let fits = match wanted {
            "int64" => given.is_i64(),
            "bool" => given.is_boolean(),
            "[]string" => given.is_array(),
            "v1.Preconditions" => given.is_object(),
            _ => given.is_string(),
        };
        if fits {
            continue;
        }
        let mut what = super::decode::go_type(given).to_owned();
        if wanted == "int64" && given.is_number() {
            what = format!("number {given}");
        }
        return Err(ApiError::new(
            500,
            "",
            format!("json: cannot unmarshal {what} into Go struct field {owner}.{field} of type {wanted}"),
        ));
    }
    Ok(())
}

pub(crate) async fn one(inner: &Arc<Inner>, ctx: &RequestContext, target: &Target) -> ApiResult<ApiResponse> {
    let options = DeleteOptions::read(ctx)?;
    let rt = &target.rt;
    if rt.group.is_empty() && rt.plural == "namespaces" && IMMORTAL_NAMESPACES.contains(&target.name.as_str())
    {
        return Err(ApiError::forbidden(rt, &target.name, "this namespace may not be deleted"));
    }
    if let Some(why) = crate::admission::plugins::delete_error(target) {
        return Err(ApiError::forbidden(rt, &target.name, why));
    }
    if rt.strategy.default_propagation() == "Orphan" && options.propagation.is_none() && rt.group == "batch" {
        ctx.warn("child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning");
    }
    match remove(inner, ctx, target, &options).await? {
        Removed::Gone(object) if rt.strategy.returns_deleted_object() => {
            Ok(ApiResponse::Object { code: 200, rt: rt.clone(), bytes: to_bytes(&object) })
        }
        Removed::Gone(object) => Ok(ApiResponse::document(deleted(rt, &object))),
        Removed::Pending(object) => {
            Ok(ApiResponse::Object { code: 200, rt: rt.clone(), bytes: to_bytes(&object) })
        }
    }
}

pub(crate) enum Removed {
    /// The object was deleted.
    Gone(Value),
    /// The object has a `deletionTimestamp` and waits for finalizers or its grace period.
    Pending(Value),
}

/// Deletes one object, or sets its `deletionTimestamp`.
pub(crate) async fn remove(
    inner: &Arc<Inner>,
    ctx: &RequestContext,
    target: &Target,
    options: &DeleteOptions,
) -> ApiResult<Removed> {
    let rt = &target.rt;
    let key = target.key();
    let mut asked = false;
    loop {
        let Some(entry) = inner.store.latest(target.table(), &key) else {
            return Err(ApiError::not_found(rt, &target.name));
        };
        let in_version = convert::entry(inner, rt, entry.clone()).await?;
        let old = read::served_value(rt, &in_version);
        check_preconditions(target, &old, options)?;
        if !asked {
            let write = admission::AdmissionAttributes {
                ctx,
                target,
                operation: "DELETE",
                old: Some(&old),
                dry_run: options.dry_run,
            };
            inner.webhooks.delete(inner, write).await?;
            asked = true;
        }
        let mut object = old.clone();
        let gone = mark(target, ctx, &mut object, &old, options);
        if options.dry_run {
            return Ok(if gone { Removed::Gone(object) } else { Removed::Pending(object) });
        }
        if !gone && object == old {
            return Ok(Removed::Pending(object));
        }
        let stored = convert::to_storage(inner, rt, object.clone()).await?;
        let mut revision = entry.revision;
        if gone && rt.strategy.default_grace_seconds(&old).is_some() && object != old {
            // Objects with graceful deletion are updated before they are deleted, even when the grace period
            // is zero: watchers see both events.
            let mark = Change::Put(stored.clone());
            match inner.store.commit(target.table(), &key, Precondition::Revision(revision), mark).await {
                Ok(marked) => revision = marked.revision,
                Err(StoreError::Conflict) => continue,
                Err(other) => return Err(other.into()),
            }
        }
        let change = if gone { Change::Delete(stored) } else { Change::Put(stored) };
        match inner.store.commit(target.table(), &key, Precondition::Revision(revision), change).await {
            Ok(entry) => {
                object::set_meta(&mut object, "resourceVersion", entry.revision.to_string());
                if gone {
                    crate::admission::plugins::after_delete(inner, target, &object).await;
                    return Ok(Removed::Gone(object));
                }
                crate::admission::plugins::after_write(inner, target, &object).await;
                return Ok(Removed::Pending(object));
            }
            Err(StoreError::Conflict) => {}
            Err(other) => return Err(other.into()),
        }
    }
}

fn check_preconditions(target: &Target, old: &Value, options: &DeleteOptions) -> ApiResult<()> {
    let conflict = |why: String| {
        // Upstream names the kind here, not the resource.
        let message =
            format!("Operation cannot be fulfilled on {} {:?}: {why}", target.rt.group_kind(), target.name);
        let mut details = json!({"name": target.name, "kind": target.rt.kind});
        if !target.rt.group.is_empty() {
            details["group"] = json!(target.rt.group);
        }
        ApiError::new(409, "Conflict", message).with_details(details)
    };
    if let Some(uid) = options.uid.as_deref().filter(|uid| *uid != object::uid(old)) {
        return Err(conflict(format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been deleted and then recreated",
            object::uid(old)
        )));
    }
    let current = object::meta_str(old, "resourceVersion");
    if let Some(wanted) = options.revision.as_deref().filter(|rv| *rv != current) {
        return Err(conflict(format!(
            "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record ({current}). The object might have been modified"
        )));
    }
    Ok(())
}

/// Sets `deletionTimestamp`; true if the object can be deleted at once.
fn mark(
    target: &Target,
    ctx: &RequestContext,
    object: &mut Value,
    old: &Value,
    options: &DeleteOptions,
) -> bool {
    let rt = &target.rt;
    let namespace = rt.group.is_empty() && rt.plural == "namespaces";
    let grace = match options.grace {
        // A pod without a node needs no grace period. A negative value means one second.
        Some(_) if rt.strategy.default_grace_seconds(old) == Some(0) => 0,
        Some(seconds) if rt.strategy.default_grace_seconds(old).is_some() => {
            if seconds < 0 {
                1
            } else {
                seconds
            }
        }
        // Most types have no graceful deletion: the requested grace period is ignored.
        Some(_) => 0,
        None => rt.strategy.default_grace_seconds(old).unwrap_or(0),
    };
    set_propagation_finalizers(object, options, rt.strategy.default_propagation());
    if target.table() == crate::crd::TABLE && !object::is_deleting(old) {
        crate::crd::mark_deleted(object, &ctx.now_text());
        return false;
    }
    let waits = !object::finalizers(object).is_empty() || namespace && has_namespace_finalizer(object);
    let already = object::is_deleting(old);
    if already {
        let current =
            old.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0);
        // A grace period that has begun can only be shortened, and only on request.
        let asked = options.grace.map(|seconds| if seconds < 0 { 1 } else { seconds });
        let left = match asked.filter(|asked| *asked < current) {
            Some(asked) => {
                object::set_meta(object, "deletionGracePeriodSeconds", asked);
                let at: Option<jiff::Timestamp> = object::meta_str(old, "deletionTimestamp").parse().ok();
                if let Some(at) = at {
                    let at = at.checked_sub(jiff::SignedDuration::from_secs(current - asked)).unwrap_or(at);
                    object::set_meta(object, "deletionTimestamp", crate::server::rfc3339(at));
                }
                asked
            }
            None => current,
        };
        return !waits && left == 0;
    }
    if !waits && grace == 0 {
        if rt.strategy.default_grace_seconds(old).is_some() {
            object::set_meta(object, "deletionTimestamp", ctx.now_text());
            object::set_meta(object, "deletionGracePeriodSeconds", 0);
            let next = object::generation(object) + 1;
            object::set_meta(object, "generation", next);
        }
        return true;
    }
    let at = ctx.now.checked_add(jiff::SignedDuration::from_secs(grace)).unwrap_or(ctx.now);
    object::set_meta(object, "deletionTimestamp", crate::server::rfc3339(at));
    if namespace {
        if let Some(map) = object.as_object_mut() {
            let status = map.entry("status").or_insert_with(|| json!({}));
            status["phase"] = json!("Terminating");
        }
    } else {
        object::set_meta(object, "deletionGracePeriodSeconds", grace);
    }
    if object::generation(object) > 0 && rt.strategy.has_generation() {
        let next = object::generation(object) + 1;
        object::set_meta(object, "generation", next);
    }
    false
}

/// Whether the object is a namespace whose content is not deleted yet.
pub(super) fn is_held_namespace(target: &Target, object: &Value) -> bool {
    target.rt.group.is_empty() && target.rt.plural == "namespaces" && has_namespace_finalizer(object)
}

fn has_namespace_finalizer(object: &Value) -> bool {
    object.pointer("/spec/finalizers").and_then(Value::as_array).is_some_and(|l| !l.is_empty())
}

/// Propagation policies `Orphan` and `Foreground` are finalizers that the garbage collector removes.
fn set_propagation_finalizers(object: &mut Value, options: &DeleteOptions, default: &str) {
    let has = |name: &str| object::finalizers(object).contains(&name);
    let policy = match options.propagation.as_deref() {
        Some(policy) => policy,
        None if has("orphan") => "Orphan",
        None if has("foregroundDeletion") => "Foreground",
        None => default,
    };
    let mut list: Vec<String> = object::finalizers(object)
        .into_iter()
        .filter(|f| !["orphan", "foregroundDeletion"].contains(f))
        .map(str::to_owned)
        .collect();
    match policy {
        "Orphan" => list.push("orphan".to_owned()),
        "Foreground" => list.push("foregroundDeletion".to_owned()),
        _ => {}
    }
    object::set_finalizers(object, &list);
}

pub(crate) async fn collection(
    inner: &Arc<Inner>,
    ctx: &RequestContext,
    target: &Target,
) -> ApiResult<ApiResponse> {
    let options = DeleteOptions::read(ctx)?;
    let rt = &target.rt;
    let selection = Selection::read(ctx, target)?;
    let prefix = if rt.namespaced { format!("{}/", target.namespace) } else { String::new() };
    let (revision, items, _) = inner.store.list(target.table(), &prefix, None, 0);
    let mut shown = Vec::new();
    let entries = items.into_iter().map(|(_, entry)| entry).collect();
    for entry in convert::entries(inner, rt, entries).await? {
        let object = read::served_value(rt, &entry);
        if !selection.matches(rt, &object) {
            continue;
        }
        let one = Target {
            name: object::name(&object).to_owned(),
            namespace: object::namespace(&object).to_owned(),
            ..target.clone()
        };
        match remove(inner, ctx, &one, &options).await {
            Ok(_) => shown.push(to_bytes(&object)),
            Err(error) if error.code == 404 => {}
            Err(error) => return Err(error),
        }
    }
    let meta = json!({"resourceVersion": revision.to_string()});
    Ok(ApiResponse::List { rt: rt.clone(), meta, items: shown, kind: None })
}
