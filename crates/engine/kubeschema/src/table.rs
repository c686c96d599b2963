//! The text of the tables and its index.

use std::collections::HashMap;
use std::sync::OnceLock;

pub(crate) const TEXT: &str = include_str!("../data/kubernetes.txt");

const PREFIXES: &[(&str, &str)] = &[
    ("a:", "io.k8s.api."),
    ("m:", "io.k8s.apimachinery.pkg."),
    ("x:", "io.k8s.apiextensions-apiserver.pkg.apis."),
    ("g:", "io.k8s.kube-aggregator.pkg.apis."),
];

/// Expands an abbreviated name.
pub(crate) fn full_name(short: &str) -> String {
    for (letter, prefix) in PREFIXES {
        if let Some(rest) = short.strip_prefix(letter) {
            return format!("{prefix}{rest}");
        }
    }
    short.to_owned()
}

/// Position of a type in the text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TypeText {
    /// The `T` line without its `T `.
    pub(crate) head: &'static str,
    /// The field lines.
    pub(crate) body: &'static str,
}

#[derive(Debug, Default)]
pub(crate) struct Index {
    /// All lines before the first type.
    pub(crate) resources: &'static str,
    /// In the order of the text, which is sorted by name.
    pub(crate) types: Vec<TypeText>,
    pub(crate) by_name: HashMap<String, usize>,
    /// `group/version/Kind` -> type, without the options types that belong to all groups.
    pub(crate) by_kind: HashMap<&'static str, usize>,
}

/// The index, from a single scan of the text.
pub(crate) fn index() -> &'static Index {
    static INDEX: OnceLock<Index> = OnceLock::new();
    INDEX.get_or_init(|| scan(TEXT))
}

fn scan(text: &'static str) -> Index {
    let mut index = Index::default();
    let mut starts: Vec<usize> = type_starts(text);
    index.resources = &text[..starts.first().copied().unwrap_or(text.len())];
    starts.push(text.len());
    for pair in starts.windows(2) {
        let block = &text[pair[0] + 2..pair[1]];
        let (head, body) = block.split_once('\n').unwrap_or((block, ""));
        let number = index.types.len();
        let mut words = head.split(' ');
        index.by_name.insert(full_name(words.next().unwrap_or_default()), number);
        let kinds = words.find_map(|w| w.strip_prefix("V=")).unwrap_or_default();
        for kind in kinds.split(',').filter(|k| !k.is_empty()) {
            index.by_kind.entry(kind).or_insert(number);
        }
        index.types.push(TypeText { head, body });
    }
    index
}

/// Offsets of the lines that start a type.
fn type_starts(text: &str) -> Vec<usize> {
    let mut starts = Vec::with_capacity(600);
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.starts_with("T ") {
            starts.push(at);
        }
        at += line.len();
    }
    starts
}
