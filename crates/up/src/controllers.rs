//! Everything in one process: the API server with simulated workloads (or a real cluster), the artifact store and the
//! controllers, put together as `fluorite run` does.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context as _, bail};
use fl_apiserver::store::{Store as Objects, StoreError, Sync};
use fl_apiserver::{
    ApiServer, ListenError, Listener, Options as ServerOptions, Pki, Renewal, SimulateOptions, User,
    kubeconfig,
};
use fl_artifact_store::{Retention, Store, StoreOptions};
use fl_http::AddressPolicy;
use fl_runtime::leader_election::{self, Election};
use fl_runtime::{
    ArtifactFetcher, Client, ClientError, Connection, Kind, Log, Options, Patch, Resolver, Runtime, Shutdown,
    Write,
};
use fl_source::git::GitClient;
use tokio::net::TcpListener;

use super::bootstrap_objects::{MANAGED_BY, MANAGER};
use super::state_dir::{Folder, Settings, corrupt, write_atomically};

/// How long a simulated Pod takes to become ready.
const POD_READY_DELAY: Duration = Duration::from_millis(300);
/// How long a kind may take to be served after its definition was accepted.
const CRD_TIMEOUT: Duration = Duration::from_secs(60);

/// How long `up` waits for a lease that another process holds.
const LEASE_TIMEOUT: Duration = Duration::from_secs(60);

/// The controllers of one of Flux's, which `fluorite run --components` can start alone.
pub struct Component {
    /// Flux's name of the controller; it names the lease.
    pub controller: &'static str,
    pub add: AddControllers,
}

/// Adds the controllers of a component to the runtime of the shared parts.
pub type AddControllers = Box<dyn Fn(&SharedParts) -> anyhow::Result<()>>;

impl std::fmt::Debug for Component {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Component").field("controller", &self.controller).finish_non_exhaustive()
    }
}

/// What the controllers of one process share.
#[derive(Clone)]
pub struct SharedParts {
    pub runtime: Runtime,
    pub store: Store,
    pub resolver: Resolver,
    pub artifacts: ArtifactFetcher,
    pub git: Arc<dyn GitClient>,
    /// Where remote bases of kustomizations may be fetched from.
    pub remote_bases: AddressPolicy,
}

impl std::fmt::Debug for SharedParts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedParts").finish_non_exhaustive()
    }
}

/// The cluster that is delivered to.
pub(super) struct Target {
    pub(super) cluster: Client,
    pub(super) connection: Option<Connection>,
    /// Its address for other clients.
    pub(super) url: String,
    /// The embedded server, which stops when this is dropped.
    pub(super) server: Option<ApiServer>,
}

/// Starts the embedded API server on the state directory.
pub(super) async fn embedded(
    folder: &Folder,
    settings: &mut Settings,
    listen: Option<SocketAddr>,
    stop: &Shutdown,
) -> anyhow::Result<Target> {
    let dir = folder.path("server");
    let listen_ip = listen.map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |a| a.ip());
    if !listen_ip.is_loopback() {
        bail!(
            "--listen {listen_ip} is not a loopback address; `up` serves this machine only; use `fluorite apiserver` for others"
        );
    }
    let broken = |problem: String| anyhow::anyhow!(corrupt(folder.root(), &problem));
    let pki = certificates(&dir, listen_ip).map_err(&broken)?;
    let store = Objects::open(&dir.join("store"), Sync::Always).map_err(|e| match e {
        StoreError::Corrupt { .. } | StoreError::Missing { .. } => broken(e.to_string()),
        other => anyhow::Error::new(other).context("cannot open the store of the embedded API server"),
    })?;
    let token = token(&dir.join("token")).map_err(&broken)?;
    let key = signing_key(&dir.join("service-account.key")).map_err(&broken)?;
    let listener = bind(&pki, settings.api.as_deref(), listen).await?;
    let options = ServerOptions {
        tokens: [(token.clone(), User::superuser("fluorite-admin"))].into(),
        signing_key: Some(key),
        ca_pem: Some(pki.ca.certificate.clone()),
        simulate: Some(SimulateOptions { ready_after: POD_READY_DELAY, nodes: 1 }),
        ..ServerOptions::default()
    };
    let server = ApiServer::new(store, options).await.map_err(|e| broken(chain(&e)))?;
    let url = listener.url();
    settings.api = url.strip_prefix("https://").map(str::to_owned);
    let path = folder.path("kubeconfig");
    let write_kubeconfig = {
        let (url, path) = (url.clone(), path.clone());
        move |pki: &Pki| {
            let admin = Some((pki.admin.certificate.as_str(), pki.admin.key.as_str()));
            let text = kubeconfig(&url, Some(&pki.ca.certificate), &token, admin);
            write_atomically(&path, text.as_bytes())
        }
    };
    write_kubeconfig(&pki)?;
    let renewal = listener.certificate().map(|certificate| Renewal {
        pki,
        dir: Some(dir.join("pki")),
        addresses: vec![listen_ip],
        certificate,
    });
    let (served, ending) = (server.clone(), stop.clone());
    tokio::spawn(async move {
        let renewing = async {
            let Some(renewal) = renewal else { return std::future::pending().await };
            // A failed renewal is retried half a day later, months before the certificates expire.
            renewal.run(|renewed| drop(renewed.map(&write_kubeconfig))).await;
        };
        tokio::select! {
            () = listener.serve(served) => {}
            () = renewing => {}
            () = ending.stopped() => {}
        }
    });
    let client =
        Client::over(server.service(User::superuser("fluorite-up")), &fl_client::Settings::default());
    let options = fl_runtime::ConnectOptions { kubeconfig: Some(path), context: None };
    let connection = Connection::open(&options).await?;
    Ok(Target { cluster: client, connection: Some(connection), url, server: Some(server) })
}

