//! References, and the commits that they resolve to.

use fl_git::ObjectId;

/// A reference as a GitRepository names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    Branch(String),
    Tag(String),
    /// The highest tag in a range of versions.
    Semver(String),
    /// Any reference by its full name; the revision then carries the full name too.
    Name(String),
    /// A commit, which must be on the branch when one is named.
    Commit {
        commit: String,
        branch: Option<String>,
        name: Option<String>,
    },
}

impl Reference {
    /// From the fields of `spec.ref`, in Flux's order of precedence; empty fields count as absent.
    pub fn from_fields(
        branch: Option<&str>,
        tag: Option<&str>,
        semver: Option<&str>,
        name: Option<&str>,
        commit: Option<&str>,
    ) -> Self {
        let given = |field: Option<&str>| field.filter(|f| !f.is_empty()).map(str::to_owned);
        if let Some(commit) = given(commit) {
            return Reference::Commit { commit, branch: given(branch), name: given(name) };
        }
        given(name)
            .map(Reference::Name)
            .or_else(|| given(tag).map(Reference::Tag))
            .or_else(|| given(semver).map(Reference::Semver))
            .or_else(|| given(branch).map(Reference::Branch))
            .unwrap_or_else(|| Reference::Branch("master".to_owned()))
    }

    /// Whether Flux settles an unchanged reference of this kind with a listing alone and reports it as "no changes".
    pub fn is_settled_by_listing(&self) -> bool {
        matches!(self, Reference::Branch(_) | Reference::Tag(_) | Reference::Name(_))
    }
}

/// The commit that a reference stands for right now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    pub commit: ObjectId,
    /// The full name of the reference it was found by, `HEAD` for a bare commit.
    pub reference: String,
    /// For a tag: its short name, and the tag object when it is an annotated one.
    pub tag: Option<(String, Option<ObjectId>)>,
    /// Whether the revision carries the full reference name.
    pub(crate) absolute: bool,
}

impl Resolved {
    /// A commit by its id alone, on whatever branch it is; the server decides whether it gives it out.
    pub fn commit(commit: ObjectId) -> Self {
        Resolved { commit, reference: "HEAD".to_owned(), tag: None, absolute: false }
    }

    /// Whether it was found by a name that is neither a branch nor a tag.
    pub(crate) fn is_beside_branches(&self) -> bool {
        !["refs/heads/", "refs/tags/"].iter().any(|prefix| self.reference.starts_with(prefix))
    }

    /// `main@sha1:…`, `refs/heads/main@sha1:…` or `sha1:…`.
    pub fn revision(&self) -> String {
        let digest = format!("{}:{}", self.commit.kind().as_str(), self.commit);
        let name = if self.absolute {
            Some(self.reference.as_str())
        } else {
            // Past the second slash: `refs/heads/feature/x` is `feature/x`.
            self.reference.splitn(3, '/').nth(2)
        };
        match name {
            Some(name) => format!("{name}@{digest}"),
            None => digest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn precedence() {
        let from = Reference::from_fields;
        assert_eq!(from(None, None, None, None, None), Reference::Branch("master".into()));
        assert_eq!(from(Some("b"), Some("t"), Some("1.x"), None, None), Reference::Tag("t".into()));
        assert_eq!(from(Some("b"), None, Some("1.x"), None, None), Reference::Semver("1.x".into()));
        assert_eq!(
            from(Some("b"), None, Some("1.x"), Some("refs/x"), None),
            Reference::Name("refs/x".into())
        );
        assert_eq!(
            from(Some("b"), None, None, None, Some("abc")),
            Reference::Commit { commit: "abc".into(), branch: Some("b".into()), name: None }
        );
    }

    #[test]
    fn revisions() {
        let commit: ObjectId = "ce013625030ba8dba906f756967f9e9ca394464a".parse().unwrap();
        let revision = |reference: &str, absolute| {
            Resolved { commit, reference: reference.to_owned(), tag: None, absolute }.revision()
        };
        assert_eq!(revision("refs/heads/feature/x", false), format!("feature/x@sha1:{commit}"));
        assert_eq!(revision("refs/heads/main", true), format!("refs/heads/main@sha1:{commit}"));
        assert_eq!(revision("HEAD", false), format!("sha1:{commit}"));
    }
}
