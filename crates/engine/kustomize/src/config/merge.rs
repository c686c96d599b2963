//! Merges transformer configurations of a kustomization and its bases.

use std::rc::Rc;

use super::{Config, FieldSpec, NameReference};
use crate::resid::{Gvk, ORDER_FIRST, ORDER_LAST, kind_order};

/// Two field specifications disagree on creating the field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("conflicting fieldspecs for {path} of {gvk} in {list}")]
pub struct Conflict {
    /// The list of the configuration.
    pub list: &'static str,
    /// The field.
    pub path: String,
    /// The kind.
    pub gvk: String,
}

/// Adds a specification unless an existing one covers it.
pub(crate) fn merge_one(
    list: &mut Vec<FieldSpec>,
    spec: &FieldSpec,
    name: &'static str,
) -> Result<(), Conflict> {
    // Like in kustomize, a specification without kind is covered by any with the same path.
    match list.iter().find(|have| have.path == spec.path && have.gvk.is_selected_by(&spec.gvk)) {
        Some(have) if have.create != spec.create => {
            Err(Conflict { list: name, path: spec.path.to_string(), gvk: spec.gvk.to_string() })
        }
        Some(_) => Ok(()),
        None => {
            list.push(spec.clone());
            Ok(())
        }
    }
}

/// Adds all of `more`.
pub(crate) fn merge_all(
    list: &mut Vec<FieldSpec>,
    more: &[FieldSpec],
    name: &'static str,
) -> Result<(), Conflict> {
    more.iter().try_for_each(|spec| merge_one(list, spec, name))
}

fn merge_references(list: &mut Vec<NameReference>, more: &[NameReference]) -> Result<(), Conflict> {
    for reference in more {
        match list.iter_mut().find(|have| have.target == reference.target) {
            Some(have) => merge_all(&mut have.referrers, &reference.referrers, "nameReference")?,
            None => list.push(reference.clone()),
        }
    }
    Ok(())
}

impl Config {
    /// Adds `more` to this configuration.
    pub(crate) fn merge(&mut self, more: &Config) -> Result<(), Conflict> {
        merge_all(&mut self.name_prefix, &more.name_prefix, "namePrefix")?;
        merge_all(&mut self.name_suffix, &more.name_suffix, "nameSuffix")?;
        merge_all(&mut self.namespace, &more.namespace, "namespace")?;
        merge_all(&mut self.common_annotations, &more.common_annotations, "commonAnnotations")?;
        merge_all(&mut self.common_labels, &more.common_labels, "commonLabels")?;
        merge_all(&mut self.labels, &more.labels, "labels")?;
        merge_all(&mut self.template_labels, &more.template_labels, "templateLabels")?;
        merge_all(&mut self.var_reference, &more.var_reference, "varReference")?;
        merge_references(&mut self.name_reference, &more.name_reference)?;
        merge_all(&mut self.images, &more.images, "images")?;
        merge_all(&mut self.replicas, &more.replicas, "replicas")?;
        self.sort();
        Ok(())
    }

    /// Sorts every list by kind.
    pub(crate) fn sort(&mut self) {
        let order = |g: &Gvk| (kind_order(&g.kind, &ORDER_FIRST, &ORDER_LAST), g.sort_text());
        for list in [
            &mut self.name_prefix,
            &mut self.name_suffix,
            &mut self.namespace,
            &mut self.common_labels,
            &mut self.labels,
            &mut self.template_labels,
            &mut self.common_annotations,
            &mut self.var_reference,
            &mut self.images,
            &mut self.replicas,
        ] {
            list.sort_by_cached_key(|spec| order(&spec.gvk));
        }
        self.name_reference.sort_by_cached_key(|reference| order(&reference.target));
    }

    /// Merges shared configurations without a copy if one of them adds nothing, as is common with many bases.
    pub(crate) fn merge_shared(into: &mut Rc<Config>, more: &Rc<Config>) -> Result<(), Conflict> {
        if Rc::ptr_eq(into, more) || **into == **more {
            return Ok(());
        }
        if Rc::ptr_eq(more, &Config::builtin()) {
            if **into == Config::default() {
                *into = more.clone();
                return Ok(());
            }
            if into.has_builtin() {
                return Ok(());
            }
        }
        let mut merged = (**into).clone();
        merged.merge(more)?;
        *into = Rc::new(merged);
        Ok(())
    }

    /// Whether it includes the built-in configuration, which every accumulator starts from.
    fn has_builtin(&self) -> bool {
        !self.replicas.is_empty() && !self.images.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn covered_specifications_are_not_added_twice() {
        let mut config = (*Config::builtin()).clone();
        let before = config.common_labels.len();
        config
            .merge(&Config {
                common_labels: vec![FieldSpec {
                    gvk: Gvk { kind: "Deployment".into(), ..Gvk::default() },
                    path: "spec/selector/matchLabels".into(),
                    create: true,
                }],
                ..Config::default()
            })
            .expect("no conflict");
        assert_eq!(config.common_labels.len(), before);
    }

    #[test]
    fn different_create_flags_conflict() {
        let mut config = (*Config::builtin()).clone();
        let spec = FieldSpec { path: "metadata/labels".into(), ..FieldSpec::default() };
        assert!(config.merge(&Config { common_labels: vec![spec], ..Config::default() }).is_err());
    }
}
