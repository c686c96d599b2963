//! The schema of `ObjectMeta`, which custom resources are decoded with, too.

use std::sync::{Arc, OnceLock};

use crate::node::Node;
use crate::structural::{Additional, ListType, MapType, Name, Properties, Schema, Type};

/// The schema of `metadata`.
pub fn object_meta() -> &'static Node {
    static META: OnceLock<Node> = OnceLock::new();
    META.get_or_init(build)
}

fn scalar(ty: Type, format: &'static str) -> Node {
    let format = (!format.is_empty()).then_some(Name::Borrowed(format));
    Node::new(Schema { ty, format, ..Schema::default() })
}

fn object(name: &'static str, fields: Vec<(&'static str, Node)>) -> Schema {
    let properties = fields.into_iter().map(|(n, s)| (Name::Borrowed(n), s)).collect::<Properties>();
    Schema {
        name: Some(Name::Borrowed(name)),
        ty: Type::Object,
        properties: Arc::new(properties),
        ..Schema::default()
    }
}

fn list(items: Node, list: ListType, keys: Vec<Name>) -> Node {
    Node::new(Schema { ty: Type::Array, items: Some(items), list, list_keys: keys, ..Schema::default() })
}

fn build() -> Node {
    let text = || scalar(Type::String, "");
    let flag = || scalar(Type::Boolean, "");
    let time = || scalar(Type::String, "date-time");
    let words = || {
        Node::new(Schema { ty: Type::Object, additional: Additional::Schema(text()), ..Schema::default() })
    };
    let mut owner = object(
        "io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference",
        vec![
            ("apiVersion", text()),
            ("kind", text()),
            ("name", text()),
            (
                "uid",
                Node::new(Schema {
                    ty: Type::String,
                    go_type: Some(Name::Borrowed("types.UID")),
                    ..Schema::default()
                }),
            ),
            ("controller", flag()),
            ("blockOwnerDeletion", flag()),
        ],
    );
    owner.map = MapType::Atomic;
    let mut fields = object("io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1", vec![]);
    fields.preserve_unknown = true;
    let entry = object(
        "io.k8s.apimachinery.pkg.apis.meta.v1.ManagedFieldsEntry",
        vec![
            ("apiVersion", text()),
            ("fieldsType", text()),
            ("fieldsV1", Node::new(fields)),
            ("manager", text()),
            (
                "operation",
                Node::new(Schema {
                    ty: Type::String,
                    go_type: Some(Name::Borrowed("v1.ManagedFieldsOperationType")),
                    ..Schema::default()
                }),
            ),
            ("subresource", text()),
            ("time", time()),
        ],
    );
    Node::new(object(
        "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
        vec![
            ("name", text()),
            ("generateName", text()),
            ("namespace", text()),
            ("selfLink", text()),
            (
                "uid",
                Node::new(Schema {
                    ty: Type::String,
                    go_type: Some(Name::Borrowed("types.UID")),
                    ..Schema::default()
                }),
            ),
            ("resourceVersion", text()),
            ("generation", scalar(Type::Integer, "int64")),
            ("creationTimestamp", time()),
            ("deletionTimestamp", time()),
            ("deletionGracePeriodSeconds", scalar(Type::Integer, "int64")),
            ("labels", words()),
            ("annotations", words()),
            ("ownerReferences", list(Node::new(owner), ListType::Map, vec![Name::Borrowed("uid")])),
            ("finalizers", list(text(), ListType::Set, Vec::new())),
            ("managedFields", list(Node::new(entry), ListType::Atomic, Vec::new())),
        ],
    ))
}
