//! The Kustomization controller: from artifact to cluster.
