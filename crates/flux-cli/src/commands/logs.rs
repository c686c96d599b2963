//! `logs`: the controllers' JSON logs as lines for people.

use anyhow::bail;
use jiff::Timestamp;
use serde_json::Value;

use crate::args::{Call, CommandResult, action};
use crate::cluster::{ApiError, Cluster, Resource, Select, name_of};
use crate::command::Node;
use crate::commands::check::PART_OF;
use crate::flag::{checked, duration, number, switch, text};
use crate::kubeconfig::DEFAULT_NAMESPACE;
use crate::logger;

pub(crate) fn node() -> Node {
    Node::leaf(
        "logs",
        "Show the logs of the controllers",
        action(|call: Call| async move { run(&call).await }),
    )
    .flags(&[
        checked("level", level, "Only this level: debug, info or error"),
        text("kind", "Only lines about this kind"),
        text("name", "Only lines about objects of this name"),
        switch("follow", "Go on and print lines as they come").short('f'),
        number("tail", "-1", "Only this many recent lines of each controller"),
        text("flux-namespace", "Namespace of the controllers").or(DEFAULT_NAMESPACE),
        switch("all-namespaces", "Lines about objects of all namespaces").short('A'),
        duration("since", "0s", "Only lines newer than this, e.g. 5m"),
        text("since-time", "Only lines after this time (RFC 3339)"),
    ])
    .example("Errors of the last hour, everywhere", "logs --level=error --since=1h -A")
    .example("Follow one object", "logs --kind=Kustomization --name=apps --follow")
}

fn level(text: &str) -> Result<String, String> {
    match text {
        "debug" | "info" | "error" => Ok(text.to_owned()),
        "" => Err("no log level given, must be one of: debug, info, error".to_owned()),
        _ => Err(format!("unsupported log level '{text}', must be one of: debug, info, error")),
    }
}

async fn run(call: &Call) -> CommandResult {
    let cluster = Cluster::connect(call).await?;
    if !call.args.is_empty() {
        bail!("no argument required");
    }
    let namespace = call.text("flux-namespace");
    let pods = pods(&cluster, namespace).await?;
    let query = query(call)?;
    let filter = Filter::of(call);
    let one = |pod: &Value| {
        let path = format!("/api/v1/namespaces/{namespace}/pods/{}/log", name_of(pod));
        let mut query = query.clone();
        let several = pod.pointer("/spec/containers").and_then(Value::as_array).is_some_and(|c| c.len() > 1);
        if several {
            query.push(("container", "manager".to_owned()));
        }
        let (cluster, filter) = (cluster.clone(), &filter);
        async move { cluster.lines(&path, &query, |line| filter.print(line)).await }
    };
    let mut failed = false;
    if call.on("follow") {
        for result in futures::future::join_all(pods.iter().map(one)).await {
            if let Err(error) = result
                && !matches!(error, ApiError::Deadline)
            {
                logger::note(&format!("failed getting logs: {error}\n"));
            }
        }
        return Ok(());
    }
    for pod in &pods {
        if let Err(error) = one(pod).await {
            logger::note(&format!("failed getting logs: {error}\n"));
            failed = true;
        }
    }
    if failed {
        bail!("failed to collect logs from all Flux pods");
    }
    Ok(())
}

fn query(call: &Call) -> anyhow::Result<Vec<(&'static str, String)>> {
    let mut query = Vec::new();
    if call.on("follow") {
        query.push(("follow", "true".to_owned()));
    }
    if call.number("tail") > -1 {
        query.push(("tailLines", call.number("tail").to_string()));
    }
    let (since, time) = (call.duration("since"), call.text("since-time"));
    if !time.is_empty() && since != fl_types::Duration::ZERO {
        bail!("at most one of `sinceTime` or `sinceDuration` may be specified");
    }
    if !time.is_empty() {
        let Ok(time) = time.parse::<Timestamp>() else { bail!("{time} is not a valid (RFC3339) time") };
        query.push(("sinceTime", time.to_string()));
    }
    if since != fl_types::Duration::ZERO {
        query.push(("sinceSeconds", format!("{:.0}", since.as_secs_f64().round().max(1.0))));
    }
    Ok(query)
}

