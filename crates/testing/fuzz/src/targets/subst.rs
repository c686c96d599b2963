//! Variable substitution.

use super::Target;

pub(crate) const TARGETS: &[Target] = &[("subst-expand", subst_expand)];

/// Any text expands or is refused; what a refusing run accepts, a lenient one accepts too, with the same result.
fn subst_expand(input: &[u8]) {
    use fl_envsubst::{Missing, expand_bytes};
    let text = String::from_utf8_lossy(input);
    let lookup = |name: &str| (name.len() == 1).then(|| format!("v/{name}.{name}"));
    let lenient = expand_bytes(&text, Missing::Empty, lookup);
    if let Ok(strict) = expand_bytes(&text, Missing::Refuse, lookup) {
        assert_eq!(lenient.as_ref(), Ok(&strict));
    }
}