/// Connects to a real cluster.
pub(super) async fn real(context: &str, kubeconfig: Option<PathBuf>) -> anyhow::Result<Target> {
    let options = fl_runtime::ConnectOptions { kubeconfig, context: Some(context.to_owned()) };
    let connection = Connection::open(&options).await.with_context(|| {
        format!("the context `{context}` cannot be used; `kubectl config get-contexts` lists the contexts")
    })?;
    let url = connection.address();
    let cluster = connection.client(&fl_runtime::Identity::Engine, &fl_client::Settings::default())?;
    let kind = Kind::namespace();
    let asked = cluster.list(&kind, None, "");
    let answer = match tokio::time::timeout(Duration::from_secs(10), asked).await {
        Ok(answer) => answer,
        Err(_) => {
            Err(ClientError::Deadline { request: "GET /version".to_owned(), limit: Duration::from_secs(10) })
        }
    };
    if let Err(error) = answer {
        let what = match &error {
            ClientError::Transport { .. } | ClientError::Deadline { .. } => {
                "cannot be reached; is it running?"
            }
            _ => "rejects the request;",
        };
        return Err(anyhow::Error::new(error)).with_context(|| {
            format!("the cluster of the context `{context}` ({url}) {what} nothing was changed")
        });
    }
    Ok(Target { cluster, connection: Some(connection), url, server: None })
}

