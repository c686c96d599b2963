//! The commands below a verb that works on one object of any kind: the same tree for `delete`, `suspend`, `resume` and `export`.

use crate::kinds::{self, Kind};
use crate::node::Node;

/// The commands below a verb, made by `one`; `verb` begins the description of groups.
pub(crate) fn tree(verb: &str, one: &dyn Fn(&'static str, &'static Kind) -> Node) -> Vec<Node> {
    vec![
        one("kustomization", &kinds::KUSTOMIZATION).alias(&["ks"]),
        one("helmrelease", &kinds::HELM_RELEASE).alias(&["hr"]),
        one("receiver", &kinds::RECEIVER),
        one("alert", &kinds::ALERT),
        one("alert-provider", &kinds::PROVIDER),
        Node::group(
            "source",
            &format!("{verb} sources"),
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
            &format!("{verb} image automation objects"),
            vec![
                one("repository", &kinds::IMAGE_REPOSITORY),
                one("policy", &kinds::IMAGE_POLICY),
                one("update", &kinds::IMAGE_UPDATE),
            ],
        ),
    ]
}
