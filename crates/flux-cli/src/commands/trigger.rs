//! `trigger receiver`: calls a webhook; needs no access to the cluster.

use std::time::Duration;

use anyhow::{Context, bail};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::args::{Call, CommandResult, action};
use crate::command::{Node, Plain};
use crate::commands::create::webhook_path;
use crate::flag::{duration, number, text};
use crate::{VERSION, format as view, logger};

const OIDC: &str = "generic-oidc";
const TOKEN_VARIABLE: &str = "FLUX_TRIGGER_RECEIVER_OIDC_TOKEN";

pub(crate) fn node() -> Node {
    let receiver = Node::leaf(
        "receiver",
        "Call the webhook of a Receiver",
        action(|call: Call| async move { run(&call).await }),
    )
    .takes("NAME")
    .plain(Plain::Exactly(1))
    .flags(&[
        text("token", "Token of the Receiver; not for generic-oidc"),
        text("url", "Address of the webhook endpoint, with or without a path"),
        text("type", "Type of the Receiver: generic, generic-hmac or generic-oidc").or("generic"),
        text("oidc-provider", "Fetch the token from github or forgejo"),
        text("oidc-token", "Token for generic-oidc; also FLUX_TRIGGER_RECEIVER_OIDC_TOKEN"),
        text("oidc-audience", "Audience of a fetched token (default notification-controller)"),
        text("payload", "JSON to send").or("{}"),
        number("retries", "10", "How often to try again"),
        duration("retry-delay", "10s", "How long to wait before"),
    ])
    .example(
        "From a build",
        "trigger receiver deploy -n apps --url=https://flux.example.com --type=generic-hmac --token=$TOKEN",
    );
    Node::group("trigger", "Call webhooks", vec![receiver])
}

fn check(call: &Call) -> CommandResult {
    let kind = call.text("type");
    if !["generic", "generic-hmac", OIDC].contains(&kind) {
        bail!("invalid --type {kind:?}, must be one of: generic, generic-hmac, {OIDC}");
    }
    let given = |flag| !call.text(flag).is_empty();
    if kind != OIDC {
        if !given("token") {
            bail!("--token is required for --type={kind}");
        }
        if given("oidc-provider") || given("oidc-token") || given("oidc-audience") {
            bail!("--oidc-provider, --oidc-token and --oidc-audience can only be set for --type={OIDC}");
        }
        return Ok(());
    }
    if given("token") {
        bail!("--token must not be set for --type={OIDC}, the Receiver of this type has no secret");
    }
    if given("oidc-provider") && given("oidc-token") {
        bail!("--oidc-provider and --oidc-token are mutually exclusive");
    }
    if given("oidc-provider") && !["github", "forgejo"].contains(&call.text("oidc-provider")) {
        bail!("invalid --oidc-provider {:?}, must be one of: github, forgejo", call.text("oidc-provider"));
    }
    if given("oidc-audience") && !given("oidc-provider") {
        bail!("--oidc-audience can only be set together with --oidc-provider");
    }
    Ok(())
}

async fn run(call: &Call) -> CommandResult {
    let name = &call.args[0];
    if call.text("url").is_empty() {
        bail!("--url is required");
    }
    check(call)?;
    let limit = call.duration("timeout").to_std().unwrap_or_default();
    match tokio::time::timeout(limit, trigger(call, name)).await {
        Ok(result) => result,
        Err(_) => bail!("context deadline exceeded"),
    }
}

async fn trigger(call: &Call, name: &str) -> CommandResult {
    let (namespace, payload) = (call.namespace(), call.text("payload"));
    let url = format!(
        "{}{}",
        call.text("url").trim_end_matches('/'),
        webhook_path(call.text("token"), name, namespace)
    );
    let client = reqwest::Client::builder().build()?;
    let mut headers =
        vec![("Content-Type", "application/json".to_owned()), ("User-Agent", format!("flux/{VERSION}"))];
    match call.text("type") {
        "generic-hmac" => {
            let mut mac = Hmac::<Sha256>::new_from_slice(call.text("token").as_bytes()).context("token")?;
            mac.update(payload.as_bytes());
            headers.push(("X-Signature", format!("sha256={}", view::hex(&mac.finalize().into_bytes()))));
        }
        OIDC => headers.push(("Authorization", format!("Bearer {}", oidc_token(call, &client).await?))),
        _ => {}
    }
    logger::action(format!("triggering Receiver {namespace}/{name}"));
    let (retries, delay) = (call.number("retries"), call.duration("retry-delay"));
    let mut attempt = 0;
    loop {
        let Err((again, error)) = send(&client, &url, &headers, payload).await else {
            logger::success(format!("Receiver {namespace}/{name} triggered"));
            return Ok(());
        };
        if !again || attempt >= retries {
            bail!("{error}");
        }
        attempt += 1;
        logger::waiting(format!("{error}; retrying in {delay} ({attempt}/{retries})"));
        tokio::time::sleep(delay.to_std().unwrap_or(Duration::ZERO)).await;
    }
}

