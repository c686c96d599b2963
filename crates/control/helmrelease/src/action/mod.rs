//! Helm's actions: install, upgrade, rollback, uninstall, test. Writes, messages and stored releases are those of Helm 4 in
//! helm-controller.

pub(crate) mod apply;
pub(crate) mod capabilities;
mod crds;
mod error;
mod hooks;
mod install;
pub(crate) mod interrupt;
mod line_folding;
pub(crate) mod log;
mod ownership;
pub(crate) mod post_render;
mod render;
pub(crate) mod resources;
mod rollback;
pub(crate) mod storage;
mod test;
mod three_way_merge;
mod uninstall;
mod upgrade;
pub(crate) mod wait;

use std::sync::Arc;

use fl_api::helm::HelmRelease;
use fl_apply::Cluster;
use fl_helm::{CompiledChart, ReleaseOptions};
use fl_helm_storage::{ApplyMethod, Hook, Release, StoredChart};
use serde_json::{Map, Value};

use crate::spec::Defaults;
use apply::Writer;
use capabilities::KnownCapabilities;
pub(crate) use error::ActionError;
use interrupt::Interrupt;
use log::ActionLog;
use post_render::PostRenderer;
use render::Render;
pub(crate) use render::crds;
use storage::Storage;
use wait::Health;

/// The field manager of everything a release writes.
pub(crate) const MANAGER: &str = "helm-controller";

/// A chart that is ready to be rendered and stored.
#[derive(Debug, Clone)]
pub(crate) struct LoadedChart {
    pub(crate) compiled: Arc<CompiledChart>,
    pub(crate) record: StoredChart,
    /// Followed by the digest of its source, where there is one.
    pub(crate) version: String,
}

impl LoadedChart {
    pub(crate) fn name(&self) -> &str {
        self.compiled.chart().name()
    }

    pub(crate) fn app_version(&self) -> &str {
        &self.compiled.chart().metadata.app_version
    }
}

/// What an action of one release runs with: Helm's `action.Configuration`.
pub(crate) struct Configuration<'a> {
    pub(crate) cluster: &'a Cluster,
    /// Identifies the cluster in caches.
    pub(crate) cluster_key: String,
    pub(crate) storage: &'a mut Storage,
    pub(crate) log: &'a ActionLog,
    pub(crate) health: Health,
    pub(crate) capabilities: &'a KnownCapabilities,
    pub(crate) object: &'a HelmRelease,
    pub(crate) defaults: Defaults,
    /// The namespace of objects that name none.
    pub(crate) namespace: &'a str,
    /// Labels that name the HelmRelease.
    pub(crate) owner: [(String, String); 2],
    /// Cancels waits for readiness.
    pub(crate) interrupt: &'a Interrupt,
    /// Called with each step.
    pub(crate) on_progress: &'a (dyn Fn(&str) + Send + Sync),
}

impl std::fmt::Debug for Configuration<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Action").field("release", &self.storage.name()).finish_non_exhaustive()
    }
}

impl Configuration<'_> {
    fn progress(&self, what: &str) {
        (self.on_progress)(what);
    }

    fn writer<'w>(&'w self, release: &'w Release) -> Writer<'w> {
        Writer { cluster: self.cluster, log: self.log, release: &release.name, namespace: &release.namespace }
    }

    /// For objects that are not part of a release.
    fn bare_writer(&self) -> Writer<'_> {
        Writer { cluster: self.cluster, log: self.log, release: "", namespace: "" }
    }

    /// Updates a stored release; an error is only logged, as in Helm.
    async fn record(&mut self, release: &Release) {
        if let Err(error) = self.storage.update(release).await {
            self.log.note(
                "failed to update release",
                &[("name", &release.name), ("revision", &release.version), ("error", &error)],
            );
        }
    }

    /// Renders a chart as a revision of the release.
    async fn render(
        &self,
        chart: &LoadedChart,
        values: &Map<String, Value>,
        revision: i64,
        is_upgrade: bool,
        skip_schema: bool,
    ) -> Result<Rendered, ActionError> {
        let capabilities = self.capabilities.of(&self.cluster_key, self.cluster).await?;
        let render = Render {
            chart: chart.compiled.clone(),
            values: values.clone(),
            release: ReleaseOptions {
                name: self.storage.name().to_owned(),
                namespace: self.namespace.to_owned(),
                revision,
                is_upgrade,
            },
            capabilities,
            skip_schema,
            post_renderer: PostRenderer::of(self.object, self.defaults),
            cluster: self.cluster.clone(),
        };
        let release = render.run().await?;
        let mut record = chart.record.clone();
        record.metadata.version.clone_from(&chart.version);
        record = record.with_dependencies(release.dependencies.as_deref());
        if let Some(values) = &release.imported_values {
            record = record.with_values(values);
        }
        Ok(Rendered {
            manifest: release.manifest_text(),
            hooks: release.hooks.iter().map(Hook::from).collect(),
            notes: release.notes,
            chart: record,
        })
    }
}

/// A rendered chart, as it is stored.
struct Rendered {
    manifest: String,
    hooks: Vec<Hook>,
    notes: String,
    chart: StoredChart,
}

fn apply_method(server_side: bool) -> String {
    let method = if server_side { ApplyMethod::ServerSide } else { ApplyMethod::ClientSide };
    method.as_str().to_owned()
}

/// Adds the keys of `below` that `above` does not have; a null in `above` removes the key.
pub(crate) fn coalesce(above: &mut Map<String, Value>, below: &Map<String, Value>) {
    for (key, value) in below {
        match above.get_mut(key) {
            None => {
                above.insert(key.clone(), value.clone());
            }
            Some(Value::Null) => {
                above.remove(key);
            }
            Some(Value::Object(upper)) => {
                if let Value::Object(lower) = value {
                    coalesce(upper, lower);
                }
            }
            Some(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tables_coalesce() {
        let mut above =
            json!({"a": 1, "b": {"x": 1, "gone": null}, "c": null}).as_object().cloned().expect("a table");
        let below =
            json!({"a": 2, "b": {"y": 2, "gone": 3}, "c": 3, "d": 4}).as_object().cloned().expect("a table");
        coalesce(&mut above, &below);
        assert_eq!(Value::Object(above), json!({"a": 1, "b": {"x": 1, "y": 2}, "d": 4}));
    }
}
