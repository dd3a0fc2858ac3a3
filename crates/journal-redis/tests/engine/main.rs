//! What only a real Redis shows: crashes, pauses, lost answers, lost memory, settings.

#![allow(clippy::unwrap_used, reason = "a helper of tests that panics is a test that fails")]

mod kit;
mod passwords;

use leasehold_journal::{Confirmation, Journal, OpenError, Outcome};
use leasehold_testbed::{Fault, Proxy, Setup, redis, redis_with};
use leasehold_types::{Durability, Slot};

use kit::{Node, claim, journal, read_all};

fn is_unknown(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Unknown(_))
}

/// A command of the test's own.
async fn raw(url: &str, command: &[&str]) {
    let client = ::redis::Client::open(url).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    ::redis::cmd(command[0]).arg(&command[1..]).exec_async(&mut connection).await.unwrap();
}

#[tokio::test]
async fn an_engine_that_crashed_and_came_back_has_the_batch_once() {
    let server = redis();
    let mut node = Node::open(&journal(server.url())).await;
    node.commit("before").await;
    server.kill(0);
    let batch = node.batch("in doubt");
    for _ in 0..2 {
        let outcome = node.append(&batch).await;
        assert!(is_unknown(&outcome), "{outcome:?}");
    }
    server.restart(0);
    assert_eq!(node.append(&batch).await, Outcome::Committed);
    assert_eq!(node.append(&batch).await, Outcome::Committed);
    assert_eq!(node.opened.writer.confirm().await, Confirmation::Current);
    assert_eq!(read_all(node.opened.reader.as_mut()).await.len(), 2);
}

#[tokio::test]
async fn a_paused_engine_is_unknown_in_time_and_the_append_lands_once() {
    let server = redis();
    let mut node = Node::open(&journal(server.url())).await;
    server.pause(0);
    let batch = node.batch("paused");
    let outcome = node.append(&batch).await;
    assert!(is_unknown(&outcome), "{outcome:?}");
    assert!(journal(server.url()).open(claim()).await.is_err());
    server.resume(0);
    assert_eq!(node.append(&batch).await, Outcome::Committed);
    assert_eq!(read_all(node.opened.reader.as_mut()).await.len(), 1);
}

#[tokio::test]
async fn an_answer_that_was_lost_is_found_to_be_ours() {
    let server = redis();
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
    let server = redis();
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
async fn a_stale_writer_is_fenced_in_everything_it_does() {
    let server = redis();
    let journal = journal(server.url());
    let mut old = Node::open(&journal).await;
    old.commit("old").await;
    old.opened.snapshots.begin(old.tail).await.unwrap();
    let mut new = Node::open(&journal).await;
    new.commit("new").await;
    let batch = old.batch("zombie");
    assert_eq!(old.append(&batch).await, Outcome::Fenced);
    assert_eq!(old.opened.writer.confirm().await, Confirmation::Fenced);
    assert!(old.opened.snapshots.chunk("stale".into()).await.is_err());
    assert_eq!(old.opened.snapshots.install(Slot(2)).await, Outcome::Fenced);
    assert_eq!(read_all(new.opened.reader.as_mut()).await.len(), 2);
}

#[tokio::test]
async fn a_redis_that_went_back_is_noticed_by_the_next_call() {
    let server = redis_with(&Setup::default().set("appendonly", "no"));
    let mut node = Node::open(&journal(server.url())).await;
    node.commit("kept").await;
    raw(server.url(), &["COPY", "leasehold:{main}:head", "backup"]).await;
    node.commit("lost").await;
    // As after a fail-over to a replica that had not heard of the last write.
    raw(server.url(), &["COPY", "backup", "leasehold:{main}:head", "REPLACE"]).await;
    let batch = node.batch("next");
    assert!(matches!(node.append(&batch).await, Outcome::Failed(_)));
    assert!(matches!(node.opened.writer.beat().await, Outcome::Failed(_)));
    assert!(matches!(node.opened.writer.confirm().await, Confirmation::Unknown(_)));
    // One that has forgotten everything has forgotten our epoch too.
    raw(server.url(), &["FLUSHALL"]).await;
    assert_eq!(node.append(&batch).await, Outcome::Fenced);
}

#[tokio::test]
async fn it_is_lossy_and_refuses_a_redis_that_evicts() {
    let server = redis();
    assert_eq!(Node::open(&journal(server.url())).await.opened.durability, Durability::Lossy);
    let evicting = Setup::default().set("maxmemory", "100mb").set("maxmemory-policy", "allkeys-lru");
    let server = redis_with(&evicting);
    let refused = journal(server.url()).open(claim()).await;
    assert!(matches!(refused, Err(OpenError::Unsuitable(_))), "{refused:?}");
}

#[tokio::test]
async fn a_missing_last_slot_is_refused() {
    let server = redis();
    let journal = journal(server.url());
    let mut node = Node::open(&journal).await;
    node.commit("one").await;
    node.commit("two").await;
    raw(server.url(), &["HDEL", "leasehold:{main}:slots", "2"]).await;
    let opened = journal.open(claim()).await;
    assert!(matches!(&opened, Err(OpenError::Corrupt { place, .. }) if place == "slot 2"), "{opened:?}");
}

#[tokio::test]
async fn a_user_with_few_commands_on_its_own_keys_is_enough() {
    let server = redis();
    let rights = "on >secret ~leasehold:{main}:* resetchannels -@all +evalsha +eval +script|load +hget +hset +hdel \
                  +hkeys +del +info";
    let command: Vec<_> = ["ACL", "SETUSER", "node"].into_iter().chain(rights.split_whitespace()).collect();
    raw(server.url(), &command).await;
    let as_node = server.url().replace("redis://", "redis://node:secret@");
    let mut node = Node::open(&journal(&as_node)).await;
    node.commit("allowed").await;
    node.opened.snapshots.begin(node.tail).await.unwrap();
    node.opened.snapshots.chunk("state".into()).await.unwrap();
    assert_eq!(node.opened.snapshots.install(Slot(2)).await, Outcome::Committed);
    let wrong = journal(&as_node.replace("secret", "guess")).open(claim()).await;
    assert!(matches!(wrong, Err(OpenError::Unavailable(_))), "{wrong:?}");
}