/// Binds the requested address, or fails; without one the address of the last run if it is free, else any free port.
async fn bind(pki: &Pki, last: Option<&str>, asked: Option<SocketAddr>) -> anyhow::Result<Listener> {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let taken = |error: ListenError, address: SocketAddr| match &error {
        ListenError::Bind { source, .. } if source.kind() == std::io::ErrorKind::AddrInUse => {
            anyhow::anyhow!(
                "{address} is taken by another program; use another port with --listen, or omit it for a free one"
            )
        }
        ListenError::Bind { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => {
            anyhow::anyhow!("no permission to listen on {address}; use a port above 1023 with --listen")
        }
        _ => anyhow::Error::new(error),
    };
    if let Some(address) = asked {
        return Listener::bind(address, Some(pki)).await.map_err(|e| taken(e, address));
    }
    if let Some(address) = last.and_then(|l| l.parse().ok())
        && let Ok(listener) = Listener::bind(address, Some(pki)).await
    {
        return Ok(listener);
    }
    Listener::bind(any, Some(pki)).await.map_err(|e| taken(e, any))
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}

/// The administrator's token; created if the file is missing or empty.
fn token(path: &Path) -> Result<String, String> {
    match std::fs::read_to_string(path) {
        Ok(text) if !text.trim().is_empty() => return Ok(text),
        Ok(_) => {}
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
        Err(e) => return Err(format!("{}: {e}", path.display())),
    }
    let text = fl_apiserver::random_token().ok_or("no randomness to generate a token")?;
    write_atomically(path, text.as_bytes()).map_err(|e| format!("{e:#}"))?;
    Ok(text)
}

/// The certificates of the state directory, created as a set: an interrupted first start leaves none.
fn certificates(dir: &Path, listen: IpAddr) -> Result<Pki, String> {
    let (place, new) = (dir.join("pki"), dir.join("pki.new"));
    let text = |e: std::io::Error| format!("{}: {e}", place.display());
    if !place.exists() {
        if new.exists() {
            std::fs::remove_dir_all(&new).map_err(text)?;
        }
        Pki::load_or_generate(&new, &[listen]).map_err(|e| chain(&e))?;
        std::fs::rename(&new, &place).map_err(text)?;
    }
    Pki::load_or_generate(&place, &[listen]).map_err(|e| chain(&e))
}

fn signing_key(path: &Path) -> Result<Vec<u8>, String> {
    match std::fs::read(path) {
        Ok(key) if !key.is_empty() => return Ok(key),
        Ok(_) => {}
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
        Err(e) => return Err(format!("{}: {e}", path.display())),
    }
    let key = fl_apiserver::generate_signing_key()?;
    write_atomically(path, &key).map_err(|e| format!("{e:#}"))?;
    Ok(key)
}

fn definitions() -> Kind {
    Kind::new("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", false)
}

/// All of Flux, including kinds without a controller here, so that repositories with such objects can be delivered.
fn flux() -> fl_install::Options {
    fl_install::Options {
        components: fl_install::Component::FLUX.into(),
        layout: fl_install::Layout::Split,
        ..fl_install::Options::new(concat!("v", env!("CARGO_PKG_VERSION")))
    }
}

/// Creates the service accounts of `flux install` with their permissions, because Kustomizations and HelmReleases refer to them.
/// Existing ones of a real cluster are not modified.
pub(super) async fn create_service_accounts(target: &Target) -> anyhow::Result<()> {
    let own = target.server.is_some();
    let write = Write { manager: MANAGER, force: true, ..Write::default() };
    for mut object in fl_install::accounts(&flux()) {
        object["metadata"]["labels"][MANAGED_BY] = MANAGER.into();
        let text = |pointer: &str| object.pointer(pointer).and_then(serde_json::Value::as_str);
        let kind = match text("/kind").unwrap_or_default() {
            "ServiceAccount" => Kind::new("", "v1", "ServiceAccount", "serviceaccounts", true),
            kind => {
                let plural = format!("{}s", kind.to_lowercase());
                Kind::new("rbac.authorization.k8s.io", "v1", kind, &plural, false)
            }
        };
        let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name").unwrap_or_default());
        if !own && target.cluster.get(&kind, namespace, name).await.is_ok() {
            continue;
        }
        target
            .cluster
            .patch(&kind, namespace, name, Patch::Apply, &object, &write)
            .await
            .with_context(|| format!("{} `{name}` of Flux was rejected", kind.kind()))?;
    }
    Ok(())
}

/// Installs the CRDs and waits until they are served. Existing ones of a real cluster are not modified.
pub(super) async fn install_kinds(target: &Target) -> anyhow::Result<()> {
    let cluster = &target.cluster;
    let own = target.server.is_some();
    let kind = definitions();
    let mut crds = fl_install::labelled_crds(&flux());
    crds.iter_mut().for_each(|crd| crd["metadata"]["labels"][MANAGED_BY] = MANAGER.into());
    let write = Write { manager: MANAGER, force: true, ..Write::default() };
    let apply = crds.iter().map(|crd| {
        let name = crd["metadata"]["name"].as_str().unwrap_or_default();
        let (kind, write) = (&kind, &write);
        async move {
            if !own {
                match cluster.get(kind, None, name).await {
                    Ok(_) => return Ok(()),
                    Err(error) if error.is_not_found() => {}
                    Err(error) => return Err(error),
                }
            }
            cluster.patch(kind, None, name, Patch::Apply, crd, write).await.map(|_| ())
        }
    });
    futures::future::try_join_all(apply).await.context("the CustomResourceDefinitions were rejected")?;
    let start = std::time::Instant::now();
    for crd in &crds {
        let text = |v: &serde_json::Value| v.as_str().unwrap_or_default().to_owned();
        let spec = &crd["spec"];
        let version = spec["versions"].as_array().into_iter().flatten().find(|v| v["storage"] == true);
        let served = Kind::new(
            &text(&spec["group"]),
            &version.map(|v| text(&v["name"])).unwrap_or_default(),
            &text(&spec["names"]["kind"]),
            &text(&spec["names"]["plural"]),
            spec["scope"] == "Namespaced",
        );
        while let Err(error) = cluster.list(&served, None, "").await {
            if !error.is_not_found() || start.elapsed() > CRD_TIMEOUT {
                return Err(error).with_context(|| format!("{} is not served", served.resource_name()));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    Ok(())
}

/// The controllers, ready to run.
pub(super) async fn controllers(
    folder: &Folder,
    settings: &mut Settings,
    target: &Target,
    git: Arc<dyn GitClient>,
    components: &[Component],
    stop: &Shutdown,
) -> anyhow::Result<Runtime> {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let last = settings.artifacts.as_deref().and_then(|a| a.parse::<SocketAddr>().ok());
    let listener = match last {
        Some(address) => match TcpListener::bind(address).await {
            Ok(listener) => listener,
            Err(_) => TcpListener::bind(any).await?,
        },
        None => TcpListener::bind(any).await?,
    };
    let address = listener.local_addr()?.to_string();
    settings.artifacts = Some(address.clone());
    let root = folder.path("artifacts");
    let store = Store::open(StoreOptions {
        root: root.clone(),
        advertised: address,
        algorithm: fl_types::Algorithm::Sha256,
        retention: Retention { ttl: Duration::from_secs(60), records: 2 },
    })
    .with_context(|| format!("cannot open the artifact store in {}", root.display()))?;
    let (served, ending) = (store.clone(), stop.clone());
    tokio::spawn(async move {
        fl_artifact_store::serve(&served, listener, fl_artifact_store::Hosts::Loopback, ending.stopped())
            .await;
    });

    let options = Options {
        graceful_shutdown_timeout: Duration::from_secs(5),
        // A user is watching: retry soon, and at least every minute.
        max_retry_delay: Duration::from_secs(60),
        // Repositories with an ArtifactGenerator consume its ExternalArtifacts.
        gates: "ExternalArtifact=true".parse()?,
        ..Options::default()
    };
    let log = Log::default();
    let runtime =
        Runtime::new(target.cluster.clone(), target.connection.clone(), options, stop.clone(), log.clone());
    let shared = SharedParts {
        artifacts: ArtifactFetcher::new(Some(store.clone()), runtime.options().http_retry, None)?,
        resolver: Resolver::new(&runtime),
        runtime: runtime.clone(),
        store,
        git,
        // The user chose the source, which may refer to servers on the same machine.
        remote_bases: AddressPolicy::default(),
    };
    for component in components {
        if target.server.is_none() {
            lead(component.controller, &runtime, &log).await?;
        }
        (component.add)(&shared)?;
    }
    runtime.watch_configs();
    Ok(runtime)
}

/// Acquires the lease of one of Flux's controllers on a real cluster: two engines would revert each other's changes.
async fn lead(controller: &str, runtime: &Runtime, log: &Log) -> anyhow::Result<()> {
    let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "localhost".to_owned());
    let identity = format!("{host}_{}", fl_apiserver::random_token().unwrap_or_default());
    let mut election = Election::new(
        runtime.cluster().clone(),
        &runtime.options().runtime_namespace,
        &leader_election::lease_name(controller, ""),
        &identity,
        leader_election::Times::default(),
        log.clone(),
    );
    let is_waiting = AtomicBool::default();
    tokio::select! {
        () = election.win(&is_waiting) => {}
        () = runtime.stop().stopped() => bail!("stopped"),
        () = tokio::time::sleep(LEASE_TIMEOUT) => bail!(
            "another engine runs on this cluster: the lease of {controller} is held. Stop it first (`kubectl -n flux-system scale deployment {controller} --replicas 0`), or use `fluorite up` without --context"
        ),
    }
    let stop = runtime.stop().clone();
    tokio::spawn(async move {
        let held = election.hold(&stop).await;
        stop.now();
        if let Some(election) = held {
            election.release().await;
        }
    });
    Ok(())
}

/// Adds context to an error while the bootstrap objects are applied.
pub(super) fn rejected(error: ClientError) -> anyhow::Error {
    anyhow::Error::new(error).context("the source and the Kustomization were rejected")
}
