//! The identity that requests are made with.

/// The name of a service account; never empty.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServiceAccountName(String);

impl ServiceAccountName {
    /// `None` for an empty name.
    pub fn new(name: &str) -> Option<Self> {
        (!name.is_empty()).then(|| ServiceAccountName(name.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The identity that requests are made with.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Identity {
    /// That of the connection: the engine's own, or that of the kubeconfig.
    Engine,
    /// `system:serviceaccount:<namespace>:<name>`
    ServiceAccount { namespace: String, name: ServiceAccountName },
}

impl Identity {
    /// The service account that an object names, else the default one; the engine only if there is neither.
    pub fn of_object(namespace: &str, named: Option<&str>, default: &str) -> Self {
        let name = named.and_then(ServiceAccountName::new).or_else(|| ServiceAccountName::new(default));
        match name {
            Some(name) => Identity::ServiceAccount { namespace: namespace.to_owned(), name },
            None => Identity::Engine,
        }
    }

    /// The user to impersonate; none for the engine itself.
    pub fn user(&self) -> Option<String> {
        match self {
            Identity::Engine => None,
            Identity::ServiceAccount { namespace, name } => {
                Some(format!("system:serviceaccount:{namespace}:{}", name.as_str()))
            }
        }
    }

    /// The service account; none for the engine itself.
    pub fn account(&self) -> Option<&str> {
        match self {
            Identity::Engine => None,
            Identity::ServiceAccount { name, .. } => Some(name.as_str()),
        }
    }
}
