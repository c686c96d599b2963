//! The steps between decoding and storing an object, in one order for create, update, patch and apply.
//!
//! Managed fields, mutating webhooks, the strategy of the kind with the built-in admission plugins,
//! generation, validation, warnings, pod security, policies and validating webhooks, quotas.

use std::sync::Arc;

use fl_builtin::{StrategyContext, copy_field};
use serde_json::Value;

use super::options::WriteOptions;
use super::{empty_values, managed_fields, metadata};
use crate::admission;
use crate::object;
use crate::server::{Inner, RequestContext, Target};
use crate::status::{ApiError, ApiResult};

/// How the managed fields of a written object are set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tracking {
    /// The caller becomes the manager of the fields that changed.
    Update,
    /// Apply has already set `managedFields`.
    Done,
    /// A change of the server itself, without a field manager.
    Untracked,
}

/// Whether the object is created or updated.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Operation<'a> {
    /// A new object. Some kinds copy the labels of their template if they have none.
    Create {
        labels_of_template: bool,
    },
    Update {
        old: &'a Value,
    },
}

/// One object and its request, for one run through the steps.
pub(crate) struct Pipeline<'a> {
    pub(crate) inner: &'a Arc<Inner>,
    pub(crate) ctx: &'a RequestContext,
    pub(crate) target: &'a Target,
    pub(crate) options: &'a WriteOptions,
    pub(crate) operation: Operation<'a>,
    pub(crate) tracking: Tracking,
}

impl Pipeline<'_> {
    /// Runs all steps. Afterwards the object can be stored.
    pub(crate) async fn run(&self, object: &mut Value) -> ApiResult<()> {
        let now = self.ctx.now_text();
        let context = StrategyContext {
            has_status: self.target.rt.has_status(),
            subresource: &self.target.subresource,
            now: &now,
        };
        let attributes = admission::AdmissionAttributes {
            ctx: self.ctx,
            target: self.target,
            operation: match self.operation {
                Operation::Create { .. } => "CREATE",
                Operation::Update { .. } => "UPDATE",
            },
            old: self.old(),
            dry_run: self.options.dry_run,
        };
        self.track_fields(object, &now).await?;
        // Changes by webhooks have no field manager.
        self.inner.webhooks.mutate(self.inner, attributes, object).await?;
        self.prepare(context, attributes, object)?;
        self.validate(context, object)?;
        for warning in self.target.rt.strategy.warnings(context, object, self.old()) {
            self.ctx.warn(warning);
        }
        crate::admission::plugins::check_security(self.inner, attributes, object)?;
        self.inner.webhooks.validate(self.inner, attributes, Some(object)).await?;
        crate::admission::plugins::charge_quotas(
            self.inner,
            self.target,
            object,
            self.old(),
            self.options.dry_run,
        )
        .await
    }

    fn old(&self) -> Option<&Value> {
        match self.operation {
            Operation::Create { .. } => None,
            Operation::Update { old } => Some(old),
        }
    }

    async fn track_fields(&self, object: &mut Value, now: &str) -> ApiResult<()> {
        let rt = &self.target.rt;
        if self.tracking != Tracking::Update {
            match self.operation {
                Operation::Create { .. } => rt.strategy.seal(object),
                Operation::Update { .. } => rt.strategy.default_and_seal(object),
            }
            return Ok(());
        }
        let registry = self.inner.registry();
        let tracker = managed_fields::Tracker {
            registry: &registry,
            rt,
            options: self.options,
            subresource: &self.target.subresource,
            now,
            conversions: &self.ctx.conversions,
        };
        match self.operation {
            Operation::Create { .. } => {
                tracker.track(self.inner, &managed_fields::empty_object(rt), object).await?;
            }
            Operation::Update { old } => {
                rt.strategy.default(object);
                tracker.track(self.inner, old, object).await?;
            }
        }
        rt.strategy.seal(object);
        Ok(())
    }

    /// Applies the strategy of the kind, the built-in admission plugins, and the server's own metadata.
    fn prepare(
        &self,
        context: StrategyContext<'_>,
        attributes: admission::AdmissionAttributes<'_>,
        object: &mut Value,
    ) -> ApiResult<()> {
        let (rt, target) = (&self.target.rt, self.target);
        match self.operation {
            Operation::Create { labels_of_template } => {
                // Some kinds derive names and labels from the UID.
                object::set_meta(object, "uid", uuid::Uuid::new_v4().to_string());
                object::set_meta(object, "creationTimestamp", context.now);
                rt.strategy.prepare_for_create(context, object);
                if labels_of_template {
                    let labels = object["spec"]["template"]["metadata"]["labels"].clone();
                    object::set_meta(object, "labels", labels);
                }
                if rt.strategy.has_generation() {
                    object::set_meta(object, "generation", 1);
                }
                crate::admission::plugins::prepare_create(self.inner, attributes, object)?;
                rt.strategy.normalize(object);
            }
            Operation::Update { old } => {
                match target.subresource.as_str() {
                    "status" => rt.strategy.prepare_for_status_update(context, object, old),
                    "" | "approval" => rt.strategy.prepare_for_update(context, object, old),
                    "resize" => {
                        keep_all_but_resources(object, old);
                        rt.strategy.normalize(object);
                    }
                    "ephemeralcontainers" => {
                        keep_all_but(object, old, "ephemeralContainers");
                        rt.strategy.normalize(object);
                    }
                    _ => {}
                }
                crate::admission::plugins::prepare_update(self.inner, attributes, object, old)?;
                let moves = rt.strategy.moves_generation() && !self.is_own_change();
                let status = target.subresource == "status";
                let noted = rt.strategy.metadata_moves_generation().filter(|_| !status);
                set_generation(moves, noted, object, old);
            }
        }
        Ok(())
    }

    /// Scheduling and eviction are changes of the server itself: the kind is not validated and the generation
    /// stays.
    fn is_own_change(&self) -> bool {
        matches!(self.target.subresource.as_str(), "binding" | "eviction")
    }

    /// Validates the object, after everything that may change it.
    fn validate(&self, context: StrategyContext<'_>, object: &Value) -> ApiResult<()> {
        let rt = &self.target.rt;
        let mut errors = match self.operation {
            Operation::Create { .. } => metadata::check_create(rt, object),
            Operation::Update { old } => metadata::check_update(rt, object, old),
        };
        errors.extend(match self.operation {
            Operation::Create { .. } => rt.strategy.validate_create(context, object),
            Operation::Update { .. } if self.is_own_change() => Vec::new(),
            Operation::Update { old } if self.target.subresource == "status" => {
                rt.strategy.validate_status_update(context, object, old)
            }
            Operation::Update { old } => rt.strategy.validate_update(context, object, old),
        });
        errors.extend(crate::admission::plugins::validate(self.inner, self.target, object, self.old()));
        if errors.is_empty() {
            return Ok(());
        }
        Err(ApiError::invalid(rt, &self.target.name, &empty_values::restore(self.ctx, rt, errors)))
    }
}

