//! The template functions that Helm offers: Sprig and Helm's own.
//!
//! [`functions`] gives the table for a [`TemplateSet`](fl_gotemplate::TemplateSet); [`Host`] carries what they need from
//! outside (clock, randomness, cluster) and goes into the execution. Nothing here reads the environment, the network or
//! files.

mod args;
mod cast;
mod dates;
mod decimal;
mod defaults;
mod dicts;
mod encoding;
mod equal;
mod hashes;
mod helm;
mod host;
mod json;
mod keys;
mod letters;
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
mod words;
mod yaml;

pub use dates::Time;
pub use helm::{MESSAGE_END, MESSAGE_START, without_no_value};
pub use host::{Host, Mode, Outside};
pub use json::{decode as from_json, encode as to_json};
pub use regex::regexp;
pub use yaml::{from_node, from_yaml, to_yaml};

use fl_gotemplate::Functions;

/// The same for Helm 4, which has a few more.
pub fn functions_of_helm_4() -> Functions {
    let mut f = functions();
    yaml::add_strict(&mut f);
    toml::add_strict(&mut f);
    f
}

/// Every function that Helm's templates may call, `include` and `tpl` too.
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
