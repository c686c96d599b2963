//! `fluorite apiserver`: a Kubernetes API server in one process, for laptops, pipelines and tests.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, bail};
use fl_apiserver::store::{Store, Sync};
use fl_apiserver::{
    ApiServer, Listener, Options, Pki, Renewal, SimulateOptions, User, create_private_files, kubeconfig,
    private_dir, write_private,
};

/// Runs until it is interrupted
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Address to listen on; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:6443")]
    listen: SocketAddr,
    /// Directory of the objects and certificates; without it everything is kept in memory
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Where to write a kubeconfig for the administrator
    #[arg(long, value_name = "FILE")]
    kubeconfig_out: Option<PathBuf>,
    /// Serve plain HTTP; loopback addresses only
    #[arg(long)]
    insecure_http: bool,
    /// Bearer token of the administrator; made anew when absent
    #[arg(long, value_name = "TOKEN", env = "FLUORITE_APISERVER_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// When a write counts as done: `always` on the disk, `relaxed` in memory (for throw-away servers)
    #[arg(long, value_name = "MODE", default_value = "always")]
    sync: SyncMode,
    /// Let workloads reach their ready state without running them, after this many milliseconds
    #[arg(long, value_name = "MILLISECONDS", num_args = 0..=1, require_equals = true, default_missing_value = "500")]
    simulate_workloads: Option<u64>,
    /// Nodes to simulate
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    simulate_nodes: u32,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum SyncMode {
    Always,
    Relaxed,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        runtime.block_on(self.serve())
    }

    async fn serve(self) -> anyhow::Result<()> {
        create_private_files();
        let token = match &self.token {
            Some(token) if token.trim().is_empty() => bail!(
                "the bearer token is empty; give one with --token or FLUORITE_APISERVER_TOKEN, or neither and one is made"
            ),
            Some(token) => token.clone(),
            None => random_token()?,
        };
        let sync = match self.sync {
            SyncMode::Always => Sync::Always,
            SyncMode::Relaxed => Sync::Relaxed,
        };
        let (store, pki, signing_key) = match &self.data_dir {
            Some(dir) => {
                private_dir(dir).with_context(|| format!("cannot use {}", dir.display()))?;
                let pki_dir = dir.join("pki");
                let pki = (!self.insecure_http)
                    .then(|| Pki::load_or_generate(&pki_dir, &[self.listen.ip()]))
                    .transpose()?;
                let store = Store::open(&dir.join("store"), sync)
                    .with_context(|| format!("cannot open the store in {}", dir.display()))?;
                (store, pki, Some(signing_key(&pki_dir)?))
            }
            None => {
                let pki = (!self.insecure_http).then(|| Pki::generate(&[self.listen.ip()])).transpose()?;
                (Store::in_memory(), pki, None)
            }
        };
        let listener = Listener::bind(self.listen, pki.as_ref()).await?;
        let options = Options {
            tokens: [(token.clone(), User::superuser("fluorite-admin"))].into(),
            signing_key,
            ca_pem: pki.as_ref().map(|p| p.ca.certificate.clone()),
            simulate: self.simulate_workloads.map(|millis| SimulateOptions {
                ready_after: Duration::from_millis(millis),
                nodes: self.simulate_nodes,
            }),
            ..Options::default()
        };
        let server = ApiServer::new(store, options).await?;
        let url = listener.url();
        let write_kubeconfig = |pki: Option<&Pki>| -> anyhow::Result<()> {
            let Some(path) = &self.kubeconfig_out else { return Ok(()) };
            let client = pki.map(|p| (p.admin.certificate.as_str(), p.admin.key.as_str()));
            let text = kubeconfig(&url, pki.map(|p| p.ca.certificate.as_str()), &token, client);
            write_private(path, text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))
        };
        write_kubeconfig(pki.as_ref())?;
        let renewal = pki.zip(listener.certificate()).map(|(pki, certificate)| Renewal {
            pki,
            dir: self.data_dir.as_ref().map(|dir| dir.join("pki")),
            addresses: vec![self.listen.ip()],
            certificate,
        });
        let renewing = async {
            let Some(renewal) = renewal else { return std::future::pending().await };
            renewal
                .run(|renewed| {
                    let written =
                        renewed.map_err(anyhow::Error::msg).and_then(|pki| write_kubeconfig(Some(pki)));
                    match written {
                        Ok(()) => crate::output::note("renewed the certificates"),
                        Err(error) => {
                            crate::output::note(&format!("cannot renew the certificates: {error:#}"));
                        }
                    }
                })
                .await;
        };
        crate::output::note(&format!("serving the Kubernetes API on {url}"));
        tokio::select! {
            () = listener.serve(server) => {}
            () = renewing => {}
            () = super::interrupted() => {}
        }
        Ok(())
    }
}

/// 32 random bytes in hex.
fn random_token() -> anyhow::Result<String> {
    fl_apiserver::random_token().context("cannot make a token")
}

fn signing_key(dir: &std::path::Path) -> anyhow::Result<Vec<u8>> {
    let path = dir.join("service-account.key");
    match std::fs::read(&path) {
        Ok(key) => return Ok(key),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
        Err(e) => return Err(e).with_context(|| format!("cannot read {}", path.display())),
    }
    let key = fl_apiserver::generate_signing_key().map_err(anyhow::Error::msg)?;
    private_dir(dir)?;
    write_private(&path, &key).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(key)
}
