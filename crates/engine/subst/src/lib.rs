//! The variable substitution language of Flux post-build.
