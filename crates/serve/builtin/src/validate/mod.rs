//! Validation of built-in kinds, one file per family. Every function appends to a list of errors.

mod access;
mod batch;
mod certificates;
pub(crate) mod common_rules;
mod config;
mod container;
mod environment;
mod ephemeral_containers;
mod event;
mod flow_control;
pub(crate) mod ip;
mod network;
mod pod;
mod policy;
mod registration;
mod resize;
mod resource_claims;
pub(crate) mod resources;
mod reviews;
mod scaling;
mod scheduling;
mod service;
mod status;
mod storage;
mod storage_class;
mod volume;
mod workload;

pub(super) use access::{
    cluster_role, cluster_role_binding, cluster_role_binding_update, role, role_binding, role_binding_update,
};
pub(super) use batch::{cron_job, cron_job_update, job, job_update};
pub(super) use certificates::{signing_request, signing_request_approval, signing_request_status};
pub(super) use config::{
    config_map, config_map_update, limit_range, namespace, namespace_status, node, resource_quota,
    resource_quota_update, secret, secret_update,
};
pub(super) use environment::duplicate_environment;
pub(super) use ephemeral_containers::ephemeral_containers;
pub(super) use event::{event_core, event_events, event_events_update};
pub(super) use flow_control::{flow_schema, priority_level, runtime_class, runtime_class_update};
pub(super) use network::{
    endpoint_slice, endpoint_slice_update, endpoints, ingress, ingress_class, ingress_class_update,
    ingress_create, network_policy,
};
pub(super) use pod::{pod, pod_update};
pub(super) use policy::validating_policy;
pub(super) use registration::{api_service, mutating_webhooks, policy_binding, validating_webhooks};
pub(super) use resize::pod_resize;
pub use reviews::access_review;
pub(super) use scaling::{autoscaler, disruption_budget, lease, priority_class, priority_class_update};
pub(super) use service::{service, service_update};
pub(super) use status::{
    autoscaler_status, claim_status, daemon_set_status, deployment_status, disruption_budget_status,
    ingress_status, job_status, pod_status, replica_set_status, service_status, stateful_set_status,
};
pub(super) use storage::{
    claim, claim_update, volume as persistent_volume, volume_update as persistent_volume_update,
};
pub(super) use storage_class::{
    attributes_class, attributes_class_update, csi_driver, csi_driver_update, csi_node, storage_capacity,
    storage_capacity_update, storage_class, storage_class_update, volume_attachment,
};
pub(super) use workload::{
    controller_revision, controller_revision_update, daemon_set, daemon_set_update, deployment,
    deployment_update, pod_template, replica_set, replica_set_update, replication_controller, stateful_set,
    stateful_set_update,
};
