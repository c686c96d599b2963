//! The description of one served resource type, built-in or custom.

use std::sync::Arc;

use fl_builtin::{StorageKey, Strategy};

/// The static description of one served resource (one group, version and plural).
#[derive(Debug, Clone)]
pub struct ResourceType {
    /// Empty for the core group.
    pub group: String,
    pub version: String,
    pub kind: String,
    pub list_kind: String,
    pub plural: String,
    pub singular: String,
    pub short_names: Vec<String>,
    pub categories: Vec<String>,
    pub namespaced: bool,
    /// Verbs in discovery order; a verb not listed answers 405.
    pub verbs: Vec<String>,
    /// `status`, `scale`, and the ones with a meaning of their own (`token`, `eviction`, `binding`, …).
    pub subresources: Vec<Subresource>,
    /// Version objects are stored in; all versions of a resource share one place in the store.
    pub storage: StorageKey,
    pub strategy: Arc<dyn Strategy>,
    /// Who converts between the versions, where it takes more than changing `apiVersion`.
    pub(crate) conversion: Option<Arc<crate::crd::convert::Webhook>>,
}

/// A subresource and the kind it answers with.
#[derive(Debug, Clone)]
pub struct Subresource {
    pub name: String,
    pub group: String,
    pub version: String,
    pub kind: String,
    pub verbs: Vec<String>,
}

impl ResourceType {
    /// Every built-in resource type.
    pub(crate) fn builtin() -> Vec<Self> {
        let texts = |list: &[&str]| -> Vec<String> { list.iter().map(|s| (*s).to_owned()).collect() };
        let mut out = Vec::new();
        let versions = fl_kubeschema::group_versions();
        for gv in versions {
            for resource in &gv.resources {
                let preferred = versions
                    .iter()
                    .find(|v| v.group == gv.group && v.resources.iter().any(|r| r.plural == resource.plural))
                    .map_or(gv.version, |v| v.version);
                out.push(Self {
                    group: gv.group.to_owned(),
                    version: gv.version.to_owned(),
                    kind: resource.kind.to_owned(),
                    list_kind: format!("{}List", resource.kind),
                    plural: resource.plural.to_owned(),
                    singular: resource.singular.to_owned(),
                    short_names: texts(&resource.short_names),
                    categories: texts(&resource.categories),
                    namespaced: resource.namespaced,
                    verbs: texts(&resource.verbs),
                    subresources: resource
                        .subresources
                        .iter()
                        .map(|s| Subresource {
                            name: s.name.to_owned(),
                            group: s.group.to_owned(),
                            version: s.version.to_owned(),
                            kind: s.kind.to_owned(),
                            verbs: texts(&s.verbs),
                        })
                        .collect(),
                    storage: fl_builtin::storage_key(gv.group, resource.plural, resource.kind, preferred),
                    strategy: fl_builtin::strategy(gv.group, gv.version, resource.kind),
                    conversion: None,
                });
            }
        }
        out
    }

    /// `v1` or `apps/v1`.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// `deployments.apps`, or `pods` in the core group: how messages name the resource.
    #[must_use]
    pub fn group_resource(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// `Deployment.apps`, or `Pod` in the core group: how messages name the kind.
    #[must_use]
    pub fn group_kind(&self) -> String {
        if self.group.is_empty() { self.kind.clone() } else { format!("{}.{}", self.kind, self.group) }
    }

    /// True for types of CustomResourceDefinitions.
    #[must_use]
    pub fn is_custom(&self) -> bool {
        self.strategy.is_custom()
    }

    #[must_use]
    pub fn has_verb(&self, verb: &str) -> bool {
        self.verbs.iter().any(|v| v == verb)
    }

    #[must_use]
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|s| s.name == name)
    }

    /// True where `status` is a subresource: the main endpoint then keeps the stored status.
    #[must_use]
    pub fn has_status(&self) -> bool {
        self.subresource("status").is_some()
    }
}
