//! Volumes of a pod.

use std::collections::BTreeMap;

use fl_types::{LabelSelector, Quantity};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::core::persistent_volume_claim::EphemeralVolume;
use crate::core::projected_volume::ProjectedVolume;
use crate::core::reference::CoreObjectReference;

/// A mount of a volume.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VolumeMount {
    /// Where in the container.
    pub mount_path: String,
    /// How mounts spread between host and container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mount_propagation: Option<String>,
    /// The name.
    pub name: String,
    /// Mount without the right to write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// Whether the mount is read-only all the way down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recursive_read_only: Option<String>,
    /// Path inside the volume.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sub_path: Option<String>,
    /// Path inside the volume, with variables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sub_path_expr: Option<String>,
}

/// A volume of a pod. Exactly one of its kinds is set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Volume {
    /// An AWS EBS disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aws_elastic_block_store: Option<AwsElasticBlockStoreVolume>,
    /// An Azure data disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub azure_disk: Option<AzureDiskVolume>,
    /// An Azure file share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub azure_file: Option<AzureFileVolume>,
    /// A CephFS mount.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cephfs: Option<CephfsVolume>,
    /// An OpenStack disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cinder: Option<CinderVolume>,
    /// Files from a ConfigMap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_map: Option<ConfigMapVolume>,
    /// A volume of a CSI driver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub csi: Option<CsiVolume>,
    /// Files with facts about the pod.
    #[serde(rename = "downwardAPI", skip_serializing_if = "Option::is_none")]
    pub downward_api: Option<DownwardApiVolume>,
    /// An empty directory that lives as long as the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub empty_dir: Option<EmptyDirVolume>,
    /// A claim that lives as long as the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ephemeral: Option<EphemeralVolume>,
    /// A fibre channel disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fc: Option<FcVolume>,
    /// A volume of a FlexVolume plugin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flex_volume: Option<FlexVolume>,
    /// A Flocker volume.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flocker: Option<FlockerVolume>,
    /// A Google disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gce_persistent_disk: Option<GcePersistentDiskVolume>,
    /// A Git checkout. No longer supported by Kubernetes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git_repo: Option<GitRepoVolume>,
    /// A GlusterFS mount.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub glusterfs: Option<GlusterfsVolume>,
    /// A path on the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_path: Option<HostPathVolume>,
    /// Files from an OCI image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageVolume>,
    /// An iSCSI disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iscsi: Option<IscsiVolume>,
    /// The name.
    pub name: String,
    /// An NFS export.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nfs: Option<NfsVolume>,
    /// A claim in the same namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persistent_volume_claim: Option<PersistentClaimVolume>,
    /// A Photon disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub photon_persistent_disk: Option<PhotonPersistentDiskVolume>,
    /// A Portworx volume.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub portworx_volume: Option<PortworxVolume>,
    /// Files from several places.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub projected: Option<ProjectedVolume>,
    /// A Quobyte volume.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quobyte: Option<QuobyteVolume>,
    /// A Ceph block device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rbd: Option<RbdVolume>,
    /// A ScaleIO volume.
    #[serde(rename = "scaleIO", skip_serializing_if = "Option::is_none")]
    pub scale_io: Option<ScaleIoVolume>,
    /// Files from a Secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<SecretVolume>,
    /// A StorageOS volume.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storageos: Option<StorageosVolume>,
    /// A vSphere disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vsphere_volume: Option<VsphereVolume>,
}

/// An AWS EBS disk.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AwsElasticBlockStoreVolume {
    /// Type of the file system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fs_type: Option<String>,
    /// Partition of the disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition: Option<i32>,
    /// Mount without the right to write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// ID of the volume.
    #[serde(rename = "volumeID")]
    pub volume_id: String,
}

/// An Azure data disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AzureDiskVolume {
    /// Host caching: None, ReadOnly or ReadWrite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caching_mode: Option<String>,
    /// Name of the disk.
    pub disk_name: String,
    /// Address of the disk.
    #[serde(rename = "diskURI")]
    pub disk_uri: String,
    /// Type of the file system.
    #[serde(default = "default_fs_type")]
    pub fs_type: String,
    /// Shared, Dedicated or Managed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Mount without the right to write.
    #[serde(default)]
    pub read_only: bool,
}

/// An Azure file share.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AzureFileVolume {
    /// Mount without the right to write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// Name of the Secret.
    pub secret_name: String,
    /// Name of the share.
    pub share_name: String,
}

/// A CephFS mount.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CephfsVolume {
    /// Addresses of the monitors.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub monitors: Vec<String>,
    /// The path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Mount without the right to write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// Path of the key file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_file: Option<String>,
    /// Secret with the credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<CoreObjectReference>,
    /// User to act as.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
}

