//! Logins for registries, as Docker's configuration file and pull Secrets hold them.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use fl_http::Credentials;
use fl_types::Secret;
use serde::Deserialize;

use crate::Repository;

/// Logins by registry and path. The first that fits best is used.
#[derive(Clone, Debug, Default)]
pub struct Keychain(Vec<Entry>);

#[derive(Clone, Debug)]
struct Entry {
    /// `None` fits every registry.
    place: Option<Place>,
    credentials: Credentials,
}

#[derive(Clone, Debug)]
struct Place {
    host: String,
    port: Option<String>,
    path: String,
}

/// A configuration that cannot be used. No text of it is shown.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeychainError {
    #[error("the docker config is not valid JSON with an `auths` map")]
    Malformed,
    #[error(
        "the docker config names the credential helper `{0}`, which would be a program to run; put the login into `auths`"
    )]
    Helper(String),
    #[error("unable to decode auth field: {0}")]
    Login(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DockerConfig {
    #[serde(default)]
    auths: BTreeMap<String, Login>,
    #[serde(default)]
    creds_store: Option<String>,
    #[serde(default)]
    cred_helpers: BTreeMap<String, String>,
}

#[derive(Deserialize, Default)]
struct Login {
    #[serde(default)]
    auth: String,
    #[serde(default)]
    username: String,
    #[serde(default)]
    password: String,
    #[serde(default)]
    identitytoken: String,
    #[serde(default)]
    registrytoken: String,
}

impl Keychain {
    /// Nobody.
    pub fn anonymous() -> Self {
        Self::default()
    }

    /// The same login for every registry this is used with.
    pub fn fixed(credentials: Credentials) -> Self {
        Self(vec![Entry { place: None, credentials }])
    }

    /// From a Docker configuration (`.dockerconfigjson`).
    pub fn from_docker_config(json: &[u8]) -> Result<Self, KeychainError> {
        let config: serde_json::Value = serde_json::from_slice(json).map_err(|_| KeychainError::Malformed)?;
        if !config.is_object() {
            // Read into the struct below, a list would be an empty configuration.
            return Err(KeychainError::Malformed);
        }
        let config: DockerConfig = serde_json::from_value(config).map_err(|_| KeychainError::Malformed)?;
        if config.auths.is_empty() {
            let helper = config.creds_store.or_else(|| config.cred_helpers.into_values().next());
            if let Some(helper) = helper.filter(|h| !h.is_empty()) {
                return Err(KeychainError::Helper(helper));
            }
        }
        let mut entries = Vec::new();
        for (place, login) in config.auths {
            if let Some(credentials) = read_login(login)? {
                entries.push(Entry { place: Some(Place::parse(&place)), credentials });
            }
        }
        // The longest path first, so that the most particular login wins.
        entries.sort_by_key(|e| std::cmp::Reverse(e.place.as_ref().map_or(0, |p| p.path.len())));
        Ok(Self(entries))
    }

    /// Adds the logins of another; these here come first.
    pub fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether there is a login for a registry's host at all.
    pub fn knows_host(&self, host: &str) -> bool {
        self.0.iter().any(|e| e.place.as_ref().is_none_or(|p| p.fits(host, "")))
    }

    /// The login for a repository.
    pub fn credentials(&self, repository: &Repository) -> Credentials {
        let fits =
            |e: &&Entry| e.place.as_ref().is_none_or(|p| p.fits(repository.registry(), repository.name()));
        self.0.iter().find(fits).map_or(Credentials::None, |e| e.credentials.clone())
    }
}

/// Where base64 stops to be that, as Go counts it.
fn first_bad_byte(text: &str) -> usize {
    let odd = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=' | '\r' | '\n'));
    text.find(odd).unwrap_or_else(|| text.trim_end_matches('=').len().saturating_sub(1))
}

fn read_login(login: Login) -> Result<Option<Credentials>, KeychainError> {
    if !login.registrytoken.is_empty() {
        return Ok(Some(Credentials::Bearer(Secret::new(login.registrytoken))));
    }
    let (username, password) = if login.auth.is_empty() {
        (login.username, login.password)
    } else {
        let auth = login.auth.replace(['\r', '\n'], "");
        // With padding or without.
        let bytes = match auth.ends_with('=') {
            true => STANDARD.decode(&auth),
            false => STANDARD_NO_PAD.decode(&auth),
        };
        let bytes = bytes.map_err(|_| {
            let at = first_bad_byte(&login.auth);
            KeychainError::Login(format!("illegal base64 data at input byte {at}"))
        })?;
        let bad = || KeychainError::Login("must be formatted as base64(username:password)".to_owned());
        let text = String::from_utf8(bytes).map_err(|_| bad())?;
        let (user, password) = text.split_once(':').ok_or_else(bad)?;
        (user.to_owned(), password.trim_end_matches('\0').to_owned())
    };
    if !login.identitytoken.is_empty() {
        return Ok(Some(Credentials::Basic {
            username: "<token>".to_owned(),
            password: Secret::new(login.identitytoken),
        }));
    }
    if username.is_empty() && password.is_empty() {
        return Ok(None);
    }
    Ok(Some(Credentials::Basic { username, password: Secret::new(password) }))
}

impl Place {
    /// `https://host/v1/`, `host:port/path` and `*.host` are all in use.
    fn parse(text: &str) -> Self {
        let text = text.split_once("://").map_or(text, |(_, rest)| rest);
        let (authority, path) = text.split_once('/').unwrap_or((text, ""));
        let path = path.trim_matches('/');
        let path = if path == "v1" || path == "v2" { "" } else { path };
        let (host, port) = split_port(authority);
        let host = if host == "docker.io" { "index.docker.io" } else { host };
        Self { host: host.to_ascii_lowercase(), port: port.map(str::to_owned), path: path.to_owned() }
    }

    fn fits(&self, registry: &str, name: &str) -> bool {
        let (host, port) = split_port(registry);
        let names: Vec<&str> = host.split('.').collect();
        let patterns: Vec<&str> = self.host.split('.').collect();
        let same_host = names.len() == patterns.len()
            && names.iter().zip(&patterns).all(|(name, pattern)| glob(pattern, &name.to_ascii_lowercase()));
        let below = name.strip_prefix(self.path.as_str());
        let same_path = self.path.is_empty()
            || name.is_empty()
            || below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        same_host && self.port.as_deref() == port && same_path
    }
}

fn split_port(authority: &str) -> (&str, Option<&str>) {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => {
            (host, Some(port))
        }
        _ => (authority, None),
    }
}

