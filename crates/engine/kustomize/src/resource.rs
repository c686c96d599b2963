//! An object during a build: its tree, its current and former identities, and kustomize's build annotations.
//!
//! kustomize stores the latter in annotations of the object. Here they are fields; [`Resource::expose_notes`]
//! writes them to the annotations for the few steps that can see or remove them (patches of annotations).

use std::rc::Rc;

use fl_yaml::Node;
use fl_yaml::SmolStr;

use crate::resid::{Gvk, ResId};
use crate::schema::Schemas;
use crate::tree::{self, ensure_map, metadata_text, set_field, text};

/// What a generator does if the object exists already.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Behavior {
    /// Not set: the object must be new.
    #[default]
    Unspecified,
    /// The object must be new.
    Create,
    /// The object replaces the existing one.
    Replace,
    /// The data of the object is merged into the existing one.
    Merge,
}

impl Behavior {
    pub(crate) fn read(word: &str) -> Self {
        match word {
            "create" => Behavior::Create,
            "replace" => Behavior::Replace,
            "merge" => Behavior::Merge,
            _ => Behavior::Unspecified,
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Behavior::Unspecified => "unspecified",
            Behavior::Create => "create",
            Behavior::Replace => "replace",
            Behavior::Merge => "merge",
        }
    }
}

/// A former identity of the object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FormerId {
    pub(crate) name: SmolStr,
    pub(crate) namespace: SmolStr,
    pub(crate) kind: SmolStr,
}

/// Build annotations of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Notes {
    pub(crate) former: Vec<FormerId>,
    pub(crate) prefixes: Vec<SmolStr>,
    pub(crate) suffixes: Vec<SmolStr>,
    pub(crate) behavior: Option<Behavior>,
    pub(crate) needs_hash: bool,
    pub(crate) allow_name_change: bool,
    pub(crate) allow_kind_change: bool,
}

/// One object of a build.
#[derive(Debug, Clone)]
pub(crate) struct Resource {
    /// The object.
    pub(crate) node: Node,
    pub(crate) id: ResId,
    pub(crate) notes: Notes,
    /// Variables that refer to this object.
    pub(crate) variables: Vec<SmolStr>,
    /// Texts of nodes that are shared by several fields; see [`tree::sync_shared_nodes`].
    pub(crate) shared_nodes: Vec<SmolStr>,
    /// The file of the object, for messages.
    pub(crate) source: Option<Rc<str>>,
}

/// Prefix of kustomize's internal annotations.
pub(crate) const INTERNAL: &str = "internal.config.kubernetes.io/";
const ENABLED: &str = "enabled";

/// Annotations that are removed after the build.
pub(crate) static BUILD_ANNOTATIONS: [&str; 19] = [
    "internal.config.kubernetes.io/previousKinds",
    "internal.config.kubernetes.io/previousNames",
    "internal.config.kubernetes.io/prefixes",
    "internal.config.kubernetes.io/suffixes",
    "internal.config.kubernetes.io/previousNamespaces",
    "internal.config.kubernetes.io/allowNameChange",
    "internal.config.kubernetes.io/allowKindChange",
    "internal.config.kubernetes.io/refBy",
    "internal.config.kubernetes.io/generatorBehavior",
    "internal.config.kubernetes.io/needsHashSuffix",
    "internal.config.kubernetes.io/path",
    "internal.config.kubernetes.io/index",
    "internal.config.kubernetes.io/seqindent",
    "internal.config.kubernetes.io/id",
    "internal.config.kubernetes.io/annotations-migration-resource-id",
    "config.kubernetes.io/path",
    "config.kubernetes.io/index",
    "config.k8s.io/id",
    "internal.config.kubernetes.io/helm-generated",
];

impl Resource {
    /// Wraps a parsed or generated object.
    pub(crate) fn new(node: Node, schemas: &mut Schemas) -> Self {
        let mut resource = Self {
            node,
            id: ResId::default(),
            notes: Notes::default(),
            variables: Vec::new(),
            shared_nodes: Vec::new(),
            source: None,
        };
        resource.refresh(schemas);
        if tree::metadata_pairs(&resource.node, "annotations").any(|(k, _)| k.starts_with(INTERNAL)) {
            resource.absorb_notes();
        }
        resource
    }

