//! Updates references to renamed objects.

use std::collections::HashMap;
use std::rc::Rc;

use fl_yaml::{Node, SmolStr, Value};
use rustc_hash::FxBuildHasher;

use super::{TransformResult, failed};
use crate::config::NameReference;
use crate::error::ErrorKind;
use crate::field_error::FieldError;
use crate::fieldspec::{Create, Walker};
use crate::resid::Gvk;
use crate::resmap::ResMap;
use crate::resource::Resource;
use crate::tree::{self, is_null, replace_scalar, set_field, text};

const NAME: &str = "name reference";

/// A field with the name of an object of another kind.
struct Reference {
    walker: Walker,
    target: Gvk,
}

/// The objects by former names.
struct Index {
    /// All objects.
    all: HashMap<SmolStr, Vec<u32>, FxBuildHasher>,
    /// Cluster-scoped objects, and objects by current namespace.
    cluster: HashMap<SmolStr, Vec<u32>, FxBuildHasher>,
    inside: HashMap<(SmolStr, SmolStr), Vec<u32>, FxBuildHasher>,
}

impl Index {
    fn new(list: &[Resource]) -> Self {
        let mut index =
            Self { all: HashMap::default(), cluster: HashMap::default(), inside: HashMap::default() };
        for (at, resource) in list.iter().enumerate() {
            let at = u32::try_from(at).unwrap_or(u32::MAX);
            let mut seen: Vec<&SmolStr> = Vec::new();
            for former in &resource.notes.former {
                if seen.contains(&&former.name) {
                    continue;
                }
                seen.push(&former.name);
                index.all.entry(former.name.clone()).or_default().push(at);
                if resource.id.cluster_scoped {
                    index.cluster.entry(former.name.clone()).or_default().push(at);
                } else {
                    let namespace = SmolStr::new(resource.id.effective_namespace());
                    index.inside.entry((former.name.clone(), namespace)).or_default().push(at);
                }
            }
        }
        index
    }

