//! Bytes that all fetches of the process hold at once: spooled packs, unpacked layers, indexes and charts.
//!
//! A limit for each fetch does not bound the process, because many fetches run concurrently. A [`ByteBudget`] does.
//! Each reconcile has one [`Lease`], and each file or buffer of it one [`HeldBytes`] that gives its bytes back on drop,
//! also after a panic or when the reconcile is cancelled.
//!
//! The size of a pack is not known before it has been received, so leases grow while they hold bytes. To be free of
//! deadlocks, half of the budget is a pool for everyone and the other half a reserve for one lease at a time: the
//! first lease that waits for the pool gets the reserve and can complete. No lease may hold more than the reserve, and
//! an owner no more than half of the pool, so that one tenant cannot use it up. Waiting leases are served in order of
//! arrival; those that wait for the share of their own owner do not delay others. The first bytes of each lease
//! ([`BudgetLimits::uncounted`]) are not counted: a small fetch never waits, and the number of concurrent reconciles is
//! limited elsewhere.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::{Owner, SpoolFile};

/// Bytes by which [`HeldBytes::add`] grows a lease at least, so that not every write takes the lock.
const GROWTH: u64 = 256 << 10;

static SHARED: LazyLock<ByteBudget> = LazyLock::new(|| ByteBudget::new(BudgetLimits::default()));

/// Limits of a [`ByteBudget`].
#[derive(Clone, Copy, Debug)]
pub struct BudgetLimits {
    /// Bytes of all leases together. Half of it is the most that one lease may hold.
    pub total: u64,
    /// Bytes of each lease that are not counted.
    pub uncounted: u64,
}

impl Default for BudgetLimits {
    fn default() -> Self {
        Self { total: 8 << 30, uncounted: 1 << 20 }
    }
}

/// Why a lease did not get more bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BudgetError {
    #[error("the content is larger than the {limit} bytes that one fetch may hold")]
    TooLarge { limit: u64 },
    #[error("no room for the content within {waited:?}: concurrent fetches may hold {total} bytes together")]
    Timeout { waited: Duration, total: u64 },
    #[error(
        "the fetch was cancelled while it waited for room: concurrent fetches may hold {total} bytes together"
    )]
    Cancelled { total: u64 },
}

impl From<BudgetError> for io::Error {
    fn from(error: BudgetError) -> Self {
        io::Error::other(error)
    }
}

/// A number of bytes that concurrent fetches share. Clones share the same bytes.
#[derive(Clone, Debug)]
pub struct ByteBudget(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    limits: BudgetLimits,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Bytes of the pool in use.
    pool: u64,
    /// Bytes of the pool in use, by owner.
    owners: HashMap<Owner, u64>,
    leases: HashMap<u64, LeaseState>,
    /// The lease that may use the reserve.
    reserve: Option<u64>,
    waiting: VecDeque<Waiter>,
    next: u64,
    /// The most bytes that were in use at once.
    peak: u64,
}

#[derive(Debug)]
struct LeaseState {
    owner: Owner,
    /// All bytes, including those that are not counted.
    held: u64,
    pool: u64,
    reserve: u64,
}

#[derive(Debug)]
struct Waiter {
    lease: u64,
    bytes: u64,
    granted: oneshot::Sender<()>,
}

/// What becomes of a request at this moment.
enum Decision {
    Granted,
    /// The pool is in use; later requests wait too.
    Full,
    /// The owner's share of the pool is in use; requests of other owners are unaffected.
    OwnerFull,
}

impl ByteBudget {
    #[must_use]
    pub fn new(limits: BudgetLimits) -> Self {
        Self(Arc::new(Shared { limits, state: Mutex::default() }))
    }

    /// The budget of this process.
    #[must_use]
    pub fn shared() -> Self {
        SHARED.clone()
    }