    /// Updates the identity after a step that may have changed it.
    pub(crate) fn refresh(&mut self, schemas: &mut Schemas) {
        let field = |name: &str| self.node.get(name).map(text).unwrap_or_default();
        let (api_version, kind) = (field("apiVersion"), field("kind"));
        let (name, namespace) = (metadata_text(&self.node, "name"), metadata_text(&self.node, "namespace"));
        if self.id.name != name {
            self.id.name = name.into();
        }
        if self.id.namespace != namespace {
            self.id.namespace = namespace.into();
        }
        let (group, version) = crate::resid::split_api_version(api_version);
        let gvk = &self.id.gvk;
        if gvk.kind != kind || gvk.group != group || gvk.version != version {
            self.id.gvk = Gvk::new(api_version, kind);
        }
        self.id.cluster_scoped = schemas.namespaced(api_version, kind) == Some(false);
    }

    /// Synchronizes shared nodes after a step that may have changed one of them.
    pub(crate) fn sync_shared_nodes(&mut self) {
        if !self.shared_nodes.is_empty() {
            tree::sync_shared_nodes(&mut self.node, &mut self.shared_nodes);
        }
    }

    /// Whether a patch deleted the object.
    pub(crate) fn is_deleted(&self) -> bool {
        tree::is_nil_or_empty(&self.node)
    }

    /// The original name and effective namespace.
    pub(crate) fn original(&self) -> (&str, &str) {
        match self.notes.former.first() {
            Some(former) => (&former.name, effective(&former.namespace)),
            None => (&self.id.name, self.id.effective_namespace()),
        }
    }

    /// The original identity.
    pub(crate) fn original_id(&self) -> ResId {
        self.former_ids().next().unwrap_or_else(|| self.id.clone())
    }

    /// The former identities, oldest first, without the current one.
    pub(crate) fn former_ids(&self) -> impl Iterator<Item = ResId> {
        self.notes.former.iter().map(|former| ResId {
            gvk: Gvk {
                group: self.id.gvk.group.clone(),
                version: self.id.gvk.version.clone(),
                kind: former.kind.clone(),
            },
            name: former.name.clone(),
            namespace: former.namespace.clone(),
            cluster_scoped: false,
        })
    }

    /// Whether the current or a former identity equals `id`.
    pub(crate) fn was(&self, id: &ResId) -> bool {
        let gvk = &self.id.gvk;
        self.id.same_object(id)
            || (gvk.group == id.gvk.group
                && gvk.version == id.gvk.version
                && self.notes.former.iter().any(|former| {
                    former.name == id.name
                        && former.kind == id.gvk.kind
                        && effective(&former.namespace) == id.effective_namespace()
                }))
    }

    /// Records the current identity before it changes.
    pub(crate) fn record_identity(&mut self) {
        self.notes.former.push(FormerId {
            name: self.id.name.clone(),
            namespace: self.id.effective_namespace().into(),
            kind: self.id.gvk.kind.clone(),
        });
    }

    pub(crate) fn set_name(&mut self, name: &str) {
        if let Some(metadata) = ensure_map(&mut self.node, &["metadata"]) {
            set_field(metadata, "name", tree::untagged(name));
        }
    }

    pub(crate) fn set_kind(&mut self, kind: &str) {
        if let Some(map) = self.node.as_map_mut() {
            set_field(map, "kind", tree::untagged(kind));
        }
    }

    pub(crate) fn set_api_version(&mut self, api_version: &str) {
        if let Some(map) = self.node.as_map_mut() {
            set_field(map, "apiVersion", tree::untagged(api_version));
        }
    }

    /// Sets the namespace; the empty one removes the field.
    pub(crate) fn set_namespace(&mut self, namespace: &str) {
        if namespace.is_empty() {
            if let Some(metadata) = self.node.get_mut("metadata").and_then(Node::as_map_mut) {
                metadata.remove("namespace");
            }
        } else if let Some(metadata) = ensure_map(&mut self.node, &["metadata"]) {
            set_field(metadata, "namespace", tree::untagged(namespace));
        }
    }

    /// The build annotations.
    fn notes_as_pairs(&self) -> Vec<(SmolStr, SmolStr)> {
        let notes = &self.notes;
        let mut pairs = Vec::new();
        let mut put = |key: &str, value: String| {
            if !value.is_empty() {
                pairs.push((smol_str::format_smolstr!("{INTERNAL}{key}"), SmolStr::from(value)));
            }
        };
        let join = |list: &[SmolStr]| list.join(",");
        let former = |part: fn(&FormerId) -> &SmolStr| {
            notes.former.iter().map(|f| part(f).as_str()).collect::<Vec<_>>().join(",")
        };
        put("previousNames", former(|f| &f.name));
        put("previousNamespaces", former(|f| &f.namespace));
        put("previousKinds", former(|f| &f.kind));
        put("prefixes", join(&notes.prefixes));
        put("suffixes", join(&notes.suffixes));
        put("generatorBehavior", notes.behavior.map(|b| b.word().to_owned()).unwrap_or_default());
        let flag = |on: bool| if on { ENABLED.to_owned() } else { String::new() };
        put("needsHashSuffix", flag(notes.needs_hash));
        put("allowNameChange", flag(notes.allow_name_change));
        put("allowKindChange", flag(notes.allow_kind_change));
        pairs
    }

