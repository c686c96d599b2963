//! Names of objects.

use std::fmt;

use fl_types::split_api_version;
use serde::Deserialize;
use serde_json::Value;

use crate::Error;

const RBAC_GROUP: &str = "rbac.authorization.k8s.io";
const RBAC_KINDS: [&str; 4] = ["Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"];

/// An object by group, kind, namespace and name: what an inventory remembers.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId {
    /// The API group; empty for the core group.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The namespace; empty for objects of the whole cluster.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl ObjectId {
    /// Reads `namespace_name_group_kind`. `__` in the name stands for a colon.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (namespace, rest) = text.split_once('_')?;
        let (rest, kind) = rest.rsplit_once('_')?;
        let (name, group) = rest.rsplit_once('_')?;
        Some(ObjectId {
            group: group.to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.replace("__", ":"),
        })
    }

    /// `namespace_name_group_kind`, colons in RBAC names written as `__`.
    #[must_use]
    pub fn inventory_id(&self) -> String {
        let rbac = self.group == RBAC_GROUP && RBAC_KINDS.contains(&self.kind.as_str());
        let name = if rbac { self.name.replace(':', "__") } else { self.name.clone() };
        format!("{}_{name}_{}_{}", self.namespace, self.group, self.kind)
    }
}

impl fmt::Display for ObjectId {
    /// `Kind/namespace/name`, without the namespace for objects of the whole cluster.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            write!(f, "{}/{}", self.kind, self.name)
        } else {
            write!(f, "{}/{}/{}", self.kind, self.namespace, self.name)
        }
    }
}

/// An object and the version it is spoken of in.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectRef {
    /// Which object.
    pub id: ObjectId,
    /// `v1`; without the group.
    pub version: String,
}

impl ObjectRef {
    /// Names an object.
    #[must_use]
    pub fn new(api_version: &str, kind: &str, namespace: &str, name: &str) -> Self {
        let (group, version) = split_api_version(api_version);
        ObjectRef {
            id: ObjectId {
                group: group.to_owned(),
                kind: kind.to_owned(),
                namespace: namespace.to_owned(),
                name: name.to_owned(),
            },
            version: version.to_owned(),
        }
    }

    /// Names an object by its own fields.
    ///
    /// # Errors
    /// When `apiVersion`, `kind` or `metadata.name` is missing.
    pub fn of(object: &Value) -> Result<Self, Error> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).filter(|t| !t.is_empty());
        let api_version = text("/apiVersion").ok_or(Error::Incomplete { missing: "apiVersion" })?;
        let kind = text("/kind").ok_or(Error::Incomplete { missing: "kind" })?;
        let name = text("/metadata/name").ok_or(Error::Incomplete { missing: "metadata.name" })?;
        Ok(Self::new(api_version, kind, text("/metadata/namespace").unwrap_or_default(), name))
    }

    /// `group/version`, or `version` for the core group.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.id.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.id.group, self.version)
        }
    }
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.id.fmt(f)
    }
}

/// What is read of an object that may not be wanted at all.
#[derive(Deserialize)]
pub(crate) struct PartialObject {
    pub(crate) metadata: PartialMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PartialMetadata {
    #[serde(default)]
    pub(crate) name: String,
    /// Empty in what would only be created.
    #[serde(default)]
    pub(crate) resource_version: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inventory_ids() {
        let cases = [
            (ObjectRef::new("apps/v1", "Deployment", "podinfo", "web"), "podinfo_web_apps_Deployment"),
            (ObjectRef::new("v1", "Namespace", "", "apps"), "_apps__Namespace"),
            (ObjectRef::new("v1", "ConfigMap", "apps", "cfg"), "apps_cfg__ConfigMap"),
            (
                ObjectRef::new(
                    "apiextensions.k8s.io/v1",
                    "CustomResourceDefinition",
                    "",
                    "things.example.com",
                ),
                "_things.example.com_apiextensions.k8s.io_CustomResourceDefinition",
            ),
            (
                ObjectRef::new("rbac.authorization.k8s.io/v1", "ClusterRole", "", "system:x"),
                "_system__x_rbac.authorization.k8s.io_ClusterRole",
            ),
        ];
        for (object, id) in cases {
            assert_eq!(object.id.inventory_id(), id);
            assert_eq!(ObjectId::parse(id), Some(object.id));
        }
        assert_eq!(ObjectId::parse("nothing"), None);
        assert_eq!(ObjectId::parse("a_b"), None);
    }

    #[test]
    fn subjects() {
        assert_eq!(ObjectRef::new("v1", "Namespace", "", "apps").to_string(), "Namespace/apps");
        assert_eq!(ObjectRef::new("v1", "Secret", "apps", "s").to_string(), "Secret/apps/s");
    }
}
