//! `flux events`: events of Flux objects.

use anyhow::bail;
use jiff::Timestamp;
use serde_json::Value;

use crate::args::{Call, CommandResult, action};
use crate::cluster::{ApiError, Cluster, Resource, Select, namespace_of, text_at};
use crate::command::Node;
use crate::flag::{list, switch, text};
use crate::resource_kinds::{self, Kind};
use crate::{logger, table};

pub(crate) fn node() -> Node {
    Node::leaf("events", "Show events of flux objects", action(|call: Call| async move { run(&call).await }))
        .flags(&[
            switch("all-namespaces", "Events of all namespaces").short('A'),
            switch("watch", "Go on and print events as they happen").short('w'),
            text("for", "Events of one kind or object and of its source, kind[/name]"),
            list("types", "Only these types: Normal, Warning"),
        ])
        .example("What went wrong lately", "events -A --types=Warning")
        .example("One object with its source", "events --for Kustomization/apps")
}

/// How an object names what it is built from.
struct Source {
    /// Where the reference is, as a path of fields.
    field: &'static [&'static str],
    /// Its kind when the reference does not say.
    kind: Option<&'static str>,
    other_namespace: bool,
}

/// Kinds whose events are shown. ExternalArtifacts have none.
fn is_flux_kind(kind: &str) -> Option<&'static Kind> {
    resource_kinds::all()
        .filter(|k| k.kind != resource_kinds::EXTERNAL.kind)
        .find(|k| k.kind.eq_ignore_ascii_case(kind))
}

fn source(kind: &Kind) -> Option<Source> {
    let source = |field, kind, other_namespace| Some(Source { field, kind, other_namespace });
    match kind.kind {
        "Kustomization" | "HelmChart" => source(&["spec", "sourceRef"], None, true),
        "HelmRelease" => source(&["spec", "chart", "spec", "sourceRef"], None, true),
        "Alert" => source(&["spec", "providerRef"], Some("Provider"), false),
        "ImagePolicy" => source(&["spec", "imageRepositoryRef"], Some("ImageRepository"), true),
        _ => None,
    }
}

async fn run(call: &Call) -> CommandResult {
    for kind in call.list("types") {
        if !["Normal", "Warning"].iter().any(|t| t.eq_ignore_ascii_case(kind)) {
            bail!("type '{kind}' not supported. Supported types are Normal, Warning");
        }
    }
    let cluster = Cluster::connect(call).await?;
    let everywhere = call.on("all-namespaces");
    let namespace = (!everywhere).then(|| call.namespace().to_owned());
    let mut selections = vec![Select { namespace: namespace.clone(), ..Select::default() }];
    let mut show_namespace = everywhere;
    let wanted = call.text("for");
    if !wanted.is_empty() {
        let (kind, name) = match wanted.split_once('/') {
            // Without a kind the name is taken for one.
            Some(("", name)) if !name.contains('/') => (name, ""),
            Some((kind, name)) if !name.contains('/') => (kind, name),
            _ => (wanted, ""),
        };
        if kind.is_empty() {
            bail!("--for selector must be of format <kind>[/<name>]");
        }
        let Some(kind) = is_flux_kind(kind) else { bail!("'{kind}' is not a recognized Flux kind") };
        selections[0].fields = Some(involved(kind.kind, name));
        if !name.is_empty() {
            for (kind, name, source_namespace) in related(&cluster, kind, call.namespace(), name).await? {
                show_namespace |= namespace.as_ref() != Some(&source_namespace);
                let fields = Some(involved(&kind, &name));
                selections.push(Select { namespace: Some(source_namespace), fields, ..Select::default() });
            }
        }
    }
    let view = View { show_namespace, types: call.list("types").to_vec() };
    if call.on("watch") {
        return watch(&cluster, &selections, &view).await;
    }
    let mut events = Vec::new();
    for selection in &selections {
        let found = cluster
            .list(&resource(), selection)
            .await
            .map_err(|e| anyhow::Error::from(e).context("error getting events"))?;
        events.extend(found);
    }
    events.retain(|e| view.shows(e));
    events.sort_by_key(time);
    if events.is_empty() {
        match everywhere {
            true => logger::failure("No events found."),
            false => logger::failure(format!("No events found in {} namespace.", call.namespace())),
        }
        return Ok(());
    }
    let rows: Vec<_> = events.iter().map(|e| view.row(e)).collect();
    logger::data(&table::render(&view.header(), &rows));
    Ok(())
}

fn resource() -> Resource {
    Resource::new("v1", "Event", "events", true)
}

fn involved(kind: &str, name: &str) -> String {
    let mut fields = format!("involvedObject.kind={kind}");
    if !name.is_empty() {
        fields.push_str(&format!(",involvedObject.name={name}"));
    }
    fields
}

/// Kind, name and namespace of what the object is built from.
async fn related(
    cluster: &Cluster,
    kind: &'static Kind,
    namespace: &str,
    name: &str,
) -> anyhow::Result<Vec<(String, String, String)>> {
    let Some(source) = source(kind) else { return Ok(Vec::new()) };
    let object = cluster.get(&kind.resource(), namespace, name).await?;
    let field = |key: &str| {
        let pointer = format!("/{}/{key}", source.field.join("/"));
        object.pointer(&pointer).and_then(Value::as_str).map(str::to_owned)
    };
    let missing = |key: &str| {
        anyhow::anyhow!("field '{}.{key}' for '{namespace}/{name}' not found", source.field.join("."))
    };
    let source_kind = match source.kind {
        Some(kind) => kind.to_owned(),
        None => field("kind").ok_or_else(|| missing("kind"))?,
    };
    let source_name = field("name").ok_or_else(|| missing("name"))?;
    let source_namespace =
        source.other_namespace.then(|| field("namespace")).flatten().unwrap_or_else(|| namespace.to_owned());
    let mut found = vec![(source_kind, source_name, source_namespace.clone())];
    if kind.kind == "HelmRelease" {
        found.push(("HelmChart".to_owned(), format!("{namespace}-{name}"), source_namespace));
    }
    Ok(found)
}

