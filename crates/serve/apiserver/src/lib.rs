//! An embedded Kubernetes API server with a persistent store.
