//! Hooks: manifests that are run at certain events of a release instead of being part of it.

use super::manifest::Head;

/// Event at which a hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HookEvent {
    /// Before the manifests of a first install.
    PreInstall,
    /// After the manifests of a first install.
    PostInstall,
    /// Before an uninstall.
    PreDelete,
    /// After an uninstall.
    PostDelete,
    /// Before an upgrade.
    PreUpgrade,
    /// After an upgrade.
    PostUpgrade,
    /// Before a rollback.
    PreRollback,
    /// After a rollback.
    PostRollback,
    /// On `helm test`.
    Test,
}

const EVENTS: &[(&str, HookEvent)] = &[
    ("pre-install", HookEvent::PreInstall),
    ("post-install", HookEvent::PostInstall),
    ("pre-delete", HookEvent::PreDelete),
    ("post-delete", HookEvent::PostDelete),
    ("pre-upgrade", HookEvent::PreUpgrade),
    ("post-upgrade", HookEvent::PostUpgrade),
    ("pre-rollback", HookEvent::PreRollback),
    ("post-rollback", HookEvent::PostRollback),
    ("test", HookEvent::Test),
    // Helm 2's name for a test.
    ("test-success", HookEvent::Test),
];

impl HookEvent {
    /// The name in the annotation.
    pub fn name(self) -> &'static str {
        EVENTS.iter().find(|(_, event)| *event == self).map_or("", |(name, _)| name)
    }
}

/// A hook of a release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    /// `metadata.name`
    pub name: String,
    /// `kind`
    pub kind: String,
    /// Template that the hook comes from.
    pub path: String,
    /// Manifest text.
    pub manifest: String,
    /// Events, in the order written.
    pub events: Vec<HookEvent>,
    /// Weight; lower runs first.
    pub weight: i64,
    /// `before-hook-creation`, `hook-succeeded`, `hook-failed`, as written.
    pub delete_policies: Vec<String>,
    /// `helm.sh/hook-output-log-policy`, as written.
    pub output_log_policies: Vec<String>,
}

/// A manifest with an unknown hook event; it is skipped with this message as a warning.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("info: skipping unknown hook: {0:?}")]
pub(crate) struct UnknownHook(String);

impl Hook {
    /// Parses the hook annotations; `None` for an ordinary manifest, an error for an unknown event.
    pub(crate) fn read(head: &Head, path: &str, manifest: &str) -> Option<Result<Self, UnknownHook>> {
        let names = head.annotations.get("helm.sh/hook")?;
        let mut events = Vec::new();
        for event_name in names.split(',').map(|m| m.trim().to_lowercase()) {
            match EVENTS.iter().find(|(name, _)| *name == event_name) {
                Some((_, event)) => events.push(*event),
                None => return Some(Err(UnknownHook(names.clone()))),
            }
        }
        let list = |annotation: &str| -> Vec<String> {
            let words = head.annotations.get(annotation).into_iter().flat_map(|text| text.split(','));
            words.map(|word| word.trim().to_lowercase()).collect()
        };
        Some(Ok(Self {
            name: head.name.clone(),
            kind: head.kind.clone(),
            path: path.to_owned(),
            manifest: manifest.to_owned(),
            events,
            weight: head.annotations.get("helm.sh/hook-weight").and_then(|w| w.parse().ok()).unwrap_or(0),
            delete_policies: list("helm.sh/hook-delete-policy"),
            output_log_policies: list("helm.sh/hook-output-log-policy"),
        }))
    }

    /// Whether `helm test` runs it.
    pub fn is_test(&self) -> bool {
        self.events.contains(&HookEvent::Test)
    }
}
