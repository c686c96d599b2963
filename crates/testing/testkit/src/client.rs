//! A client for tests: plain requests, and server-side apply of any object.

use std::sync::Arc;

use anyhow::{Context, bail};
use fl_types::split_api_version;
use rustls::ClientConfig;
use serde_json::Value;

use crate::http::{Request, Response, send};

/// Talks to one API server as an administrator.
#[derive(Clone, Debug)]
pub struct Client {
    pub(crate) tls: Arc<ClientConfig>,
    pub(crate) port: u16,
    pub(crate) token: String,
}

impl Client {
    /// Any request.
    ///
    /// # Errors
    /// When there is no answer; a refusal is an answer.
    pub fn request(
        &self,
        method: &str,
        path: &str,
        content_type: &str,
        body: &[u8],
    ) -> anyhow::Result<Response> {
        let request = Request { method, path, token: &self.token, content_type, body };
        send(&self.tls, self.port, &request).with_context(|| format!("{method} {path}"))
    }

    /// A GET.
    ///
    /// # Errors
    /// When there is no answer.
    pub fn get(&self, path: &str) -> anyhow::Result<Response> {
        self.request("GET", path, "application/json", b"")
    }

    /// The path of an object, found by asking the server which kinds it serves.
    ///
    /// # Errors
    /// When the server does not serve the kind, or the object has no name.
    pub fn path_of(&self, object: &Value) -> anyhow::Result<String> {
        let text = |v: &Value| v.as_str().map(str::to_owned);
        let api_version = text(&object["apiVersion"]).context("the object has no apiVersion")?;
        let kind = text(&object["kind"]).context("the object has no kind")?;
        let name = text(&object["metadata"]["name"]).context("the object has no name")?;
        let base = match split_api_version(&api_version) {
            ("", version) => format!("/api/{version}"),
            (group, version) => format!("/apis/{group}/{version}"),
        };
        let served = self.get(&base)?;
        if !served.is_success() {
            bail!("{api_version} is not served: {}", served.message());
        }
        let resources = served.json();
        let resources = resources["resources"].as_array().cloned().unwrap_or_default();
        let resource = resources
            .iter()
            .find(|r| r["kind"] == kind.as_str() && r["name"].as_str().is_some_and(|n| !n.contains('/')))
            .with_context(|| format!("{api_version} has no kind {kind}"))?;
        let plural = text(&resource["name"]).context("a resource without a name")?;
        if resource["namespaced"] == true {
            let namespace = text(&object["metadata"]["namespace"]).unwrap_or_else(|| "default".to_owned());
            return Ok(format!("{base}/namespaces/{namespace}/{plural}/{name}"));
        }
        Ok(format!("{base}/{plural}/{name}"))
    }

    /// Applies an object on the server with strict validation of fields.
    ///
    /// # Errors
    /// When there is no answer, or the kind is not served.
    pub fn apply(&self, object: &Value) -> anyhow::Result<Response> {
        let path = self.path_of(object)?;
        let query = "fieldManager=fl-testkit&force=true&fieldValidation=Strict";
        let body = object.to_string();
        self.request("PATCH", &format!("{path}?{query}"), "application/apply-patch+yaml", body.as_bytes())
    }
}
