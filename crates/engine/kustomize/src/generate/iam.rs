//! The service account of an IAM policy.

use fl_yaml::Node;

/// The arguments of the generator.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct IamArgs {
    pub(crate) cloud: String,
    pub(crate) service_name: String,
    pub(crate) service_namespace: String,
    pub(crate) account_name: String,
    pub(crate) project: String,
}

/// A cloud provider other than Google's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cloud provider {0} not supported yet")]
pub(crate) struct UnsupportedCloud(String);

/// The service account for Google's cloud, the only supported one.
pub(crate) fn service_account(args: &IamArgs) -> Result<Node, UnsupportedCloud> {
    if args.cloud != "gke" {
        return Err(UnsupportedCloud(args.cloud.clone()));
    }
    let mut root = Node::map();
    let map = root.as_map_mut().expect("just made");
    map.insert("apiVersion", Node::string("v1"));
    map.insert("kind", Node::string("ServiceAccount"));
    let mut metadata = Node::map();
    let meta = metadata.as_map_mut().expect("just made");
    let account = format!("{}@{}.iam.gserviceaccount.com", args.account_name, args.project);
    meta.insert(
        "annotations",
        Node::from(fl_yaml::Value::Map(
            [("iam.gke.io/gcp-service-account", Node::plain(account))].into_iter().collect(),
        )),
    );
    meta.insert("name", Node::plain(args.service_name.as_str()));
    if !args.service_namespace.is_empty() {
        meta.insert("namespace", Node::plain(args.service_namespace.as_str()));
    }
    map.insert("metadata", metadata);
    Ok(root)
}
