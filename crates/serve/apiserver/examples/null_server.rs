//! A server that answers `{}` to every request: the upper bound of what a benchmark client can reach.
//!
//! `null_server [--tls]` prints its address and runs until it is stopped: over plain HTTP, or over TLS with
//! the configuration of the API server, because encryption costs the client as well.

use std::io::{BufRead as _, BufReader, Read, Result, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use fl_apiserver::Pki;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// Answers the requests of one connection in sequence.
fn answer(stream: impl Read + Write) -> Result<()> {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    while stream.read_line(&mut line)? > 0 {
        let status = if line.starts_with("POST ") { "201 Created" } else { "200 OK" };
        let mut length = 0;
        loop {
            line.clear();
            if stream.read_line(&mut line)? <= 2 {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().unwrap_or(0);
            }
        }
        std::io::copy(&mut stream.by_ref().take(length), &mut std::io::sink())?;
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 2\r\n\r\n{{}}");
        stream.get_mut().write_all(answer.as_bytes())?;
        line.clear();
    }
    Ok(())
}

fn serve(stream: TcpStream, tls: Option<Arc<ServerConfig>>) -> anyhow::Result<()> {
    stream.set_nodelay(true)?;
    match tls {
        Some(config) => answer(StreamOwned::new(ServerConnection::new(config)?, stream))?,
        None => answer(stream)?,
    }
    Ok(())
}

/// The configuration of the API server without HTTP/2, which this server does not support.
fn tls(listener: &TcpListener) -> anyhow::Result<Arc<ServerConfig>> {
    let pki = Pki::generate(&[listener.local_addr()?.ip()])?;
    let mut config = pki.server_config()?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn main() -> anyhow::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let tls = std::env::args().any(|word| word == "--tls").then(|| tls(&listener)).transpose()?;
    println!("{}://{}", if tls.is_some() { "https" } else { "http" }, listener.local_addr()?);
    for stream in listener.incoming() {
        let (stream, tls) = (stream?, tls.clone());
        // An error ends only the connection of this client.
        std::thread::spawn(|| serve(stream, tls));
    }
    Ok(())
}