/// Takes one field of the spec from the update and everything else from the old object.
fn keep_all_but(object: &mut Value, old: &Value, field: &str) {
    let (given, managed) =
        (object["spec"].get(field).cloned(), object.pointer("/metadata/managedFields").cloned());
    *object = old.clone();
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        match given {
            Some(given) => spec.insert(field.to_owned(), given),
            None => spec.remove(field),
        };
    }
    if let Some(managed) = managed {
        object::set_meta(object, "managedFields", managed);
    }
}

/// Takes the resources of containers from the update and everything else from the old object.
fn keep_all_but_resources(object: &mut Value, old: &Value) {
    let (mut given, managed) =
        (object["spec"].take(), object.pointer("/metadata/managedFields").cloned().unwrap_or_default());
    *object = old.clone();
    object::set_meta(object, "managedFields", managed);
    for list in ["containers", "initContainers"] {
        let named = |spec: &Value| -> Vec<Value> {
            spec[list].as_array().into_iter().flatten().map(|c| c["name"].clone()).collect()
        };
        if named(&given) != named(&object["spec"]) {
            // Validation rejects this.
            object["spec"][list] = given[list].take();
            continue;
        }
        let now = object["spec"][list].as_array_mut().into_iter().flatten();
        for (container, given) in now.zip(given[list].as_array_mut().into_iter().flatten()) {
            for field in ["resources", "resizePolicy"] {
                copy_field(container, given, field);
            }
        }
    }
}

/// The fields outside metadata and status.
fn body(object: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let own = |key: &String| !matches!(key.as_str(), "metadata" | "status" | "kind" | "apiVersion");
    object.as_object().into_iter().flatten().filter(move |(key, _)| own(key))
}

/// Increments the generation after a change outside metadata and status; for some types also after a change
/// of annotations or labels.
fn set_generation(kept: bool, noted: Option<&str>, object: &mut Value, old: &Value) {
    if !kept {
        return;
    }
    let before = object::generation(old);
    let noted = noted.is_some_and(|at| object.pointer(at) != old.pointer(at));
    let grown = if noted || !body(object).eq(body(old)) { before + 1 } else { before };
    if grown > 0 {
        object::set_meta(object, "generation", grown);
    }
}
