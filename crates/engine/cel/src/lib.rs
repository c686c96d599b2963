//! CEL with Kubernetes' function library, compiled once and run within a cost budget.
