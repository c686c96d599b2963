//! A server that does nothing but answer: what a client of a benchmark reaches at best, whoever serves it.
//!
//! `nothing` prints its address and answers `{}` to everything, over plain HTTP, until it is stopped.

use std::io::{BufRead as _, BufReader, Read as _, Result, Write as _};
use std::net::{TcpListener, TcpStream};

/// Answers the requests of one connection, one after the other.
fn answer(stream: TcpStream) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut writer = stream.try_clone()?;
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    while reader.read_line(&mut line)? > 0 {
        let status = if line.starts_with("POST ") { "201 Created" } else { "200 OK" };
        let mut length = 0;
        loop {
            line.clear();
            if reader.read_line(&mut line)? <= 2 {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().unwrap_or(0);
            }
        }
        std::io::copy(&mut reader.by_ref().take(length), &mut std::io::sink())?;
        writer.write_all(format!("HTTP/1.1 {status}\r\ncontent-length: 2\r\n\r\n{{}}").as_bytes())?;
        line.clear();
    }
    Ok(())
}

fn main() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("http://{}", listener.local_addr()?);
    for stream in listener.incoming() {
        let stream = stream?;
        // A client that goes away ends its connection, nothing else.
        std::thread::spawn(|| answer(stream));
    }
    Ok(())
}
