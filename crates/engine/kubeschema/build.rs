//! Extracts the descriptions of Kubernetes' types from `k8s-openapi` and compresses them for
//! `src/descriptions.rs`.
//!
//! They are upstream's text, which is not kept in this repository.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use flate2::{Compression, write::DeflateEncoder};
use k8s_openapi::schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::Value;

/// Descriptions by type, then by field; that of the type itself has the empty name.
type Descriptions = BTreeMap<String, BTreeMap<String, String>>;

/// `visit!(generator, path::{Kind, Kind}, …)`: adds kinds and the types they use.
macro_rules! visit {
    ($generator:expr, $($($module:ident)::+::{$($kind:ident),+},)+) => {
        $({
            use k8s_openapi::$($module)::+ as module;
            $(add::<module::$kind>($generator);)+
        })+
    };
}

fn add<T: JsonSchema>(generator: &mut SchemaGenerator) {
    generator.subschema_for::<T>();
}

fn descriptions() -> Descriptions {
    let mut generator = SchemaSettings::draft07().into_generator();
    visit!(
        &mut generator,
        api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding, ValidatingWebhookConfiguration},
        api::apps::v1::{ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet},
        api::authentication::v1::{SelfSubjectReview, TokenRequest, TokenReview},
        api::authorization::v1::{LocalSubjectAccessReview, SelfSubjectAccessReview, SelfSubjectRulesReview, SubjectAccessReview},
        api::autoscaling::v1::{Scale, HorizontalPodAutoscaler},
        api::autoscaling::v2::{HorizontalPodAutoscaler},
        api::batch::v1::{CronJob, Job},
        api::certificates::v1::{CertificateSigningRequest},
        api::coordination::v1::{Lease},
        api::core::v1::{Binding, ComponentStatus, ConfigMap, Endpoints, Event, LimitRange, Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, PodTemplate, ReplicationController, ResourceQuota, Secret, Service, ServiceAccount},
        api::discovery::v1::{EndpointSlice},
        api::events::v1::{Event},
        api::flowcontrol::v1::{FlowSchema, PriorityLevelConfiguration},
        api::networking::v1::{IPAddress, Ingress, IngressClass, NetworkPolicy, ServiceCIDR},
        api::node::v1::{RuntimeClass},
        api::policy::v1::{Eviction, PodDisruptionBudget},
        api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding},
        api::resource::v1::{DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice},
        api::scheduling::v1::{PriorityClass},
        api::storage::v1::{CSIDriver, CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment, VolumeAttributesClass},
        apiextensions_apiserver::pkg::apis::apiextensions::v1::{CustomResourceDefinition},
        apimachinery::pkg::apis::meta::v1::{APIGroup, APIVersions, DeleteOptions, Status},
        kube_aggregator::pkg::apis::apiregistration::v1::{APIService},
    );
    let text = |schema: &Value| schema["description"].as_str().map(str::to_owned);
    let mut all = Descriptions::new();
    for (name, schema) in generator.take_definitions(false) {
        let fields = schema["properties"].as_object().into_iter().flatten();
        let named = fields.filter_map(|(field, schema)| Some((field.clone(), text(schema)?)));
        all.insert(name, named.chain(text(&schema).map(|own| (String::new(), own))).collect());
    }
    all
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let folder = std::env::var_os("OUT_DIR").expect("cargo names the folder for what is made");
    let file = std::fs::File::create(Path::new(&folder).join("descriptions.json.deflate"))
        .expect("a file in OUT_DIR");
    let mut packed = DeflateEncoder::new(file, Compression::best());
    serde_json::to_writer(&mut packed, &descriptions()).expect("names and texts are JSON");
    packed.finish().and_then(|mut file| file.flush()).expect("room for the descriptions");
}
