//! Valid names of references. An untrusted name must not look like an option or a path.

use crate::Error;

/// Git's rules for a full reference name or a short branch or tag name.
pub fn check_ref_name(name: &str) -> Result<(), Error> {
    let bad_char = |c: char| c.is_control() || " ~^:?*[\\".contains(c);
    let bad = name.is_empty()
        || name.starts_with(['-', '/'])
        || name.ends_with(['.', '/'])
        || name == "@"
        || name.contains("..")
        || name.contains("@{")
        || name.contains(bad_char)
        || name.split('/').any(|part| part.is_empty() || part.starts_with('.') || part.ends_with(".lock"));
    if bad { Err(Error::RefName(name.escape_debug().take(200).collect())) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::check_ref_name;

    /// E02: names with dashes, newlines, `..` and control characters.
    #[test]
    fn names_that_git_refuses_are_refused() {
        for good in ["main", "refs/heads/feature/x", "v1.2.3", "release-1.x", "é"] {
            assert!(check_ref_name(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "-x",
            "--upload-pack=sh",
            "a..b",
            "a b",
            "a\nb",
            "/a",
            "a/",
            "a//b",
            ".a",
            "a/.b",
            "a.lock",
            "a^",
            "@",
            "a@{1}",
            "a\\b",
        ] {
            assert!(check_ref_name(bad).is_err(), "{bad}");
        }
    }
}
