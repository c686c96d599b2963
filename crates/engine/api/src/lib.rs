//! Every API type Fluorite knows, and the CRDs generated from them.
