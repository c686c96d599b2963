//! What all controllers of a process share, and the life cycle of the controllers.

use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::collectors;
use crate::controller::{self, Controller, Driver, Reconciler};
use crate::events::Recorder;
use crate::graph::Graph;
use crate::informer::{Change, Informers, WatchSpec};
use crate::load::Load;
use crate::log::Log;
use crate::metrics::Metrics;
use crate::options::Options;
use crate::starvation::Starvation;
use crate::triggers;
use fl_client::Kind;
use fl_client::Shutdown;
use fl_client::{Client, Connection, Limits, Settings};

/// Clones share everything.
#[derive(Clone)]
pub struct Runtime {
    inner: Arc<Inner>,
}

struct Inner {
    cluster: Client,
    connection: Option<Connection>,
    informers: Informers,
    graph: Arc<Graph>,
    recorder: Recorder,
    load: Load,
    starvation: Starvation,
    metrics: Metrics,
    log: Log,
    stop: Shutdown,
    options: Options,
    random: Mutex<StdRng>,
    drivers: RwLock<Vec<Arc<dyn Driver>>>,
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runtime").field("options", &self.inner.options).finish_non_exhaustive()
    }
}

impl Runtime {
    /// Must be called inside a tokio runtime. `connection` is needed by controllers that impersonate.
    pub fn new(
        cluster: Client,
        connection: Option<Connection>,
        options: Options,
        stop: Shutdown,
        log: Log,
    ) -> Self {
        let metrics = Metrics::default();
        let cluster = cluster.reconfigured(|settings| {
            settings.observer = Some(Arc::new(metrics.clone()));
            settings.stop = Some(stop.clone());
        });
        let informers = Informers::new(cluster.clone(), options.namespace.clone(), stop.clone(), log.clone());
        let load = Load::default();
        let recorder = Recorder::start(&cluster, &load, &stop, log.clone());
        let random = options.seed.map_or_else(|| StdRng::from_rng(&mut rand::rng()), StdRng::seed_from_u64);
        let runtime = Runtime {
            inner: Arc::new(Inner {
                recorder,
                load,
                starvation: Starvation::default(),
                informers,
                cluster,
                connection,
                graph: Arc::default(),
                metrics,
                log,
                stop,
                options,
                random: Mutex::new(random),
                drivers: RwLock::default(),
            }),
        };
        // Weak: the informers belong to the runtime, not the reverse.
        let weak = Arc::downgrade(&runtime.inner);
        runtime.informers().listen(Arc::new(move |change| {
            if let Some(inner) = weak.upgrade() {
                inner.route(change);
            }
        }));
        runtime
    }

    pub fn cluster(&self) -> &Client {
        &self.inner.cluster
    }

    /// Client settings for API servers of `spec.kubeConfig`: as for the engine's own, within tighter limits.
    pub fn remote_settings(&self) -> Settings {
        let rate = self.options().remote_rate;
        Settings { limits: Limits::REMOTE, rate, ..self.cluster().settings().clone() }
    }

    /// The engine's own connection, to make clients with other identities.
    pub fn connection(&self) -> Option<&Connection> {
        self.inner.connection.as_ref()
    }

    pub fn informers(&self) -> &Informers {
        &self.inner.informers
    }

    pub fn graph(&self) -> &Graph {
        &self.inner.graph
    }

    pub fn recorder(&self) -> &Recorder {
        &self.inner.recorder
    }

    /// Whether more objects are queued than can be reconciled at once.
    pub(crate) fn load(&self) -> &Load {
        &self.inner.load
    }

    pub fn metrics(&self) -> &Metrics {
        &self.inner.metrics
    }

    /// All metrics in Prometheus' text format.
    pub fn scrape(&self) -> String {
        let drivers = self.inner.drivers.read().unwrap_or_else(PoisonError::into_inner).clone();
        let stores: Vec<_> = drivers.iter().filter_map(|d| self.informers().store(d.kind())).collect();
        for driver in &drivers {
            let (ready, _, running) = driver.queue().sizes();
            self.metrics().queue(driver.controller(), ready, running);
        }
        let mut out = self.metrics().render();
        collectors::objects(&mut out, stores.iter().map(AsRef::as_ref));
        collectors::process(&mut out);
        out
    }

