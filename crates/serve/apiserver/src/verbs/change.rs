//! Changing an object: the loop under `update`, `patch`, `apply` and the subresources.

use std::sync::Arc;

use serde_json::Value;

use super::identity::{check_name, check_namespace};
use super::options::{self, WriteOptions};
use super::persist::{self, read_back};
use super::pipeline::{Operation, Pipeline, Tracking};
use super::{decode, fields, read};
use crate::answer::{Answer, to_bytes};
use crate::crd::convert;
use crate::object;
use crate::resource::ResourceType;
use crate::server::{Call, Inner, Target};
use crate::status::{ApiError, Outcome};
use crate::store::{Change, Entry, Expect, StoreError};

/// What a step of the loop makes of the current object.
pub(crate) struct Proposal {
    pub(crate) object: Value,
    pub(crate) tracking: Tracking,
    /// The revision the caller insists on, from the body.
    pub(crate) expected: Option<String>,
}

/// How a missing object and a changed UID are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Put,
    Patch,
}

pub(crate) async fn put(inner: &Arc<Inner>, call: &Call, target: &Target) -> Outcome<Answer> {
    let rt = &target.rt;
    let options = options::read(call, "UpdateOptions", false)?;
    let mut object = decode::body(inner, call, rt, options.validation)?;
    let name = object::name(&object);
    check_name(name, target)?;
    check_namespace(&mut object, target)?;
    let expected = Some(object::meta_str(&object, "resourceVersion").to_owned());
    run(inner, call, target, &options, Style::Put, |_| {
        Ok(Proposal { object: object.clone(), tracking: Tracking::Update, expected: expected.clone() })
    })
    .await
}

/// Reads, proposes, checks and writes until nothing came in between.
pub(crate) async fn run(
    inner: &Arc<Inner>,
    call: &Call,
    target: &Target,
    options: &WriteOptions,
    style: Style,
    mut propose: impl FnMut(Option<&Value>) -> Outcome<Proposal>,
) -> Outcome<Answer> {
    let rt = &target.rt;
    let key = target.key();
    loop {
        let entry = inner.store.latest(target.table(), &key);
        let old = match &entry {
            Some(entry) => {
                let entry = convert::entry(inner, rt, entry.clone()).await?;
                Some(read::current_value(inner, rt, &entry))
            }
            None => None,
        };
        let proposal = propose(old.as_deref());
        if call.conversions.fetch(inner, rt).await? {
            continue;
        }
        let proposal = proposal?;
        let (Some(old), Some(entry)) = (old, entry) else {
            let made = create_instead(inner, call, target, options, style, proposal).await?;
            return Ok(Answer::Object { code: 201, rt: rt.clone(), bytes: to_bytes(&made) });
        };
        let step = Step { inner, call, target, options, style };
        let object = match step.check(&old, proposal).await? {
            Some(object) => object,
            // What was stored without the defaults of today gets them with the next write, whatever it is.
            None if is_outdated(rt, &entry, &old) => Arc::unwrap_or_clone(old),
            None => {
                // Nothing changed: nothing is written, nobody is told.
                return Ok(Answer::Object { code: 200, rt: rt.clone(), bytes: to_bytes(&old) });
            }
        };
        if options.dry_run {
            return Ok(Answer::Object { code: 200, rt: rt.clone(), bytes: to_bytes(&object) });
        }
        let gone = object::is_deleting(&object)
            && object::finalizers(&object).is_empty()
            && !still_in_grace(&object)
            && !super::delete::is_held_namespace(target, &object);
        // The last event of an object shows it as it was stored, with the finalizer that was just taken off.
        if !gone && rt.strategy.stored_as_served() && !crate::plugins::has_side_effects(target) {
            // The usual case: what is stored is what is answered, written out once.
            match inner
                .store
                .commit(target.table(), &key, Expect::Revision(entry.revision), Change::Put(object))
                .await
            {
                Ok(entry) => {
                    let bytes = entry.bytes.clone();
                    return Ok(Answer::Object { code: 200, rt: rt.clone(), bytes });
                }
                Err(StoreError::Conflict) => continue,
                Err(other) => return Err(other.into()),
            }
        }
        let change = if gone {
            Change::Delete(entry.value())
        } else {
            Change::Put(convert::to_storage(inner, rt, object.clone()).await?)
        };
        match inner.store.commit(target.table(), &key, Expect::Revision(entry.revision), change).await {
            Ok(entry) => {
                if gone {
                    crate::plugins::after_delete(inner, target, &object).await;
                    return Ok(Answer::Object { code: 200, rt: rt.clone(), bytes: to_bytes(&object) });
                }
                let mut object = read_back(inner, rt, object, entry.clone()).await?;
                object::set_meta(&mut object, "resourceVersion", entry.revision.to_string());
                crate::plugins::after_write(inner, target, &object).await;
                return Ok(Answer::Object { code: 200, rt: rt.clone(), bytes: to_bytes(&object) });
            }
            Err(StoreError::Conflict) => {}
            Err(other) => return Err(other.into()),
        }
    }
}