struct View {
    show_namespace: bool,
    types: Vec<String>,
}

impl View {
    fn shows(&self, event: &Value) -> bool {
        is_flux_kind(text_at(event, "/involvedObject/kind")).is_some()
            && (self.types.is_empty()
                || self.types.iter().any(|t| t.eq_ignore_ascii_case(text_at(event, "/type"))))
    }

    fn header(&self) -> Vec<&'static str> {
        let namespace = self.show_namespace.then_some("Namespace");
        namespace.into_iter().chain(["Last seen", "Type", "Reason", "Object", "Message"]).collect()
    }

    fn row(&self, event: &Value) -> Vec<String> {
        let object =
            format!("{}/{}", text_at(event, "/involvedObject/kind"), text_at(event, "/involvedObject/name"));
        let text = |pointer| text_at(event, pointer).to_owned();
        let cells =
            [last_seen(event, Timestamp::now()), text("/type"), text("/reason"), object, text("/message")];
        self.show_namespace.then(|| namespace_of(event).to_owned()).into_iter().chain(cells).collect()
    }
}

/// When an event was last seen, as a number to sort by.
fn time(event: &Value) -> i128 {
    let text = match event.get("series").filter(|s| s.is_object()) {
        Some(series) => text_at(series, "/lastObservedTime"),
        None => match text_at(event, "/lastTimestamp") {
            "" => text_at(event, "/eventTime"),
            last => last,
        },
    };
    text.parse::<Timestamp>().map(Timestamp::as_nanosecond).unwrap_or(i128::MIN)
}

fn last_seen(event: &Value, now: Timestamp) -> String {
    let since = |pointer: &str| match text_at(event, pointer).parse::<Timestamp>() {
        Ok(time) => human_duration((now.as_second() - time.as_second()).max(0)),
        Err(_) => "<unknown>".to_owned(),
    };
    let first =
        if text_at(event, "/eventTime").is_empty() { since("/firstTimestamp") } else { since("/eventTime") };
    if let Some(series) = event.get("series").filter(|s| s.is_object()) {
        return format!("{} (x{} over {first})", since("/series/lastObservedTime"), series["count"]);
    }
    match event["count"].as_i64() {
        Some(count) if count > 1 => format!("{} (x{count} over {first})", since("/lastTimestamp")),
        _ => first,
    }
}

/// A duration as kubectl shows it: two units while they matter, one beyond.
pub(crate) fn human_duration(seconds: i64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let two = |big: i64, unit: char, small: i64, small_unit: char| match small {
        0 => format!("{big}{unit}"),
        _ => format!("{big}{unit}{small}{small_unit}"),
    };
    match seconds {
        ..120 => format!("{seconds}s"),
        120..600 => two(minutes, 'm', seconds % 60, 's'),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => two(hours, 'h', minutes % 60, 'm'),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => two(days, 'd', hours % 24, 'h'),
        691_200..63_072_000 => format!("{days}d"),
        63_072_000..252_288_000 => two(days / 365, 'y', days % 365, 'd'),
        _ => format!("{}y", days / 365),
    }
}

async fn watch(cluster: &Cluster, selections: &[Select], view: &View) -> CommandResult {
    let first = std::cell::Cell::new(true);
    let one = |selection: &Select| {
        let selection = selection.clone();
        let (first, cluster) = (&first, cluster.clone());
        async move {
            cluster
                .watch(&resource(), &selection, |kind, event| {
                    if kind != "DELETED" && view.shows(&event) {
                        let header = if first.replace(false) { view.header() } else { Vec::new() };
                        logger::data(&table::render(&header, &[view.row(&event)]));
                    }
                    Ok(())
                })
                .await
        }
    };
    for result in futures::future::join_all(selections.iter().map(one)).await {
        match result {
            Err(error) if matches!(error.downcast_ref(), Some(ApiError::Deadline)) => {}
            other => other?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn long_durations_are_shown_with_less_detail() {
        let cases = [
            (19, "19s"),
            (119, "119s"),
            (121, "2m1s"),
            (504, "8m24s"),
            (3600, "60m"),
            (14_700, "4h5m"),
            (46 * 3600, "46h"),
            (5 * 86_400 + 3 * 3600, "5d3h"),
            (10 * 86_400, "10d"),
            (3 * 365 * 86_400, "3y"),
        ];
        for (seconds, text) in cases {
            assert_eq!(human_duration(seconds), text);
        }
    }

    #[test]
    fn repeated_events_show_count_and_first_time() {
        let now: Timestamp = "2026-03-01T10:10:00Z".parse().unwrap();
        let event = json!({"count": 17, "firstTimestamp": "2026-03-01T10:01:36Z", "lastTimestamp": "2026-03-01T10:09:41Z"});
        assert_eq!(last_seen(&event, now), "19s (x17 over 8m24s)");
        assert_eq!(last_seen(&json!({}), now), "<unknown>");
    }
}