    /// The objects that had the name and that an object in these namespaces can refer to.
    fn candidates(&self, name: &str, scope: &Scope) -> Vec<u32> {
        let Scope::Namespaces(namespaces) = scope else {
            return self.all.get(name).cloned().unwrap_or_default();
        };
        let mut found = self.cluster.get(name).cloned().unwrap_or_default();
        for namespace in namespaces {
            let key = (SmolStr::new(name), namespace.clone());
            found.extend(self.inside.get(&key).into_iter().flatten());
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}

/// The namespaces that an object can refer to.
enum Scope {
    Everywhere,
    Namespaces(Vec<SmolStr>),
}

/// Updates every reference.
pub(crate) fn update(map: &mut ResMap, references: &[NameReference]) -> TransformResult {
    if map.list().iter().all(|r| r.notes.former.is_empty()) {
        // Nothing was renamed, but errors have to be reported.
        return map.list().iter().try_for_each(|r| binding_namespaces(r).map(drop));
    }
    let index = Index::new(map.list());
    let mut by_kind: HashMap<Gvk, Rc<[Reference]>, FxBuildHasher> = HashMap::default();
    let namespaces = Namespaces::new(map.list());
    for at in 0..map.len() {
        let original = map.list()[at].original_id().gvk;
        let known = by_kind.entry(original).or_insert_with_key(|gvk| of_kind(gvk, references)).clone();
        if known.is_empty() {
            continue;
        }
        let referrer = &map.list()[at];
        let scope = scope_of(referrer)?;
        let mut node = std::mem::take(&mut map.get_mut(at).node);
        let list = map.list();
        let role = role_reference(&node);
        let result = known.iter().try_for_each(|reference| {
            let pass = ReferenceUpdate {
                list,
                index: &index,
                namespaces: &namespaces,
                referrer: &list[at],
                scope: &scope,
                reference,
                role: role.as_ref(),
            };
            reference.walker.walk(&mut node, Create::No, &mut |field| pass.update(field))
        });
        map.get_mut(at).node = node;
        result.map_err(|e| failed(NAME, &map.list()[at], e))?;
    }
    Ok(())
}

fn of_kind(gvk: &Gvk, references: &[NameReference]) -> Rc<[Reference]> {
    references
        .iter()
        .flat_map(|reference| reference.referrers.iter().map(move |spec| (reference, spec)))
        .filter(|(_, spec)| gvk.is_selected_by(&spec.gvk))
        .map(|(reference, spec)| Reference { walker: Walker::new(spec), target: reference.target.clone() })
        .collect()
}

fn scope_of(referrer: &Resource) -> Result<Scope, ErrorKind> {
    if referrer.id.cluster_scoped {
        return Ok(Scope::Everywhere);
    }
    let mut namespaces = vec![SmolStr::new(referrer.id.effective_namespace())];
    namespaces.extend(binding_namespaces(referrer)?);
    Ok(Scope::Namespaces(namespaces))
}

/// The namespaces of the service accounts of a role binding.
fn binding_namespaces(resource: &Resource) -> Result<Vec<SmolStr>, ErrorKind> {
    if resource.id.gvk.kind != "RoleBinding" || resource.id.cluster_scoped {
        return Ok(Vec::new());
    }
    let mut namespaces = Vec::new();
    for subject in resource.node.get("subjects").and_then(Node::as_seq).into_iter().flatten() {
        let Some(namespace) = subject.get("namespace") else { continue };
        if subject.get("kind").map(text) != Some("ServiceAccount") {
            continue;
        }
        if namespace.as_str(fl_yaml::Dialect::V3).is_none() {
            return Err(failed(NAME, resource, "invalid input: namespace is blank"));
        }
        namespaces.push(SmolStr::new(text(namespace)));
    }
    Ok(namespaces)
}

/// Group and kind of the `roleRef` of a binding.
fn role_reference(node: &Node) -> Option<Gvk> {
    let role = node.get("roleRef")?;
    Some(Gvk {
        group: text(role.get("apiGroup")?).into(),
        version: SmolStr::default(),
        kind: text(role.get("kind")?).into(),
    })
}

/// Objects by original namespace.
struct Namespaces {
    original: HashMap<SmolStr, Vec<u32>, FxBuildHasher>,
}

impl Namespaces {
    fn new(list: &[Resource]) -> Self {
        let mut original: HashMap<SmolStr, Vec<u32>, FxBuildHasher> = HashMap::default();
        for (at, resource) in list.iter().enumerate() {
            let at = u32::try_from(at).unwrap_or(u32::MAX);
            original.entry(SmolStr::new(resource.original().1)).or_default().push(at);
        }
        original.remove(crate::resid::NOT_A_NAMESPACE);
        Self { original }
    }
}

/// One reference of one object.
struct ReferenceUpdate<'a> {
    list: &'a [Resource],
    index: &'a Index,
    namespaces: &'a Namespaces,
    referrer: &'a Resource,
    scope: &'a Scope,
    reference: &'a Reference,
    role: Option<&'a Gvk>,
}

impl ReferenceUpdate<'_> {
    fn update(&self, field: &mut Node) -> Result<(), FieldError> {
        if is_null(field) {
            return Ok(());
        }
        match &mut field.value {
            Value::Scalar(_) => self.update_text(field),
            Value::Map(_) => self.update_map(field),
            Value::Seq(items) => {
                for item in items {
                    if is_null(item) {
                        continue;
                    }
                    match item.value {
                        Value::Scalar(_) => self.update_text(item)?,
                        Value::Map(_) => self.update_map(item)?,
                        Value::Seq(_) => return Err(FieldError::Reference),
                    }
                }
                Ok(())
            }
        }
    }

    fn update_text(&self, field: &mut Node) -> Result<(), FieldError> {
        let candidates = self.index.candidates(text(field), self.scope);
        let Some(referral) = self.select(text(field), candidates, false)? else { return Ok(()) };
        if referral.id.name == text(field) {
            return Ok(());
        }
        Ok(replace_scalar(field, referral.id.name.clone(), fl_yaml::Tag::Auto)?)
    }

