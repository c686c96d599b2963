//! Merging as the API server does it: server-side apply with managed fields, strategic merge, JSON patch.