/// An OpenStack disk.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CinderVolume {
    /// Type of the file system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fs_type: Option<String>,
    /// Mount without the right to write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// Secret with the credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<CoreObjectReference>,
    /// ID of the volume.
    #[serde(rename = "volumeID")]
    pub volume_id: String,
}

/// Files from a ConfigMap.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct ConfigMapVolume {
    /// File mode where an item has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_mode: Option<i32>,
    /// Which keys become which files; all when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub items: Option<Vec<KeyToPath>>,
    /// The name.
    #[serde(default)]
    pub name: String,
    /// Do without when it is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optional: Option<bool>,
}

/// A key that becomes a file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeyToPath {
    /// The key.
    pub key: String,
    /// File mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<i32>,
    /// The path.
    pub path: String,
}

/// A volume of a CSI driver.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CsiVolume {
    /// Name of the driver.
    pub driver: String,
    /// Type of the file system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fs_type: Option<String>,
    /// Secret for the driver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_publish_secret_ref: Option<CoreObjectReference>,
    /// Mount without the right to write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// Attributes for the driver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_attributes: Option<BTreeMap<String, String>>,
}

/// Files with facts about the pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DownwardApiVolume {
    /// File mode where an item has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_mode: Option<i32>,
    /// Which keys become which files; all when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub items: Option<Vec<DownwardApiFile>>,
}

/// A file with a fact about the pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DownwardApiFile {
    /// A field of the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field_ref: Option<FieldRef>,
    /// File mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<i32>,
    /// The path.
    pub path: String,
    /// A resource of a container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_field_ref: Option<ResourceFieldRef>,
}

/// A field of the pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct FieldRef {
    /// API group and version of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Path of the field.
    pub field_path: String,
}

/// A resource of a container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct ResourceFieldRef {
    /// The container that is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container_name: Option<String>,
    /// Unit of the output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub divisor: Option<Quantity>,
    /// The resource.
    pub resource: String,
}

/// An empty directory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EmptyDirVolume {
    /// Where the directory lives: disk, or `Memory`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub medium: Option<String>,
    /// Upper limit of the size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size_limit: Option<Quantity>,
}

/// A fibre channel disk.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FcVolume {
    /// Type of the file system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fs_type: Option<String>,
    /// The logical unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lun: Option<i32>,
    /// Mount without the right to write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// World-wide names of the target.
    #[serde(rename = "targetWWNs", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub target_ww_ns: Option<Vec<String>>,
    /// World-wide identifiers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub wwids: Option<Vec<String>>,
}

/// A volume of a FlexVolume plugin.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FlexVolume {
    /// Name of the driver.
    pub driver: String,
    /// Type of the file system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fs_type: Option<String>,
    /// Options of the plugin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub options: Option<BTreeMap<String, String>>,
    /// Mount without the right to write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// Secret with the credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<CoreObjectReference>,
}

/// A Flocker volume.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FlockerVolume {
    /// Name of the dataset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dataset_name: Option<String>,
    /// ID of the dataset.
    #[serde(rename = "datasetUUID", skip_serializing_if = "Option::is_none")]
    pub dataset_uuid: Option<String>,
}

/// A Google disk.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GcePersistentDiskVolume {
    /// Type of the file system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fs_type: Option<String>,
    /// Partition of the disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition: Option<i32>,
    /// Name of the disk.
    pub pd_name: String,
    /// Mount without the right to write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
}

/// A Git checkout.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitRepoVolume {
    /// Target directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// The repository.
    pub repository: String,
    /// The revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
}

/// A GlusterFS mount.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GlusterfsVolume {
    /// Name of the Endpoints object.
    pub endpoints: String,
    /// The path.
    pub path: String,
    /// Mount without the right to write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
}

/// A path on the node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostPathVolume {
    /// The path.
    pub path: String,
    /// What must be at the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#type: Option<String>,
}

/// Files from an OCI image.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageVolume {
    /// When the image is pulled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pull_policy: Option<String>,
    /// Reference of the image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
}

/// An iSCSI disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IscsiVolume {
    /// Whether discovery uses CHAP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chap_auth_discovery: Option<bool>,
    /// Whether sessions use CHAP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chap_auth_session: Option<bool>,
    /// Type of the file system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fs_type: Option<String>,
    /// Name of the initiator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initiator_name: Option<String>,
    /// Name of the target.
    pub iqn: String,
    /// Name of the interface.
    #[serde(default = "default_iscsi_interface")]
    pub iscsi_interface: String,
    /// The logical unit.
    pub lun: i32,
    /// Further portals.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub portals: Option<Vec<String>>,
    /// Mount without the right to write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// Secret with the credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<CoreObjectReference>,
    /// Address of the portal.
    pub target_portal: String,
}

