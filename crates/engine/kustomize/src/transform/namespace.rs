//! Sets the namespace of all objects.

use fl_yaml::{Node, SmolStr, Tag};

use super::{TransformResult, failed};
use crate::config::FieldSpec;
use crate::error::ErrorKind;
use crate::field_error::FieldError;
use crate::fieldspec::{Create, Walker, walkers};
use crate::resmap::ResMap;
use crate::resource::Resource;
use crate::schema::Schemas;
use crate::tree::{self, replace_scalar, text};

const NAME: &str = "NamespaceTransformer";

/// Which subjects of role bindings get the namespace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Subjects {
    /// Those named `default`.
    #[default]
    Default,
    /// All service accounts.
    ServiceAccounts,
    /// None.
    None,
}

/// Settings of the transformer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) namespace: SmolStr,
    pub(crate) specs: Vec<FieldSpec>,
    pub(crate) unset_only: bool,
    pub(crate) subjects: Subjects,
}

/// Sets the namespace of all namespaced objects.
pub(crate) fn set(map: &mut ResMap, settings: &Settings, schemas: &mut Schemas) -> TransformResult {
    if settings.namespace.is_empty() {
        return Ok(());
    }
    let walkers = walkers(&settings.specs);
    for resource in map.iter_mut() {
        if resource.is_deleted() {
            continue;
        }
        if tree::metadata_pair(&resource.node, "annotations", "internal.config.kubernetes.io/helm-generated")
            == Some("true")
        {
            continue;
        }
        resource.record_identity();
        apply(resource, settings, &walkers)?;
        resource.refresh(schemas);
    }
    match map.first_duplicate() {
        None => Ok(()),
        Some(duplicate) => Err(ErrorKind::Transform {
            transformer: NAME.to_owned(),
            object: duplicate.id.to_string(),
            reason: "namespace transformation produces ID conflict".to_owned(),
        }),
    }
}

/// Sets the namespace of one object.
pub(crate) fn apply(resource: &mut Resource, settings: &Settings, walkers: &[Walker]) -> TransformResult {
    let id = resource.id.clone();
    let core = id.gvk.api_version() == "v1";
    let mut put = |node: &mut Node| put(node, settings);
    let binding = id.gvk.kind == "RoleBinding" || id.gvk.kind == "ClusterRoleBinding";
    if !id.cluster_scoped {
        let metadata = Walker::new(&FieldSpec::everywhere("metadata/namespace", true));
        metadata
            .walk(&mut resource.node, Create::Scalar(Tag::Auto), &mut put)
            .map_err(|e| failed(NAME, resource, e))?;
    }
    if binding {
        subjects(&mut resource.node, settings).map_err(|e| failed(NAME, resource, e))?;
    }
    for walker in Walker::for_kind(walkers, &id.gvk) {
        // The namespace and the subjects are set above; the name only for the kind Namespace of the core
        // group.
        if walker.path == "metadata/namespace"
            || (walker.path == "metadata/name" && !core)
            || (binding
                && matches!(walker.gvk.kind.as_str(), "RoleBinding" | "ClusterRoleBinding")
                && walker.path == "subjects/namespace")
        {
            continue;
        }
        walker
            .walk(&mut resource.node, Create::Scalar(Tag::Str), &mut put)
            .map_err(|e| failed(NAME, resource, e))?;
    }
    Ok(())
}

fn put(node: &mut Node, settings: &Settings) -> Result<(), FieldError> {
    if settings.unset_only && !tree::is_null(node) && !(node.is_scalar() && text(node).is_empty()) {
        return Ok(());
    }
    Ok(replace_scalar(node, settings.namespace.clone(), Tag::Str)?)
}

fn subjects(root: &mut Node, settings: &Settings) -> Result<(), FieldError> {
    let Some(subjects) = root.get_mut("subjects").filter(|s| !tree::is_null(s)) else { return Ok(()) };
    if settings.subjects == Subjects::None {
        return Ok(());
    }
    let items = subjects.as_seq_mut().ok_or(FieldError::Subjects)?;
    for subject in items {
        let field = |name: &str| subject.get(name).map(text).unwrap_or_default();
        let chosen = match settings.subjects {
            Subjects::Default => field("name") == "default",
            Subjects::ServiceAccounts => field("kind") == "ServiceAccount",
            Subjects::None => false,
        };
        if chosen && let Some(map) = subject.as_map_mut() {
            put(map.get_or_insert_with("namespace", || Node::plain("")), settings)?;
        }
    }
    Ok(())
}
