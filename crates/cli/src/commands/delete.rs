//! `delete`.

use anyhow::bail;

use crate::call::{Call, Outcome, action};
use crate::cluster::Cluster;
use crate::flag::switch;
use crate::kinds::{self, Kind};
use crate::node::Node;
use crate::{prompt, say};

pub(crate) fn node() -> Node {
    let one = |name, kind: &'static Kind| {
        let about = format!("Delete a {}", kind.kind);
        Node::leaf(name, &about, action(move |call: Call| async move { delete(&call, kind).await }))
            .takes("NAME")
    };
    Node::group(
        "delete",
        "Delete objects",
        vec![
            one("kustomization", &kinds::KUSTOMIZATION)
                .alias(&["ks"])
                .example("Ask first", "delete kustomization apps")
                .example("In a script", "delete ks apps --silent"),
            one("helmrelease", &kinds::HELM_RELEASE).alias(&["hr"]),
            one("receiver", &kinds::RECEIVER),
            one("alert", &kinds::ALERT),
            one("alert-provider", &kinds::PROVIDER),
            Node::group(
                "source",
                "Delete sources",
                vec![
                    one("git", &kinds::GIT),
                    one("oci", &kinds::OCI),
                    one("helm", &kinds::HELM),
                    one("chart", &kinds::CHART),
                    one("bucket", &kinds::BUCKET),
                ],
            ),
            Node::group(
                "image",
                "Delete image automation objects",
                vec![
                    one("repository", &kinds::IMAGE_REPOSITORY),
                    one("policy", &kinds::IMAGE_POLICY),
                    one("update", &kinds::IMAGE_UPDATE),
                ],
            ),
        ],
    )
    .shared(&[switch("silent", "Do not ask for confirmation").short('s')])
}

async fn delete(call: &Call, kind: &'static Kind) -> Outcome {
    let Some(name) = call.args.first() else { bail!("{} name is required", kind.human) };
    let namespace = call.namespace();
    let cluster = Cluster::connect(call).await?;
    let resource = kind.resource();
    cluster.get(&resource, namespace, name).await?;
    if !call.on("silent") {
        prompt::confirm(&format!("Are you sure you want to delete this {}", kind.human))?;
    }
    say::action(format!("deleting {} {name} in {namespace} namespace", kind.human));
    cluster.delete(&resource, namespace, name, "Background", false).await?;
    say::success(format!("{} deleted", kind.human));
    Ok(())
}
