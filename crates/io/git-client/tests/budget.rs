//! N14: concurrent fetches of large packs hold no more bytes than the budget of the process.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod server;

use std::time::Duration;

use fl_git_client::{Auth, Checkout, Error, FetchOptions, Reference, Remote, RemoteOptions};
use fl_http::{BudgetLimits, ByteBudget, Owner};
use server::{Repositories, Web, commit};

const TOTAL: u64 = 8 << 20;

/// A repository whose pack has about 3 MiB.
async fn served() -> (Repositories, Web) {
    let all = Repositories::new();
    let tree = all.make("app");
    let mut seed = 1u64;
    let mut digit = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+-"[(seed >> 58) as usize])
    };
    let text: String = (0..4 << 20).map(|_| digit()).collect();
    commit(&tree, &[("large.txt", &text)], "large");
    let web = Web::serve(all.root.path(), None, true).await;
    (all, web)
}

async fn fetch(web: &Web, budget: &ByteBudget, owner: &str, timeout: Duration) -> Result<Checkout, Error> {
    let url = format!("{}/app.git", web.address);
    let owner = Owner::namespace(owner);
    let lease = budget.lease(owner.clone(), timeout);
    let remote =
        Remote::new(&url, Auth::none(), RemoteOptions { timeout, lease, ..RemoteOptions::new(owner) })?;
    let resolved = remote.resolve(&Reference::Branch("main".into()), false).await?.expect("not empty");
    remote.fetch(&resolved, &FetchOptions::default()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_fetches_stay_under_the_budget() {
    let (_all, web) = served().await;
    let budget = ByteBudget::new(BudgetLimits { total: TOTAL, uncounted: 0 });
    let names: Vec<String> = (0..8).map(|n| format!("tenant-{n}")).collect();
    let fetches = names.iter().map(|name| async {
        let checkout = fetch(&web, &budget, name, Duration::from_secs(60)).await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(checkout.snapshot.entries().len(), 1);
    });
    futures::future::join_all(fetches).await;
    assert!(budget.peak() > 3 << 20 && budget.peak() <= TOTAL, "{} bytes at once", budget.peak());
    assert_eq!(budget.in_use(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fetch_without_room_reports_the_limit_at_its_deadline() {
    let (_all, web) = served().await;
    let budget = ByteBudget::new(BudgetLimits { total: TOTAL, uncounted: 0 });
    let first = fetch(&web, &budget, "a", Duration::from_secs(60)).await.unwrap();
    let error = fetch(&web, &budget, "b", Duration::from_secs(1)).await.unwrap_err().to_string();
    let limit = "no room for the content within 1s: concurrent fetches may hold 8388608 bytes together";
    assert!(error.ends_with(limit), "{error}");
    drop(first);
    fetch(&web, &budget, "b", Duration::from_secs(60)).await.unwrap();
    for _ in 0..50 {
        if budget.in_use() == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{} bytes were not released", budget.in_use());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pack_larger_than_the_budget_is_refused() {
    let (_all, web) = served().await;
    let budget = ByteBudget::new(BudgetLimits { total: 4 << 20, uncounted: 0 });
    let error = fetch(&web, &budget, "a", Duration::from_secs(60)).await.unwrap_err().to_string();
    assert!(
        error.ends_with("the content is larger than the 2097152 bytes that one fetch may hold"),
        "{error}"
    );
}
