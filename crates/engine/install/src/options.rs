//! Options of an installation.

use std::collections::BTreeSet;

use fl_types::{NameError, check_dns1123_label, check_dns1123_subdomain, check_qualified_name};

use crate::component::Component;
use crate::error::Error;

/// Options of an installation.
#[derive(Clone, Debug)]
pub struct Options {
    /// The components.
    pub components: BTreeSet<Component>,
    /// Namespace of the installation.
    pub namespace: String,
    /// Version of Fluorite, `v1.2.3`, for labels and image tag.
    pub version: String,
    /// Registry and path of the image, without its name.
    pub registry: String,
    /// Secret with credentials for the registry.
    pub image_pull_secret: Option<String>,
    /// One Deployment or several.
    pub layout: Layout,
    /// Whether to install network policies.
    pub network_policy: NetworkPolicy,
    /// Watched namespaces.
    pub watch: Watch,
    /// Log level.
    pub log_level: LogLevel,
    /// The cluster's internal domain.
    pub cluster_domain: String,
    /// Keys of tolerated taints.
    pub toleration_keys: Vec<String>,
}

/// Number of Deployments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// One process runs all components.
    Single,
    /// Each component has its own Deployment, named as in Flux.
    Split,
}

/// Whether to install network policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkPolicy {
    /// Yes.
    Install,
    /// No.
    Omit,
}

/// Watched namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watch {
    /// All namespaces.
    AllNamespaces,
    /// Only the namespace of the installation.
    OwnNamespace,
}

/// Log level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    /// Debug messages and above.
    Debug,
    /// Informational messages and above.
    Info,
    /// Errors only.
    Error,
}

impl LogLevel {
    pub(crate) fn name(self) -> &'static str {
        match self {
            LogLevel::Debug => "debug",
            LogLevel::Info => "info",
            LogLevel::Error => "error",
        }
    }
}

impl Options {
    /// Flux's defaults for a version of Fluorite.
    pub fn new(version: impl Into<String>) -> Self {
        Options {
            components: BTreeSet::from(Component::DEFAULT),
            namespace: "flux-system".to_owned(),
            version: version.into(),
            registry: "ghcr.io/fluorite-gitops".to_owned(),
            image_pull_secret: None,
            layout: Layout::Single,
            network_policy: NetworkPolicy::Install,
            watch: Watch::AllNamespaces,
            log_level: LogLevel::Info,
            cluster_domain: "cluster.local".to_owned(),
            toleration_keys: Vec::new(),
        }
    }

    /// The selected components whose controllers this release contains.
    pub fn running(&self) -> impl Iterator<Item = Component> {
        self.components.iter().copied().filter(|c| c.is_available())
    }

    /// The selected components without a controller in this release.
    pub fn absent(&self) -> impl Iterator<Item = Component> {
        self.components.iter().copied().filter(|c| !c.is_available())
    }

    pub(crate) fn runs(&self, component: Component) -> bool {
        self.running().any(|c| c == component)
    }

    pub(crate) fn has(&self, component: Component) -> bool {
        self.components.contains(&component)
    }

    /// Rejects values that the API server would reject later.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.components.is_empty() {
            return Err(Error::NoComponents);
        }
        if self.running().next().is_none() {
            let names = self.components.iter().map(|c| c.name()).collect::<Vec<_>>().join(", ");
            return Err(Error::NothingRuns(names));
        }
        let invalid = |field: &'static str, value: &str| {
            let value = value.to_owned();
            move |source: NameError| Error::Invalid { field, value, source }
        };
        check_dns1123_label(&self.namespace).map_err(invalid("namespace", &self.namespace))?;
        check_dns1123_subdomain(&self.cluster_domain)
            .map_err(invalid("cluster domain", &self.cluster_domain))?;
        if let Some(secret) = &self.image_pull_secret {
            check_dns1123_subdomain(secret).map_err(invalid("image pull secret", secret))?;
        }
        for key in &self.toleration_keys {
            check_qualified_name(key).map_err(invalid("toleration key", key))?;
        }
        let in_image_name = |c: char| c.is_ascii_alphanumeric() || "./:_-".contains(c);
        if self.registry.is_empty()
            || self.registry.contains("://")
            || self.registry.ends_with('/')
            || !self.registry.chars().all(in_image_name)
        {
            return Err(Error::Registry(self.registry.clone()));
        }
        Ok(())
    }
}
