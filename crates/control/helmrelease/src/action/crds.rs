//! The CRDs of a chart: skipped, created, or replaced; never deleted.

use std::sync::Arc;
use std::time::Duration;

use fl_api::helm::actions::CrdsPolicy;
use fl_helm::CompiledChart;
use serde_json::{Map, Value};

use super::apply::Method;
use super::error::ActionError;
use super::ownership::Existing;
use super::resources::{Resource, build, set_text};
use super::wait::{self, WaitOptions};
use super::{Configuration, render};
use crate::spec::Wait;

const GROUP: &str = "apiextensions.k8s.io";
const CRD_TIMEOUT: Duration = Duration::from_secs(60);

impl Configuration<'_> {
    /// Applies the CRDs of a chart before anything else.
    pub(crate) async fn apply_crds(
        &mut self,
        policy: CrdsPolicy,
        chart: &Arc<CompiledChart>,
        values: &Map<String, Value>,
        server_side: bool,
        wait: Wait,
    ) -> Result<(), ActionError> {
        let files = render::crds(chart.clone(), values.clone()).await?;
        if files.is_empty() {
            return Ok(());
        }
        if policy == CrdsPolicy::Skip {
            self.log.note("skipping CustomResourceDefinition apply: policy is set to Skip", &[]);
            return Ok(());
        }
        let crds = self.read_crds(&files).await?;
        if crds.is_empty() {
            return Ok(());
        }
        let live = self.write_crds(policy, &crds, server_side).await?;
        let wait_options = WaitOptions { wait, timeout: CRD_TIMEOUT, jobs: true };
        wait::ready(self.cluster, &self.health, &crds, &live, wait_options, self.interrupt)
            .await
            .map_err(|error| error.within("failed to wait for CustomResourceDefinition(s)"))?;
        for crd in &crds {
            if let Some(group) = crd.object.pointer("/spec/group").and_then(Value::as_str) {
                self.cluster.client().invalidate_discovery(group);
            }
        }
        self.capabilities.forget(&self.cluster_key);
        self.log.note("successfully applied CustomResourceDefinition(s)", &[("count", &live.len())]);
        Ok(())
    }

    async fn read_crds(&self, files: &[fl_helm::Crd]) -> Result<Vec<Resource>, ActionError> {
        let mut crds = Vec::new();
        for file in files {
            let text = file.data.read().map_err(|error| ActionError::failed(error.to_string()))?;
            let targets = build(self.cluster, &text.to_text(), self.namespace).await.map_err(|error| {
                error.within(&format!("failed to parse CustomResourceDefinitions from {}", file.source))
            })?;
            for mut target in targets {
                let id = &target.reference.id;
                if id.group != GROUP || id.kind != "CustomResourceDefinition" {
                    self.log.note(
                        "warning: ignoring non-CRD resources found in the chart's crds/ directory",
                        &[("kind", &id.kind), ("name", &id.name)],
                    );
                    continue;
                }
                for (key, value) in &self.owner {
                    set_text(&mut target.object, "labels", key, value);
                }
                crds.push(target);
            }
        }
        Ok(crds)
    }

    async fn write_crds(
        &self,
        policy: CrdsPolicy,
        crds: &[Resource],
        server_side: bool,
    ) -> Result<Vec<Value>, ActionError> {
        let writer = self.bare_writer();
        if policy == CrdsPolicy::CreateReplace {
            let method = if server_side { Method::Apply { force: true } } else { Method::Replace };
            let (written, result) = writer.update(&[], crds, method, false, &Existing::new()).await;
            result.map_err(|error| error.within("failed to update CustomResourceDefinition(s)"))?;
            return Ok(written.live);
        }
        let method =
            if server_side { Method::Apply { force: true } } else { Method::Patch { three_way: false } };
        let mut live = Vec::new();
        for crd in crds {
            let name = &crd.reference.id.name;
            if !server_side && self.cluster.get(&crd.reference).await?.is_some() {
                self.log.note("CustomResourceDefinition is already present. Skipping.", &[("name", name)]);
                continue;
            }
            let created = writer.create(std::slice::from_ref(crd), method).await;
            live.extend(created.map_err(|error| {
                error.within(&format!("failed to create CustomResourceDefinition {name}"))
            })?);
        }
        Ok(live)
    }
}
