//! A client for OCI registries.
