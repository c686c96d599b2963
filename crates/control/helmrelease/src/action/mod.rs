//! Helm's actions on a cluster: install, upgrade, rollback, uninstall, test. What they write, say and leave behind is what
//! Helm 4 does in Flux's hands.

pub(crate) mod capabilities;
mod crds;
mod error;
mod hooks;
mod install;
pub(crate) mod log;
pub(crate) mod objects;
mod ownership;
pub(crate) mod post_render;
pub(crate) mod records;
mod render;
mod rollback;
mod strategic;
mod test;
mod unfold;
mod uninstall;
mod upgrade;
pub(crate) mod wait;
pub(crate) mod write;

use std::sync::Arc;

use fl_api::helm::HelmRelease;
use fl_apply::Cluster;
use fl_helm::{CompiledChart, ReleaseOptions};
use fl_release::{ApplyMethod, ChartRecord, Hook, Release};
use serde_json::{Map, Value};

use crate::spec::Defaults;
use capabilities::KnownCapabilities;
pub(crate) use error::ActionError;
use log::ActionLog;
use post_render::PostRenderer;
use records::Records;
use render::Render;
pub(crate) use render::crds;
use wait::Health;
use write::Writer;

/// The field manager of everything a release writes.
pub(crate) const MANAGER: &str = "helm-controller";

/// A chart that is ready to be rendered and stored.
#[derive(Debug, Clone)]
pub(crate) struct LoadedChart {
    pub(crate) compiled: Arc<CompiledChart>,
    pub(crate) record: ChartRecord,
    /// With the digest of its source behind it where there is one.
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

/// One action on one release.
pub(crate) struct Action<'a> {
    pub(crate) cluster: &'a Cluster,
    /// Tells clusters apart.
    pub(crate) cluster_key: String,
    pub(crate) records: &'a mut Records,
    pub(crate) log: &'a ActionLog,
    pub(crate) health: Health,
    pub(crate) capabilities: &'a KnownCapabilities,
    pub(crate) object: &'a HelmRelease,
    pub(crate) defaults: Defaults,
    /// Where objects without a namespace go.
    pub(crate) namespace: &'a str,
    /// Labels that name the HelmRelease.
    pub(crate) owner: [(String, String); 2],
    /// Told what is going on.
    pub(crate) listener: &'a (dyn Fn(&str) + Send + Sync),
}

impl std::fmt::Debug for Action<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Action").field("release", &self.records.name()).finish_non_exhaustive()
    }
}

impl Action<'_> {
    fn progress(&self, what: &str) {
        (self.listener)(what);
    }

    fn writer<'w>(&'w self, release: &'w Release) -> Writer<'w> {
        Writer { cluster: self.cluster, log: self.log, release: &release.name, namespace: &release.namespace }
    }

    /// For objects that no release owns.
    fn bare_writer(&self) -> Writer<'_> {
        Writer { cluster: self.cluster, log: self.log, release: "", namespace: "" }
    }

    /// Writes a record; that it failed is only noted, as in Helm.
    async fn record(&mut self, release: &Release) {
        if let Err(error) = self.records.update(release).await {
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
                name: self.records.name().to_owned(),
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
    chart: ChartRecord,
}

fn apply_method(server_side: bool) -> String {
    let method = if server_side { ApplyMethod::ServerSide } else { ApplyMethod::ClientSide };
    method.as_str().to_owned()
}

/// Lays one table under another: what is above wins, a null above removes what is below.
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
