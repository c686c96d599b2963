//! The program from end to end: a Git server, an API server, `fluorite run`, and the `flux` commands.
//!
//! The same tests run on two servers. `cargo test` uses the embedded one; with `FLUORITE_E2E_SERVER=kube-apiserver` they use a real
//! etcd and kube-apiserver, as `.ci/run` does. Only objects that need no further controller are applied: there is no scheduler and
//! no kubelet on either.

mod cluster;
mod helm_release;
mod kustomization;
#[path = "../../../io/git-client/tests/server/mod.rs"]
mod server;

use std::path::PathBuf;

use cluster::Tenant;
use serde_json::json;

/// A repository served over HTTP, and the GitRepository that fetches it. Its files are removed when this is dropped.
#[must_use]
pub(crate) struct Source {
    tree: PathBuf,
    _repositories: server::Repositories,
}

impl Source {
    /// Commits the files and creates the GitRepository `source`.
    pub(crate) async fn create(tenant: &Tenant, files: &[(&str, &str)]) -> (Source, String) {
        let repositories = server::Repositories::new();
        let tree = repositories.make("repository");
        let commit = server::commit(&tree, files, "first");
        let web = server::Web::serve(repositories.root.path(), None, true).await;
        let url = format!("{}/repository.git", web.address);
        let spec = json!({"interval": "1h", "url": url, "ref": {"branch": "main"}});
        tenant.apply("gitrepositories/source", spec).await;
        (Source { tree, _repositories: repositories }, revision(&commit))
    }

    /// Commits, with `removed` files deleted, and waits until the GitRepository has fetched the commit.
    pub(crate) async fn commit(&self, tenant: &Tenant, files: &[(&str, &str)], removed: &[&str]) -> String {
        for path in removed {
            std::fs::remove_file(self.tree.join(path)).expect("a file to remove");
        }
        let revision = revision(&server::commit(&self.tree, files, "next"));
        tenant.fluorite(&["reconcile", "source", "git", "source"]).await;
        let fetched =
            |object: &serde_json::Value| object["status"]["artifact"]["revision"] == revision.as_str();
        tenant.until("gitrepositories/source", &format!("at {revision}"), fetched).await;
        revision
    }
}

fn revision(commit: &str) -> String {
    format!("main@sha1:{commit}")
}

/// The manifest of a ConfigMap with one value.
pub(crate) fn config_map(name: &str, value: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n  key: {value}\n")
}
