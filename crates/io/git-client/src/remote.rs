//! A repository on another machine.

use std::path::PathBuf;
use std::time::Duration;

use fl_git::{FetchRequest, Limits, ObjectId, ObjectKind};
use fl_http::{AddressPolicy, ByteBudget, Lease, Owner, Proxy};

use crate::commit_tree::{self, Snapshot, Store};
use crate::http::HttpSession;
use crate::resolve::{ErrorContext, check_commit, resolve};
use crate::ssh::SshSession;
use crate::transport::{PackSpool, Session};
use crate::{Address, Auth, Error, Failure, Reference, Resolved, Scheme, SshAlgorithms, submodules};

/// How a repository is reached.
#[derive(Clone, Debug)]
pub struct RemoteOptions {
    /// On whose behalf it is fetched.
    pub owner: Owner,
    pub proxy: Option<Proxy>,
    /// For a resolve or a fetch as a whole.
    pub timeout: Duration,
    /// Where packs are kept while they are read. They have no name and vanish with the process.
    pub scratch: PathBuf,
    /// Bytes of one pack.
    pub pack_bytes: u64,
    pub limits: Limits,
    /// What connections over SSH may use.
    pub ssh: SshAlgorithms,
    /// Where connections may go, those to submodules included.
    pub addresses: AddressPolicy,
    /// Counts packs and trees. By default a lease on the budget of the process.
    pub lease: Lease,
}

impl RemoteOptions {
    #[must_use]
    pub fn new(owner: Owner) -> Self {
        let timeout = Duration::from_secs(60);
        Self {
            lease: ByteBudget::shared().lease(owner.clone(), timeout),
            owner,
            proxy: None,
            timeout,
            scratch: std::env::temp_dir(),
            pack_bytes: 8 << 30,
            limits: Limits::default(),
            ssh: SshAlgorithms::default(),
            addresses: AddressPolicy::default(),
        }
    }
}

/// What of a commit is wanted.
#[derive(Clone, Debug, Default)]
pub struct FetchOptions {
    pub recurse_submodules: bool,
    /// Only paths that begin with one of these; everything when empty. A leading `./` is dropped.
    pub sparse: Vec<String>,
    /// Only a commit that a clone of the branches has, where it was found by a name other than branches and tags
    /// (`refs/pull/1/head`, `HEAD`): Flux looks for it in such a clone.
    pub only_on: Option<Branches>,
}

/// Which branches a clone has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Branches {
    All,
    One(String),
}

/// A repository and the credentials for it.
#[derive(Clone, Debug)]
pub struct Remote {
    address: Address,
    auth: Auth,
    options: RemoteOptions,
}

/// A fetched commit and its tree.
#[derive(Debug)]
pub struct Checkout {
    pub commit: Commit,
    pub snapshot: Snapshot,
}

/// A commit, with what is needed to show and to verify it.
#[derive(Clone, Debug)]
pub struct Commit {
    pub id: ObjectId,
    pub reference: String,
    pub author: fl_git::Signature,
    pub committer: fl_git::Signature,
    pub message: String,
    pub signature: Option<String>,
    pub signed_payload: Vec<u8>,
    /// The tag it was found by.
    pub tag: Option<Tag>,
}

impl Commit {
    /// The first line, at most 50 characters of it.
    pub fn short_message(&self) -> String {
        let subject = self.message.split('\n').next().unwrap_or_default();
        match subject.char_indices().nth(50) {
            Some((at, _)) => format!("{}...", &subject[..at]),
            None => subject.to_owned(),
        }
    }
}

/// A tag; one without an object of its own has only a name.
#[derive(Clone, Debug)]
pub struct Tag {
    pub id: Option<ObjectId>,
    pub name: String,
    pub message: String,
    pub signature: Option<String>,
    pub signed_payload: Vec<u8>,
}

