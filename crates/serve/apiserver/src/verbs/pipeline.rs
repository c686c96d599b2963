//! The steps between a decoded object and the store, in the one order that create, update, patch and apply share.
//!
//! Field managers, mutating webhooks, the strategy of the kind with the built-in admission plugins, generation, validation, warnings,
//! pod security, policies and validating webhooks, quotas.

use std::sync::Arc;

use serde_json::Value;

use super::options::WriteOptions;
use super::{empties, fields, metadata};
use crate::admission;
use crate::object;
use crate::resource::StrategyContext;
use crate::server::{Call, Inner, Target};
use crate::status::{ApiError, Outcome};

/// How the fields of a written object get their managers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tracking {
    /// The fields that changed belong to the caller.
    Update,
    /// Apply wrote managedFields already.
    Done,
    /// A change of the server itself: no manager comes to own anything.
    Untracked,
}

/// What the object is for the store.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Operation<'a> {
    /// A new object. Some kinds take their labels from their template when they have none.
    Create {
        labels_of_template: bool,
    },
    Update {
        old: &'a Value,
    },
}

/// One pass of one object through the steps.
pub(crate) struct Pipeline<'a> {
    pub(crate) inner: &'a Arc<Inner>,
    pub(crate) call: &'a Call,
    pub(crate) target: &'a Target,
    pub(crate) options: &'a WriteOptions,
    pub(crate) operation: Operation<'a>,
    pub(crate) tracking: Tracking,
}

impl Pipeline<'_> {
    /// Runs all steps. Afterwards the object can be written as it is.
    pub(crate) async fn run(&self, object: &mut Value) -> Outcome<()> {
        let now = self.call.now_text();
        let context =
            StrategyContext { resource: &self.target.rt, subresource: &self.target.subresource, now: &now };
        let write = admission::Write {
            call: self.call,
            target: self.target,
            operation: match self.operation {
                Operation::Create { .. } => "CREATE",
                Operation::Update { .. } => "UPDATE",
            },
            old: self.old(),
            dry_run: self.options.dry_run,
        };
        self.track_fields(object, &now).await?;
        // What webhooks change belongs to no manager.
        self.inner.webhooks.mutate(self.inner, write, object).await?;
        self.prepare(context, object)?;
        self.validate(context, object)?;
        for warning in self.target.rt.strategy.warnings(context, object, self.old()) {
            self.call.warn(warning);
        }
        crate::plugins::check_security(self.inner, self.call, self.target, object, self.old())?;
        self.inner.webhooks.validate(self.inner, write, Some(object)).await?;
        crate::plugins::charge_quotas(self.inner, self.target, object, self.old(), self.options.dry_run).await
    }

    fn old(&self) -> Option<&Value> {
        match self.operation {
            Operation::Create { .. } => None,
            Operation::Update { old } => Some(old),
        }
    }

    async fn track_fields(&self, object: &mut Value, now: &str) -> Outcome<()> {
        let rt = &self.target.rt;
        if self.tracking != Tracking::Update {
            match self.operation {
                Operation::Create { .. } => rt.strategy.seal(object),
                Operation::Update { .. } => rt.strategy.default_and_seal(object),
            }
            return Ok(());
        }
        let registry = self.inner.registry();
        let tracker = fields::Tracker {
            registry: &registry,
            rt,
            options: self.options,
            subresource: &self.target.subresource,
            now,
            conversions: &self.call.conversions,
        };
        match self.operation {
            Operation::Create { .. } => tracker.track(self.inner, &fields::zero(rt), object).await?,
            Operation::Update { old } => {
                rt.strategy.default(object);
                tracker.track(self.inner, old, object).await?;
            }
        }
        rt.strategy.seal(object);
        Ok(())
    }

    /// What the strategy of the kind, the built-in admission plugins and the server decide.
    fn prepare(&self, context: StrategyContext<'_>, object: &mut Value) -> Outcome<()> {
        let (rt, target) = (&self.target.rt, self.target);
        match self.operation {
            Operation::Create { labels_of_template } => {
                // Some kinds make names and labels of the UID.
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
                crate::plugins::prepare_create(self.inner, self.call, target, object)?;
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
                crate::plugins::prepare_update(self.inner, self.call, target, object, old)?;
                let moves = rt.strategy.moves_generation() && !self.is_own_change();
                let status = target.subresource == "status";
                let noted = rt.strategy.metadata_moves_generation().filter(|_| !status);
                set_generation(moves, noted, object, old);
            }
        }
        Ok(())
    }

    /// Scheduling and eviction are the server's own changes: no rules of the kind, no new generation.
    fn is_own_change(&self) -> bool {
        matches!(self.target.subresource.as_str(), "binding" | "eviction")
    }

    /// The rules, after everything that may still change what they look at.
    fn validate(&self, context: StrategyContext<'_>, object: &Value) -> Outcome<()> {
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
        errors.extend(crate::plugins::validate(self.inner, self.target, object, self.old()));
        if errors.is_empty() {
            return Ok(());
        }
        Err(ApiError::invalid(rt, &self.target.name, &empties::restore(self.call, rt, errors)))
    }
}

/// Takes one field of the spec from a change and all else from what is there.
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

/// Takes the resources of containers from a change and all else from what is there.
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
            // The rules say that this cannot be.
            object["spec"][list] = given[list].take();
            continue;
        }
        let now = object["spec"][list].as_array_mut().into_iter().flatten();
        for (container, given) in now.zip(given[list].as_array_mut().into_iter().flatten()) {
            for field in ["resources", "resizePolicy"] {
                crate::resource::copy_field(container, given, field);
            }
        }
    }
}

/// The fields outside metadata and status.
fn body(object: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let own = |key: &String| !matches!(key.as_str(), "metadata" | "status" | "kind" | "apiVersion");
    object.as_object().into_iter().flatten().filter(move |(key, _)| own(key))
}

/// A change outside metadata and status is a new generation; for some types one of annotations or labels is, too.
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
