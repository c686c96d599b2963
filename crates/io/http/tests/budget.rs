//! N14: the bytes that concurrent fetches hold are bounded for the whole process.

#![allow(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

use std::io::Write;
use std::time::Duration;

use fl_http::{BudgetError, BudgetLimits, ByteBudget, Owner};

const TOTAL: u64 = 64 << 20;
const MIB: u64 = 1 << 20;
const TIMEOUT: Duration = Duration::from_secs(20);

fn budget() -> ByteBudget {
    ByteBudget::new(BudgetLimits { total: TOTAL, uncounted: 0 })
}

/// Lets other tasks run until `count` requests wait.
async fn until_waiting(budget: &ByteBudget, count: usize) {
    while budget.waiting() < count {
        tokio::task::yield_now().await;
    }
}

/// Twenty fetches of 30 MiB each would hold 600 MiB; they complete one after the other within 64 MiB.
#[tokio::test(flavor = "multi_thread")]
async fn concurrent_fetches_stay_under_the_budget_and_all_complete() {
    let budget = budget();
    let fetches = (0..20).map(|n| {
        let lease = budget.lease(Owner::namespace(&format!("tenant-{}", n % 3)), TIMEOUT);
        tokio::task::spawn_blocking(move || {
            let mut file = lease.spool()?;
            for _ in 0..30 * 16 {
                file.write_all(&[7; 64 << 10])?;
            }
            Ok::<_, std::io::Error>(())
        })
    });
    for fetch in fetches.collect::<Vec<_>>() {
        fetch.await.unwrap().unwrap();
    }
    assert!(budget.peak() <= TOTAL, "{} bytes at once", budget.peak());
    assert!(budget.peak() >= 30 * MIB);
    assert_eq!((budget.in_use(), budget.waiting()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_fetch_larger_than_the_budget_is_refused_at_once() {
    let budget = budget();
    let mut held = budget.lease(Owner::engine(), TIMEOUT).hold();
    let error = held.add(TOTAL / 2 + 1).await.unwrap_err();
    assert_eq!(error, BudgetError::TooLarge { limit: TOTAL / 2 });
    assert_eq!(error.to_string(), "the content is larger than the 33554432 bytes that one fetch may hold");
    held.add(TOTAL / 2).await.unwrap();
    drop(held);
    assert_eq!(budget.in_use(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_at_the_timeout_and_names_the_limit() {
    let budget = budget();
    let (mut first, mut second) = (
        budget.lease(Owner::namespace("a"), TIMEOUT).hold(),
        budget.lease(Owner::namespace("b"), TIMEOUT).hold(),
    );
    first.add(32 * MIB).await.unwrap();
    second.add(16 * MIB).await.unwrap();
    let started = tokio::time::Instant::now();
    let error = second.add(MIB).await.unwrap_err();
    assert_eq!(started.elapsed(), TIMEOUT);
    assert_eq!(
        error.to_string(),
        "no room for the content within 20s: concurrent fetches may hold 67108864 bytes together"
    );
    assert_eq!((budget.waiting(), budget.in_use()), (0, 48 * MIB));
}

#[tokio::test(start_paused = true)]
async fn waiting_fetches_are_served_in_order_of_arrival() {
    let budget = budget();
    // The reserve and the whole pool are in use.
    let mut reserve = budget.lease(Owner::namespace("a"), TIMEOUT).hold();
    reserve.add(32 * MIB).await.unwrap();
    let mut pool = Vec::new();
    for tenant in ["b", "c"] {
        let mut held = budget.lease(Owner::namespace(tenant), TIMEOUT).hold();
        held.add(16 * MIB).await.unwrap();
        pool.push(held);
    }
    let (done, mut order) = tokio::sync::mpsc::unbounded_channel();
    for (n, bytes) in [16 * MIB, MIB, 2 * MIB].into_iter().enumerate() {
        let (lease, done) = (budget.lease(Owner::namespace(&format!("n{n}")), TIMEOUT), done.clone());
        tokio::spawn(async move {
            let mut held = lease.hold();
            held.add(bytes).await.unwrap();
            done.send(n).unwrap();
            std::future::pending::<()>().await;
        });
        until_waiting(&budget, n + 1).await;
    }
    // Room for the small ones would be there, but the first in the queue does not starve.
    pool.pop();
    assert_eq!(order.recv().await, Some(0));
    pool.pop();
    assert_eq!(order.recv().await, Some(1));
    assert_eq!(order.recv().await, Some(2));
}

/// One tenant fills its share and its requests wait: requests of another tenant do not wait behind them.
#[tokio::test(start_paused = true)]
async fn a_waiting_tenant_does_not_delay_another() {
    let budget = budget();
    let mut greedy = Vec::new();
    for bytes in [32 * MIB, 16 * MIB] {
        let mut held = budget.lease(Owner::namespace("greedy"), TIMEOUT).hold();
        held.add(bytes).await.unwrap();
        greedy.push(held);
    }
    let lease = budget.lease(Owner::namespace("greedy"), TIMEOUT);
    tokio::spawn(async move { lease.hold().add(8 * MIB).await });
    until_waiting(&budget, 1).await;
    let mut other = budget.lease(Owner::namespace("other"), TIMEOUT).hold();
    other.add(8 * MIB).await.unwrap();
    assert_eq!(budget.waiting(), 1);
}

#[tokio::test(start_paused = true)]
async fn small_fetches_never_wait() {
    let budget = ByteBudget::new(BudgetLimits { total: TOTAL, uncounted: MIB });
    let mut all = Vec::new();
    for bytes in [32 * MIB, 16 * MIB, 16 * MIB] {
        let mut held = budget.lease(Owner::namespace(&bytes.to_string()), TIMEOUT).hold();
        let _ = tokio::time::timeout(Duration::ZERO, held.add(bytes + MIB)).await;
        all.push(held);
    }
    let lease = budget.lease(Owner::namespace("small"), TIMEOUT);
    lease.hold().add(MIB).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn bytes_are_released_on_cancel_and_panic() {
    let budget = budget();
    // Two leases that together need more than there is: one waits.
    let spawn = |tenant: &str| {
        let lease = budget.lease(Owner::namespace(tenant), TIMEOUT);
        tokio::spawn(async move {
            let mut held = lease.hold();
            held.add(20 * MIB).await.unwrap();
            held.add(12 * MIB).await.unwrap();
            std::future::pending::<()>().await;
        })
    };
    let tasks = [spawn("a"), spawn("b"), spawn("c")];
    until_waiting(&budget, 2).await;
    for task in tasks {
        task.abort();
        let _ = task.await;
    }
    assert_eq!((budget.in_use(), budget.waiting()), (0, 0));

    let lease = budget.lease(Owner::engine(), TIMEOUT);
    let panicked = tokio::task::spawn_blocking(move || {
        let mut file = lease.spool().unwrap();
        file.write_all(&[0; 4096]).unwrap();
        panic!("a bug in a parser");
    });
    assert!(panicked.await.unwrap_err().is_panic());
    assert_eq!(budget.in_use(), 0);
}

/// A thread of the blocking pool is not stopped with the future that waits for it; its wait for bytes is.
#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_step_ends_the_waits_of_its_threads() {
    let budget = budget();
    let mut first = budget.lease(Owner::namespace("a"), TIMEOUT).hold();
    first.add(32 * MIB).await.unwrap();
    let lease = budget.lease(Owner::namespace("b"), Duration::from_secs(3600));
    let cancel = lease.cancel_on_drop();
    let thread = tokio::task::spawn_blocking(move || {
        let mut held = lease.hold();
        held.add_blocking(16 * MIB).unwrap();
        held.add_blocking(8 * MIB)
    });
    until_waiting(&budget, 1).await;
    drop(cancel);
    assert!(matches!(thread.await.unwrap(), Err(BudgetError::Cancelled { .. })));
    assert_eq!(budget.in_use(), 32 * MIB);
}
