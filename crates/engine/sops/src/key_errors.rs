//! Error message for a data key that cannot be decrypted, in SOPS' layout: groups, their keys, and the error
//! of each key.

use std::fmt::Write as _;

/// Line widths in SOPS: for the error of a key, and for the text below.
const KEY_WIDTH: usize = 60;
const TEXT_WIDTH: usize = 75;

/// Name of a key, and its error.
pub(crate) type KeyResult = (String, Option<String>);

/// The whole message; `needed` is the number of groups required, 0 if there is only one.
pub(crate) fn report(groups: &[Vec<KeyResult>], needed: usize) -> String {
    let mut text = "Failed to get the data key required to decrypt the SOPS file.".to_owned();
    let word = |fine: bool| if fine { "SUCCESS" } else { "FAILED" };
    for (at, keys) in groups.iter().enumerate() {
        let fine = keys.iter().any(|(_, problem)| problem.is_none());
        let _ = write!(text, "\n\nGroup {at}: {}", word(fine));
        for (at, (name, problem)) in keys.iter().enumerate() {
            let gap = if at == 0 { "\n" } else { "\n\n" };
            let _ = write!(text, "{gap}  {name}: {}", word(problem.is_none()));
            let Some(problem) = problem else { continue };
            for (at, line) in wrapped(problem, KEY_WIDTH).lines().enumerate() {
                let _ = write!(text, "\n    {} | {line}", if at == 0 { '-' } else { ' ' });
            }
        }
    }
    let below = if needed == 0 {
        "Recovery failed because no master key was able to decrypt the file. In order for SOPS to recover the file, at least one \
         key has to be successful, but none were."
            .to_owned()
    } else {
        let opened = groups.iter().filter(|keys| keys.iter().any(|(_, problem)| problem.is_none())).count();
        format!("Recovery failed: {needed} groups have to be successful, {opened} were.")
    };
    text + "\n\n" + &wrapped(&below, TEXT_WIDTH)
}

/// Wraps lines at spaces; longer words are not split.
fn wrapped(text: &str, width: usize) -> String {
    let mut out = String::with_capacity(text.len());
    for (at, line) in text.lines().enumerate() {
        if at > 0 {
            out.push('\n');
        }
        let mut used = 0;
        for word in line.split(' ') {
            let length = word.chars().count();
            if used > 0 && used + 1 + length > width {
                out.push('\n');
                used = 0;
            } else if used > 0 {
                out.push(' ');
                used += 1;
            }
            out.push_str(word);
            used += length;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded from kustomize-controller.
    #[test]
    fn message_layout_matches_sops() {
        let problem = "failed to create reader for decrypting sops data key with age: identity did not match any of the \
                       recipients: incorrect identity for recipient block";
        let text = report(&[vec![("age1abc".to_owned(), Some(problem.to_owned()))]], 0);
        let want = [
            "Failed to get the data key required to decrypt the SOPS file.",
            "",
            "Group 0: FAILED",
            "  age1abc: FAILED",
            "    - | failed to create reader for decrypting sops data key with",
            "      | age: identity did not match any of the recipients: incorrect",
            "      | identity for recipient block",
            "",
            "Recovery failed because no master key was able to decrypt the file. In",
            "order for SOPS to recover the file, at least one key has to be successful,",
            "but none were.",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), want);
    }
}
