//! Hooks: manifests that run at moments of a release's life instead of being part of it.

use super::manifest::Head;

/// The moment a hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HookEvent {
    /// Before the manifests of a first install.
    PreInstall,
    /// After them.
    PostInstall,
    /// Before a removal.
    PreDelete,
    /// After it.
    PostDelete,
    /// Before an upgrade.
    PreUpgrade,
    /// After it.
    PostUpgrade,
    /// Before a rollback.
    PreRollback,
    /// After it.
    PostRollback,
    /// When tests are asked for.
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
    // Helm 2's word for a test.
    ("test-success", HookEvent::Test),
];

impl HookEvent {
    /// The word in the annotation.
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
    /// The template it comes from.
    pub path: String,
    /// Its text.
    pub manifest: String,
    /// When it runs, in the order written.
    pub events: Vec<HookEvent>,
    /// Lower runs first.
    pub weight: i64,
    /// `before-hook-creation`, `hook-succeeded`, `hook-failed`, as written.
    pub delete_policies: Vec<String>,
    /// When its log is shown, as written.
    pub output_log_policies: Vec<String>,
}

impl Hook {
    /// The hook that a head describes: `None` for an ordinary manifest, an error for an unknown moment.
    pub(crate) fn read(head: &Head, path: &str, manifest: &str) -> Option<Result<Self, String>> {
        let moments = head.annotations.get("helm.sh/hook")?;
        let mut events = Vec::new();
        for moment in moments.split(',').map(|m| m.trim().to_lowercase()) {
            match EVENTS.iter().find(|(name, _)| *name == moment) {
                Some((_, event)) => events.push(*event),
                None => return Some(Err(format!("info: skipping unknown hook: {moments:?}"))),
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