    /// A lease for one reconcile. A wait for bytes ends after `timeout`.
    ///
    /// A reconcile must not have two leases: each could wait for bytes that the other holds.
    #[must_use]
    pub fn lease(&self, owner: Owner, timeout: Duration) -> Lease {
        let mut state = self.0.state();
        let id = state.next;
        state.next += 1;
        state.leases.insert(id, LeaseState { owner, held: 0, pool: 0, reserve: 0 });
        Lease(Arc::new(LeaseInner { budget: self.0.clone(), id, timeout }))
    }

    /// Counted bytes in use now.
    #[must_use]
    pub fn in_use(&self) -> u64 {
        self.0.state().in_use()
    }

    /// The most counted bytes that were in use at once.
    #[must_use]
    pub fn peak(&self) -> u64 {
        self.0.state().peak
    }

    /// Leases that wait for bytes.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.0.state().waiting.len()
    }
}

impl BudgetLimits {
    /// The most that one lease may hold, which is also the size of the reserve.
    fn largest(&self) -> u64 {
        self.total / 2
    }

    fn pool(&self) -> u64 {
        self.total - self.largest()
    }

    fn per_owner(&self) -> u64 {
        self.pool() / 2
    }

    /// How many of `held` bytes are counted.
    fn counted(&self, held: u64) -> u64 {
        held.saturating_sub(self.uncounted)
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Grants what waits, in order of arrival.
    fn grant(&self, state: &mut State) {
        let (mut at, mut full) = (0, false);
        let mut full_owners: Vec<Owner> = Vec::new();
        while let Some(waiter) = state.waiting.get(at) {
            let (id, bytes) = (waiter.lease, waiter.bytes);
            let owner = state.leases.get(&id).map(|lease| lease.owner.clone());
            let delayed = full || owner.as_ref().is_some_and(|owner| full_owners.contains(owner));
            if delayed && !state.is_privileged(&self.limits, id, bytes) {
                at += 1;
                continue;
            }
            match state.decide(&self.limits, id, bytes) {
                Decision::Granted => {
                    if let Some(waiter) = state.waiting.remove(at)
                        && waiter.granted.send(()).is_err()
                    {
                        state.shrink(&self.limits, id, bytes);
                    }
                    continue;
                }
                Decision::Full => full = true,
                Decision::OwnerFull => full_owners.extend(owner),
            }
            at += 1;
        }
    }
}

impl State {
    fn in_use(&self) -> u64 {
        self.pool + self.leases.values().map(|lease| lease.reserve).sum::<u64>()
    }

    /// Whether bytes are given without waiting: those that are not counted, and those of the reserve.
    fn is_privileged(&self, limits: &BudgetLimits, id: u64, bytes: u64) -> bool {
        let held = self.leases.get(&id).map_or(0, |lease| lease.held);
        self.reserve == Some(id) || limits.counted(held + bytes) == 0
    }

    /// Adds bytes to a lease if they fit now.
    fn decide(&mut self, limits: &BudgetLimits, id: u64, bytes: u64) -> Decision {
        let Some(lease) = self.leases.get_mut(&id) else { return Decision::Granted };
        let more = limits.counted(lease.held + bytes) - limits.counted(lease.held);
        let owner = self.owners.get(&lease.owner).copied().unwrap_or_default();
        if more == 0 {
            lease.held += bytes;
        } else if self.reserve == Some(id) {
            lease.held += bytes;
            lease.reserve += more;
        } else if self.pool + more <= limits.pool() && owner + more <= limits.per_owner() {
            lease.held += bytes;
            lease.pool += more;
            self.pool += more;
            *self.owners.entry(lease.owner.clone()).or_default() += more;
        } else if self.reserve.is_none() {
            self.reserve = Some(id);
            lease.held += bytes;
            lease.reserve += more;
        } else if owner + more > limits.per_owner() {
            return Decision::OwnerFull;
        } else {
            return Decision::Full;
        }
        self.peak = self.peak.max(self.in_use());
        Decision::Granted
    }

