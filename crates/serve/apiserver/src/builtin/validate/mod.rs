//! Validation of built-in kinds, one file per family. Every function adds what is wrong to a list.

mod access;
mod batch;
mod certificates;
mod claims;
mod config;
mod container;
mod ephemeral;
mod event;
mod flow;
mod network;
mod pod;
mod policy;
mod registration;
mod resize;
mod reviews;
mod scaling;
mod scheduling;
mod service;
mod status;
mod storage;
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
pub(super) use container::duplicate_environment;
pub(super) use ephemeral::ephemeral_containers;
pub(super) use event::{event_core, event_events, event_events_update};
pub(super) use flow::{flow_schema, priority_level, runtime_class, runtime_class_update};
pub(super) use network::{
    endpoint_slice, endpoint_slice_update, endpoints, ingress, ingress_class, ingress_class_update,
    ingress_create, network_policy,
};
pub(super) use pod::{pod, pod_update};
pub(super) use policy::validating_policy;
pub(super) use registration::{api_service, mutating_webhooks, policy_binding, validating_webhooks};
pub(super) use resize::pod_resize;
pub(crate) use reviews::access_review;
pub(super) use scaling::{autoscaler, disruption_budget, lease, priority_class, priority_class_update};
pub(super) use service::{service, service_update};
pub(super) use status::{
    autoscaler_status, claim_status, daemon_set_status, deployment_status, disruption_budget_status,
    ingress_status, job_status, pod_status, replica_set_status, service_status, stateful_set_status,
};
pub(super) use storage::{
    attributes_class, attributes_class_update, claim, claim_update, csi_driver, csi_driver_update, csi_node,
    storage_capacity, storage_capacity_update, storage_class, storage_class_update,
    volume as persistent_volume, volume_attachment, volume_update as persistent_volume_update,
};
pub(super) use workload::{
    controller_revision, controller_revision_update, daemon_set, daemon_set_update, deployment,
    deployment_update, pod_template, replica_set, replica_set_update, replication_controller, stateful_set,
    stateful_set_update,
};