    pub fn log(&self) -> &Log {
        &self.inner.log
    }

    pub fn stop(&self) -> &Shutdown {
        &self.inner.stop
    }

    pub fn options(&self) -> &Options {
        &self.inner.options
    }

    /// Adds a controller. Its watch opens at once; it reconciles after [`Runtime::run`].
    pub fn add<R: Reconciler>(&self, reconciler: R, concurrent: usize) {
        let controller = Arc::new(Controller::new(self, reconciler, concurrent));
        let driver: Arc<dyn Driver> = controller.clone();
        let (kind, weak) = (driver.kind().clone(), Arc::downgrade(&driver));
        self.graph().register(
            kind.group(),
            kind.kind(),
            Arc::new(move |key| {
                if let Some(driver) = weak.upgrade() {
                    driver.queue().add(key.clone());
                }
            }),
        );
        self.metrics().workers(driver.controller(), concurrent);
        self.inner.drivers.write().unwrap_or_else(PoisonError::into_inner).push(driver);
        controller.watch();
    }

    /// Watches ConfigMaps and Secrets with the configured label; a change enqueues the objects that refer to
    /// it.
    pub fn watch_configs(&self) {
        let selector = &self.options().watch_configs_label_selector;
        if selector.is_empty() || self.options().gates.enabled("DisableConfigWatchers") {
            return;
        }
        for kind in [Kind::config_map(), Kind::secret()] {
            self.informers().watch(WatchSpec::metadata(kind).labelled(selector));
        }
    }

    /// Readiness of the controllers.
    ///
    /// # Errors
    /// What keeps them from it.
    pub fn ready(&self) -> Result<(), String> {
        if !self.informers().synced() {
            return Err("not all kinds have been seen yet".to_owned());
        }
        let starving: Vec<String> = self
            .starvation()
            .found()
            .into_iter()
            .map(|(controller, waited)| {
                format!("the {controller} controller has had no free worker for {} s", waited.as_secs())
            })
            .collect();
        if starving.is_empty() { Ok(()) } else { Err(starving.join("; ")) }
    }

    pub(crate) fn starvation(&self) -> &Starvation {
        &self.inner.starvation
    }

    /// Runs until shutdown, then waits for running reconciles.
    pub async fn run(&self) {
        let drivers = self.inner.drivers.read().unwrap_or_else(PoisonError::into_inner).clone();
        let mut workers = tokio::task::JoinSet::new();
        for driver in &drivers {
            workers.spawn(controller::work(self.clone(), driver.clone()));
        }
        self.stop().stopped().await;
        for driver in &drivers {
            driver.queue().close();
        }
        let limit = self.options().graceful_shutdown_timeout;
        let ended = tokio::time::timeout(limit, async { while workers.join_next().await.is_some() {} }).await;
        if ended.is_err() {
            self.log().error("time is up", "passes that are still running are cut off");
            workers.abort_all();
        }
        self.recorder().flush().await;
    }

    /// An interval with jitter.
    pub fn jitter(&self, interval: Duration) -> Duration {
        let percent = f64::from(self.options().interval_jitter_percentage.min(99)) / 100.0;
        if percent == 0.0 {
            return interval;
        }
        let random =
            self.inner.random.lock().unwrap_or_else(PoisonError::into_inner).random_range(-1.0..=1.0);
        Duration::try_from_secs_f64(interval.as_secs_f64() * (1.0 + percent * random)).unwrap_or(interval)
    }
}

impl Inner {
    /// Dispatches a change to the controller of its kind and to the objects that refer to the changed one.
    fn route(&self, change: &Change) {
        let drivers = self.drivers.read().unwrap_or_else(PoisonError::into_inner).clone();
        for driver in drivers.iter().filter(|d| *d.kind() == change.kind) {
            driver.on_change(change);
        }
        let nodes = triggers::graph_keys(change);
        if nodes.iter().any(|n| self.graph.has_dependents(n)) {
            let triggers = triggers::triggers_of(change);
            for node in &nodes {
                self.graph.wake_dependents(node, &triggers);
            }
        }
    }
}
