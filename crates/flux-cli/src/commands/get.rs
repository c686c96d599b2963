//! `get`: the state of objects as tables, JSON, YAML or names.

use anyhow::bail;
use fl_types::{Operator, Selector};
use serde_json::{Value, json};

use crate::args::{Call, CommandResult, action};
use crate::cluster::{ApiError, Cluster, Select, name_of, namespace_of};
use crate::command::Node;
use crate::flag::{Flag, checked, switch, text};
use crate::resource_kinds::{self, Column, Kind};
use crate::{format as view, logger, table};

const FLAGS: &[Flag] = &[
    switch("all-namespaces", "Look in all namespaces").short('A'),
    switch("no-header", "Leave out the header line"),
    switch("watch", "Go on and print changes as they happen").short('w'),
    text("status-selector", "Only objects with this condition, e.g. ready=false or ready!=true"),
    text("label-selector", "Only objects with these labels, e.g. team=web or 'tier in (a,b)'").short('l'),
    checked("output", output, "Print as json, yaml or name instead of a table").short('o'),
];

fn output(text: &str) -> Result<String, String> {
    match text {
        "json" | "yaml" | "name" => Ok(text.to_owned()),
        _ => Err(format!("unsupported output '{text}', must be one of: json, yaml, name")),
    }
}

const SHOW_SOURCE: &[Flag] = &[switch("show-source", "Show what each object is built from")];

pub(crate) fn node() -> Node {
    let one = |name, about: &str, kind: &'static Kind| {
        Node::leaf(name, about, action(move |call| one(call, kind))).takes("NAME")
    };
    let all = |about, kinds: fn() -> Vec<&'static Kind>| {
        Node::leaf("all", about, action(move |call| all(call, kinds())))
    };
    let sources = Node::group(
        "sources",
        "Show sources and their state",
        vec![
            all("Show all sources", || resource_kinds::SOURCES.to_vec())
                .example("Sources of all namespaces", "get sources all -A"),
            one("git", "Show GitRepositories", &resource_kinds::GIT)
                .example("Those that are not ready", "get sources git -A --status-selector ready=false"),
            one("oci", "Show OCIRepositories", &resource_kinds::OCI),
            one("helm", "Show HelmRepositories", &resource_kinds::HELM),
            one("chart", "Show HelmCharts", &resource_kinds::CHART),
            one("bucket", "Show Buckets", &resource_kinds::BUCKET),
            one("external", "Show ExternalArtifacts", &resource_kinds::EXTERNAL),
        ],
    )
    .alias(&["source"]);
    let images = Node::group(
        "images",
        "Show image automation objects and their state",
        vec![
            all("Show all image automation objects", || resource_kinds::IMAGES.to_vec()),
            one("repository", "Show ImageRepositories", &resource_kinds::IMAGE_REPOSITORY),
            one("policy", "Show ImagePolicies", &resource_kinds::IMAGE_POLICY),
            one("update", "Show ImageUpdateAutomations", &resource_kinds::IMAGE_UPDATE),
        ],
    )
    .alias(&["image"]);
    let artifacts = Node::group(
        "artifacts",
        "Show artifact objects and their state",
        vec![one("generators", "Show ArtifactGenerators", &resource_kinds::GENERATOR).alias(&["generator"])],
    )
    .alias(&["artifact"]);
    let everything = || {
        resource_kinds::SOURCES
            .into_iter()
            .chain(resource_kinds::IMAGES)
            .chain(resource_kinds::REST)
            .collect::<Vec<_>>()
    };
    Node::group(
        "get",
        "Show objects and their state",
        vec![
            all("Show everything flux delivers with", everything)
                .example("All objects of the cluster", "get all -A"),
            sources,
            one("kustomizations", "Show Kustomizations", &resource_kinds::KUSTOMIZATION)
                .alias(&["ks", "kustomization"])
                .flags(SHOW_SOURCE)
                .example("What is failing anywhere", "get kustomizations -A --status-selector ready=false")
                .example("Where each comes from", "get ks --show-source"),
            one("helmreleases", "Show HelmReleases", &resource_kinds::HELM_RELEASE)
                .alias(&["hr", "helmrelease"])
                .flags(SHOW_SOURCE),
            one("receivers", "Show Receivers", &resource_kinds::RECEIVER).alias(&["receiver"]),
            one("alerts", "Show Alerts", &resource_kinds::ALERT).alias(&["alert"]),
            one("alert-providers", "Show Providers", &resource_kinds::PROVIDER).alias(&["alert-provider"]),
            images,
            artifacts,
        ],
    )
    .shared(FLAGS)
}

