//! A real control plane: etcd, kube-apiserver, and optionally some controllers.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use tempfile::TempDir;

use crate::client::Client;
use crate::process::Process;
use crate::{certificates, http, oracle};

const TOKEN: &str = "fl-testkit-administrator";
/// A busy machine takes its time; a healthy one needs a few seconds.
const START_TIMEOUT: Duration = Duration::from_secs(180);

/// Whether the garbage collector and the namespace controller run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Controllers {
    /// They do.
    Run,
    /// They do not: what is deleted stays until something removes it.
    Omit,
}

/// A running control plane. Dropping it ends its processes and removes its folder.
#[derive(Debug)]
pub struct ControlPlane {
    // Order matters: processes end before their folder goes, clients of etcd before etcd.
    processes: Vec<Process>,
    client: Client,
    kubeconfig: PathBuf,
    authority: PathBuf,
    folder: TempDir,
}

impl ControlPlane {
    /// Starts etcd and kube-apiserver and waits until the server is ready.
    ///
    /// # Errors
    /// When a tool is missing, does not start, or is not ready in time.
    pub fn start() -> anyhow::Result<Self> {
        Self::start_with(Controllers::Omit)
    }

    /// [`ControlPlane::start`], with or without controllers.
    ///
    /// # Errors
    /// When a tool is missing, does not start, or is not ready in time.
    pub fn start_with(controllers: Controllers) -> anyhow::Result<Self> {
        let etcd = oracle("etcd")?;
        let apiserver = oracle("kube-apiserver")?;
        let folder = tempfile::Builder::new().prefix("fl-testkit-").tempdir()?;
        let certificates = certificates::create(folder.path())?;
        let [etcd_port, peer_port, port, manager_port] = free_ports()?;

        let etcd_url = format!("http://127.0.0.1:{etcd_port}");
        let mut processes =
            vec![Process::start("etcd", &etcd, &etcd_args(&etcd_url, peer_port), folder.path())?];
        let tokens = folder.path().join("tokens.csv");
        std::fs::write(&tokens, format!("{TOKEN},administrator,administrator,\"system:masters\"\n"))?;
        let args = apiserver_args(&etcd_url, port, &tokens, &certificates);
        processes.insert(0, Process::start("kube-apiserver", &apiserver, &args, folder.path())?);

        let tls = http::tls(&certificates.authority_der)?;
        let client = Client { tls, port, token: TOKEN.to_owned() };
        wait_ready(&client, &mut processes)?;
        let kubeconfig = write_kubeconfig(folder.path(), port, &certificates.authority)?;
        if controllers == Controllers::Run {
            let manager = oracle("kube-controller-manager")?;
            let args = manager_args(&kubeconfig, manager_port);
            processes.insert(0, Process::start("kube-controller-manager", &manager, &args, folder.path())?);
        }
        Ok(ControlPlane { processes, client, kubeconfig, authority: certificates.authority, folder })
    }

    /// `https://127.0.0.1:<port>`
    #[must_use]
    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.client.port)
    }

    /// A token with every right.
    #[must_use]
    pub fn token(&self) -> &str {
        TOKEN
    }

    /// A kubeconfig with every right.
    #[must_use]
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The authority that signed the server's certificate, as PEM.
    #[must_use]
    pub fn authority(&self) -> &Path {
        &self.authority
    }

    /// A folder that lives as long as the control plane.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A client.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Fails when one of the processes has ended.
    ///
    /// # Errors
    /// The end of the log of that process.
    pub fn check(&mut self) -> anyhow::Result<()> {
        self.processes.iter_mut().try_for_each(Process::check)
    }
}

/// Ports that were free a moment ago. All are held until all are known, so that they differ.
fn free_ports<const N: usize>() -> anyhow::Result<[u16; N]> {
    let listeners = (0..N).map(|_| TcpListener::bind(("127.0.0.1", 0))).collect::<Result<Vec<_>, _>>()?;
    let mut ports = [0; N];
    for (port, listener) in ports.iter_mut().zip(&listeners) {
        *port = listener.local_addr()?.port();
    }
    Ok(ports)
}

fn etcd_args(url: &str, peer_port: u16) -> Vec<String> {
    let peer = format!("http://127.0.0.1:{peer_port}");
    vec![
        "--data-dir=etcd".to_owned(),
        format!("--listen-client-urls={url}"),
        format!("--advertise-client-urls={url}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=default={peer}"),
        // Nothing here must survive a power cut.
        "--unsafe-no-fsync".to_owned(),
        "--log-level=warn".to_owned(),
    ]
}

fn apiserver_args(
    etcd: &str,
    port: u16,
    tokens: &Path,
    certificates: &certificates::Certificates,
) -> Vec<String> {
    let issuer = "https://kubernetes.default.svc";
    vec![
        format!("--etcd-servers={etcd}"),
        "--bind-address=127.0.0.1".to_owned(),
        "--advertise-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        "--cert-dir=certificates".to_owned(),
        format!("--tls-cert-file={}", certificates.server_certificate.display()),
        format!("--tls-private-key-file={}", certificates.server_key.display()),
        format!("--token-auth-file={}", tokens.display()),
        "--authorization-mode=RBAC".to_owned(),
        "--service-cluster-ip-range=10.0.0.0/16".to_owned(),
        format!("--service-account-issuer={issuer}"),
        format!("--api-audiences={issuer}"),
        format!("--service-account-key-file={}", certificates.token_public_key.display()),
        format!("--service-account-signing-key-file={}", certificates.token_key.display()),
        "--endpoint-reconciler-type=none".to_owned(),
        // Pods are never run here, so their accounts need not exist.
        "--disable-admission-plugins=ServiceAccount".to_owned(),
        "--allow-privileged=true".to_owned(),
    ]
}

fn manager_args(kubeconfig: &Path, port: u16) -> Vec<String> {
    vec![
        format!("--kubeconfig={}", kubeconfig.display()),
        "--leader-elect=false".to_owned(),
        "--controllers=garbage-collector-controller,namespace-controller".to_owned(),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        "--cert-dir=manager-certificates".to_owned(),
    ]
}

fn wait_ready(client: &Client, processes: &mut [Process]) -> anyhow::Result<()> {
    let start = Instant::now();
    loop {
        processes.iter_mut().try_for_each(Process::check)?;
        if client.get("/readyz").is_ok_and(|answer| answer.body == b"ok") {
            return Ok(());
        }
        if start.elapsed() > START_TIMEOUT {
            let words = processes.iter().map(Process::last_words).collect::<Vec<_>>().join("\n");
            bail!("the API server is not ready after {} s:\n{words}", START_TIMEOUT.as_secs());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn write_kubeconfig(folder: &Path, port: u16, authority: &Path) -> anyhow::Result<PathBuf> {
    let server = format!("https://127.0.0.1:{port}");
    let config = serde_json::json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [{"name": "test", "cluster": {"server": server, "certificate-authority": authority}}],
        "users": [{"name": "administrator", "user": {"token": TOKEN}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "administrator"}}],
    });
    let path = folder.join("kubeconfig");
    // JSON is YAML.
    std::fs::write(&path, config.to_string()).context("cannot write the kubeconfig")?;
    Ok(path)
}
