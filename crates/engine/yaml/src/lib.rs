//! YAML as Go's libraries parse and print it: parser, resolver, tree with positions, emitters.
//!
//! Kubernetes tools use two Go libraries, which differ ([`Dialect`]). This crate accepts and rejects the same
//! texts as they do, with line and column in errors, and prints the same bytes.
//!
//! - Parse: [`parse_all`] (every document of a stream), [`parse_first`] (the first one, as Go's `Unmarshal`).
//!   [`Options`] select the library: `Options::v3()` for kustomize, `Options::sigs()` for Helm values and
//!   manifests.
//! - The tree: [`Node`] with [`Value`], [`Map`] (in order), [`Style`], [`Tag`], `line()` and `column()`. A node
//!   has 40 bytes; short texts are inline and long ones shared, so clones are cheap.
//! - Types: [`Node::scalar`] and [`resolve`] return a [`Scalar`]. Scalars are resolved on demand.
//! - Print YAML: [`to_sigs_yaml`] (sorted keys, as `kustomize build`, Helm's `toYaml` and kubectl).
//! - JSON: [`to_json`] as Go's encoding/json prints it, [`from_json`].
//!
//! ```
//! use fl_yaml::{Dialect, Options, Scalar, parse_all};
//! let docs = parse_all(b"a: yes\nb: [1, 0x10]\n", &Options::v3()).unwrap();
//! assert_eq!(docs[0].get("a").unwrap().as_str(Dialect::V3), Some("yes"));
//! assert_eq!(docs[0].get("a").unwrap().scalar(Dialect::Sigs), Some(Scalar::Bool(true)));
//! assert_eq!(docs[0].get("b").unwrap().as_seq().unwrap()[1].scalar(Dialect::V3), Some(Scalar::Int(16)));
//! assert_eq!(fl_yaml::to_sigs_yaml(&docs[0], Dialect::V3).unwrap(), "a: \"yes\"\nb:\n- 1\n- 16\n");
//! ```

mod base64;
mod character_class;
mod emit;
mod error;
mod go_syntax;
mod json;
mod map;
mod merge;
mod node;
mod number;
mod options;
mod parser;
mod read;
mod reader;
mod resolve;
mod scanner;
mod sort;
mod timestamp;

pub use emit::{refolded, to_sigs_yaml, to_sigs_yaml_in_order, write_sigs_yaml, write_v3_yaml};
pub use error::{Error, Stage};
pub use json::{JsonStyle, from_json, to_json, write_json};
pub use map::{Entry, Map};
pub use node::{Extra, Node, Style, Tag, Value};
pub use options::{Aliases, Duplicates, Options};
pub use read::{parse_all, parse_first, parse_outline};
pub use resolve::{Dialect, Scalar, resolve, resolve_plain};
pub use smol_str::SmolStr;
pub use sort::{compare_keys, compare_keys_v3};
pub use thin_vec::ThinVec;
