//! `fluorite run`: the controllers, in one process, with the flags of Flux's.

mod args;
pub(in crate::commands) mod components;
mod oom_watch;
mod unsupported_flags;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use fl_artifact_store::{Retention, Store, StoreOptions};
use fl_client::Settings;
use fl_git_client::SshAlgorithms;
use fl_http::AddressPolicy;
use fl_runtime::http_server::StatusCode;
use fl_runtime::leader_election::{self, Election};
use fl_runtime::log::{Log, configure};
use fl_runtime::{
    ArtifactFetcher, ConnectOptions, Connection, FeatureGates, Fence, HttpSink, Identity, Options, Resolver,
    Runtime, Shutdown, http_server,
};
use fl_source::git::NetworkGit;
use tokio::net::TcpListener;

pub(crate) use args::Args;
use components::{Component, Setup};

impl Args {
    /// The defaults of all flags, for commands that run the controllers themselves.
    pub(in crate::commands) fn defaults() -> anyhow::Result<Self> {
        let command = <Self as clap::Args>::augment_args(clap::Command::new("run").no_binary_name(true));
        let no_flags: [&str; 0] = [];
        Ok(<Self as clap::FromArgMatches>::from_arg_matches(&command.try_get_matches_from(no_flags)?)?)
    }

    pub(crate) fn run(self) -> anyhow::Result<()> {
        configure(self.log_level, self.log_encoding);
        // Reconciles mostly wait for the network; file access runs on the blocking pool.
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(std::thread::available_parallelism().map_or(2, usize::from).min(4))
            .max_blocking_threads(32)
            .thread_keep_alive(Duration::from_secs(5))
            .enable_all()
            .build()?;
        let result = runtime.block_on(self.control());
        // File access in progress must not delay the exit.
        runtime.shutdown_timeout(Duration::from_secs(2));
        result
    }

    async fn control(self) -> anyhow::Result<()> {
        let log = Log::default();
        let chosen = self.components(&log)?;
        unsupported_flags::check(&self)?;
        let stop = Shutdown::default();
        let interrupted = stop.clone();
        tokio::spawn(async move {
            super::interrupted().await;
            interrupted.now();
        });

        let connect = ConnectOptions { kubeconfig: self.kubeconfig.clone(), context: self.context.clone() };
        let connection = Connection::open(&connect).await?;
        let fence = self.enable_leader_election.then(Fence::default);
        let settings = Settings { fence, ..Settings::default() };
        let mut cluster = connection.client(&Identity::Engine, &settings)?;
        if !cluster.has_priority_and_fairness().await {
            cluster = cluster.reconfigured(|settings| settings.rate = Some(self.rate()));
        }
        let options = self.options()?;
        unsupported_flags::log_ignored(&self, &options.gates, &log);
        if options.gates.enabled("OOMWatch") {
            let watch = oom_watch::OomWatch::new(&self)?;
            tokio::spawn(watch.run(stop.clone(), log.clone()));
        }
        let runtime = Runtime::new(cluster, Some(connection), options, stop.clone(), log.clone());
        if let Some(address) = self.events_addr.as_deref().filter(|a| !a.is_empty()) {
            let sink = HttpSink::start(address, log.clone()).context("--events-addr cannot be used")?;
            runtime.recorder().add_sink(Arc::new(sink));
        }
        let stage = Arc::new(Stage::default());
        self.serve_endpoints(&runtime, &stage, &log).await;

        let mut lost = Vec::new();
        if self.enable_leader_election {
            for component in &chosen {
                let held = self.lead(component, &runtime, &stage.standing_by, &log).await;
                let Some(election) = held else { return Ok(()) };
                lost.push(election);
            }
        }
        let store = self.open_store()?;
        let listener = TcpListener::bind(self.storage_listen()?).await.with_context(|| {
            format!("cannot listen on {} for artifacts", self.storage_listen().unwrap_or_default())
        })?;
        let (served, store_stop) = (store.clone(), stop.clone());
        tokio::spawn(async move {
            fl_artifact_store::serve(&served, listener, fl_artifact_store::Hosts::Any, store_stop.stopped())
                .await;
        });

        let localhost = std::env::var("SOURCE_CONTROLLER_LOCALHOST").ok().filter(|h| !h.is_empty());
        let ssh = SshAlgorithms::new(&self.ssh_kex_algos, &self.ssh_hostkey_algos)?;
        let setup = Setup {
            artifacts: ArtifactFetcher::new(Some(store.clone()), self.http_retry, localhost)?,
            resolver: Resolver::new(&runtime),
            runtime: runtime.clone(),
            store,
            git: Arc::new(NetworkGit { scratch: std::env::temp_dir(), ssh }),
            remote_bases: AddressPolicy::cluster()
                .deny(self.remote_bases_deny.iter().copied())
                .allow(self.remote_bases_allow.iter().copied()),
            args: &self,
        };
        for component in &chosen {
            (component.add)(&setup)?;
        }
        runtime.watch_configs();
        stage.working.store(true, Ordering::Relaxed);
        log.with([("components", chosen.iter().map(|c| c.name).collect::<Vec<_>>().into())]).info("starting");
        // A process without its lease must not write; it keeps the lease until running reconciles have ended.
        let mut leases = tokio::task::JoinSet::new();
        for election in lost {
            let stop = stop.clone();
            leases.spawn(async move {
                let held = election.hold(&stop).await;
                stop.now();
                held
            });
        }
        runtime.run().await;
        while let Some(held) = leases.join_next().await {
            if let Ok(Some(election)) = held {
                election.release().await;
            }
        }
        log.info("stopped");
        Ok(())
    }

