//! Why nobody has the data key, in the layout of SOPS: groups, the keys in them, and what each of them failed with.

use std::fmt::Write as _;

/// The widths of SOPS: of what a key failed with, and of the words below.
const KEY: usize = 60;
const BELOW: usize = 75;

/// What came of a key: its name, and the problem with it.
pub(crate) type Tried = (String, Option<String>);

/// The whole text; `needed` is how many groups had to be opened, 0 where there is only one.
pub(crate) fn report(groups: &[Vec<Tried>], needed: usize) -> String {
    let mut text = "Failed to get the data key required to decrypt the SOPS file.".to_owned();
    let word = |fine: bool| if fine { "SUCCESS" } else { "FAILED" };
    for (at, keys) in groups.iter().enumerate() {
        let fine = keys.iter().any(|(_, problem)| problem.is_none());
        let _ = write!(text, "\n\nGroup {at}: {}", word(fine));
        for (at, (name, problem)) in keys.iter().enumerate() {
            let gap = if at == 0 { "\n" } else { "\n\n" };
            let _ = write!(text, "{gap}  {name}: {}", word(problem.is_none()));
            let Some(problem) = problem else { continue };
            for (at, line) in wrapped(problem, KEY).lines().enumerate() {
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
    text + "\n\n" + &wrapped(&below, BELOW)
}

/// Breaks lines at spaces; a longer word stays whole.
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
    fn the_layout_of_sops() {
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
