//! Release names have at most 53 characters.

use sha2::{Digest, Sha256};

/// The longest release name Helm takes.
const LONGEST: usize = 53;
/// Characters of the hash that stands for what was cut off.
const HASH: usize = 12;

/// A longer name becomes its beginning, a dash and the beginning of its hash, as Flux does it.
pub fn shorten_name(name: &str) -> String {
    if name.len() <= LONGEST {
        return name.to_owned();
    }
    let sum = Sha256::digest(name.as_bytes());
    let hash: String = sum.iter().take(HASH / 2).map(|byte| format!("{byte:02x}")).collect();
    let mut end = LONGEST - HASH - 1;
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
