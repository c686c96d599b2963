//! How objects are applied.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use crate::{FieldManager, IgnoreRules, Operation};

/// For whom objects are applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The field manager of every apply.
    pub field_manager: String,
    /// The API group of the owner; the prefix of labels and annotations.
    pub group: String,
    /// The owner's name.
    pub name: String,
    /// The owner's namespace.
    pub namespace: String,
}

impl Owner {
    /// The labels that name the owner on its objects.
    #[must_use]
    pub fn labels(&self) -> BTreeMap<String, String> {
        BTreeMap::from([
            (format!("{}/name", self.group), self.name.clone()),
            (format!("{}/namespace", self.group), self.namespace.clone()),
        ])
    }

    /// Labels and annotations with which a live object asks not to be deleted.
    #[must_use]
    pub fn keep(&self) -> Vec<(String, String)> {
        vec![self.pair("prune", "disabled"), self.pair("reconcile", "disabled"), self.pair("ssa", "ignore")]
    }

    fn pair(&self, key: &str, value: &str) -> (String, String) {
        (format!("{}/{key}", self.group), value.to_owned())
    }
}

/// Whether objects with immutable fields are recreated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Force {
    /// Only those that ask for it.
    #[default]
    Asked,
    /// All.
    Always,
}

/// How to apply.
#[derive(Clone, Debug)]
pub struct Options {
    /// Recreation where a field is immutable.
    pub force: Force,
    /// Labels or annotations (wanted or live) of objects that are recreated.
    pub force_selector: Vec<(String, String)>,
    /// Labels or annotations (wanted or live) of objects that are left alone.
    pub exclude: Vec<(String, String)>,
    /// Labels or annotations (wanted) of objects that are only created.
    pub if_not_present: Vec<(String, String)>,
    /// Labels or annotations (wanted or live) of objects whose other managers keep their fields.
    pub merge: Vec<(String, String)>,
    /// Managers whose fields are taken over.
    pub take_over: Vec<FieldManager>,
    /// Annotations removed from live objects.
    pub drop_annotations: Vec<String>,
    /// Labels removed from live objects.
    pub drop_labels: Vec<String>,
    /// Fields left to others.
    pub ignore: IgnoreRules,
    /// `(group, kind)` applied before the rest.
    pub custom_stages: HashSet<(String, String)>,
    /// Rewrite the version of managed fields first.
    pub migrate_api_version: bool,
    /// Requests at once for this owner.
    pub concurrency: usize,
    /// How long definitions may take to be ready.
    pub stage_timeout: Duration,
    /// How long an object that is recreated may take to go.
    pub recreate_timeout: Duration,
}

impl Options {
    /// What Flux's kustomize-controller does for an owner.
    #[must_use]
    pub fn flux(owner: &Owner) -> Self {
        let manager = owner.field_manager.as_str();
        Options {
            force: Force::Asked,
            force_selector: vec![owner.pair("force", "enabled")],
            exclude: vec![owner.pair("reconcile", "disabled"), owner.pair("ssa", "ignore")],
            if_not_present: vec![owner.pair("ssa", "ifnotpresent")],
            merge: vec![owner.pair("ssa", "merge")],
            take_over: vec![
                FieldManager::new("kubectl", Operation::Apply),
                FieldManager::new("kubectl", Operation::Update),
                FieldManager::new("before-first-apply", Operation::Update),
                FieldManager::new(manager, Operation::Update),
            ],
            drop_annotations: vec![
                "kubectl.kubernetes.io/last-applied-configuration".to_owned(),
                format!("{}/checksum", owner.group),
                "fluxcd.io/sync-checksum".to_owned(),
            ],
            drop_labels: vec!["fluxcd.io/sync-gc-mark".to_owned()],
            ignore: IgnoreRules::default(),
            custom_stages: HashSet::new(),
            migrate_api_version: false,
            concurrency: 4,
            stage_timeout: Duration::from_secs(60),
            recreate_timeout: Duration::from_secs(300),
        }
    }

    /// Takes fields over from one more manager, however it wrote.
    pub fn override_manager(&mut self, name: &str) {
        self.take_over.push(FieldManager::new(name, Operation::Apply));
        self.take_over.push(FieldManager::new(name, Operation::Update));
    }
}
