//! `create receiver`, `create alert`, `create alert-provider`.

use anyhow::bail;
use serde_json::{Value, json};

use super::checks::{kind_name, receiver_type, reference};
use super::{Fields, generating, labels, leaf, object, print, upsert};
use crate::args::{Call, CommandResult, action};
use crate::cluster::text_at;
use crate::command::Node;
use crate::flag::{checked, list, text};
use crate::resource_kinds;

pub(super) fn receiver_node() -> Node {
    leaf!("receiver", "Create or update a Receiver", receiver)
        .flags(&[
            checked("type", receiver_type, "Who calls: generic, generic-hmac, github, gitlab, bitbucket, harbor, dockerhub, quay, gcr, nexus, acr or cdevents"),
            text("secret-ref", "Secret with the token"),
            list("event", "Events to react to"),
            list("resource", "What to reconcile, kind/name"),
        ])
        .example(
            "Fetch when GitHub says push",
            "create receiver github --type=github --event=ping,push --secret-ref=webhook --resource=GitRepository/fleet",
        )
}

async fn receiver(call: &Call) -> CommandResult {
    if call.text("type").is_empty() {
        bail!("Receiver type is required");
    }
    if call.text("secret-ref").is_empty() {
        bail!("secret ref is required");
    }
    let mut resources = Vec::new();
    for resource in call.list("resource") {
        let (kind, name) = kind_name(resource);
        if kind.is_empty() {
            bail!("invalid event source '{resource}', must be in format <kind>/<name>");
        }
        resources.push(json!({"kind": kind, "name": name}));
    }
    if resources.is_empty() {
        bail!("atleast one resource is required");
    }
    let labels = labels(call)?;
    generating(call, "Receiver");
    let spec = Fields::default()
        .put("type", call.text("type"))
        .list("events", call.list("event"))
        .put("resources", resources)
        .name_of("secretRef", call.text("secret-ref"));
    let object = object(call, &resource_kinds::RECEIVER, &labels, spec);
    if call.on("export") {
        return print(&object);
    }
    let webhook = |_: &resource_kinds::Kind, done: &Value| {
        Some(format!("generated webhook URL {}", text_at(done, "/status/webhookPath")))
    };
    upsert::ready(call, &resource_kinds::RECEIVER, &object, webhook).await
}

pub(super) fn alert_node() -> Node {
    leaf!("alert", "Create or update an Alert", alert)
        .flags(&[
            text("provider-ref", "Provider to send to"),
            text("event-severity", "What to send: info or error"),
            list("event-source", "Whose events, kind/name[.namespace]"),
        ])
        .example(
            "Failures of everything",
            "create alert on-call --provider-ref=chat --event-severity=error --event-source=Kustomization/*",
        )
}

async fn alert(call: &Call) -> CommandResult {
    if call.text("provider-ref").is_empty() {
        bail!("provider ref is required");
    }
    let mut sources = Vec::new();
    for source in call.list("event-source") {
        let found = reference(source);
        if found.kind.is_empty() {
            bail!("invalid event source '{source}', must be in format <kind>/<name>");
        }
        sources.push(
            Fields::default()
                .text("kind", found.kind)
                .put("name", found.name)
                .text("namespace", found.namespace)
                .build(),
        );
    }
    if sources.is_empty() {
        bail!("at least one event source is required");
    }
    let labels = labels(call)?;
    generating(call, "Alert");
    let spec = Fields::default()
        .name_of("providerRef", call.text("provider-ref"))
        .text("eventSeverity", call.text("event-severity"))
        .put("eventSources", sources);
    let object = object(call, &resource_kinds::ALERT, &labels, spec);
    if call.on("export") {
        return print(&object);
    }
    upsert::ready(call, &resource_kinds::ALERT, &object, |_, _| None).await
}

pub(super) fn provider_node() -> Node {
    leaf!("alert-provider", "Create or update a Provider", provider)
        .flags(&[
            text("type", "Kind of provider, e.g. slack, generic or github"),
            text("channel", "Channel of a chat"),
            text("username", "Name of the bot"),
            text("address", "Address of the repository, chat or webhook"),
            text("secret-ref", "Secret with the token"),
        ])
        .example(
            "A chat channel",
            "create alert-provider chat --type=slack --channel=ops --secret-ref=slack-token",
        )
}

async fn provider(call: &Call) -> CommandResult {
    if call.text("type").is_empty() {
        bail!("Provider type is required");
    }
    let labels = labels(call)?;
    generating(call, "Provider");
    let spec = Fields::default()
        .put("type", call.text("type"))
        .text("channel", call.text("channel"))
        .text("username", call.text("username"))
        .text("address", call.text("address"))
        .name_of("secretRef", call.text("secret-ref"));
    let object = object(call, &resource_kinds::PROVIDER, &labels, spec);
    if call.on("export") {
        return print(&object);
    }
    upsert::ready(call, &resource_kinds::PROVIDER, &object, |_, _| None).await
}