    fn update_map(&self, field: &mut Node) -> Result<(), FieldError> {
        let name = field.get("name").ok_or(FieldError::NoName)?;
        let name = SmolStr::new(text(name));
        let mut candidates = self.index.candidates(&name, self.scope);
        if let Some(namespace) = field.get("namespace") {
            self.keep_namespace(&mut candidates, text(namespace));
        }
        let Some(referral) = self.select(&name, candidates, true)? else { return Ok(()) };
        let id = &referral.id;
        if id.name == name && id.namespace.is_empty() {
            return Ok(());
        }
        let map = field.as_map_mut().ok_or(FieldError::NotAMapping)?;
        set_field(map, "name", tree::untagged(&id.name));
        if !id.namespace.is_empty() {
            set_field(map, "namespace", tree::untagged(&id.namespace));
        }
        Ok(())
    }

    /// Keeps the candidates that were in the namespace originally; if none was, those that are in it now.
    fn keep_namespace(&self, candidates: &mut Vec<u32>, namespace: &str) {
        let reachable = |at: &u32| match self.scope {
            Scope::Everywhere => true,
            Scope::Namespaces(all) => {
                let id = &self.list[*at as usize].id;
                id.cluster_scoped || all.iter().any(|n| n == id.effective_namespace())
            }
        };
        let was_used = self.namespaces.original.get(namespace).is_some_and(|all| all.iter().any(reachable));
        candidates.retain(|at| {
            let resource = &self.list[*at as usize];
            if was_used {
                resource.original().1 == namespace
            } else {
                !resource.id.cluster_scoped && resource.id.effective_namespace() == namespace
            }
        });
    }

    /// The referenced object, if any.
    fn select(
        &self,
        name: &str,
        candidates: Vec<u32>,
        with_namespace: bool,
    ) -> Result<Option<&Resource>, FieldError> {
        let was = |resource: &Resource, gvk: &Gvk| resource.former_ids().any(|id| id.gvk.is_selected_by(gvk));
        let role = self.role.filter(|_| self.reference.walker.path.ends_with("roleRef/name"));
        let mut found: Vec<&Resource> = candidates
            .into_iter()
            .map(|at| &self.list[at as usize])
            .filter(|r| was(r, &self.reference.target) && role.is_none_or(|role| was(r, role)))
            .filter(|r| self.same_namespace(r))
            .collect();
        if found.len() <= 1 {
            return Ok(found.pop());
        }
        found.retain(|r| same_affixes(r, self.referrer, true));
        if found.len() > 1 {
            found.retain(|r| same_affixes(r, self.referrer, false));
        }
        let Some((first, others)) = found.split_first() else { return Ok(None) };
        let same = others
            .iter()
            .all(|r| r.id.name == first.id.name && (!with_namespace || r.id.namespace == first.id.namespace));
        if same {
            return Ok(Some(first));
        }
        let ids = found.iter().map(|r| r.id.to_string()).collect::<Vec<_>>().join(", ");
        Err(FieldError::AmbiguousReference { name: name.to_owned(), ids })
    }

    fn same_namespace(&self, candidate: &Resource) -> bool {
        self.referrer.id.cluster_scoped
            || candidate.id.cluster_scoped
            // Bindings may refer to service accounts of other namespaces.
            || candidate.id.gvk.kind == "ServiceAccount"
            || candidate.id.effective_namespace() == self.referrer.id.effective_namespace()
    }
}

/// Whether two objects got the same prefixes and suffixes.
fn same_affixes(a: &Resource, b: &Resource, allow_empty: bool) -> bool {
    let same = |x: &[SmolStr], y: &[SmolStr]| {
        if allow_empty && (x.is_empty() || y.is_empty()) {
            return true;
        }
        let (short, long) = if x.len() > y.len() { (y, x) } else { (x, y) };
        if short.is_empty() { long.is_empty() } else { long.ends_with(short) }
    };
    same(&a.notes.prefixes, &b.notes.prefixes) && same(&a.notes.suffixes, &b.notes.suffixes)
}