/// One pod of each controller, one that runs if there is one.
async fn pods(cluster: &Cluster, namespace: &str) -> anyhow::Result<Vec<Value>> {
    let deployments = Resource::new("apps/v1", "Deployment", "deployments", true);
    let pods = Resource::new("v1", "Pod", "pods", true);
    let mut found = Vec::new();
    for deployment in cluster.list(&deployments, &Select::in_namespace(namespace).labelled(PART_OF)).await? {
        let labels = deployment.pointer("/spec/template/metadata/labels").and_then(Value::as_object);
        let labels: Vec<String> = labels
            .into_iter()
            .flatten()
            .map(|(k, v)| format!("{k}={}", v.as_str().unwrap_or_default()))
            .collect();
        let mut candidates =
            cluster.list(&pods, &Select::in_namespace(namespace).labelled(&labels.join(","))).await?;
        let rank = |p: &Value| {
            (
                p.pointer("/spec/nodeName").is_none(),
                p.pointer("/status/phase") != Some(&Value::from("Running")),
            )
        };
        candidates.sort_by_key(|p| rank(p));
        found.extend(candidates.into_iter().next());
    }
    if found.is_empty() {
        bail!("no Flux pods found in namespace {namespace:?}");
    }
    Ok(found)
}

struct Filter {
    level: String,
    kind: String,
    name: String,
    namespace: Option<String>,
}

impl Filter {
    fn of(call: &Call) -> Filter {
        let text = |flag| call.text(flag).to_owned();
        let namespace = (!call.on("all-namespaces")).then(|| call.namespace().to_owned());
        Filter { level: text("level"), kind: text("kind"), name: text("name"), namespace }
    }

    fn print(&self, line: &str) {
        if let Some(text) = self.line(line) {
            logger::data_line(&text);
        }
    }

    /// The line for people; nothing when it is filtered out or no JSON.
    fn line(&self, line: &str) -> Option<String> {
        let entry: Value = line.starts_with('{').then(|| serde_json::from_str(line).ok()).flatten()?;
        let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default();
        let kind = match text("reconciler kind") {
            "" => text("controllerKind"),
            kind => kind,
        };
        let same = |wanted: &str, actual: &str| wanted.is_empty() || wanted.eq_ignore_ascii_case(actual);
        let wanted = (self.level.is_empty() || self.level == text("level"))
            && (same(&self.kind, kind) || same(&self.kind, text("controllerKind")))
            && same(&self.name, text("name"))
            && self.namespace.as_ref().is_none_or(|ns| ns.eq_ignore_ascii_case(text("namespace")));
        let object = match text("name") {
            "" => String::new(),
            name => format!("/{name}.{}", text("namespace")),
        };
        wanted.then(|| {
            format!("{} {} {kind}{object} - {} {}", text("ts"), text("level"), text("msg"), text("error"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_lines_are_filtered_and_formatted() {
        let filter = |kind: &str, namespace: Option<&str>| Filter {
            level: String::new(),
            kind: kind.to_owned(),
            name: String::new(),
            namespace: namespace.map(str::to_owned),
        };
        let line = r#"{"level":"info","ts":"T","msg":"done","controllerKind":"Kustomization","name":"apps","namespace":"flux-system"}"#;
        assert_eq!(
            filter("", Some("flux-system")).line(line).unwrap(),
            "T info Kustomization/apps.flux-system - done "
        );
        assert_eq!(
            filter("kustomization", None).line(line).unwrap(),
            "T info Kustomization/apps.flux-system - done "
        );
        assert!(
            filter("GitRepository", None).line(line).is_none() && filter("", Some("x")).line(line).is_none()
        );
        assert!(filter("", None).line("plain text").is_none());
    }
}
