//! Structural schemas as Kubernetes means them: prune, default, validate.
