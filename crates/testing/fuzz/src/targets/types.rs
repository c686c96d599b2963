//! Value types of Kubernetes.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use super::Target;

pub(crate) const TARGETS: &[Target] = &[("value-types", value_types)];

/// What was read can be printed and is read back as the same.
fn round_trip<T: FromStr<Err: Debug> + Display + PartialEq + Debug>(text: &str) {
    let Ok(value) = text.parse::<T>() else { return };
    let printed = value.to_string();
    assert_eq!(
        printed.parse::<T>().expect("what was printed can be read"),
        value,
        "{text:?} printed as {printed:?}"
    );
}

/// Each line as every type.
fn value_types(input: &[u8]) {
    for line in String::from_utf8_lossy(input).lines() {
        round_trip::<fl_types::Duration>(line);
        round_trip::<fl_types::Quantity>(line);
        round_trip::<fl_types::Selector>(line);
        // Terms are ordered by their text, which `==` and `=` spell differently: only reading back is promised.
        if let Ok(selector) = line.parse::<fl_types::FieldSelector>() {
            selector.to_string().parse::<fl_types::FieldSelector>().expect("what was printed can be read");
        }
        round_trip::<fl_types::Digest>(line);
        round_trip::<fl_types::Revision>(line);
        let _ = fl_types::check_qualified_name(line);
        let _ = fl_types::check_dns1123_subdomain(line);
    }
}