    fn shrink(&mut self, limits: &BudgetLimits, id: u64, bytes: u64) {
        let Some(lease) = self.leases.get_mut(&id) else { return };
        let bytes = bytes.min(lease.held);
        let mut less = limits.counted(lease.held) - limits.counted(lease.held - bytes);
        lease.held -= bytes;
        let from_reserve = less.min(lease.reserve);
        lease.reserve -= from_reserve;
        less -= from_reserve;
        if lease.reserve == 0 && self.reserve == Some(id) {
            self.reserve = None;
        }
        lease.pool -= less;
        self.pool -= less;
        if let Some(owner) = self.owners.get_mut(&lease.owner) {
            *owner -= less;
            if *owner == 0 {
                self.owners.remove(&lease.owner);
            }
        }
    }
}

/// The bytes of one reconcile. Clones are the same lease.
#[derive(Clone, Debug)]
pub struct Lease(Arc<LeaseInner>);

#[derive(Debug)]
struct LeaseInner {
    budget: Arc<Shared>,
    id: u64,
    timeout: Duration,
}

impl Drop for LeaseInner {
    fn drop(&mut self) {
        let mut state = self.budget.state();
        state.shrink(&self.budget.limits, self.id, u64::MAX);
        state.leases.remove(&self.id);
        self.budget.grant(&mut state);
    }
}

impl Lease {
    /// A holder of no bytes yet.
    #[must_use]
    pub fn hold(&self) -> HeldBytes {
        HeldBytes { lease: self.clone(), used: 0, granted: 0 }
    }

    /// A file without a name whose bytes are counted.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn spool(&self) -> io::Result<SpoolFile> {
        Ok(SpoolFile::new(tempfile::tempfile()?, self.hold()))
    }

    /// As [`Lease::spool`], in a directory.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn spool_in(&self, directory: &std::path::Path) -> io::Result<SpoolFile> {
        Ok(SpoolFile::new(tempfile::tempfile_in(directory)?, self.hold()))
    }

    /// The error of a step whose deadline passed while it waited for bytes; `None` when it did not wait.
    #[must_use]
    pub fn timed_out(&self) -> Option<BudgetError> {
        let budget = &self.0.budget;
        let waits = budget.state().waiting.iter().any(|waiter| waiter.lease == self.0.id);
        waits.then(|| BudgetError::Timeout { waited: self.0.timeout, total: budget.limits.total })
    }

    /// Ends all waits of the lease when dropped. Threads of the blocking pool are not stopped with the future that
    /// waits for them, so a step that can be cancelled keeps this.
    #[must_use]
    pub fn cancel_on_drop(&self) -> CancelWaits {
        CancelWaits(self.clone())
    }

    /// Adds bytes without waiting; otherwise a receiver that fires when they were added.
    fn request(&self, bytes: u64) -> Result<Option<Wait>, BudgetError> {
        let LeaseInner { budget, id, .. } = &*self.0;
        let mut state = budget.state();
        let held = state.leases.get(id).map_or(0, |lease| lease.held);
        if budget.limits.counted(held.saturating_add(bytes)) > budget.limits.largest() {
            return Err(BudgetError::TooLarge { limit: budget.limits.largest() });
        }
        let (granted, mut receiver) = oneshot::channel();
        state.waiting.push_back(Waiter { lease: *id, bytes, granted });
        budget.grant(&mut state);
        if receiver.try_recv().is_ok() {
            return Ok(None);
        }
        Ok(Some(Wait { lease: self.clone(), bytes, receiver: Some(receiver) }))
    }

    /// Adds bytes; waits for room when there is none.
    async fn grow(&self, bytes: u64) -> Result<(), BudgetError> {
        match self.request(bytes)? {
            None => Ok(()),
            Some(wait) => wait.granted().await,
        }
    }

    fn grow_blocking(&self, bytes: u64) -> Result<(), BudgetError> {
        // Only a wait needs the runtime.
        let Some(wait) = self.request(bytes)? else { return Ok(()) };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => runtime.block_on(wait.granted()),
            Err(_) => Err(BudgetError::Timeout { waited: Duration::ZERO, total: self.0.budget.limits.total }),
        }
    }

    fn shrink(&self, bytes: u64) {
        let mut state = self.0.budget.state();
        state.shrink(&self.0.budget.limits, self.0.id, bytes);
        self.0.budget.grant(&mut state);
    }
}