/// An NFS export.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NfsVolume {
    /// The path.
    pub path: String,
    /// Mount without the right to write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// Host name of the server.
    pub server: String,
}

/// A claim in the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PersistentClaimVolume {
    /// Name of the claim.
    pub claim_name: String,
    /// Mount without the right to write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
}

/// A Photon disk.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PhotonPersistentDiskVolume {
    /// Type of the file system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fs_type: Option<String>,
    /// ID of the disk.
    #[serde(rename = "pdID")]
    pub pd_id: String,
}

/// A Portworx volume.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PortworxVolume {
    /// Type of the file system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fs_type: Option<String>,
    /// Mount without the right to write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// ID of the volume.
    #[serde(rename = "volumeID")]
    pub volume_id: String,
}

/// A Quobyte volume.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuobyteVolume {
    /// Group to map access to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Mount without the right to write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// The registry.
    pub registry: String,
    /// Owner of the volume.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// User to act as.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Name of the volume.
    pub volume: String,
}

/// A Ceph block device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RbdVolume {
    /// Type of the file system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fs_type: Option<String>,
    /// Name of the image.
    pub image: String,
    /// Path of the key ring.
    #[serde(default = "default_keyring")]
    pub keyring: String,
    /// Addresses of the monitors.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub monitors: Vec<String>,
    /// Name of the pool.
    #[serde(default = "default_pool")]
    pub pool: String,
    /// Mount without the right to write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// Secret with the credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<CoreObjectReference>,
    /// User to act as.
    #[serde(default = "default_user")]
    pub user: String,
}

/// A ScaleIO volume.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScaleIoVolume {
    /// Type of the file system.
    #[serde(default = "default_scale_io_volume_fs_type")]
    pub fs_type: String,
    /// Address of the gateway.
    pub gateway: String,
    /// The protection domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protection_domain: Option<String>,
    /// Mount without the right to write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// Secret with the credentials.
    pub secret_ref: CoreObjectReference,
    /// Talk over TLS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssl_enabled: Option<bool>,
    /// How the storage is provisioned.
    #[serde(default = "default_storage_mode")]
    pub storage_mode: String,
    /// The storage pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_pool: Option<String>,
    /// Name of the system.
    pub system: String,
    /// Name of the volume.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_name: Option<String>,
}

/// Files from a Secret.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretVolume {
    /// File mode where an item has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_mode: Option<i32>,
    /// Which keys become which files; all when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub items: Option<Vec<KeyToPath>>,
    /// Do without when it is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optional: Option<bool>,
    /// Name of the Secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_name: Option<String>,
}

/// A StorageOS volume.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StorageosVolume {
    /// Type of the file system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fs_type: Option<String>,
    /// Mount without the right to write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// Secret with the credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<CoreObjectReference>,
    /// Name of the volume.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_name: Option<String>,
    /// Namespace of the volume.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_namespace: Option<String>,
}

/// A vSphere disk.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VsphereVolume {
    /// Type of the file system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fs_type: Option<String>,
    /// ID of the storage policy.
    #[serde(rename = "storagePolicyID", skip_serializing_if = "Option::is_none")]
    pub storage_policy_id: Option<String>,
    /// Name of the storage policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_policy_name: Option<String>,
    /// Path of the volume.
    pub volume_path: String,
}

/// How pods are spread over domains.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TopologySpreadConstraint {
    /// Selects by labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
    /// Label keys whose values pick the pods that are counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub match_label_keys: Option<Vec<String>>,
    /// How uneven the spread may be.
    pub max_skew: i32,
    /// At least this many domains.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_domains: Option<i32>,
    /// Whether node affinity counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_affinity_policy: Option<String>,
    /// Whether node taints count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_taints_policy: Option<String>,
    /// Node label that makes a domain.
    pub topology_key: String,
    /// What to do when the spread cannot be kept.
    pub when_unsatisfiable: String,
}

fn default_fs_type() -> String {
    "ext4".to_owned()
}

fn default_iscsi_interface() -> String {
    "default".to_owned()
}

fn default_keyring() -> String {
    "/etc/ceph/keyring".to_owned()
}

fn default_pool() -> String {
    "rbd".to_owned()
}

fn default_user() -> String {
    "admin".to_owned()
}

fn default_scale_io_volume_fs_type() -> String {
    "xfs".to_owned()
}

fn default_storage_mode() -> String {
    "ThinProvisioned".to_owned()
}
