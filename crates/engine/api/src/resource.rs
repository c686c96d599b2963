//! What every custom resource has in common: its coordinates, its envelope and its metadata.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

/// Where a kind lives in the API. Crates with a Kubernetes client bridge this to their own trait.
pub trait Resource {
    /// API group.
    const GROUP: &'static str;
    /// Kind.
    const KIND: &'static str;
    /// Plural, as in the URL.
    const PLURAL: &'static str;
    /// Served versions: the stored one first, then older ones from new to old.
    const VERSIONS: &'static [&'static str];
    /// Namespaced or not.
    const SCOPE: Scope;

    /// The version objects are stored in.
    #[must_use]
    fn version() -> &'static str {
        Self::VERSIONS[0]
    }

    /// `group/version` of the stored version.
    #[must_use]
    fn api_version() -> String {
        format!("{}/{}", Self::GROUP, Self::version())
    }
}

/// Whether objects live in namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// In a namespace.
    Namespaced,
    /// One for the whole cluster.
    Cluster,
}

/// A custom resource: metadata, spec and status.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Object<S, T = NoStatus> {
    /// API group and version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Name, labels and the like.
    pub metadata: ObjectMeta,
    /// Desired state.
    pub spec: S,
    /// Observed state.
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    pub status: Option<T>,
}

impl<S, T> Object<S, T>
where
    Object<S, T>: Resource,
{
    /// A new object in the stored version, without status.
    pub fn new(metadata: ObjectMeta, spec: S) -> Self {
        Object {
            api_version: <Self as Resource>::api_version(),
            kind: <Self as Resource>::KIND.to_owned(),
            metadata,
            spec,
            status: None,
        }
    }
}

/// The fields of `metadata` that controllers use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectMeta {
    /// Name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Namespace; absent for cluster-scoped objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,
    /// Annotations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<String, String>>,
    /// Finalizers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finalizers: Option<Vec<String>>,
    /// Owners.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner_references: Option<Vec<OwnerReference>>,
    /// Incremented on changes of the spec.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// Changes with every write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<String>,
    /// Unique over time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// Creation time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creation_timestamp: Option<Timestamp>,
    /// Time of the deletion request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<Timestamp>,
}

/// An owner of an object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnerReference {
    /// API group and version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Name, in the same namespace.
    pub name: String,
    /// Identity.
    pub uid: String,
    /// Whether this owner manages the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<bool>,
    /// Whether the owner waits for the object when it is deleted in the foreground.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_owner_deletion: Option<bool>,
}

/// Status of kinds whose schema has no status.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NoStatus {}

/// A status without fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EmptyStatus {}

/// The schema of a status, if there is one.
pub trait StatusSchema {
    /// The schema.
    fn status_schema(generator: &mut SchemaGenerator) -> Option<Schema>;
}

impl StatusSchema for NoStatus {
    fn status_schema(_: &mut SchemaGenerator) -> Option<Schema> {
        None
    }
}

impl<T: JsonSchema> StatusSchema for T {
    fn status_schema(generator: &mut SchemaGenerator) -> Option<Schema> {
        Some(T::json_schema(generator))
    }
}

/// The schemas of spec and status.
pub trait ObjectSchema {
    /// Schema of the spec.
    fn spec_schema(generator: &mut SchemaGenerator) -> Schema;
    /// Schema of the status, if there is one.
    fn status_schema(generator: &mut SchemaGenerator) -> Option<Schema>;
}

impl<S: JsonSchema, T: StatusSchema> ObjectSchema for Object<S, T> {
    fn spec_schema(generator: &mut SchemaGenerator) -> Schema {
        S::json_schema(generator)
    }

    fn status_schema(generator: &mut SchemaGenerator) -> Option<Schema> {
        T::status_schema(generator)
    }
}
