//! From a reference to a commit.

use fl_git::{FetchRequest, ObjectId, ObjectKind, RemoteRef};
use fl_semver::{Constraints, Version};

use crate::session::{Scratch, Session};
use crate::{Error, Failure, Reference, Resolved};

/// How failures of one pass are worded: a pass that has an artifact lists first, one without clones at once.
#[derive(Clone, Copy)]
pub(crate) struct Wording<'a> {
    pub(crate) url: &'a str,
    pub(crate) listing: bool,
}

impl Wording<'_> {
    pub(crate) fn failed(&self, failure: Failure) -> Error {
        let url = self.url.to_owned();
        match failure {
            Failure::Key(problem) => Error::Auth(problem),
            failure if self.listing => Error::List { url, failure },
            failure @ Failure::NoSuchRepository => Error::NoRepository { url, failure },
            failure => Error::Clone { url, failure },
        }
    }

    fn clone_failed(&self, failure: Failure) -> Error {
        Error::Clone { url: self.url.to_owned(), failure }
    }

    fn empty(&self) -> Error {
        let (url, failure) = (self.url.to_owned(), Failure::Empty);
        if self.listing { Error::List { url, failure } } else { Error::NoRepository { url, failure } }
    }
}

/// `None` is an empty repository where a branch was asked for.
pub(crate) async fn resolve(
    session: &mut Session,
    reference: &Reference,
    wording: Wording<'_>,
    scratch: &Scratch,
) -> Result<Option<Resolved>, Error> {
    match reference {
        Reference::Branch(branch) => resolve_branch(session, branch, wording).await,
        Reference::Tag(tag) => resolve_tag(session, tag, wording).await.map(Some),
        Reference::Name(name) => resolve_name(session, name, wording).await.map(Some),
        Reference::Semver(range) => resolve_range(session, range, wording, scratch).await.map(Some),
        Reference::Commit { commit, branch, name } => {
            let reference = match (name, branch) {
                (Some(name), _) => name.clone(),
                (None, Some(branch)) => format!("refs/heads/{branch}"),
                (None, None) => "HEAD".to_owned(),
            };
            let id = check_commit(session, commit, branch.as_deref(), wording, scratch).await?;
            Ok(Some(Resolved { commit: id, reference, tag: None, absolute: name.is_some() }))
        }
    }
}

async fn find(session: &mut Session, name: &str, wording: Wording<'_>) -> Result<Option<RemoteRef>, Error> {
    let refs = session.refs(&[name]).await.map_err(|f| wording.failed(f))?;
    Ok(refs.into_iter().find(|r| r.name == name))
}

async fn is_empty(session: &mut Session, wording: Wording<'_>) -> Result<bool, Error> {
    Ok(session.refs(&[]).await.map_err(|f| wording.failed(f))?.is_empty())
}

async fn resolve_branch(
    session: &mut Session,
    branch: &str,
    wording: Wording<'_>,
) -> Result<Option<Resolved>, Error> {
    let reference = format!("refs/heads/{branch}");
    if let Some(found) = find(session, &reference, wording).await? {
        return Ok(Some(Resolved { commit: found.id, reference, tag: None, absolute: false }));
    }
    if is_empty(session, wording).await? {
        return if wording.listing { Err(wording.empty()) } else { Ok(None) };
    }
    Err(wording.clone_failed(Failure::NoRef(reference)))
}

fn tagged(found: &RemoteRef, short: &str, absolute: bool) -> Resolved {
    Resolved {
        commit: found.peeled.unwrap_or(found.id),
        reference: found.name.clone(),
        tag: Some((short.to_owned(), found.peeled.map(|_| found.id))),
        absolute,
    }
}

async fn resolve_tag(session: &mut Session, tag: &str, wording: Wording<'_>) -> Result<Resolved, Error> {
    let reference = format!("refs/tags/{tag}");
    if let Some(found) = find(session, &reference, wording).await? {
        return Ok(tagged(&found, tag, false));
    }
    if is_empty(session, wording).await? {
        return Err(wording.empty());
    }
    Err(wording.clone_failed(Failure::NoRef(reference)))
}

