//! Renders a chart with the version and APIs of the cluster, and `lookup` with the identity of the release.

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fl_apply::{Cluster, Error as ClusterError, ObjectRef};
use fl_gotemplate::{Limits, List, Map as Table, Value as Data};
use fl_helm::{
    Capabilities, CompiledChart, Crd, JsonValue, Overrides, Release, ReleaseOptions, RenderOptions,
};
use fl_runtime::KnownSecrets;
use fl_sprig::Host;
use serde_json::{Map, Value};
use tokio::runtime::Handle;

use super::error::ActionError;
use super::post_render::PostRenderer;

/// How long the templates of one chart may run.
const RENDER_TIMEOUT: Duration = Duration::from_secs(120);

/// The input of a render.
#[derive(Debug, Clone)]
pub(crate) struct Render {
    pub(crate) chart: Arc<CompiledChart>,
    pub(crate) values: Map<String, Value>,
    pub(crate) release: ReleaseOptions,
    pub(crate) capabilities: Capabilities,
    pub(crate) skip_schema: bool,
    pub(crate) post_renderer: PostRenderer,
    pub(crate) cluster: Cluster,
}

/// User values for a chart.
fn overrides(values: &Map<String, Value>) -> Overrides {
    let mut overrides = Overrides::new();
    overrides.add_values(&JsonValue::from_json(&Value::Object(values.clone())));
    overrides
}

impl Render {
    /// Renders on a thread for blocking work.
    pub(crate) async fn run(self) -> Result<Release, ActionError> {
        let (handle, secrets) = (Handle::current(), KnownSecrets::current());
        let rendered = tokio::task::spawn_blocking(move || self.on_this_thread(handle, secrets)).await;
        rendered.unwrap_or_else(|error| Err(ActionError::failed(format!("rendering ended early: {error}"))))
    }

    fn on_this_thread(self, handle: Handle, secrets: KnownSecrets) -> Result<Release, ActionError> {
        let deadline = Instant::now() + RENDER_TIMEOUT;
        let options = RenderOptions {
            release: self.release,
            capabilities: self.capabilities,
            limits: Limits { expired: Some(Rc::new(move || Instant::now() > deadline)), ..Limits::default() },
            host: Rc::new(TemplateHost { cluster: self.cluster, handle, secrets }),
            skip_schema: self.skip_schema,
            subchart_notes: false,
        };
        let rendered = self.chart.render_for_action(&overrides(&self.values), &options)?;
        self.post_renderer.run(rendered)
    }
}

/// The CRDs of the chart and the subcharts that the values enable.
pub(crate) async fn crds(
    chart: Arc<CompiledChart>,
    values: Map<String, Value>,
) -> Result<Vec<Crd>, ActionError> {
    if !has_crds(chart.chart()) {
        return Ok(Vec::new());
    }
    let found = tokio::task::spawn_blocking(move || chart.crds(&overrides(&values))).await;
    match found {
        Ok(found) => found
            .map_err(|error| ActionError::failed(format!("failed to process chart dependencies: {error}"))),
        Err(error) => Err(ActionError::failed(format!("rendering ended early: {error}"))),
    }
}

fn has_crds(chart: &fl_helm::Chart) -> bool {
    chart.crd_files().next().is_some() || chart.dependencies.iter().any(has_crds)
}

/// What templates can read from outside the chart.
struct TemplateHost {
    cluster: Cluster,
    handle: Handle,
    /// Values of Secrets that templates look up are masked.
    secrets: KnownSecrets,
}

impl Host for TemplateHost {
    fn now(&self) -> (i64, u32) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        (i64::try_from(since.as_secs()).unwrap_or(i64::MAX), since.subsec_nanos())
    }

    fn random(&self, buffer: &mut [u8]) {
        rand::fill(buffer);
    }

    fn lookup(&self, api_version: &str, kind: &str, namespace: &str, name: &str) -> Result<Data, String> {
        let reference = ObjectRef::new(api_version, kind, namespace, name);
        let found = self.handle.block_on(async {
            let resource = self.cluster.resource(&reference).await?;
            if name.is_empty() {
                return self.cluster.list(api_version, kind, namespace, &[]).await.map(Some);
            }
            if resource.namespaced() && namespace.is_empty() {
                return Ok(None);
            }
            self.cluster.get(&reference).await
        });
        match found {
            Ok(Some(object)) => {
                if kind == "Secret" {
                    let items = object["items"].as_array();
                    match items {
                        Some(items) => items.iter().for_each(|item| self.secrets.learn_secret(item)),
                        None => self.secrets.learn_secret(&object),
                    }
                }
                Ok(data(&object))
            }
            Ok(None) => Ok(Data::dict()),
            Err(error) if error.is_not_found() => Ok(Data::dict()),
            Err(error @ ClusterError::Client(fl_client::Error::NoKind { .. })) => Err(format!(
                "unable to get apiresource from unstructured: {api_version}, Kind={kind}: {error}"
            )),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// JSON as Go's dynamic client decodes it: whole numbers are integers.
fn data(value: &Value) -> Data {
    match value {
        Value::Null => Data::Nil,
        Value::Bool(value) => Data::Bool(*value),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => Data::int64(whole),
            None => Data::Float(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => Data::str(text.as_str()),
        Value::Array(items) => Data::List(List::new(items.iter().map(data).collect())),
        Value::Object(map) => {
            Data::Map(map.iter().map(|(key, value)| (key.clone(), data(value))).collect::<Table>())
        }
    }
}
