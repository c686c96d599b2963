//! Release names have at most 53 characters.

use sha2::{Digest, Sha256};

/// Maximum length of a release name in Helm.
const MAX_NAME_LEN: usize = 53;
/// Characters of the hash that replaces the truncated rest.
const HASH_LEN: usize = 12;

/// Shortens a long name to its beginning, a dash and the beginning of its hash, as Flux does.
pub fn shorten_name(name: &str) -> String {
    if name.len() <= MAX_NAME_LEN {
        return name.to_owned();
    }
    let sum = Sha256::digest(name.as_bytes());
    let hash: String = sum.iter().take(HASH_LEN / 2).map(|byte| format!("{byte:02x}")).collect();
    let mut end = MAX_NAME_LEN - HASH_LEN - 1;
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}-{hash}", &name[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_end_in_their_hash() {
        assert_eq!(shorten_name("web"), "web");
        assert_eq!(
            shorten_name("a-very-lengthy-target-namespace-with-a-nice-object-name"),
            "a-very-lengthy-target-namespace-with-a-n-97af5d7f41f3"
        );
    }
}
