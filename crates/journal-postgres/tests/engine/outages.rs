//! Outcomes that are unknown, and how they are resolved (J2, J3).

use std::time::Duration;

use leasehold_journal::{Confirmation, Journal, Outcome};
use leasehold_journal_postgres::PostgresJournal;
use leasehold_testbed::{Fault, Proxy, postgres};

use crate::kit::{Node, config, journal, raw, read_all};

const CANCEL_WAITING: &str =
    "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";

fn is_unknown(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Unknown(_))
}

/// Reloads the settings, and waits until commits really wait for a standby: the engine takes settings over at leisure.
async fn until_commits_wait(url: &str, operator: &tokio_postgres::Client) {
    operator.batch_execute("SELECT pg_reload_conf()").await.unwrap();
    let probe = raw(url).await;
    for number in 0.. {
        let create = format!("CREATE TABLE probe_{number} ()");
        let mut commit = std::pin::pin!(probe.batch_execute(&create));
        if tokio::time::timeout(Duration::from_millis(200), &mut commit).await.is_err() {
            // A cancelled wait ends the commit, with a warning.
            operator.batch_execute(&format!("{CANCEL_WAITING}; SELECT 1")).await.unwrap();
            commit.await.unwrap();
            return;
        }
    }
}

#[tokio::test]
async fn an_engine_that_crashed_and_came_back_has_the_batch_once() {
    let server = postgres();
    let mut node = Node::open(&journal(server.url())).await;
    node.commit("before").await;
    server.kill(0);
    let batch = node.batch("in doubt");
    for _ in 0..2 {
        let outcome = node.append(&batch).await;
        assert!(is_unknown(&outcome), "{outcome:?}");
    }
    assert!(matches!(node.opened.writer.confirm().await, Confirmation::Unknown(_)));
    assert!(node.opened.reader.head().await.is_err());
    server.restart(0);
    assert_eq!(node.append(&batch).await, Outcome::Committed);
    assert_eq!(node.append(&batch).await, Outcome::Committed);
    assert_eq!(node.opened.writer.confirm().await, Confirmation::Current);
    node.commit("after").await;
    assert_eq!(read_all(node.opened.reader.as_mut()).await.len(), 3);
}

#[tokio::test]
async fn a_paused_engine_is_unknown_in_time() {
    let server = postgres();
    let mut node = Node::open(&journal(server.url())).await;
    node.commit("before").await;
    // The postmaster is paused, and with it everybody who connects; its children go on.
    server.pause(0);
    assert_eq!(node.opened.writer.beat().await, Outcome::Committed);
    let second = journal(server.url());
    let late = tokio::time::timeout(Duration::from_secs(60), second.open(crate::kit::claim()));
    assert!(late.await.expect("gives up by itself").is_err());
    server.resume(0);
    node.commit("after").await;
}

#[tokio::test]
async fn an_answer_that_was_lost_is_found_to_be_ours() {
    let server = postgres();
    let proxy = Proxy::before(server.addresses()[0]);
    let mut node = Node::open(&journal(&proxy.in_url(server.url()))).await;
    for round in 1..=5 {
        let batch = node.batch("answer lost");
        proxy.inject(Fault::LoseAnswer);
        let outcome = node.append(&batch).await;
        assert!(is_unknown(&outcome), "round {round}: {outcome:?}");
        assert_eq!(node.append(&batch).await, Outcome::Committed, "round {round}");
    }
    assert_eq!(read_all(node.opened.reader.as_mut()).await.len(), 5);
}

#[tokio::test]
async fn an_answer_to_another_question_is_not_taken_for_ones_own() {
    let server = postgres();
    let proxy = Proxy::before(server.addresses()[0]);
    let mut node = Node::open(&journal(&proxy.in_url(server.url()))).await;
    for round in 1..=30 {
        // Delivered twice, the beat is answered twice: the second answer must not be the append's.
        proxy.inject(Fault::Duplicate);
        let beat = node.opened.writer.beat().await;
        assert!(beat == Outcome::Committed || is_unknown(&beat), "round {round}: {beat:?}");
        let batch = node.batch("after a doubled beat");
        let mut outcome = node.append(&batch).await;
        while is_unknown(&outcome) {
            outcome = node.append(&batch).await;
        }
        assert_eq!(outcome, Outcome::Committed, "round {round}");
        let mut reader = journal(server.url()).reader().await.unwrap();
        assert_eq!(read_all(reader.as_mut()).await.len(), round, "committed is there");
    }
}

#[tokio::test]
async fn a_commit_that_waits_for_a_standby_is_unknown_and_so_is_a_cancelled_wait() {
    let server = postgres();
    let mut node = Node::open(&journal(server.url())).await;
    node.commit("before").await;
    let operator = raw(server.url()).await;
    let set = |names: &str| format!("ALTER SYSTEM SET synchronous_standby_names = '{names}'");
    operator.batch_execute(&set("nobody")).await.unwrap();
    until_commits_wait(server.url(), &operator).await;

    // Nobody confirms: it is not committed for us, whatever the primary itself shows to readers.
    let batch = node.batch("waits");
    let outcome = node.append(&batch).await;
    assert!(is_unknown(&outcome), "{outcome:?}");
    // The wait is cancelled: the primary then says COMMIT, with a warning. And what can be seen is not yet durable.
    for _ in 0..2 {
        let cancel = async {
            while operator.query_one(CANCEL_WAITING, &[]).await.unwrap().get::<_, i64>(0) < 2 {
                tokio::task::yield_now().await;
            }
        };
        let (outcome, _) =
            tokio::join!(node.append(&batch), tokio::time::timeout(Duration::from_millis(900), cancel));
        assert!(is_unknown(&outcome), "{outcome:?}");
    }
    operator.batch_execute(&set("")).await.unwrap();
    operator.batch_execute("SELECT pg_reload_conf()").await.unwrap();
    let mut outcome = node.append(&batch).await;
    while is_unknown(&outcome) {
        outcome = node.append(&batch).await;
    }
    assert_eq!(outcome, Outcome::Committed);
    assert_eq!(read_all(node.opened.reader.as_mut()).await.len(), 2);
}

#[tokio::test]
async fn a_warning_at_the_commit_makes_it_unknown() {
    let server = postgres();
    let patient =
        PostgresJournal::new(config(server.url()).statement_within(Duration::from_secs(20))).unwrap();
    let mut node = Node::open(&patient).await;
    let operator = raw(server.url()).await;
    operator.batch_execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'").await.unwrap();
    until_commits_wait(server.url(), &operator).await;
    let batch = node.batch("cancelled");
    let cancel = async {
        while operator.query_one(CANCEL_WAITING, &[]).await.unwrap().get::<_, i64>(0) == 0 {
            tokio::task::yield_now().await;
        }
    };
    let (outcome, cancelled) =
        tokio::join!(node.append(&batch), tokio::time::timeout(Duration::from_secs(10), cancel));
    assert!(cancelled.is_ok(), "the commit never waited for a standby");
    assert!(is_unknown(&outcome), "{outcome:?}");
}