async fn resolve_name(session: &mut Session, name: &str, wording: Wording<'_>) -> Result<Resolved, Error> {
    if name.starts_with('/') || name.ends_with('/') {
        return Err(Error::RefSlash(name.to_owned()));
    }
    // A full name is always looked up in a listing first.
    let wording = Wording { listing: true, ..wording };
    let plain = name.strip_suffix("^{}").unwrap_or(name);
    let found = match find(session, plain, wording).await? {
        Some(found) => found,
        None if is_empty(session, wording).await? => return Err(wording.empty()),
        None => return Err(Error::NoSuchRef(name.to_owned())),
    };
    if name != plain && found.peeled.is_none() {
        return Err(Error::NoSuchRef(name.to_owned()));
    }
    let mut resolved = match plain.strip_prefix("refs/tags/") {
        Some(short) => tagged(&found, short, true),
        None => Resolved {
            commit: found.peeled.unwrap_or(found.id),
            reference: String::new(),
            tag: None,
            absolute: true,
        },
    };
    resolved.reference = name.to_owned();
    Ok(resolved)
}

async fn resolve_range(
    session: &mut Session,
    range: &str,
    wording: Wording<'_>,
    scratch: &Scratch,
) -> Result<Resolved, Error> {
    let constraints = Constraints::parse(range).map_err(|e| Error::Range(e.to_string()))?;
    let tags = session.refs(&["refs/tags/"]).await.map_err(|f| wording.failed(f))?;
    let matching = |found: &RemoteRef| {
        let short = found.name.strip_prefix("refs/tags/")?;
        // One or two numbers are no version here, though the parser would take them.
        let version = Version::parse(short).ok().filter(|_| short.split('.').count() >= 3)?;
        constraints.check(&version).then(|| (version, tagged(found, short, false)))
    };
    let mut matches: Vec<(Version, Resolved)> = tags.iter().filter_map(matching).collect();
    let Some(highest) = matches.iter().map(|(version, _)| version).max().cloned() else {
        return match tags.is_empty() && is_empty(session, wording).await? {
            true => Err(wording.empty()),
            false => Err(Error::NoVersion(range.to_owned())),
        };
    };
    matches.retain(|(version, _)| *version == highest);
    let mut tied: Vec<Resolved> = matches.into_iter().map(|(_, resolved)| resolved).collect();
    if tied.len() > 1 {
        by_time(session, &mut tied, scratch).await.map_err(|f| wording.failed(f))?;
    }
    tied.pop().ok_or_else(|| Error::NoVersion(range.to_owned()))
}

/// Versions that differ only in build metadata are ordered by the time of their commits.
async fn by_time(session: &mut Session, tied: &mut [Resolved], scratch: &Scratch) -> Result<(), Failure> {
    let mut wants: Vec<ObjectId> = tied.iter().map(|r| r.commit).collect();
    wants.sort_unstable();
    wants.dedup();
    let request =
        FetchRequest { wants, depth: Some(1), filter: Some("tree:0".to_owned()), ..FetchRequest::default() };
    let mut pack = session.fetch(&request, scratch).await?;
    let mut time = |commit: &ObjectId| -> Result<i64, Failure> {
        let content = pack.read_kind(commit, ObjectKind::Commit)?;
        Ok(fl_git::parse_commit(&content)?.committer.seconds)
    };
    let mut timed = Vec::with_capacity(tied.len());
    for resolved in tied.iter() {
        timed.push((time(&resolved.commit)?, resolved.reference.clone(), resolved.clone()));
    }
    timed.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
    for (place, (_, _, resolved)) in tied.iter_mut().zip(timed) {
        *place = resolved;
    }
    Ok(())
}

/// A commit counts only when it is on the branch, or on any branch when none is named, as in a clone.
pub(crate) async fn check_commit(
    session: &mut Session,
    commit: &str,
    branch: Option<&str>,
    wording: Wording<'_>,
    scratch: &Scratch,
) -> Result<ObjectId, Error> {
    let missing = || Error::NoCommit(commit.to_owned());
    let wording = Wording { listing: false, ..wording };
    let tips = match branch {
        Some(branch) => match resolve_branch(session, branch, wording).await? {
            Some(found) => vec![found.commit],
            None => return Err(wording.empty()),
        },
        None => {
            let refs = session.refs(&["HEAD", "refs/heads/"]).await.map_err(|f| wording.failed(f))?;
            if refs.is_empty() && is_empty(session, wording).await? {
                return Err(wording.empty());
            }
            let mut tips: Vec<ObjectId> = refs.iter().map(|r| r.id).collect();
            tips.sort_unstable();
            tips.dedup();
            tips
        }
    };
    let id: ObjectId = commit.parse().map_err(|_| missing())?;
    if tips.contains(&id) {
        return Ok(id);
    }
    // The commits alone: their trees and files stay where they are.
    let history = FetchRequest { wants: tips, filter: Some("tree:0".to_owned()), ..FetchRequest::default() };
    let pack = session.fetch(&history, scratch).await.map_err(|f| wording.failed(f))?;
    if pack.contains(&id) { Ok(id) } else { Err(missing()) }
}
