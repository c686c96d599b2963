//! Kubernetes' built-in kinds: defaults, validation, warnings, tables and version conversion of each.
//!
//! [`strategy()`] returns the [`Strategy`] of one kind and [`storage_key`] the form its objects are stored
//! in. A kind without a row in `strategies` follows the rules of most kinds. Defaults are in `defaults`, by Go type;
//! validation is in `validate`, one file per family of kinds.
//!
//! The crate knows neither requests nor the store: what a strategy needs of a request is in
//! [`StrategyContext`].

pub mod cron;
mod defaults;
mod diff;
mod field;
mod go_print;
#[cfg(test)]
mod golden_tests;
mod human_duration;
mod kind_strategy;
pub mod name_validation;
mod pod_strategy;
mod prepare;
mod registry;
mod strategies;
mod strategy;
mod table;
mod validate;
mod versions;
mod warnings;

pub use human_duration::human_duration;
pub use pod_strategy::qos_class;
pub use registry::{StorageKey, storage_key, strategy};
pub use strategy::{
    Column, DefaultStrategy, ScalePaths, Strategy, StrategyContext, copy_field, remove_status,
};
pub use validate::access_review;