    /// The components to run: those of `--components`, by default all of this build.
    fn components(&self, log: &Log) -> anyhow::Result<Vec<&'static Component>> {
        let (chosen, missing) = components::choose(&self.components)?;
        for name in missing {
            let log = log.with([("component", name.into())]);
            log.info("component is not part of this build: nothing acts on its objects");
        }
        Ok(chosen)
    }

    fn options(&self) -> anyhow::Result<Options> {
        let mut gates = FeatureGates::default();
        for text in &self.feature_gates {
            gates.merge(text.parse()?);
        }
        let selector = self.watch_label_selector.as_str();
        let runtime_namespace =
            std::env::var("RUNTIME_NAMESPACE").unwrap_or_else(|_| "flux-system".to_owned());
        anyhow::ensure!(
            self.interval_jitter_percentage < 100,
            "--interval-jitter-percentage must be below 100"
        );
        Ok(Options {
            min_retry_delay: self.min_retry_delay.into_std()?,
            max_retry_delay: self.max_retry_delay.into_std()?,
            interval_jitter_percentage: self.interval_jitter_percentage,
            requeue_dependency: self.requeue_dependency.into_std()?,
            no_cross_namespace_refs: self.no_cross_namespace_refs,
            default_service_account: self.default_service_account.clone(),
            gates,
            watch_label_selector: (!selector.is_empty()).then(|| selector.parse()).transpose()?,
            watch_configs_label_selector: self.watch_configs_label_selector.clone(),
            namespace: (!self.watch_all_namespaces).then(|| runtime_namespace.clone()),
            runtime_namespace,
            graceful_shutdown_timeout: self.graceful_shutdown_timeout.into_std()?,
            http_retry: self.http_retry,
            remote_rate: Some(self.rate()),
            seed: None,
        })
    }

    /// `--kube-api-qps` and `--kube-api-burst`.
    fn rate(&self) -> (f32, u32) {
        (self.kube_api_qps, self.kube_api_burst)
    }

    fn open_store(&self) -> anyhow::Result<Store> {
        Store::open(StoreOptions {
            root: self.storage_path.clone(),
            advertised: self.advertised()?,
            algorithm: self.artifact_digest_algo.parse_algorithm()?,
            retention: Retention {
                ttl: self.artifact_retention_ttl.into_std()?,
                records: self.artifact_retention_records,
            },
        })
        .with_context(|| format!("cannot open the artifact store in {}", self.storage_path.display()))
    }

    /// Listen address of the artifact server: `--storage-addr`, or the advertised address if it is an IP address.
    fn storage_listen(&self) -> anyhow::Result<String> {
        let address = match (self.storage_addr.as_str(), self.storage_adv_addr.parse::<SocketAddr>()) {
            ("", Ok(advertised)) => advertised.to_string(),
            ("", Err(_)) => ":9090".to_owned(),
            (given, _) => given.to_owned(),
        };
        Ok(any_host(&address))
    }

    /// Host and port of artifact URLs, with Flux's rules for the default.
    fn advertised(&self) -> anyhow::Result<String> {
        if !self.storage_adv_addr.is_empty() {
            return Ok(self.storage_adv_addr.clone());
        }
        let given = if self.storage_addr.is_empty() { ":9090" } else { &self.storage_addr };
        let (host, port) = given.rsplit_once(':').context("--storage-addr needs a port")?;
        let host = match host {
            "" => "localhost".to_owned(),
            "0.0.0.0" => std::env::var("HOSTNAME").context("HOSTNAME is not set; give --storage-adv-addr")?,
            host => host.to_owned(),
        };
        Ok(format!("{host}:{port}"))
    }

    /// Serves health, readiness and metrics. A port in use is logged; the process runs without the endpoint.
    ///
    /// A standby is ready: a rolling update stops the leader only after the new process is ready.
    async fn serve_endpoints(&self, runtime: &Runtime, stage: &Arc<Stage>, log: &Log) {
        let metrics = runtime.clone();
        let answers: [(&str, http_server::Answer); 2] = [
            (
                &self.metrics_addr,
                Arc::new(move |path| match path {
                    "/metrics" => (StatusCode::OK, metrics.scrape()),
                    _ => (StatusCode::NOT_FOUND, "404 page not found\n".to_owned()),
                }),
            ),
            (&self.health_addr, {
                let (runtime, stage) = (runtime.clone(), stage.clone());
                Arc::new(move |path| match path {
                    "/healthz" => (StatusCode::OK, "ok".to_owned()),
                    "/readyz" if !stage.working.load(Ordering::Relaxed) => {
                        if stage.standing_by.load(Ordering::Relaxed) {
                            (StatusCode::OK, "ok: standing by, another process leads".to_owned())
                        } else {
                            (StatusCode::INTERNAL_SERVER_ERROR, "not started yet\n".to_owned())
                        }
                    }
                    "/readyz" => match runtime.ready() {
                        Ok(()) => (StatusCode::OK, "ok".to_owned()),
                        Err(why) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{why}\n")),
                    },
                    _ => (StatusCode::NOT_FOUND, "404 page not found\n".to_owned()),
                })
            }),
        ];
        for (address, answer) in answers {
            if address.is_empty() || address == "0" {
                continue;
            }
            match TcpListener::bind(any_host(address)).await {
                Ok(listener) => {
                    tokio::spawn(http_server::serve(listener, answer, runtime.stop().clone()));
                }
                Err(error) => {
                    log.with([("address", address.into())]).error(&error.to_string(), "cannot listen");
                }
            }
        }
    }

    /// Waits for the lease of a component; `None` on shutdown.
    async fn lead(
        &self,
        component: &Component,
        runtime: &Runtime,
        standing_by: &AtomicBool,
        log: &Log,
    ) -> Option<Election> {
        let name = leader_election::lease_name(component.controller, &self.watch_label_selector);
        let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "localhost".to_owned());
        let identity = format!("{host}_{}", fl_apiserver::random_token().unwrap_or_default());
        let times = leader_election::Times {
            lease: self.leader_election_lease_duration.into_std().ok()?,
            renew: self.leader_election_renew_deadline.into_std().ok()?,
            retry: self.leader_election_retry_period.into_std().ok()?,
            release: self.leader_election_release_on_cancel,
        };
        let namespace = &runtime.options().runtime_namespace;
        let mut election =
            Election::new(runtime.cluster().clone(), namespace, &name, &identity, times, log.clone());
        tokio::select! {
            () = election.win(standing_by) => Some(election),
            () = runtime.stop().stopped() => None,
        }
    }
}

/// State of the process for the readiness probe.
#[derive(Default)]
struct Stage {
    standing_by: AtomicBool,
    working: AtomicBool,
}

/// `:8080` means every address of this host.
fn any_host(address: &str) -> String {
    if address.starts_with(':') { format!("0.0.0.0{address}") } else { address.to_owned() }
}
