//! One roll-out for several processes, over each store.

#![allow(clippy::unwrap_used, reason = "a helper of tests that panics is a test that fails")]

mod support;

use leasehold_fence::rollout::shared::{Documents, SharedRollout};
use leasehold_fence::rollout::{Override, Rollout, Stage};
use leasehold_fence::{Fence, FenceError, Rejection};
use leasehold_types::{FencingToken, WallTime};
use support::{grant, name};

const NOW: WallTime = WallTime(1_000);

/// One of several processes that use the same fence.
struct Process {
    rollout: Rollout,
    shared: SharedRollout<Documents>,
}

impl Process {
    async fn start(url: &str) -> Self {
        let rollout = Rollout::new(Stage::Count, (), || NOW);
        Self { rollout, shared: SharedRollout::new(Documents::open(url).await.unwrap()) }
    }

    async fn sync(&self) {
        self.shared.sync(&self.rollout, NOW).await.unwrap();
    }

    /// A write that the fence found stale, or not; whether it went on.
    fn write(&self, stale: bool) -> bool {
        let (fence, token) = (Fence::of(&name("books/2026")), |number| FencingToken::new(number).unwrap());
        let rejection = Rejection::Stale { presented: token(33), highest: token(34) };
        let outcome = if stale { Err(FenceError::Rejected(rejection)) } else { Ok(()) };
        self.rollout.settle::<()>(&fence, Some(&grant("books/2026", 33).write()), outcome).is_ok()
    }
}

/// The story that every store tells.
async fn is_shared(url: &str) {
    let (one, two) = (Process::start(url).await, Process::start(url).await);
    let operator = SharedRollout::new(Documents::open(url).await.unwrap());
    operator.switch("books/", Stage::Shadow, "ada", NOW).await.unwrap();
    one.sync().await;
    two.sync().await;
    assert!(one.write(false) && one.write(true) && two.write(true), "a shadow stops nothing");
    one.sync().await;
    two.sync().await;
    two.sync().await;
    let report = operator.report(NOW).await.unwrap();
    let books = report.iter().find(|report| report.status.prefix == "books/").unwrap();
    let counters = books.status.counters;
    assert_eq!((counters.accepted, counters.would_reject), (1, 2), "the counts of both, each once");
    assert!(!books.next_stage_is_safe());

    operator.switch("books/", Stage::Enforce, "ada", NOW).await.unwrap();
    one.sync().await;
    two.sync().await;
    assert!(!one.write(true) && !two.write(true), "both stop it now");
    let made = Override::new("ada", "incident 7", WallTime(60_000)).unwrap();
    operator.set_override("books/", Stage::Count, &made, NOW).await.unwrap();
    two.sync().await;
    assert!(two.write(true), "the override is in force");
    operator.end_override("books/", "ada", NOW).await.unwrap();
    two.sync().await;
    assert!(!two.write(true));
    one.sync().await;
    two.sync().await;
    operator.note_drill("books/", Stage::Count, false, "ada", NOW).await.unwrap();

    let report = operator.report(NOW).await.unwrap();
    let books = report.iter().find(|report| report.status.prefix == "books/").unwrap();
    let counters = books.status.counters;
    assert_eq!((counters.rejected, counters.overridden, counters.would_reject), (3, 1, 0));
    assert_eq!(books.last_drill.map(|drill| drill.passed), Some(false));
    let actions: Vec<_> = operator.changes().await.unwrap().into_iter().map(|change| change.action).collect();
    assert_eq!(actions, ["stage", "stage", "override", "override_end", "drill"]);
}

#[tokio::test]
async fn over_a_shared_file() {
    let directory = tempfile::tempdir().unwrap();
    is_shared(&format!("file:{}", directory.path().display())).await;
}

#[tokio::test]
async fn over_sqlite() {
    let directory = tempfile::tempdir().unwrap();
    is_shared(&format!("sqlite:{}", directory.path().join("fence.db").display())).await;
}

#[tokio::test]
async fn over_postgres() {
    is_shared(leasehold_testbed::postgres().url()).await;
}

#[tokio::test]
async fn over_redis() {
    is_shared(leasehold_testbed::redis().url()).await;
}

/// Many processes hand in at the same time: no count is lost, none counts twice.
#[tokio::test]
async fn counts_of_many_processes_add_up() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", directory.path().join("fence.db").display());
    let operator = SharedRollout::new(Documents::open(&url).await.unwrap());
    operator.switch("books/", Stage::Enforce, "ada", NOW).await.unwrap();
    let process = async || {
        let process = Process::start(&url).await;
        process.sync().await;
        for _ in 0..10 {
            process.write(true);
            process.sync().await;
        }
    };
    futures_util::future::join_all((0..8).map(|_| process())).await;
    let report = operator.report(NOW).await.unwrap();
    assert_eq!(report[0].status.counters.rejected, 80);
}
