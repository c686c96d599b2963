//! The commands below a verb that works on one object of any kind: the same tree for `delete`, `suspend`, `resume` and `export`.

use crate::command::Node;
use crate::resource_kinds::{self, Kind};

/// The commands below a verb, made by `one`; `verb` begins the description of groups.
pub(crate) fn tree(verb: &str, one: &dyn Fn(&'static str, &'static Kind) -> Node) -> Vec<Node> {
    vec![
        one("kustomization", &resource_kinds::KUSTOMIZATION).alias(&["ks"]),
        one("helmrelease", &resource_kinds::HELM_RELEASE).alias(&["hr"]),
        one("receiver", &resource_kinds::RECEIVER),
        one("alert", &resource_kinds::ALERT),
        one("alert-provider", &resource_kinds::PROVIDER),
        Node::group(
            "source",
            &format!("{verb} sources"),
            vec![
                one("git", &resource_kinds::GIT),
                one("oci", &resource_kinds::OCI),
                one("helm", &resource_kinds::HELM),
                one("chart", &resource_kinds::CHART),
                one("bucket", &resource_kinds::BUCKET),
            ],
        ),
        Node::group(
            "image",
            &format!("{verb} image automation objects"),
            vec![
                one("repository", &resource_kinds::IMAGE_REPOSITORY),
                one("policy", &resource_kinds::IMAGE_POLICY),
                one("update", &resource_kinds::IMAGE_UPDATE),
            ],
        ),
    ]
}
