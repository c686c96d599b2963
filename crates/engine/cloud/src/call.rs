//! A request, and what its answer says.

use fl_types::Secret;
use serde_json::Value;

use crate::{Destinations, Token};

/// A request.
#[derive(Clone, Debug)]
pub struct Call {
    /// `GET` or `POST`.
    pub method: &'static str,
    /// Where to.
    pub url: String,
    /// Names in lower case, and values.
    pub headers: Vec<(&'static str, Secret<String>)>,
    /// What is sent.
    pub body: Secret<Vec<u8>>,
}

impl Call {
    /// A request without a body.
    pub fn get(url: String) -> Self {
        Call { method: "GET", url, headers: Vec::new(), body: Secret::default() }
    }

    pub fn post(url: String, kind: &str, body: String) -> Self {
        let headers = vec![("content-type", Secret::new(kind.to_owned()))];
        Call { method: "POST", url, headers, body: Secret::new(body.into_bytes()) }
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
    /// When the token must not be sent to this address; `what` names it.
    pub fn bearer(mut self, what: &str, token: &Token) -> Result<Self, String> {
        let token = token.for_address(what, &self.url)?;
        self.headers.push(("authorization", Secret::new(format!("Bearer {}", token.expose()))));
        Ok(self)
    }
}

/// Every byte but letters, digits and `-._~` as `%XX`.
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

/// The answer of a service as JSON, when its status is good.
///
/// # Errors
/// Another status, or no JSON. Of the answer only a word is shown.
pub fn json_answer(status: u16, body: &Secret<Vec<u8>>, who: &str) -> Result<Value, String> {
    let parsed = serde_json::from_slice::<Value>(body.expose());
    if !(200..300).contains(&status) {
        // Services name the kind of a problem in a word; their longer texts could repeat what was sent.
        let word = parsed.ok().and_then(|v| {
            let word = [&v["error"], &v["error"]["status"], &v["error"]["code"], &v["__type"]];
            let word = word.iter().find_map(|w| w.as_str())?.to_owned();
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '#' | '-');
            (word.len() <= 60 && word.chars().all(plain)).then_some(word)
        });
        let word = word.map(|w| format!(" ({w})")).unwrap_or_default();
        return Err(format!("{who} answered with status {status}{word}"));
    }
    parsed.map_err(|_| format!("the answer of {who} is not JSON"))
}

/// The token in the answer of a token service, for these destinations.
///
/// # Errors
/// There is none.
pub fn access_token(answer: &Value, who: &str, destinations: Destinations) -> Result<Token, String> {
    let token = answer["access_token"].as_str().filter(|t| !t.is_empty());
    token
        .map(|t| Token::new(Secret::new(t.to_owned()), destinations))
        .ok_or_else(|| format!("the answer of {who} holds no token"))
}
