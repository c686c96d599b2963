//! `stats`: how many objects of each kind run, fail and rest, and what their artifacts weigh.

use serde_json::Value;

use crate::args::{Call, CommandResult, action};
use crate::cluster::{Cluster, Select};
use crate::command::{Node, Plain};
use crate::flag::switch;
use crate::resource_kinds::{self, Kind};
use crate::{logger, table};

const KINDS: [&Kind; 13] = [
    &resource_kinds::GIT,
    &resource_kinds::OCI,
    &resource_kinds::HELM,
    &resource_kinds::CHART,
    &resource_kinds::BUCKET,
    &resource_kinds::KUSTOMIZATION,
    &resource_kinds::HELM_RELEASE,
    &resource_kinds::ALERT,
    &resource_kinds::PROVIDER,
    &resource_kinds::RECEIVER,
    &resource_kinds::IMAGE_UPDATE,
    &resource_kinds::IMAGE_POLICY,
    &resource_kinds::IMAGE_REPOSITORY,
];

pub(crate) fn node() -> Node {
    Node::leaf("stats", "Count objects and their state", action(|call: Call| async move { run(&call).await }))
        .plain(Plain::None)
        .shared(&[switch("all-namespaces", "Count in all namespaces").short('A')])
        .example("The whole cluster", "stats -A")
}

async fn run(call: &Call) -> CommandResult {
    let cluster = Cluster::connect(call).await?;
    let namespace = (!call.on("all-namespaces")).then(|| call.namespace().to_owned());
    let select = Select { namespace, ..Select::default() };
    let mut rows = Vec::new();
    for kind in KINDS {
        // A kind that is not installed counts as none of it.
        let objects = cluster.list(&kind.resource(), &select).await.unwrap_or_default();
        rows.push(row(kind, &objects));
    }
    logger::data(&table::render(&["Reconcilers", "Running", "Failing", "Suspended", "Storage"], &rows));
    Ok(())
}

fn row(kind: &Kind, objects: &[Value]) -> Vec<String> {
    let suspended = objects.iter().filter(|o| kind.suspended(o)).count();
    let failing = objects
        .iter()
        .flat_map(resource_kinds::conditions)
        .filter(|c| c["type"] == "Ready" && c["status"] == "False")
        .count();
    let size: i64 =
        objects.iter().filter_map(|o| o.pointer("/status/artifact/size").and_then(Value::as_i64)).sum();
    vec![
        kind.kind.to_owned(),
        (objects.len() - suspended).to_string(),
        failing.to_string(),
        suspended.to_string(),
        size_text(size),
    ]
}

fn size_text(bytes: i64) -> String {
    match bytes {
        0 => "-".to_owned(),
        1..1024 => format!("{bytes} B"),
        _ => {
            let (mut unit, mut power) = (1024_i64, 0);
            while bytes / unit >= 1024 && power < 5 {
                unit *= 1024;
                power += 1;
            }
            format!("{:.1} {}iB", bytes as f64 / unit as f64, ["K", "M", "G", "T", "P", "E"][power])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_human_readable() {
        let texts: Vec<_> = [0, 999, 1024, 145_920, 1 << 30].map(size_text).to_vec();
        assert_eq!(texts, ["-", "999 B", "1.0 KiB", "142.5 KiB", "1.0 GiB"]);
    }
}
