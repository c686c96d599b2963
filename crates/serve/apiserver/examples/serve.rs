//! Runs the API server alone: `cargo run -p fl-apiserver --example serve -- PORT DIR TOKEN [simulate]
//! [relaxed] [tls]`.

use fl_apiserver::store::{Store, Sync};
use fl_apiserver::{ApiServer, Listener, Options, Pki, SimulateOptions, User};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let port: u16 = args.next().unwrap_or_default().parse()?;
    let dir = args.next().ok_or("a directory is needed")?;
    let token = args.next().ok_or("a token is needed")?;
    let rest: Vec<String> = args.collect();
    let asked = |word: &str| rest.iter().any(|w| w == word);
    let simulate = asked("simulate").then(SimulateOptions::default);
    let store = Store::open(dir.as_ref(), if asked("relaxed") { Sync::Relaxed } else { Sync::Always })?;
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], port));
    let pki = asked("tls").then(|| Pki::generate(&[address.ip()])).transpose()?;
    let tokens = [(token, User::superuser("admin"))].into();
    let server = ApiServer::new(store, Options { tokens, simulate, ..Options::default() }).await?;
    let listener = Listener::bind(address, pki.as_ref()).await?;
    listener.serve(server).await;
    Ok(())
}