/// `v1@<hex>`, or the name alone for a tag without an object.
impl std::fmt::Display for Tag {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.id {
            Some(id) => write!(f, "{}@{id}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

impl Remote {
    pub fn new(url: &str, auth: Auth, options: RemoteOptions) -> Result<Self, Error> {
        Ok(Self { address: Address::parse(url)?, auth, options })
    }

    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Resolves a reference to a commit; `None` for a branch of an empty repository.
    ///
    /// `has_artifact` only decides the message of an error: with an artifact Flux lists before it clones.
    pub async fn resolve(
        &self,
        reference: &Reference,
        has_artifact: bool,
    ) -> Result<Option<Resolved>, Error> {
        let listing = has_artifact && reference.is_settled_by_listing();
        let context = ErrorContext { url: self.address.shown(), listing };
        let work = async {
            let mut session = self.open().await.map_err(|f| context.failed(f))?;
            resolve(&mut session, reference, context, &self.spool()).await
        };
        let _waits = self.options.lease.cancel_on_drop();
        match tokio::time::timeout(self.options.timeout, work).await {
            Ok(result) => result,
            Err(_) => Err(context.failed(self.deadline())),
        }
    }

    /// The branch that `HEAD` of the repository refers to; none when the repository is empty or its `HEAD` is detached.
    pub async fn default_branch(&self) -> Result<Option<String>, Error> {
        let context = ErrorContext { url: self.address.shown(), listing: true };
        let work = async {
            let mut session = self.open().await.map_err(|f| context.failed(f))?;
            session.refs(&["HEAD"]).await.map_err(|f| context.failed(f))
        };
        let refs = match tokio::time::timeout(self.options.timeout, work).await {
            Ok(refs) => refs?,
            Err(_) => return Err(context.failed(self.deadline())),
        };
        let head = refs.into_iter().find(|found| found.name == "HEAD").and_then(|head| head.symref_target);
        Ok(head.and_then(|name| name.strip_prefix("refs/heads/").map(str::to_owned)))
    }

    /// The tree of a resolved commit.
    pub async fn fetch(&self, resolved: &Resolved, options: &FetchOptions) -> Result<Checkout, Error> {
        let _waits = self.options.lease.cancel_on_drop();
        match tokio::time::timeout(self.options.timeout, self.fetch_all(resolved, options)).await {
            Ok(result) => result,
            Err(_) => Err(self.clone_failed(self.deadline())),
        }
    }

    async fn fetch_all(&self, resolved: &Resolved, options: &FetchOptions) -> Result<Checkout, Error> {
        let sparse: Vec<String> =
            options.sparse.iter().map(|p| p.strip_prefix("./").unwrap_or(p).to_owned()).collect();
        if let Some(branches) = &options.only_on
            && resolved.is_beside_branches()
        {
            // A name for another name has no commit of its own there.
            if resolved.reference == "HEAD" {
                return Err(Error::NoCommit("0".repeat(40)));
            }
            let context = ErrorContext { url: self.address.shown(), listing: false };
            let mut session = self.open().await.map_err(|f| context.failed(f))?;
            let branch = match branches {
                Branches::All => None,
                Branches::One(name) => Some(name.as_str()),
            };
            check_commit(&mut session, &resolved.commit.to_string(), branch, context, &self.spool()).await?;
        }
        let mut store = self.fetch_commit(resolved, !sparse.is_empty()).await?;
        let commit = describe(&mut store, resolved).map_err(|e| self.tree_error(resolved, e))?;
        let mut snapshot = Snapshot::open(store, resolved.commit, &sparse, &self.options.lease)
            .await
            .map_err(|e| self.tree_error(resolved, e))?;
        let missing = snapshot.missing();
        if !missing.is_empty() {
            let more = self.fetch_blobs(&missing).await?;
            snapshot.add(more);
        }
        if options.recurse_submodules {
            submodules::fetch(self, &mut snapshot).await?;
        }
        Ok(Checkout { commit, snapshot })
    }

    /// One commit with its tree, for a submodule.
    pub(crate) async fn fetch_pinned(&self, commit: ObjectId) -> Result<Snapshot, Error> {
        let resolved = Resolved::commit(commit);
        let store = self.fetch_commit(&resolved, false).await?;
        let snapshot = Snapshot::open(store, commit, &[], &self.options.lease).await;
        snapshot.map_err(|e| self.tree_error(&resolved, e))
    }

    pub(crate) fn beside(&self, address: Address) -> Self {
        let auth = match (&self.auth, address.scheme) {
            (Auth::Ssh { .. }, Scheme::Ssh) => self.auth.clone(),
            (Auth::Http { .. }, _) if self.address.same_server(&address) => self.auth.clone(),
            _ => self.auth.anonymous(),
        };
        Self { address, auth, options: self.options.clone() }
    }

    /// The commit without its history. Of a sparse checkout only the trees come first, where the server can do that.
    async fn fetch_commit(&self, resolved: &Resolved, sparse: bool) -> Result<Store, Error> {
        let mut session = self.open().await.map_err(|f| self.clone_failed(f))?;
        let tag = resolved.tag.as_ref().and_then(|(_, id)| *id);
        let request = FetchRequest {
            wants: vec![tag.unwrap_or(resolved.commit)],
            depth: Some(1),
            filter: sparse.then(|| "blob:none".to_owned()),
            ..FetchRequest::default()
        };
        let request = match old_server_request(&session, resolved, request) {
            Ok(request) => request,
            Err(()) => return Err(Error::NoCommit(resolved.commit.to_string())),
        };
        match session.fetch(&request, &self.spool()).await {
            Ok(spooled) if !spooled.pack.contains(&resolved.commit) => {
                Err(Error::NoCommit(resolved.commit.to_string()))
            }
            Ok(spooled) => Ok(Store::new(spooled)),
            Err(failure) if failure.is_no_such_object() => Err(Error::NoCommit(resolved.commit.to_string())),
            Err(failure) => Err(self.clone_failed(failure)),
        }
    }

    /// The files that a sparse checkout needs.
    async fn fetch_blobs(&self, wanted: &[ObjectId]) -> Result<Store, Error> {
        let mut session = self.open().await.map_err(|f| self.clone_failed(f))?;
        let request = FetchRequest { wants: wanted.to_vec(), ..FetchRequest::default() };
        let pack = session.fetch(&request, &self.spool()).await.map_err(|f| self.clone_failed(f))?;
        Ok(Store::new(pack))
    }

    async fn open(&self) -> Result<Session, Failure> {
        let Self { address, auth, options } = self;
        match (address.scheme, auth) {
            (Scheme::Ssh, Auth::Ssh { .. }) => {
                Ok(Session::Ssh(Box::new(SshSession::open(address, auth, options).await?)))
            }
            (Scheme::Ssh, Auth::Http { .. }) => {
                Err(Failure::Ssh("no key and known_hosts were given for an address with ssh".to_owned()))
            }
            _ => Ok(Session::Http(Box::new(HttpSession::open(address, auth, options).await?))),
        }
    }

    fn spool(&self) -> PackSpool {
        PackSpool {
            directory: self.options.scratch.clone(),
            pack_bytes: self.options.pack_bytes,
            limits: self.options.limits,
            lease: self.options.lease.clone(),
        }
    }

    fn clone_failed(&self, failure: Failure) -> Error {
        ErrorContext { url: self.address.shown(), listing: false }.failed(failure)
    }

    fn tree_error(&self, resolved: &Resolved, problem: commit_tree::SnapshotError) -> Error {
        Error::Tree { commit: resolved.commit.to_string(), problem }
    }

    /// Why the deadline passed: the server was too slow, or other fetches held all bytes.
    fn deadline(&self) -> Failure {
        self.options.lease.timed_out().map_or(Failure::Deadline, Failure::Budget)
    }
}

/// A server of the old protocol serves only advertised references; for another commit all branches are fetched in full.
fn old_server_request(
    session: &Session,
    resolved: &Resolved,
    request: FetchRequest,
) -> Result<FetchRequest, ()> {
    let server = session.server();
    let Some(refs) = server.refs() else { return Ok(request) };
    if refs.iter().any(|r| request.wants.contains(&r.id)) || !session.serves_only_advertised_refs() {
        return Ok(request);
    }
    let branch = resolved.reference.starts_with("refs/heads/");
    let wanted = |r: &&fl_git::RemoteRef| {
        if branch { r.name == resolved.reference } else { r.name.starts_with("refs/heads/") }
    };
    let mut wants: Vec<ObjectId> = refs.iter().filter(wanted).map(|r| r.id).collect();
    wants.sort_unstable();
    wants.dedup();
    if wants.is_empty() { Err(()) } else { Ok(FetchRequest { wants, ..FetchRequest::default() }) }
}

fn describe(store: &mut Store, resolved: &Resolved) -> Result<Commit, commit_tree::SnapshotError> {
    describe_with(resolved, |id, kind| store.read_kind(id, kind).map_err(commit_tree::SnapshotError::from))
}

/// What a commit and its tag say, wherever their objects come from.
pub(crate) fn describe_with<E: From<fl_git::Error>>(
    resolved: &Resolved,
    mut read: impl FnMut(&ObjectId, ObjectKind) -> Result<Vec<u8>, E>,
) -> Result<Commit, E> {
    let parsed = fl_git::parse_commit(&read(&resolved.commit, ObjectKind::Commit)?)?;
    let tag = match &resolved.tag {
        None => None,
        Some((name, None)) => Some(Tag {
            id: None,
            name: name.clone(),
            message: String::new(),
            signature: None,
            signed_payload: Vec::new(),
        }),
        Some((_, Some(id))) => {
            let tag = fl_git::parse_tag(&read(id, ObjectKind::Tag)?)?;
            Some(Tag {
                id: Some(*id),
                name: tag.name,
                message: tag.message,
                signature: tag.signature,
                signed_payload: tag.signed_payload,
            })
        }
    };
    Ok(Commit {
        id: resolved.commit,
        reference: resolved.reference.clone(),
        author: parsed.author,
        committer: parsed.committer,
        message: parsed.message,
        signature: parsed.signature,
        signed_payload: parsed.signed_payload,
        tag,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_subject_is_cut_at_fifty_characters() {
        let commit = |message: &str| Commit {
            id: "ce013625030ba8dba906f756967f9e9ca394464a".parse().unwrap(),
            reference: String::new(),
            author: fl_git::Signature {
                name: String::new(),
                email: String::new(),
                seconds: 0,
                offset_minutes: 0,
            },
            committer: fl_git::Signature {
                name: String::new(),
                email: String::new(),
                seconds: 0,
                offset_minutes: 0,
            },
            message: message.to_owned(),
            signature: None,
            signed_payload: Vec::new(),
            tag: None,
        };
        assert_eq!(commit("short\n\nbody").short_message(), "short");
        assert_eq!(commit(&"é".repeat(51)).short_message(), format!("{}...", "é".repeat(50)));
        assert_eq!(commit(&"x".repeat(50)).short_message(), "x".repeat(50));
    }
}
