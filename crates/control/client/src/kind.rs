//! Kinds and keys of objects.

use std::fmt;
use std::sync::Arc;

use fl_api::{Resource, Scope};
use fl_types::split_api_version;

use crate::path;

/// The coordinates of a kind in the API. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Kind(Arc<Coordinates>);

#[derive(Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Coordinates {
    group: String,
    version: String,
    kind: String,
    plural: String,
    namespaced: bool,
}

impl Kind {
    pub fn new(group: &str, version: &str, kind: &str, plural: &str, namespaced: bool) -> Self {
        Kind(Arc::new(Coordinates {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
            namespaced,
        }))
    }

    /// The kind of a type, in the version it is stored in.
    pub fn of<R: Resource>() -> Self {
        Kind::new(R::GROUP, R::version(), R::KIND, R::PLURAL, R::SCOPE == Scope::Namespaced)
    }

    pub fn secret() -> Self {
        Kind::new("", "v1", "Secret", "secrets", true)
    }

    pub fn config_map() -> Self {
        Kind::new("", "v1", "ConfigMap", "configmaps", true)
    }

    pub fn pod() -> Self {
        Kind::new("", "v1", "Pod", "pods", true)
    }

    pub fn service_account() -> Self {
        Kind::new("", "v1", "ServiceAccount", "serviceaccounts", true)
    }

    pub fn namespace() -> Self {
        Kind::new("", "v1", "Namespace", "namespaces", false)
    }

    pub fn event() -> Self {
        Kind::new("", "v1", "Event", "events", true)
    }

    pub fn lease() -> Self {
        Kind::new("coordination.k8s.io", "v1", "Lease", "leases", true)
    }

    pub fn group(&self) -> &str {
        &self.0.group
    }

    pub fn version(&self) -> &str {
        &self.0.version
    }

    pub fn kind(&self) -> &str {
        &self.0.kind
    }

    pub fn plural(&self) -> &str {
        &self.0.plural
    }

    pub fn namespaced(&self) -> bool {
        self.0.namespaced
    }

    pub fn api_version(&self) -> String {
        if self.0.group.is_empty() {
            self.0.version.clone()
        } else {
            format!("{}/{}", self.0.group, self.0.version)
        }
    }

    /// `plural.group`, or `plural` in the core group, as the API server writes it in messages.
    pub fn resource_name(&self) -> String {
        if self.0.group.is_empty() {
            self.0.plural.clone()
        } else {
            format!("{}.{}", self.0.plural, self.0.group)
        }
    }

    /// Path of the collection, or of the kind in all namespaces.
    pub fn collection_path(&self, namespace: Option<&str>) -> String {
        let c = &self.0;
        path::collection(&c.group, &c.version, namespace.filter(|_| c.namespaced), &c.plural)
    }

    /// Path of one object.
    pub fn object_path(&self, namespace: Option<&str>, name: &str) -> String {
        let mut path = self.collection_path(namespace);
        path.push('/');
        path::push_segment(&mut path, name);
        path
    }

    /// The key of an object of this kind.
    pub fn key(&self, namespace: &str, name: &str) -> Key {
        Key::new(self.group(), self.kind(), namespace, name)
    }
}

/// An object by group, kind, namespace and name. Without a version: all versions are one object.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(Arc<KeyParts>);

#[derive(PartialEq, Eq, Hash, PartialOrd, Ord)]
struct KeyParts {
    namespace: String,
    group: String,
    kind: String,
    name: String,
}

impl Key {
    pub fn new(group: &str, kind: &str, namespace: &str, name: &str) -> Self {
        Key(Arc::new(KeyParts {
            namespace: namespace.to_owned(),
            group: group.to_owned(),
            kind: kind.to_owned(),
            name: name.to_owned(),
        }))
    }

    /// From the `apiVersion` of a reference.
    pub fn from_api_version(api_version: &str, kind: &str, namespace: &str, name: &str) -> Self {
        Key::new(split_api_version(api_version).0, kind, namespace, name)
    }

    pub fn group(&self) -> &str {
        &self.0.group
    }

    pub fn kind(&self) -> &str {
        &self.0.kind
    }

    pub fn namespace(&self) -> &str {
        &self.0.namespace
    }

    pub fn name(&self) -> &str {
        &self.0.name
    }
}

impl fmt::Display for Key {
    /// `group/kind/namespace/name`, the form Open Flux uses in its messages.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}/{}", self.group(), self.kind(), self.namespace(), self.name())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        let git = Kind::of::<fl_api::source::GitRepository>();
        assert_eq!(
            git.object_path(Some("a"), "b"),
            "/apis/source.toolkit.fluxcd.io/v1/namespaces/a/gitrepositories/b"
        );
        assert_eq!(git.collection_path(None), "/apis/source.toolkit.fluxcd.io/v1/gitrepositories");
        assert_eq!(Kind::secret().object_path(Some("a"), "../x"), "/api/v1/namespaces/a/secrets/..%2Fx");
        assert_eq!(Kind::secret().object_path(Some(".."), "x"), "/api/v1/namespaces/%2E%2E/secrets/x");
        assert_eq!(git.resource_name(), "gitrepositories.source.toolkit.fluxcd.io");
    }
}
