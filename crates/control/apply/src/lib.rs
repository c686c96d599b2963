//! Applying objects to a cluster: server-side apply, inventory, pruning, waiting.
