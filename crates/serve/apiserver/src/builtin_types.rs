//! The built-in types as the registry holds them.

use crate::builtin;
use crate::resource::{ResourceType, StorageKey, Subresource};

/// Resources that live in the place of another group's.
fn storage(group: &str, plural: &str, kind: &str, preferred: &str) -> StorageKey {
    let own =
        |version: &str| if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    match (group, plural) {
        // Both event groups show the same objects.
        ("events.k8s.io", "events") => {
            StorageKey { prefix: "/events".to_owned(), api_version: "v1".to_owned(), kind: kind.to_owned() }
        }
        ("autoscaling", "horizontalpodautoscalers") => StorageKey {
            prefix: format!("{group}/{plural}"),
            api_version: "autoscaling/v2".to_owned(),
            kind: kind.to_owned(),
        },
        _ => StorageKey {
            prefix: format!("{group}/{plural}"),
            api_version: own(preferred),
            kind: kind.to_owned(),
        },
    }
}

/// Every built-in type.
pub(crate) fn all() -> Vec<ResourceType> {
    let texts = |list: &[&str]| -> Vec<String> { list.iter().map(|s| (*s).to_owned()).collect() };
    let mut out = Vec::new();
    let versions = fl_kubeschema::group_versions();
    for gv in versions {
        for resource in &gv.resources {
            // The first version of a group that has the resource is the one it is stored in.
            let preferred = versions
                .iter()
                .find(|v| v.group == gv.group && v.resources.iter().any(|r| r.plural == resource.plural))
                .map_or(gv.version, |v| v.version);
            out.push(ResourceType {
                group: gv.group.to_owned(),
                version: gv.version.to_owned(),
                kind: resource.kind.to_owned(),
                list_kind: format!("{}List", resource.kind),
                plural: resource.plural.to_owned(),
                singular: resource.singular.to_owned(),
                short_names: texts(&resource.short_names),
                categories: texts(&resource.categories),
                namespaced: resource.namespaced,
                verbs: texts(&resource.verbs),
                subresources: resource
                    .subresources
                    .iter()
                    .map(|s| Subresource {
                        name: s.name.to_owned(),
                        group: s.group.to_owned(),
                        version: s.version.to_owned(),
                        kind: s.kind.to_owned(),
                        verbs: texts(&s.verbs),
                    })
                    .collect(),
                storage: storage(gv.group, resource.plural, resource.kind, preferred),
                strategy: builtin::strategy(gv.group, gv.version, resource.kind),
                conversion: None,
            });
        }
    }
    out
}