/// Whether a custom resource is read as something else than it was stored.
fn is_outdated(rt: &ResourceType, entry: &Entry, read: &Value) -> bool {
    rt.is_custom()
        && !rt.strategy.stored_as_served()
        && rt.api_version() == rt.storage.api_version
        && entry.value() != *read
}

/// A deleted pod stays until its grace is over.
fn still_in_grace(object: &Value) -> bool {
    object.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0) > 0
}

async fn create_instead(
    inner: &Arc<Inner>,
    call: &Call,
    target: &Target,
    options: &WriteOptions,
    style: Style,
    proposal: Proposal,
) -> Outcome<Value> {
    let rt = &target.rt;
    let applied = proposal.tracking == Tracking::Done;
    if !target.subresource.is_empty()
        || !(applied || (style == Style::Put && rt.strategy.allow_create_on_update()))
    {
        return Err(ApiError::not_found(rt, &target.name));
    }
    let mut object = proposal.object;
    let uid = object::uid(&object).to_owned();
    if !uid.is_empty() {
        let why = format!(
            "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        );
        return Err(ApiError::conflict(rt, &target.name, &why));
    }
    object::remove_meta(&mut object, "resourceVersion");
    let shared = rt.strategy.shares_labels(&object);
    rt.strategy.default(&mut object);
    rt.strategy.normalize(&mut object);
    persist::create(inner, call, target, (object, shared), options, proposal.tracking).await
}

struct Step<'a> {
    inner: &'a Arc<Inner>,
    call: &'a Call,
    target: &'a Target,
    options: &'a WriteOptions,
    style: Style,
}

impl Step<'_> {
    /// The object to write, or `None` when it is what is there.
    async fn check(&self, old: &Value, proposal: Proposal) -> Outcome<Option<Value>> {
        let Proposal { mut object, tracking, expected } = proposal;
        self.check_identity(&object, old, expected.as_deref())?;
        self.keep_metadata(&mut object, old);
        let pipeline = Pipeline {
            inner: self.inner,
            call: self.call,
            target: self.target,
            options: self.options,
            operation: Operation::Update { old },
            tracking,
        };
        pipeline.run(&mut object).await?;
        if fields::same(&mut object, old) {
            return Ok(None);
        }
        Ok(Some(object))
    }

    fn check_identity(&self, object: &Value, old: &Value, expected: Option<&str>) -> Outcome<()> {
        let rt = &self.target.rt;
        let uid = object::uid(object);
        if self.style == Style::Put && !uid.is_empty() && uid != object::uid(old) {
            let why = format!(
                "StorageError: invalid object, Code: 4, Key: /registry/{}/{}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
                rt.plural,
                self.target.key().trim_start_matches('/'),
                object::uid(old)
            );
            return Err(ApiError::conflict(rt, &self.target.name, &why));
        }
        match expected {
            Some("" | "0") if self.style == Style::Put && !rt.strategy.allow_unconditional_update() => {
                let error = fl_schema::FieldError {
                    kind: fl_schema::FieldErrorKind::Invalid,
                    field: "metadata.resourceVersion".to_owned(),
                    value: Some("0".to_owned()),
                    detail: "must be specified for an update".to_owned(),
                };
                // Upstream names the resource here, not the kind.
                Err(ApiError::invalid_kind(&rt.group, &rt.plural, &self.target.name, &[error]))
            }
            Some("" | "0") | None => Ok(()),
            Some(wanted) if wanted == object::meta_str(old, "resourceVersion") => Ok(()),
            Some(wanted) if wanted.parse::<u64>().is_err() => {
                // The store cannot read it, and says so in its own words.
                Err(ApiError::new(500, "", format!("strconv.ParseUint: parsing {wanted:?}: invalid syntax")))
            }
            Some(_) => Err(ApiError::modified(rt, &self.target.name)),
        }
    }

    /// What the server keeps, whatever the caller sends.
    fn keep_metadata(&self, object: &mut Value, old: &Value) {
        let nothing = serde_json::Map::new();
        let old = old.get("metadata").and_then(Value::as_object).unwrap_or(&nothing);
        let metadata = object::meta_mut(object);
        let keep = |metadata: &mut serde_json::Map<String, Value>, field: &str| match old.get(field) {
            // What was merged into the old object has it already.
            Some(value) if metadata.get(field) != Some(value) => {
                metadata.insert(field.to_owned(), value.clone());
            }
            Some(_) => {}
            None => {
                metadata.remove(field);
            }
        };
        for field in ["creationTimestamp", "generation", "resourceVersion", "selfLink"] {
            keep(metadata, field);
        }
        for field in ["uid", "deletionTimestamp", "deletionGracePeriodSeconds", "namespace", "name"] {
            // Unset means "as it is"; a different value is refused later.
            if metadata.get(field).is_none_or(|v| v.is_null() || v == "") {
                keep(metadata, field);
            }
        }
        if !metadata.contains_key("generateName") && self.target.subresource == "status" {
            keep(metadata, "generateName");
        }
    }
}
