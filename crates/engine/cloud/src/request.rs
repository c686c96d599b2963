//! HTTP requests and parsing of responses.

use fl_types::Secret;
use serde_json::Value;

use crate::{CloudError, Destinations, Token};

/// An HTTP request.
#[derive(Clone, Debug)]
pub struct CloudRequest {
    /// `GET` or `POST`.
    pub method: &'static str,
    /// URL.
    pub url: String,
    /// Names in lower case, and values.
    pub headers: Vec<(&'static str, Secret<String>)>,
    /// Body.
    pub body: Secret<Vec<u8>>,
}

impl CloudRequest {
    /// A request without a body.
    pub fn get(url: String) -> Self {
        CloudRequest { method: "GET", url, headers: Vec::new(), body: Secret::default() }
    }

    pub fn post(url: String, kind: &str, body: String) -> Self {
        let headers = vec![("content-type", Secret::new(kind.to_owned()))];
        CloudRequest { method: "POST", url, headers, body: Secret::new(body.into_bytes()) }
    }

    pub fn form(url: String, fields: &[(&str, &str)]) -> Self {
        let pairs: Vec<String> = fields.iter().map(|(k, v)| format!("{k}={}", percent(v))).collect();
        Self::post(url, "application/x-www-form-urlencoded", pairs.join("&"))
    }

    pub fn json(url: String, body: &Value) -> Self {
        Self::post(url, "application/json", body.to_string())
    }

    /// Adds a bearer token.
    ///
    /// # Errors
    /// The token must not be sent to this address; `what` names the token.
    pub fn bearer(mut self, what: &str, token: &Token) -> Result<Self, CloudError> {
        let token = token.for_address(what, &self.url)?;
        self.headers.push(("authorization", Secret::new(format!("Bearer {}", token.expose()))));
        Ok(self)
    }
}

/// Percent-encodes every byte except letters, digits and `-._~`.
pub fn percent(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for b in text.bytes() {
        match b {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(b)),
            _ => out.push_str(&format!("%{b:02X}")),
        }
    }
    out
}

/// Parses a successful response as JSON.
///
/// # Errors
/// Another status, or invalid JSON. The error contains at most one word of the response.
pub fn json_response(status: u16, body: &Secret<Vec<u8>>, who: &str) -> Result<Value, CloudError> {
    let parsed = serde_json::from_slice::<Value>(body.expose());
    if !(200..300).contains(&status) {
        // Services name the type of an error in one word; longer texts could repeat parts of the request.
        let word = parsed.ok().and_then(|v| {
            let word = [&v["error"], &v["error"]["status"], &v["error"]["code"], &v["__type"]];
            let word = word.iter().find_map(|w| w.as_str())?.to_owned();
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '#' | '-');
            (word.len() <= 60 && word.chars().all(plain)).then_some(word)
        });
        return Err(CloudError::Status { service: who.to_owned(), status, word });
    }
    parsed.map_err(|_| CloudError::NotJson(who.to_owned()))
}

/// Extracts the token from the response of a token service, restricted to these destinations.
///
/// # Errors
/// The response has no token.
pub fn access_token(answer: &Value, who: &str, destinations: Destinations) -> Result<Token, CloudError> {
    let token = answer["access_token"].as_str().filter(|t| !t.is_empty());
    token
        .map(|t| Token::new(Secret::new(t.to_owned()), destinations))
        .ok_or_else(|| CloudError::NoToken(who.to_owned()))
}
