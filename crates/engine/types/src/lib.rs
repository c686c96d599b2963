//! Small value types of the Kubernetes world that parse on entry: Go durations, quantities, label selectors, digests, references.
