//! `fluorite apiserver`: a Kubernetes API server in one process, for laptops, pipelines and tests.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use fl_apiserver::store::{Store, Sync};
use fl_apiserver::{ApiServer, Listener, Options, Pki, SimulateOptions, User, kubeconfig, write_private};

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
        let token = self.token.clone().map_or_else(random_token, Ok)?;
        let sync = match self.sync {
            SyncMode::Always => Sync::Always,
            SyncMode::Relaxed => Sync::Relaxed,
        };
        let (store, pki, signing_key) = match &self.data_dir {
            Some(dir) => {
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
        if let Some(path) = &self.kubeconfig_out {
            let client = pki.as_ref().map(|p| (p.admin.certificate.as_str(), p.admin.key.as_str()));
            let text = kubeconfig(&url, pki.as_ref().map(|p| p.ca.certificate.as_str()), &token, client);
            write_private(path, text.as_bytes())
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        crate::output::note(&format!("serving the Kubernetes API on {url}"));
        tokio::select! {
            () = listener.serve(server) => {}
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
    if let Ok(key) = std::fs::read(&path) {
        return Ok(key);
    }
    let key = fl_apiserver::generate_signing_key().map_err(anyhow::Error::msg)?;
    std::fs::create_dir_all(dir)?;
    write_private(&path, &key).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(key)
}
