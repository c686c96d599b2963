//! A server that does nothing but answer: what a client of a benchmark reaches at best, whoever serves it.
//!
//! `nothing [--tls]` prints its address and answers `{}` to everything until it is stopped: over plain HTTP, or over TLS as the
//! API server has it, because encryption costs the client as well.

use std::io::{BufRead as _, BufReader, Read, Result, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use fl_apiserver::Pki;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// Answers the requests of one connection, one after the other.
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

/// The server's own configuration, but for HTTP/2, which is not spoken here.
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
        // A client that goes away ends its connection, nothing else.
        std::thread::spawn(|| serve(stream, tls));
    }
    Ok(())
}
