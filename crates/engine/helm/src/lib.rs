//! A Helm engine: charts and values in, manifests and hooks out, the same bytes as helm.
