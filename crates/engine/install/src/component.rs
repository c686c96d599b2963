//! Installable components.

use std::fmt;
use std::str::FromStr;

use fl_api::CrdSet;

use crate::error::Error;

/// A controller with its name in Flux, or one of Fluorite's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Component {
    /// Fetches sources and stores artifacts.
    Source,
    /// Builds and applies Kustomizations.
    Kustomize,
    /// Releases Helm charts.
    Helm,
    /// Sends events and receives webhooks.
    Notification,
    /// Scans image tags and selects images.
    ImageReflector,
    /// Commits selected images to Git.
    ImageAutomation,
    /// Composes artifacts from parts of others.
    SourceWatcher,
    /// Installs and upgrades Flux, applies resource sets.
    FluxOperator,
    /// Artifacts and sources of Open Flux.
    OpenFlux,
    /// Services of Open Control Plane.
    OpenMcp,
    /// Progressive delivery.
    Flagger,
}

impl Component {
    /// Every component.
    pub const ALL: [Component; 11] = [
        Component::Source,
        Component::Kustomize,
        Component::Helm,
        Component::Notification,
        Component::ImageReflector,
        Component::ImageAutomation,
        Component::SourceWatcher,
        Component::FluxOperator,
        Component::OpenFlux,
        Component::OpenMcp,
        Component::Flagger,
    ];

    /// The components of Flux.
    pub const FLUX: [Component; 7] = [
        Component::Source,
        Component::Kustomize,
        Component::Helm,
        Component::Notification,
        Component::ImageReflector,
        Component::ImageAutomation,
        Component::SourceWatcher,
    ];

    /// Default components of `flux install`.
    pub const DEFAULT: [Component; 4] =
        [Component::Source, Component::Kustomize, Component::Helm, Component::Notification];

    /// Name on the command line and of the objects.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Component::Source => "source-controller",
            Component::Kustomize => "kustomize-controller",
            Component::Helm => "helm-controller",
            Component::Notification => "notification-controller",
            Component::ImageReflector => "image-reflector-controller",
            Component::ImageAutomation => "image-automation-controller",
            Component::SourceWatcher => "source-watcher",
            Component::FluxOperator => "flux-operator",
            Component::OpenFlux => "open-flux",
            Component::OpenMcp => "open-mcp",
            Component::Flagger => "flagger",
        }
    }

    /// Whether this release contains the controller. For the others only CRDs, service account and roles are
    /// installed, so that objects can be created and bindings refer to an existing account; nothing is run.
    #[must_use]
    pub fn is_available(self) -> bool {
        matches!(self, Component::Source | Component::Kustomize | Component::Helm)
    }

    /// The CRDs it works on.
    #[must_use]
    pub fn crds(self) -> CrdSet {
        match self {
            Component::Source => CrdSet::Source,
            Component::Kustomize => CrdSet::Kustomize,
            Component::Helm => CrdSet::Helm,
            Component::Notification => CrdSet::Notification,
            Component::ImageReflector => CrdSet::ImageReflector,
            Component::ImageAutomation => CrdSet::ImageAutomation,
            Component::SourceWatcher => CrdSet::SourceWatcher,
            Component::FluxOperator => CrdSet::Operator,
            Component::OpenFlux => CrdSet::OpenFlux,
            Component::OpenMcp => CrdSet::OpenMcp,
            Component::Flagger => CrdSet::Flagger,
        }
    }

    /// Whether it applies users' manifests and so needs cluster-admin.
    #[must_use]
    pub(crate) fn applies(self) -> bool {
        matches!(
            self,
            Component::Kustomize
                | Component::Helm
                | Component::FluxOperator
                | Component::OpenMcp
                | Component::Flagger
        )
    }

    /// Whether it stores and serves artifacts.
    #[must_use]
    pub(crate) fn stores(self) -> bool {
        matches!(self, Component::Source | Component::SourceWatcher)
    }
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Component {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Component::ALL.into_iter().find(|c| c.name() == name).ok_or_else(|| Error::UnknownComponent {
            name: name.to_owned(),
            available: Component::ALL.map(Component::name).join(", "),
        })
    }
}
