//! A kustomize engine: files in, objects out, the same bytes as kustomize.
