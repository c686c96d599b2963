//! Everything one process shares, and the life of its controllers.

use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::controller::{self, Controller, Driver, Reconciler};
use crate::events::Recorder;
use crate::graph::Graph;
use crate::hub::{Change, Hub, WatchSpec};
use crate::log::Log;
use crate::metrics::Metrics;
use crate::options::Options;
use crate::pressure::Pressure;
use crate::scrape;
use crate::starvation::Starvation;
use crate::wake;
use fl_client::Kind;
use fl_client::Stop;
use fl_client::{Client, Connection, Limits, Settings};

/// Clones share everything.
#[derive(Clone)]
pub struct Runtime {
    inner: Arc<Inner>,
}

struct Inner {
    cluster: Client,
    connection: Option<Connection>,
    hub: Hub,
    graph: Arc<Graph>,
    recorder: Recorder,
    pressure: Pressure,
    starvation: Starvation,
    metrics: Metrics,
    log: Log,
    stop: Stop,
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
    /// Must be called inside a tokio runtime. `connection` is needed where controllers act in others' names.
    pub fn new(
        cluster: Client,
        connection: Option<Connection>,
        options: Options,
        stop: Stop,
        log: Log,
    ) -> Self {
        let metrics = Metrics::default();
        let cluster = cluster.reconfigured(|settings| {
            settings.observer = Some(Arc::new(metrics.clone()));
            settings.stop = Some(stop.clone());
        });
        let hub = Hub::new(cluster.clone(), options.namespace.clone(), stop.clone(), log.clone());
        let pressure = Pressure::default();
        let recorder = Recorder::start(&cluster, &pressure, &stop, log.clone());
        let random = options.seed.map_or_else(|| StdRng::from_rng(&mut rand::rng()), StdRng::seed_from_u64);
        let runtime = Runtime {
            inner: Arc::new(Inner {
                recorder,
                pressure,
                starvation: Starvation::default(),
                hub,
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
        // Weak: the hub belongs to the runtime, not the other way round.
        let weak = Arc::downgrade(&runtime.inner);
        runtime.hub().listen(Arc::new(move |change| {
            if let Some(inner) = weak.upgrade() {
                inner.route(change);
            }
        }));
        runtime
    }

    pub fn cluster(&self) -> &Client {
        &self.inner.cluster
    }

    /// How requests to API servers that objects name are treated: like our own, but within tighter limits.
    pub fn remote_settings(&self) -> Settings {
        let rate = self.options().remote_rate;
        Settings { limits: Limits::REMOTE, rate, ..self.cluster().settings().clone() }
    }

    /// How the engine is connected; to make clients in other names.
    pub fn connection(&self) -> Option<&Connection> {
        self.inner.connection.as_ref()
    }

    pub fn hub(&self) -> &Hub {
        &self.inner.hub
    }

    pub fn graph(&self) -> &Graph {
        &self.inner.graph
    }

    pub fn recorder(&self) -> &Recorder {
        &self.inner.recorder
    }

    /// Whether more objects are due than can be worked on.
    pub(crate) fn pressure(&self) -> &Pressure {
        &self.inner.pressure
    }

    pub fn metrics(&self) -> &Metrics {
        &self.inner.metrics
    }

    /// Everything Prometheus asks for, as of now.
    pub fn scrape(&self) -> String {
        let drivers = self.inner.drivers.read().unwrap_or_else(PoisonError::into_inner).clone();
        let stores: Vec<_> = drivers.iter().filter_map(|d| self.hub().store(d.kind())).collect();
        for driver in &drivers {
            let (ready, _, running) = driver.queue().sizes();
            self.metrics().queue(driver.controller(), ready, running);
        }
        let mut out = self.metrics().render();
        scrape::objects(&mut out, stores.iter().map(AsRef::as_ref));
        scrape::process(&mut out);
        out
    }

    pub fn log(&self) -> &Log {
        &self.inner.log
    }

    pub fn stop(&self) -> &Stop {
        &self.inner.stop
    }

    pub fn options(&self) -> &Options {
        &self.inner.options
    }

    /// Adds a controller; its watch opens at once, its work begins with [`Runtime::run`].
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

    /// Watches ConfigMaps and Secrets whose label says so; whoever has an edge to one is woken by its changes.
    pub fn watch_configs(&self) {
        let selector = &self.options().watch_configs_label_selector;
        if selector.is_empty() || self.options().gates.enabled("DisableConfigWatchers") {
            return;
        }
        for kind in [Kind::config_map(), Kind::secret()] {
            self.hub().watch(WatchSpec::metadata(kind).labelled(selector));
        }
    }

    /// Whether the controllers can do their work.
    ///
    /// # Errors
    /// What keeps them from it.
    pub fn ready(&self) -> Result<(), String> {
        if !self.hub().synced() {
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

    /// Works until told to stop, then lets running passes end.
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

    /// An interval, a little earlier or later.
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
    /// A change goes to the controller of its kind and along the edges that lead to it.
    fn route(&self, change: &Change) {
        let drivers = self.drivers.read().unwrap_or_else(PoisonError::into_inner).clone();
        for driver in drivers.iter().filter(|d| *d.kind() == change.kind) {
            driver.on_change(change);
        }
        let nodes = wake::nodes(change);
        if nodes.iter().any(|n| self.graph.has_dependents(n)) {
            let accounts = wake::accounts(change);
            for node in &nodes {
                self.graph.wake_dependents(node, &accounts);
            }
        }
    }
}
