//! Multi-tenancy lock-down: which references an object may have, and which identity it acts with.
//!
//! Every reference that may leave the namespace of its object, and every choice between a service account and the engine's own identity, is
//! decided here, so that a flag means the same for all kinds.

use fl_client::Identity;

use crate::options::Options;

/// A reference that lock-down forbids, with Flux's message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("can't access '{kind}/{namespace}/{name}', cross-namespace references have been blocked")]
pub struct AccessDenied {
    pub kind: String,
    pub namespace: String,
    pub name: String,
}

/// The decisions that follow from the lock-down flags.
#[derive(Clone, Copy, Debug)]
pub struct Lockdown<'a> {
    options: &'a Options,
}

impl Options {
    pub fn lockdown(&self) -> Lockdown<'_> {
        Lockdown { options: self }
    }
}

impl Lockdown<'_> {
    /// Whether an object in `own` may use another object.
    ///
    /// # Errors
    /// The other object is in another namespace, and `--no-cross-namespace-refs` is set.
    pub fn check_reference(
        &self,
        own: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<(), AccessDenied> {
        if self.options.no_cross_namespace_refs && namespace != own {
            return Err(AccessDenied {
                kind: kind.to_owned(),
                namespace: namespace.to_owned(),
                name: name.to_owned(),
            });
        }
        Ok(())
    }

    /// Whether an object in `own` may depend on another one. As in Flux, readiness is visible across
    /// namespaces; an expression could read any field of the other object, so it counts as a reference.
    ///
    /// # Errors
    /// As [`Lockdown::check_reference`].
    pub fn check_dependency(
        &self,
        own: &str,
        kind: &str,
        namespace: &str,
        name: &str,
        ready_expr: Option<&str>,
    ) -> Result<(), AccessDenied> {
        match ready_expr.filter(|text| !text.is_empty()) {
            Some(_) => self.check_reference(own, kind, namespace, name),
            None => Ok(()),
        }
    }

    /// The identity that an object in `namespace` applies with; `named` is its `spec.serviceAccountName`.
    pub fn identity(&self, namespace: &str, named: Option<&str>) -> Identity {
        Identity::of_object(namespace, named, &self.options.default_service_account)
    }

    /// Whether an object without credentials may use the engine's own towards clouds, key services and remote
    /// clusters. Not if either flag isolates tenants.
    pub fn engine_credentials_allowed(&self) -> bool {
        !self.options.no_cross_namespace_refs && self.options.default_service_account.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_service_account_falls_back_to_the_default() {
        let account = |named: Option<&str>, default: &str| {
            Identity::of_object("apps", named, default).account().map(str::to_owned)
        };
        for named in [None, Some("")] {
            assert_eq!(account(named, "default").as_deref(), Some("default"));
            assert_eq!(account(named, ""), None);
        }
        assert_eq!(account(Some("tenant"), "default").as_deref(), Some("tenant"));
        assert_eq!(fl_client::ServiceAccountName::new(""), None);
        let identity = Identity::of_object("apps", Some("tenant"), "");
        assert_eq!(identity.user().as_deref(), Some("system:serviceaccount:apps:tenant"));
    }

    #[test]
    fn expressions_are_references() {
        let locked = Options { no_cross_namespace_refs: true, ..Options::default() };
        let check = |options: &Options, namespace: &str, expression: Option<&str>| {
            options.lockdown().check_dependency("a", "Kustomization", namespace, "x", expression).is_ok()
        };
        for expression in [None, Some(""), Some("true")] {
            assert!(check(&Options::default(), "b", expression));
            assert!(check(&locked, "a", expression));
        }
        assert!(check(&locked, "b", None) && check(&locked, "b", Some("")));
        assert!(!check(&locked, "b", Some("true")));
    }
}
