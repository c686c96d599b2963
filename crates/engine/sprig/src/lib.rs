//! The template functions of Helm: Sprig and Helm's own.
//!
//! [`functions`] returns the table for a [`TemplateSet`](fl_gotemplate::TemplateSet). Clock, randomness and
//! cluster access come from a [`HostContext`], which the caller passes to the execution in a [`HostContext`]. This
//! crate does not read the environment, the network or files.

mod args;
mod cast;
mod dates;
mod decimal;
mod defaults;
mod dicts;
mod encoding;
mod equal;
mod error;
mod hashes;
mod helm;
mod host;
mod json;
mod keys;
mod letter_case;
mod lists;
mod merge;
mod numbers;
mod paths;
mod pretty_yaml;
mod random;
mod regex;
mod secrets;
mod semver;
mod strings;
mod toml;
mod url;
mod word_case;
mod yaml;

pub use dates::Time;
pub use error::DecodeError;
pub use helm::{MESSAGE_END, MESSAGE_START, without_no_value};
pub use host::{Host, HostContext, Mode};
pub use json::{decode as from_json, encode as to_json};
pub use yaml::{from_node, from_yaml, to_yaml};

use fl_gotemplate::Functions;

/// The functions of Helm 4, which has a few more.
pub fn functions_of_helm_4() -> Functions {
    let mut f = functions();
    yaml::add_strict(&mut f);
    toml::add_strict(&mut f);
    f
}

/// All functions of Helm 3's templates, including `include` and `tpl`.
pub fn functions() -> Functions {
    let mut f = Functions::new();
    strings::add(&mut f);
    numbers::add(&mut f);
    lists::add(&mut f);
    dicts::add(&mut f);
    defaults::add(&mut f);
    encoding::add(&mut f);
    hashes::add(&mut f);
    random::add(&mut f);
    regex::add(&mut f);
    dates::add(&mut f);
    paths::add(&mut f);
    url::add(&mut f);
    semver::add(&mut f);
    json::add(&mut f);
    yaml::add(&mut f);
    pretty_yaml::add(&mut f);
    toml::add(&mut f);
    keys::add(&mut f);
    secrets::add(&mut f);
    helm::add(&mut f);
    f
}
