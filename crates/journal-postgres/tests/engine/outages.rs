//! Outcomes that are unknown, and how they are resolved (J2, J3).

use leasehold_journal::Outcome;
use leasehold_journal::conformance::outages;
use leasehold_testbed::{Fault, Proxy, postgres};

use crate::kit::{Node, hasty, journal, raw};

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
        // A cancelled wait ends the commit, with a warning.
        tokio::select! {
            done = probe.batch_execute(&create) => done.unwrap(),
            () = cancelled(operator) => return,
        }
    }
}

/// Cancels the wait of a commit for its standby, once there is one.
async fn cancelled(operator: &tokio_postgres::Client) {
    while operator.query_one(CANCEL_WAITING, &[]).await.unwrap().get::<_, i64>(0) == 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn an_engine_that_crashed_and_came_back_has_the_batch_once() {
    let server = postgres();
    outages::survives_a_crash(&hasty(server.url()), || server.kill(0), || server.restart(0)).await;
}

#[tokio::test]
async fn a_paused_engine_is_unknown_in_time_and_the_append_lands_once() {
    let server = postgres();
    outages::survives_a_pause(&hasty(server.url()), || server.pause(0), || server.resume(0)).await;
}

#[tokio::test]
async fn an_answer_that_was_lost_is_found_to_be_ours() {
    let server = postgres();
    let proxy = Proxy::before(server.addresses()[0]);
    let journal = hasty(&proxy.in_url(server.url()));
    let unknown = outages::survives_lost_answers(&journal, || proxy.inject(Fault::LoseAnswer)).await;
    assert_eq!(unknown, 5);
}

#[tokio::test]
async fn an_answer_to_another_question_is_not_taken_for_ones_own() {
    let server = postgres();
    let proxy = Proxy::before(server.addresses()[0]);
    let through = hasty(&proxy.in_url(server.url()));
    outages::tells_answers_apart(&through, &journal(server.url()), || proxy.inject(Fault::Duplicate)).await;
}

#[tokio::test]
async fn a_commit_that_waits_for_a_standby_is_unknown_and_so_is_a_cancelled_wait() {
    let server = postgres();
    let mut node = Node::open(&hasty(server.url())).await;
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
        let mut append = std::pin::pin!(node.append(&batch));
        let outcome = loop {
            tokio::select! {
                outcome = &mut append => break outcome,
                () = cancelled(&operator) => {}
            }
        };
        assert!(is_unknown(&outcome), "{outcome:?}");
    }
    operator.batch_execute(&set("")).await.unwrap();
    operator.batch_execute("SELECT pg_reload_conf()").await.unwrap();
    assert_eq!(node.resolve(&batch).await, Outcome::Committed);
    assert_eq!(node.slots().await.len(), 2);
}

#[tokio::test]
async fn a_warning_at_the_commit_makes_it_unknown() {
    let server = postgres();
    let mut node = Node::open(&journal(server.url())).await;
    let operator = raw(server.url()).await;
    operator.batch_execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'").await.unwrap();
    until_commits_wait(server.url(), &operator).await;
    let batch = node.batch("cancelled");
    let (outcome, ()) = tokio::join!(node.append(&batch), cancelled(&operator));
    assert!(is_unknown(&outcome), "{outcome:?}");
}
