//! JSON over HTTP, as the hosts of repositories speak it.

use anyhow::{Context, bail};
use fl_http::{Client, HeaderName, Method, Request, Settings, header};
use fl_types::Secret;
use serde_json::Value;

/// The API of a host.
pub(super) struct Rest {
    client: Client,
    base: String,
    /// The header that carries the token, and its value.
    login: (HeaderName, Secret<String>),
}

impl Rest {
    /// # Errors
    /// A certificate authority that cannot be used.
    pub(super) fn new(
        base: String,
        login: (HeaderName, String),
        authority: Option<&[u8]>,
    ) -> anyhow::Result<Rest> {
        let settings =
            Settings { ca: authority.map(<[u8]>::to_vec), ..Settings::new(fl_http::Owner::engine()) };
        Ok(Rest { client: Client::new(settings)?, base, login: (login.0, Secret::new(login.1)) })
    }

    async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> anyhow::Result<(u16, Value)> {
        let url = if path.contains("://") { path.to_owned() } else { format!("{}{path}", self.base) };
        let mut request = Request::new(method, &url)?
            .header(self.login.0.clone(), self.login.1.expose())?
            .header(header::ACCEPT, "application/json")?
            .header(header::USER_AGENT, "fluorite")?;
        if let Some(body) = body {
            request = request.header(header::CONTENT_TYPE, "application/json")?.body(body.to_string());
        }
        let answer = self.client.send(request).await.with_context(|| format!("request to {url} failed"))?;
        let status = answer.status().as_u16();
        let bytes = answer.bytes(8 << 20).await?;
        Ok((status, serde_json::from_slice(&bytes).unwrap_or_default()))
    }

    /// What is at a path; `None` when nothing is.
    ///
    /// # Errors
    /// The host refuses, in its words.
    pub(super) async fn get(&self, path: &str) -> anyhow::Result<Option<Value>> {
        match self.send(Method::GET, path, None).await? {
            (404, _) => Ok(None),
            (status, answer) if status < 300 => Ok(Some(answer)),
            (status, answer) => bail!("provider error: {}", refusal(status, &answer)),
        }
    }

    /// All entries of a list; hosts give them page by page.
    pub(super) async fn list(&self, path: &str) -> anyhow::Result<Vec<Value>> {
        let mut all = Vec::new();
        for page in 1..=50 {
            let answer = self.get(&format!("{path}?per_page=100&limit=50&page={page}")).await?;
            let Some(Value::Array(items)) = answer else { break };
            // Fewer than the smaller of the two sizes: there is no further page.
            let last = items.len() < 50;
            all.extend(items);
            if last {
                break;
            }
        }
        Ok(all)
    }

    pub(super) async fn write(&self, method: Method, path: &str, body: &Value) -> anyhow::Result<Value> {
        match self.send(method, path, Some(body)).await? {
            (status, answer) if status < 300 => Ok(answer),
            (status, answer) => bail!("provider error: {}", refusal(status, &answer)),
        }
    }

    pub(super) async fn delete(&self, path: &str) -> anyhow::Result<()> {
        match self.send(Method::DELETE, path, None).await? {
            (status, _) if status < 300 || status == 404 => Ok(()),
            (status, answer) => bail!("provider error: {}", refusal(status, &answer)),
        }
    }
}

/// The host's own words, where it has any.
fn refusal(status: u16, answer: &Value) -> String {
    let text = ["/message", "/error_description", "/error", "/errors/0/message"]
        .iter()
        .find_map(|place| answer.pointer(place).map(|v| v.as_str().map_or(v.to_string(), str::to_owned)));
    match text {
        Some(text) => format!("status {status}: {text}"),
        None => format!("status {status}"),
    }
}

/// Text as one segment of a path.
pub(super) fn segment(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(byte.into()),
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn error_messages_of_the_host_are_shown() {
        assert_eq!(refusal(401, &json!({"message": "Bad credentials"})), "status 401: Bad credentials");
        assert_eq!(refusal(409, &json!({"errors": [{"message": "taken"}]})), "status 409: taken");
        assert_eq!(
            refusal(400, &json!({"message": {"name": ["taken"]}})),
            "status 400: {\"name\":[\"taken\"]}"
        );
        assert_eq!(refusal(502, &Value::Null), "status 502");
        assert_eq!(segment("acme/fleet infra"), "acme%2Ffleet%20infra");
    }
}