/// What to select and how to show it.
struct View {
    all_namespaces: bool,
    header: bool,
    show_source: bool,
    with_kind: bool,
    status: Option<StatusSelector>,
    output: String,
}

struct StatusSelector {
    condition: String,
    status: String,
    wanted: bool,
}

impl StatusSelector {
    fn parse(text: &str) -> anyhow::Result<StatusSelector> {
        let (parts, wanted) = match text.split_once("!=") {
            Some(parts) => (Some(parts), false),
            None => (text.split_once('='), true),
        };
        let Some((condition, status)) = parts else {
            bail!("expected status selector in type=status or type!=status format, but found: {text}");
        };
        Ok(StatusSelector { condition: condition.to_owned(), status: status.to_owned(), wanted })
    }
}

impl View {
    /// Reading the status selector is left to the first table, as an empty list never looks at it.
    fn of(call: &Call, with_kind: bool) -> anyhow::Result<View> {
        let status = match call.text("status-selector") {
            "" => None,
            text => Some(StatusSelector::parse(text)?),
        };
        Ok(View {
            all_namespaces: call.on("all-namespaces"),
            header: !call.on("no-header"),
            show_source: call.has("show-source") && call.on("show-source"),
            with_kind,
            status,
            output: call.text("output").to_owned(),
        })
    }

    fn columns(&self, kind: &Kind) -> Vec<Column> {
        let mut columns = kind.columns.to_vec();
        if self.show_source {
            columns.insert(0, Column::Source);
        }
        columns
    }

    fn header(&self, kind: &Kind) -> Vec<&'static str> {
        if !self.header {
            return Vec::new();
        }
        let namespace = self.all_namespaces.then_some("Namespace");
        namespace
            .into_iter()
            .chain(["Name"])
            .chain(self.columns(kind).into_iter().map(Column::title))
            .collect()
    }

    fn keeps(&self, kind: &Kind, object: &Value) -> bool {
        self.status.as_ref().is_none_or(|s| kind.matches(object, &s.condition, &s.status) == s.wanted)
    }

    fn row(&self, kind: &Kind, object: &Value) -> Vec<String> {
        let name = if self.with_kind {
            resource_kinds::kind_and_name(kind, object)
        } else {
            name_of(object).to_owned()
        };
        let namespace = self.all_namespaces.then(|| namespace_of(object).to_owned());
        namespace.into_iter().chain([name]).chain(kind.cells(object, &self.columns(kind))).collect()
    }

    /// The objects in the chosen form; `None` when nothing is to be printed.
    fn print(&self, kind: &Kind, objects: &[Value]) {
        match self.output.as_str() {
            "json" => logger::data_line(&view::pretty_json(
                &json!({"apiVersion": "v1", "kind": "List", "items": objects}),
            )),
            "yaml" => objects.iter().for_each(|o| logger::data(&format!("---\n{}", view::yaml(o)))),
            "name" => objects.iter().for_each(|o| {
                logger::data_line(&format!("{}.{}/{}", kind.plural, kind.group, name_of(o)));
            }),
            _ => {
                let rows: Vec<_> = objects.iter().map(|o| self.row(kind, o)).collect();
                logger::data(&table::render(&self.header(kind), &rows));
            }
        }
    }
}

/// Labels as Kubernetes' objects select them: `!=` and comparisons are not among its operators.
fn check_labels(text: &str) -> anyhow::Result<()> {
    let selector: Selector = text.parse().map_err(|error: fl_types::SelectorError| {
        // The client's library says what the name is for, the API server's does not.
        let error = error.to_string().replace("a qualified name must", "a valid label key must");
        anyhow::anyhow!(
            "unable to parse label selector: couldn't parse the selector string {}: {error}",
            fl_go::quote(text)
        )
    })?;
    for requirement in selector.requirements() {
        match requirement.operator() {
            Operator::NotEquals => {
                bail!("unable to parse label selector: \"!=\" is not a valid label selector operator")
            }
            Operator::GreaterThan => {
                bail!("unable to parse label selector: \"gt\" isn't supported in label selectors")
            }
            Operator::LessThan => {
                bail!("unable to parse label selector: \"lt\" isn't supported in label selectors")
            }
            _ => {}
        }
    }
    Ok(())
}

fn select(call: &Call) -> anyhow::Result<Select> {
    let labels = call.text("label-selector");
    if !labels.is_empty() {
        check_labels(labels)?;
    }
    Ok(Select {
        namespace: (!call.on("all-namespaces")).then(|| call.namespace().to_owned()),
        name: call.args.first().cloned(),
        labels: (!labels.is_empty()).then(|| labels.to_owned()),
        fields: None,
    })
}

