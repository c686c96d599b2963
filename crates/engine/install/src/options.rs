//! What to install and how.

use std::collections::BTreeSet;

use fl_types::{NameError, check_dns1123_label, check_dns1123_subdomain, check_qualified_name};

use crate::component::Component;
use crate::error::Error;

/// What to install and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// The components, without doubles.
    pub components: BTreeSet<Component>,
    /// The namespace of everything that has one.
    pub namespace: String,
    /// The version of Fluorite, `v1.2.3`; labels and image tag.
    pub version: String,
    /// Registry and path of the image, without its name.
    pub registry: String,
    /// Secret with credentials for the registry.
    pub image_pull_secret: Option<String>,
    /// One Deployment or several.
    pub layout: Layout,
    /// Whether to limit who may talk to the pods.
    pub network_policy: NetworkPolicy,
    /// Which namespaces are watched.
    pub watch: Watch,
    /// How much is logged.
    pub log_level: LogLevel,
    /// The cluster's internal domain.
    pub cluster_domain: String,
    /// Taints the pods tolerate, by key.
    pub toleration_keys: Vec<String>,
}

/// How many Deployments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// One process runs all components.
    Single,
    /// Each component has its own Deployment, named like Flux's.
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

/// Which namespaces are watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watch {
    /// All of them.
    AllNamespaces,
    /// Only the one it runs in.
    OwnNamespace,
}

/// How much is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    /// Everything.
    Debug,
    /// What changed.
    Info,
    /// What failed.
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

    /// The components whose controllers this release has.
    pub fn running(&self) -> impl Iterator<Item = Component> {
        self.components.iter().copied().filter(|c| c.is_available())
    }

    /// The components that are chosen and have no controller in this release.
    pub fn absent(&self) -> impl Iterator<Item = Component> {
        self.components.iter().copied().filter(|c| !c.is_available())
    }

    pub(crate) fn runs(&self, component: Component) -> bool {
        self.running().any(|c| c == component)
    }

    pub(crate) fn has(&self, component: Component) -> bool {
        self.components.contains(&component)
    }

    /// Refuses what the API server would refuse later.
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
