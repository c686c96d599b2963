//! The ground every controller stands on: shared watches, the work queue, the graph that wakes dependents, status, events, metrics.
