//! A connection through a proxy, for SSH: HTTP's CONNECT or SOCKS 5.

use std::io;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fl_http::Proxy;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use url::Url;

fn bad(problem: impl Into<String>) -> io::Error {
    io::Error::other(problem.into())
}

pub(crate) async fn connect(proxy: &Proxy, host: &str, port: u16) -> io::Result<TcpStream> {
    let url = Url::parse(&proxy.address).map_err(|_| bad("the proxy's address is not a URL"))?;
    let proxy_host = url.host_str().ok_or_else(|| bad("the proxy's address has no host"))?;
    let default = if url.scheme() == "http" { 80 } else { 1080 };
    let stream = TcpStream::connect((proxy_host, url.port().unwrap_or(default))).await?;
    match url.scheme() {
        "socks5" | "socks5h" => socks(stream, proxy, host, port).await,
        "http" => http_connect(stream, proxy, host, port).await,
        other => Err(bad(format!("a proxy of scheme {other} cannot carry SSH, use http or socks5"))),
    }
}

async fn http_connect(mut stream: TcpStream, proxy: &Proxy, host: &str, port: u16) -> io::Result<TcpStream> {
    let mut request = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n");
    if !proxy.username.is_empty() {
        let pair = STANDARD.encode(format!("{}:{}", proxy.username, proxy.password.expose()));
        request.push_str(&format!("Proxy-Authorization: Basic {pair}\r\n"));
    }
    request.push_str("\r\n");
    stream.write_all(request.as_bytes()).await?;
    // Byte by byte: what follows the answer belongs to the other side.
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        if answer.len() > 8192 {
            return Err(bad("the proxy's answer does not end"));
        }
        answer.push(stream.read_u8().await?);
    }
    let status = String::from_utf8_lossy(&answer);
    let code = status.split(' ').nth(1).unwrap_or_default();
    if code == "200" {
        Ok(stream)
    } else {
        Err(bad(format!("the proxy refused the connection with status {code}")))
    }
}

async fn socks(mut stream: TcpStream, proxy: &Proxy, host: &str, port: u16) -> io::Result<TcpStream> {
    let with_login = !proxy.username.is_empty();
    stream.write_all(&[5, 1, if with_login { 2 } else { 0 }]).await?;
    let mut answer = [0; 2];
    stream.read_exact(&mut answer).await?;
    match (answer, with_login) {
        ([5, 0], false) => {}
        ([5, 2], true) => {
            let part = |text: &str| -> io::Result<Vec<u8>> {
                let length = u8::try_from(text.len()).map_err(|_| bad("the proxy's login is too long"))?;
                Ok([&[length], text.as_bytes()].concat())
            };
            let login = [vec![1], part(&proxy.username)?, part(proxy.password.expose())?].concat();
            stream.write_all(&login).await?;
            stream.read_exact(&mut answer).await?;
            if answer[1] != 0 {
                return Err(bad("the proxy refused the login"));
            }
        }
        _ => return Err(bad("the proxy offers no way to log in")),
    }
    let length = u8::try_from(host.len()).map_err(|_| bad("the host's name is too long"))?;
    let request = [&[5, 1, 0, 3, length], host.as_bytes(), &port.to_be_bytes()].concat();
    stream.write_all(&request).await?;
    let mut head = [0; 4];
    stream.read_exact(&mut head).await?;
    if head[1] != 0 {
        return Err(bad(format!("the proxy refused the connection with code {}", head[1])));
    }
    let rest = match head[3] {
        1 => 4,
        4 => 16,
        3 => usize::from(stream.read_u8().await?),
        _ => return Err(bad("the proxy's answer is malformed")),
    };
    stream.read_exact(&mut vec![0; rest + 2]).await?;
    Ok(stream)
}