fn place(call: &Call) -> String {
    if call.on("all-namespaces") { "any".to_owned() } else { fl_go::quote(call.namespace()) }
}

async fn one(call: Call, kind: &'static Kind) -> CommandResult {
    let cluster = Cluster::connect(&call).await?;
    let select = select(&call)?;
    if call.on("watch") {
        return watch(&call, &cluster, kind, &select).await;
    }
    let objects = cluster.list(&kind.resource(), &select).await?;
    if objects.is_empty() {
        match call.args.first() {
            Some(name) => bail!("{} object '{name}' not found in {} namespace", kind.kind, place(&call)),
            None => bail!("no {} objects found in {} namespace", kind.kind, place(&call)),
        }
    }
    let view = View::of(&call, false)?;
    let kept: Vec<Value> = objects.into_iter().filter(|o| view.keeps(kind, o)).collect();
    view.print(kind, &kept);
    Ok(())
}

async fn watch(call: &Call, cluster: &Cluster, kind: &'static Kind, select: &Select) -> CommandResult {
    let mut first = true;
    let ended = cluster
        .watch(&kind.resource(), select, |event, object| {
            if event == "ERROR" {
                bail!("{}", object["message"].as_str().unwrap_or("the watch failed"));
            }
            let mut view = View::of(call, false)?;
            view.header &= first;
            let kept: Vec<Value> = [object].into_iter().filter(|o| view.keeps(kind, o)).collect();
            view.print(kind, &kept);
            first = false;
            Ok(())
        })
        .await;
    match ended {
        Err(error) if matches!(error.downcast_ref(), Some(ApiError::Deadline)) => {
            bail!("timed out waiting for the condition")
        }
        Err(error) => Err(error),
        Ok(()) => bail!("watch closed before UntilWithoutRetry timeout"),
    }
}

async fn all(call: Call, kinds: Vec<&'static Kind>) -> CommandResult {
    if call.on("watch") {
        bail!("expected a single resource type, but found all");
    }
    let cluster = Cluster::connect(&call).await?;
    let mut found = Vec::new();
    for kind in kinds {
        match table_of(&call, &cluster, kind).await {
            Ok(objects) => found.extend(objects),
            // One kind that fails must not hide the others; a kind that is not installed is no failure.
            Err(error) if matches!(error.downcast_ref::<ApiError>(), Some(e) if e.is_no_match()) => {}
            Err(error) => logger::failure(format!("{error:#}")),
        }
    }
    if call.text("output") == "json" {
        logger::data_line(&view::pretty_json(&json!({"apiVersion": "v1", "kind": "List", "items": found})));
    }
    Ok(())
}

async fn table_of(call: &Call, cluster: &Cluster, kind: &'static Kind) -> anyhow::Result<Vec<Value>> {
    let objects = cluster.list(&kind.resource(), &select(call)?).await?;
    if objects.is_empty() {
        if let Some(name) = call.args.first() {
            bail!("{} object '{name}' not found in {} namespace", kind.kind, place(call));
        }
        return Ok(Vec::new());
    }
    let view = View::of(call, true)?;
    let kept: Vec<Value> = objects.into_iter().filter(|o| view.keeps(kind, o)).collect();
    if kept.is_empty() || view.output == "json" {
        return Ok(kept);
    }
    view.print(kind, &kept);
    if view.output.is_empty() {
        logger::data("\n");
    }
    Ok(Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_selectors_match_or_exclude() {
        let object = json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}});
        let keeps = |text: &str| {
            let s = StatusSelector::parse(text).unwrap();
            resource_kinds::GIT.matches(&object, &s.condition, &s.status) == s.wanted
        };
        assert!(
            keeps("ready=false") && keeps("ready!=true") && !keeps("READY=True") && keeps("stalled!=true")
        );
        assert!(StatusSelector::parse("ready").is_err());
    }

    #[test]
    fn invalid_label_selectors_are_rejected_like_flux() {
        assert!(check_labels("a=b,c in (d,e),!f,g").is_ok());
        let message = |text| check_labels(text).unwrap_err().to_string();
        assert_eq!(
            message("a!=b"),
            "unable to parse label selector: \"!=\" is not a valid label selector operator"
        );
        assert!(
            message("a in b").starts_with(
                "unable to parse label selector: couldn't parse the selector string \"a in b\": "
            )
        );
    }
}
