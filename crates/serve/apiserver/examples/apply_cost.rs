//! Measures the cost of one server-side apply without a socket: `cargo run --release -p fl-apiserver
//! --example apply_cost -- DIR [COUNT]`.

use fl_apiserver::store::{Store, Sync};
use fl_apiserver::{ApiServer, ConnectionInfo, Options, User};
use http_body_util::{BodyExt as _, Full};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut args = std::env::args().skip(1);
    let dir = args.next().ok_or_else(|| anyhow::anyhow!("a directory is needed"))?;
    let count: u32 = args.next().map_or(Ok(20_000), |count| count.parse())?;
    let store = Store::open(dir.as_ref(), Sync::Relaxed)?;
    let tokens = [("t".to_owned(), User::superuser("admin"))].into();
    let server = ApiServer::new(store, Options { tokens, ..Options::default() }).await?;
    let begin = std::time::Instant::now();
    for i in 0..count {
        let data: serde_json::Map<_, _> =
            (0..5).map(|j| (format!("k{j}"), format!("value-{i}-{j}").into())).collect();
        let body = serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data,
            "metadata": {"name": "seq", "labels": {"app": "bench"}}});
        let request =
            http::Request::patch("/api/v1/namespaces/default/configmaps/seq?fieldManager=bench&force=true")
                .header("authorization", "Bearer t")
                .header("accept", "application/json")
                .header("content-type", "application/apply-patch+yaml")
                .body(Full::new(bytes::Bytes::from(body.to_string())))?;
        let response = server.handle(request, ConnectionInfo::default()).await;
        let status = response.status();
        let answer = response.into_body().collect().await?.to_bytes();
        anyhow::ensure!(status.is_success(), "{status}: {}", String::from_utf8_lossy(&answer));
    }
    println!("{:.1} us each", begin.elapsed().as_secs_f64() * 1e6 / f64::from(count));
    Ok(())
}
