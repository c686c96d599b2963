//! The server alone, for work on the server: `cargo run -p fl-apiserver --example serve -- PORT DIR TOKEN [simulate]`.

use fl_apiserver::store::{Store, Sync};
use fl_apiserver::{ApiServer, Listener, Options, SimulateOptions, User};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let port: u16 = args.next().unwrap_or_default().parse()?;
    let dir = args.next().ok_or("a directory is needed")?;
    let token = args.next().ok_or("a token is needed")?;
    let simulate = args.next().map(|_| SimulateOptions::default());
    let store = Store::open(std::path::Path::new(&dir), Sync::Always)?;
    let tokens = [(token, User::superuser("admin"))].into();
    let server = ApiServer::new(store, Options { tokens, simulate, ..Options::default() }).await?;
    let listener = Listener::bind(([127, 0, 0, 1], port).into(), None).await?;
    listener.serve(server).await;
    Ok(())
}