/// One label of a host name, with at most a few `*`.
fn glob(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(first) else { return false };
    let parts: Vec<&str> = rest.split('*').collect();
    let (last, middle) = parts.split_last().unwrap_or((&"", &[]));
    for part in middle {
        match text.find(part) {
            Some(at) => text = &text[at + part.len()..],
            None => return false,
        }
    }
    text.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(keychain: &Keychain, repository: &str) -> Option<String> {
        match keychain.credentials(&Repository::parse(repository).unwrap()) {
            Credentials::Basic { username, .. } => Some(username),
            _ => None,
        }
    }

    #[test]
    fn the_most_particular_login_wins() {
        let auth = |user: &str| STANDARD.encode(format!("{user}:p"));
        let json = format!(
            r#"{{"auths":{{"r.example":{{"auth":"{}"}},"https://r.example/team/":{{"auth":"{}"}},
            "*.corp.example:5000":{{"username":"c","password":"p"}},"https://index.docker.io/v1/":{{"auth":"{}"}}}}}}"#,
            auth("all"),
            auth("team"),
            auth("hub")
        );
        let keychain = Keychain::from_docker_config(json.as_bytes()).unwrap();
        assert_eq!(user(&keychain, "r.example/team/app").as_deref(), Some("team"));
        assert_eq!(user(&keychain, "r.example/teamster/app").as_deref(), Some("all"));
        assert_eq!(user(&keychain, "a.corp.example:5000/x/y").as_deref(), Some("c"));
        assert_eq!(user(&keychain, "a.corp.example/x/y"), None);
        assert_eq!(user(&keychain, "nginx").as_deref(), Some("hub"));
        assert!(keychain.knows_host("r.example") && !keychain.knows_host("other.example"));
    }

    #[test]
    fn unusable_configs_are_rejected_without_showing_them() {
        let refuse = |json: &str| Keychain::from_docker_config(json.as_bytes()).unwrap_err();
        assert_eq!(refuse("[]"), KeychainError::Malformed);
        assert_eq!(
            refuse(r#"{"credHelpers":{"r.example":"ecr-login"}}"#),
            KeychainError::Helper("ecr-login".into())
        );
        assert_eq!(
            refuse(r#"{"auths":{"r.example":{"auth":"!"}}}"#),
            KeychainError::Login("illegal base64 data at input byte 0".into())
        );
        assert_eq!(
            refuse(r#"{"auths":{"r.example":{"auth":"YWI"}}}"#).to_string(),
            "unable to decode auth field: must be formatted as base64(username:password)"
        );
        let keychain = Keychain::from_docker_config(br#"{"auths":{"r.example":{}}}"#).unwrap();
        assert_eq!(user(&keychain, "r.example/a/b"), None);
    }
}