/// One request; an error says whether another try could help.
async fn send(
    client: &reqwest::Client,
    url: &str,
    headers: &[(&str, String)],
    payload: &str,
) -> Result<(), (bool, String)> {
    let mut request = client.post(url).body(payload.to_owned());
    for (key, value) in headers {
        request = request.header(*key, value);
    }
    let answer = match request.send().await {
        Ok(answer) => answer,
        Err(error) => {
            let why = format!("Post {}: {}", fl_go::quote(url), causes(url, &error));
            return Err((true, format!("request to {url} failed: {why}")));
        }
    };
    let status = answer.status();
    if status.is_success() {
        return Ok(());
    }
    let body = answer.text().await.unwrap_or_default();
    let mut message = format!("request to {url} failed with status {status}");
    if !body.trim().is_empty() {
        message.push_str(&format!(": {}", body.trim()));
    }
    Err((matches!(status.as_u16(), 404 | 408 | 429 | 500 | 502 | 503 | 504), message))
}

/// The root cause of an error, with Go's messages for common ones.
fn causes(url: &str, error: &(dyn std::error::Error + 'static)) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    if !["http", "https"].contains(&scheme) {
        return format!("unsupported protocol scheme {}", fl_go::quote(scheme));
    }
    let mut last = error;
    while let Some(cause) = last.source() {
        last = cause;
    }
    let refused = last
        .downcast_ref::<std::io::Error>()
        .is_some_and(|e| e.kind() == std::io::ErrorKind::ConnectionRefused);
    if refused {
        let host = rest.split('/').next().unwrap_or_default();
        return format!("dial tcp {host}: connect: connection refused");
    }
    last.to_string()
}

async fn oidc_token(call: &Call, client: &reqwest::Client) -> anyhow::Result<String> {
    if call.text("oidc-provider").is_empty() {
        let token = match call.text("oidc-token") {
            "" => std::env::var(TOKEN_VARIABLE).unwrap_or_default(),
            given => given.to_owned(),
        };
        if token.is_empty() {
            bail!(
                "no OIDC token provided: set --oidc-provider, --oidc-token or the {TOKEN_VARIABLE} environment variable"
            );
        }
        return Ok(token);
    }
    let variable = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
    let (Some(url), Some(bearer)) =
        (variable("ACTIONS_ID_TOKEN_REQUEST_URL"), variable("ACTIONS_ID_TOKEN_REQUEST_TOKEN"))
    else {
        bail!(
            "ACTIONS_ID_TOKEN_REQUEST_URL and ACTIONS_ID_TOKEN_REQUEST_TOKEN must be set in the environment; \
             ensure the Actions job has the 'id-token: write' permission"
        );
    };
    let audience = match call.text("oidc-audience") {
        "" => "notification-controller",
        given => given,
    };
    let mut url: url::Url = url.parse().context("ACTIONS_ID_TOKEN_REQUEST_URL")?;
    url.query_pairs_mut().append_pair("audience", audience);
    // In lower case, as the runners' own tools write it.
    let request = client.get(url.as_str()).header("Authorization", format!("bearer {bearer}"));
    let answer = request.send().await.context("unable to fetch OIDC token")?;
    if !answer.status().is_success() {
        bail!("unable to fetch OIDC token: status {}", answer.status());
    }
    let body: serde_json::Value = serde_json::from_slice(&answer.bytes().await?)?;
    match body["value"].as_str() {
        Some(token) if !token.is_empty() => Ok(token.to_owned()),
        _ => bail!("unable to fetch OIDC token: the answer has no value"),
    }
}
