//! Tables of Kubernetes' built-in types: fields, merge keys, resources.
