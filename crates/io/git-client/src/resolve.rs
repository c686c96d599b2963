//! Resolves references to commits.

use fl_git::{FetchRequest, ObjectId, ObjectKind, RemoteRef};
use fl_semver::{Constraints, Version};

use crate::transport::{PackSpool, Session};
use crate::{Error, Failure, Reference, Resolved};

/// What the error messages of one operation depend on: with an artifact the references are listed first, without one
/// the repository is cloned at once.
#[derive(Clone, Copy)]
pub(crate) struct ErrorContext<'a> {
    pub(crate) url: &'a str,
    pub(crate) listing: bool,
}

impl ErrorContext<'_> {
    pub(crate) fn failed(&self, failure: Failure) -> Error {
        let url = self.url.to_owned();
        match failure {
            Failure::Credentials(problem) => Error::Auth(problem),
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

/// Resolves a reference; `None` for a branch of an empty repository.
pub(crate) async fn resolve(
    session: &mut Session,
    reference: &Reference,
    context: ErrorContext<'_>,
    spool: &PackSpool,
) -> Result<Option<Resolved>, Error> {
    match reference {
        Reference::Branch(branch) => resolve_branch(session, branch, context).await,
        Reference::Tag(tag) => resolve_tag(session, tag, context).await.map(Some),
        Reference::Name(name) => resolve_name(session, name, context).await.map(Some),
        Reference::Semver(range) => resolve_range(session, range, context, spool).await.map(Some),
        Reference::Commit { commit, branch, name } => {
            let reference = match (name, branch) {
                (Some(name), _) => name.clone(),
                (None, Some(branch)) => format!("refs/heads/{branch}"),
                (None, None) => "HEAD".to_owned(),
            };
            let id = check_commit(session, commit, branch.as_deref(), context, spool).await?;
            Ok(Some(Resolved { commit: id, reference, tag: None, absolute: name.is_some() }))
        }
    }
}

async fn find(
    session: &mut Session,
    name: &str,
    context: ErrorContext<'_>,
) -> Result<Option<RemoteRef>, Error> {
    let refs = session.refs(&[name]).await.map_err(|f| context.failed(f))?;
    Ok(refs.into_iter().find(|r| r.name == name))
}

async fn is_empty(session: &mut Session, context: ErrorContext<'_>) -> Result<bool, Error> {
    Ok(session.refs(&[]).await.map_err(|f| context.failed(f))?.is_empty())
}

async fn resolve_branch(
    session: &mut Session,
    branch: &str,
    context: ErrorContext<'_>,
) -> Result<Option<Resolved>, Error> {
    let reference = format!("refs/heads/{branch}");
    if let Some(found) = find(session, &reference, context).await? {
        return Ok(Some(Resolved { commit: found.id, reference, tag: None, absolute: false }));
    }
    if is_empty(session, context).await? {
        return if context.listing { Err(context.empty()) } else { Ok(None) };
    }
    Err(context.clone_failed(Failure::NoRef(reference)))
}

fn tagged(found: &RemoteRef, short: &str, absolute: bool) -> Resolved {
    Resolved {
        commit: found.peeled.unwrap_or(found.id),
        reference: found.name.clone(),
        tag: Some((short.to_owned(), found.peeled.map(|_| found.id))),
        absolute,
    }
}

async fn resolve_tag(session: &mut Session, tag: &str, context: ErrorContext<'_>) -> Result<Resolved, Error> {
    let reference = format!("refs/tags/{tag}");
    if let Some(found) = find(session, &reference, context).await? {
        return Ok(tagged(&found, tag, false));
    }
    if is_empty(session, context).await? {
        return Err(context.empty());
    }
    Err(context.clone_failed(Failure::NoRef(reference)))
}

async fn resolve_name(
    session: &mut Session,
    name: &str,
    context: ErrorContext<'_>,
) -> Result<Resolved, Error> {
    if name.starts_with('/') || name.ends_with('/') {
        return Err(Error::RefSlash(name.to_owned()));
    }
    // A full name is always looked up in a listing first.
    let context = ErrorContext { listing: true, ..context };
    let plain = name.strip_suffix("^{}").unwrap_or(name);
    let found = match find(session, plain, context).await? {
        Some(found) => found,
        None if is_empty(session, context).await? => return Err(context.empty()),
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
    context: ErrorContext<'_>,
    spool: &PackSpool,
) -> Result<Resolved, Error> {
    let constraints = Constraints::parse(range).map_err(|e| Error::Range(e.to_string()))?;
    let tags = session.refs(&["refs/tags/"]).await.map_err(|f| context.failed(f))?;
    let matching = |found: &RemoteRef| {
        let short = found.name.strip_prefix("refs/tags/")?;
        // One or two numbers are no version here, though the parser would take them.
        let version = Version::parse(short).ok().filter(|_| short.split('.').count() >= 3)?;
        constraints.check(&version).then(|| (version, tagged(found, short, false)))
    };
    let mut matches: Vec<(Version, Resolved)> = tags.iter().filter_map(matching).collect();
    let Some(highest) = matches.iter().map(|(version, _)| version).max().cloned() else {
        return match tags.is_empty() && is_empty(session, context).await? {
            true => Err(context.empty()),
            false => Err(Error::NoVersion(range.to_owned())),
        };
    };
    matches.retain(|(version, _)| *version == highest);
    let mut tied: Vec<Resolved> = matches.into_iter().map(|(_, resolved)| resolved).collect();
    if tied.len() > 1 {
        by_time(session, &mut tied, spool).await.map_err(|f| context.failed(f))?;
    }
    tied.pop().ok_or_else(|| Error::NoVersion(range.to_owned()))
}

/// Versions that differ only in build metadata are ordered by the time of their commits.
async fn by_time(session: &mut Session, tied: &mut [Resolved], spool: &PackSpool) -> Result<(), Failure> {
    let mut wants: Vec<ObjectId> = tied.iter().map(|r| r.commit).collect();
    wants.sort_unstable();
    wants.dedup();
    let request =
        FetchRequest { wants, depth: Some(1), filter: Some("tree:0".to_owned()), ..FetchRequest::default() };
    let mut pack = session.fetch(&request, spool).await?.pack;
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
    context: ErrorContext<'_>,
    spool: &PackSpool,
) -> Result<ObjectId, Error> {
    let missing = || Error::NoCommit(commit.to_owned());
    let context = ErrorContext { listing: false, ..context };
    let tips = match branch {
        Some(branch) => match resolve_branch(session, branch, context).await? {
            Some(found) => vec![found.commit],
            None => return Err(context.empty()),
        },
        None => {
            let refs = session.refs(&["HEAD", "refs/heads/"]).await.map_err(|f| context.failed(f))?;
            if refs.is_empty() && is_empty(session, context).await? {
                return Err(context.empty());
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
    let pack = session.fetch(&history, spool).await.map_err(|f| context.failed(f))?;
    if pack.pack.contains(&id) { Ok(id) } else { Err(missing()) }
}