/// A request that waits. Dropped before it was granted, it leaves the queue; dropped after, it gives its bytes back.
struct Wait {
    lease: Lease,
    bytes: u64,
    receiver: Option<oneshot::Receiver<()>>,
}

impl Wait {
    async fn granted(mut self) -> Result<(), BudgetError> {
        let (total, waited) = (self.lease.0.budget.limits.total, self.lease.0.timeout);
        let Some(receiver) = self.receiver.as_mut() else { return Ok(()) };
        match tokio::time::timeout(waited, receiver).await {
            Ok(Ok(())) => {
                self.receiver = None;
                Ok(())
            }
            Ok(Err(_)) => Err(BudgetError::Cancelled { total }),
            Err(_) => Err(BudgetError::Timeout { waited, total }),
        }
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        let Some(mut receiver) = self.receiver.take() else { return };
        let budget = &self.lease.0.budget;
        let mut state = budget.state();
        if receiver.try_recv().is_ok() {
            state.shrink(&budget.limits, self.lease.0.id, self.bytes);
        }
        receiver.close();
        state.waiting.retain(|waiter| !waiter.granted.is_closed());
        budget.grant(&mut state);
    }
}

/// See [`Lease::cancel_on_drop`].
#[derive(Debug)]
pub struct CancelWaits(Lease);

impl Drop for CancelWaits {
    fn drop(&mut self) {
        let LeaseInner { budget, id, .. } = &*self.0.0;
        let mut state = budget.state();
        state.waiting.retain(|waiter| waiter.lease != *id);
        budget.grant(&mut state);
    }
}

/// Bytes of one file or buffer. They are given back on drop.
#[derive(Debug)]
pub struct HeldBytes {
    lease: Lease,
    used: u64,
    granted: u64,
}

impl HeldBytes {
    /// Bytes in use.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.used
    }

    /// What is to be requested for this many further bytes.
    fn missing(&self, bytes: u64) -> Option<u64> {
        let needed = self.used.saturating_add(bytes).checked_sub(self.granted).filter(|n| *n > 0)?;
        Some(needed.max(GROWTH.min(self.lease.0.budget.limits.largest() / 16)))
    }

    /// Counts further bytes; waits for room when there is none.
    ///
    /// # Errors
    /// The lease would hold too many bytes, or there was no room in time.
    pub async fn add(&mut self, bytes: u64) -> Result<(), BudgetError> {
        if let Some(missing) = self.missing(bytes) {
            self.lease.grow(missing).await?;
            self.granted += missing;
        }
        self.used += bytes;
        Ok(())
    }

    /// As [`HeldBytes::add`], on a thread that may block.
    ///
    /// # Errors
    /// The lease would hold too many bytes, or there was no room in time.
    pub fn add_blocking(&mut self, bytes: u64) -> Result<(), BudgetError> {
        if let Some(missing) = self.missing(bytes) {
            self.lease.grow_blocking(missing)?;
            self.granted += missing;
        }
        self.used += bytes;
        Ok(())
    }
}

impl HeldBytes {
    /// Takes over the bytes of another holder of the same lease.
    pub fn append(&mut self, mut other: HeldBytes) {
        self.used += other.used;
        self.granted += std::mem::take(&mut other.granted);
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        if self.granted > 0 {
            self.lease.shrink(self.granted);
        }
    }
}
