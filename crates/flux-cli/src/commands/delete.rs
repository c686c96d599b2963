//! `delete`.

use anyhow::bail;

use crate::args::{Call, CommandResult, action};
use crate::cluster::Cluster;
use crate::command::Node;
use crate::commands::resource_commands;
use crate::flag::switch;
use crate::resource_kinds::Kind;
use crate::{logger, prompt};

pub(crate) fn node() -> Node {
    let one = |name, kind: &'static Kind| {
        let about = format!("Delete a {}", kind.kind);
        Node::leaf(name, &about, action(move |call: Call| async move { delete(&call, kind).await }))
            .takes("NAME")
    };
    Node::group("delete", "Delete objects", resource_commands::tree("Delete", &one))
        .child_examples(
            "kustomization",
            &[("Ask first", "delete kustomization apps"), ("In a script", "delete ks apps --silent")],
        )
        .shared(&[switch("silent", "Do not ask for confirmation").short('s')])
}

async fn delete(call: &Call, kind: &'static Kind) -> CommandResult {
    let Some(name) = call.args.first() else { bail!("{} name is required", kind.human) };
    let namespace = call.namespace();
    let cluster = Cluster::connect(call).await?;
    let resource = kind.resource();
    cluster.get(&resource, namespace, name).await?;
    if !call.on("silent") {
        prompt::confirm(&format!("Are you sure you want to delete this {}", kind.human))?;
    }
    logger::action(format!("deleting {} {name} in {namespace} namespace", kind.human));
    cluster.delete(&resource, namespace, name, "Background", false).await?;
    logger::success(format!("{} deleted", kind.human));
    Ok(())
}
