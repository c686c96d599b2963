//! Paths outside the API groups: version, health, metrics, keys.

use std::sync::Arc;

use serde_json::json;

use super::Inner;
use super::dispatch::RequestContext;
use crate::auth::authenticate::ISSUER;
use crate::negotiate::Form;
use crate::response::{ApiResponse, respond};
use crate::status::{ApiError, ApiResult};

const CHECKS: [&str; 6] = [
    "ping",
    "log",
    "etcd",
    "poststarthook/rbac/bootstrap-roles",
    "poststarthook/start-apiextensions-controllers",
    "shutdown",
];

pub(super) async fn page(inner: &Arc<Inner>, ctx: &RequestContext, path: &str) -> ApiResult<ApiResponse> {
    match path {
        "" => Ok(ApiResponse::document(json!({"paths": paths(inner)}))),
        "/version" if ctx.accept.form != Form::Json => {
            Err(crate::negotiate::not_acceptable("application/json"))
        }
        "/version" => Ok(ApiResponse::document(version())),
        "/metrics" => Ok(ApiResponse::Raw(respond(
            200,
            "text/plain; version=0.0.4; charset=utf-8; escaping=underscores",
            metrics(inner),
        ))),
        "/openid/v1/jwks" => Ok(ApiResponse::Raw(respond(
            200,
            "application/jwk-set+json",
            inner.authenticator.signer.jwks().to_string(),
        ))),
        "/.well-known/openid-configuration" => Ok(ApiResponse::document(json!({
            "issuer": ISSUER, "jwks_uri": "https://kubernetes.default.svc.cluster.local/openid/v1/jwks",
            "response_types_supported": ["id_token"], "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"]
        }))),
        other => health(inner, ctx, other),
    }
}

/// The health endpoint that a path belongs to.
fn page_of(path: &str) -> Option<&'static str> {
    let below =
        |page: &str| path.strip_prefix(page).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    ["/healthz", "/livez", "/readyz"].into_iter().find(|page| below(page))
}

pub(super) fn is_health(path: &str) -> bool {
    page_of(path).is_some()
}

/// Health checks with kube-apiserver's names: one check, or all that are not excluded. `etcd` is the store.
fn health(inner: &Inner, ctx: &RequestContext, path: &str) -> ApiResult<ApiResponse> {
    let Some(kind) = page_of(path) else { return Err(ApiError::page_not_found()) };
    let check = path[kind.len()..].trim_start_matches('/');
    if !check.is_empty() && !CHECKS.contains(&check) {
        return Err(ApiError::page_not_found());
    }
    let answer = |code, text: String| Ok(ApiResponse::Raw(respond(code, "text/plain; charset=utf-8", text)));
    let failure = inner.store.failure();
    if !check.is_empty() {
        return match failure.filter(|_| check == "etcd") {
            Some(failure) => answer(500, format!("internal server error: {}\n", failure.brief())),
            None => answer(200, "ok".to_owned()),
        };
    }
    let excluded = ctx.query.all("exclude");
    let failure = failure.filter(|_| !excluded.iter().any(|name| name == "etcd"));
    if failure.is_none() && !ctx.query.has("verbose") {
        return answer(200, "ok".to_owned());
    }
    let line = |name: &&str| match &failure {
        _ if excluded.iter().any(|other| other == name) => format!("[+]{name} excluded: ok"),
        Some(failure) if *name == "etcd" => format!("[-]{name} failed: {}", failure.brief()),
        _ => format!("[+]{name} ok"),
    };
    let mut lines: Vec<String> = CHECKS.iter().map(line).collect();
    let (code, result) = if failure.is_some() { (500, "failed") } else { (200, "passed") };
    lines.push(format!("{} check {result}\n", kind.trim_start_matches('/')));
    answer(code, lines.join("\n"))
}

/// The version that clients and `kubectl version` see.
pub(crate) fn version() -> serde_json::Value {
    json!({
        "major": "1", "minor": "34", "emulationMajor": "1", "emulationMinor": "34",
        "minCompatibilityMajor": "1", "minCompatibilityMinor": "33",
        "gitVersion": concat!("v1.34.4+fluorite.", env!("CARGO_PKG_VERSION")), "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "none", "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, if cfg!(target_arch = "x86_64") { "amd64" } else { "arm64" })
    })
}

fn paths(inner: &Inner) -> Vec<String> {
    let registry = inner.registry();
    let mut out: Vec<String> =
        vec!["/.well-known/openid-configuration".into(), "/api".into(), "/api/v1".into(), "/apis".into()];
    for rt in registry.iter().filter(|t| !t.group.is_empty()) {
        out.push(format!("/apis/{}", rt.group));
        out.push(format!("/apis/{}/{}", rt.group, rt.version));
    }
    for page in ["/healthz", "/livez", "/readyz"] {
        out.push(page.to_owned());
        out.extend(CHECKS.iter().map(|c| format!("{page}/{c}")));
    }
    out.extend(["/metrics", "/openapi/v2", "/openapi/v3", "/openid/v1/jwks", "/version"].map(str::to_owned));
    out.sort();
    out.dedup();
    out
}

fn metrics(inner: &Inner) -> String {
    use std::fmt::Write as _;
    let mut out = String::from(
        "# HELP apiserver_storage_objects Number of stored objects by resource.\n# TYPE apiserver_storage_objects gauge\n",
    );
    for rt in inner.registry().stored() {
        let (_, items, _) = inner.store.list(&rt.storage.prefix, "", None, 0);
        let _ =
            writeln!(out, "apiserver_storage_objects{{resource={:?}}} {}", rt.group_resource(), items.len());
    }
    let _ = writeln!(
        out,
        "# HELP apiserver_storage_revision Newest revision of the store.\n# TYPE apiserver_storage_revision counter\napiserver_storage_revision {}",
        inner.store.revision()
    );
    out
}
