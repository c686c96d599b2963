//! Semantic versions and ranges with the rules of Masterminds/semver, which Flux and Helm use.