    /// Writes the build annotations to the object, for a step that works on them.
    pub(crate) fn expose_notes(&mut self) {
        let pairs = self.notes_as_pairs();
        if pairs.is_empty() {
            return;
        }
        if tree::metadata(&self.node).and_then(|m| m.get("annotations")).is_some_and(tree::is_null)
            && let Some(metadata) = ensure_map(&mut self.node, &["metadata"])
        {
            metadata.remove("annotations");
        }
        let Some(annotations) = ensure_map(&mut self.node, &["metadata", "annotations"]) else { return };
        for (key, value) in pairs {
            annotations.insert(key, Node::string(value));
        }
    }

    /// Reads the build annotations back; those that the step removed are lost.
    pub(crate) fn absorb_notes(&mut self) {
        let mut notes = Notes::default();
        let get = |key: &str| {
            tree::metadata_pair(&self.node, "annotations", &format!("{INTERNAL}{key}")).map(str::to_owned)
        };
        let list = |key: &str| {
            get(key).map(|csv| csv.split(',').map(SmolStr::new).collect::<Vec<_>>()).unwrap_or_default()
        };
        let (names, namespaces, kinds) =
            (list("previousNames"), list("previousNamespaces"), list("previousKinds"));
        if names.len() == namespaces.len() && names.len() == kinds.len() {
            notes.former = names
                .into_iter()
                .zip(namespaces)
                .zip(kinds)
                .map(|((name, namespace), kind)| FormerId { name, namespace, kind })
                .collect();
        }
        (notes.prefixes, notes.suffixes) = (list("prefixes"), list("suffixes"));
        notes.behavior = get("generatorBehavior").map(|word| Behavior::read(&word));
        let on = |key: &str| get(key).as_deref() == Some(ENABLED);
        notes.needs_hash = on("needsHashSuffix");
        notes.allow_name_change = on("allowNameChange");
        notes.allow_kind_change = on("allowKindChange");
        self.notes = notes;
        self.strip_notes();
    }

    /// Removes the build annotations from the object but keeps the fields.
    pub(crate) fn strip_notes(&mut self) {
        let Some(metadata) = self.node.get_mut("metadata").and_then(Node::as_map_mut) else { return };
        let Some(annotations) = metadata.get_mut("annotations").and_then(Node::as_map_mut) else { return };
        let before = annotations.len();
        annotations.retain(|entry| !entry.name().is_some_and(is_note));
        if annotations.is_empty() && before > 0 {
            metadata.remove("annotations");
        }
    }

    /// Adds labels, annotations, name, namespace and build annotations of `other` that this object does not
    /// have.
    pub(crate) fn inherit_metadata(&mut self, other: &Resource) {
        for field in ["labels", "annotations"] {
            let mut pairs: Vec<(SmolStr, SmolStr)> = Vec::new();
            let both =
                tree::metadata_pairs(&other.node, field).chain(tree::metadata_pairs(&self.node, field));
            for (key, value) in both {
                match pairs.iter_mut().find(|(k, _)| k == key) {
                    Some(pair) => pair.1 = value.into(),
                    None => pairs.push((key.into(), value.into())),
                }
            }
            tree::set_metadata_pairs(&mut self.node, field, pairs);
        }
        let needs_hash = self.notes.needs_hash;
        self.notes = other.notes.clone();
        self.notes.needs_hash = other.notes.needs_hash && needs_hash;
        self.set_name(&other.id.name);
        self.set_namespace(&other.id.namespace);
        self.variables.clone_from(&other.variables);
    }
}

fn is_note(key: &str) -> bool {
    const NOTES: [&str; 9] = [
        "previousNames",
        "previousNamespaces",
        "previousKinds",
        "prefixes",
        "suffixes",
        "generatorBehavior",
        "needsHashSuffix",
        "allowNameChange",
        "allowKindChange",
    ];
    key.strip_prefix(INTERNAL).is_some_and(|rest| NOTES.contains(&rest))
}

/// The effective namespace of a `metadata.namespace`.
pub(crate) fn effective(namespace: &str) -> &str {
    if namespace.is_empty() { "default" } else { namespace }
}
