//! What only a real Redis shows: crashes, pauses, lost answers, lost memory, settings, TLS, users.

#![allow(clippy::unwrap_used, reason = "a helper of tests that panics is a test that fails")]

mod kit;
mod passwords;
mod tls;

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use leasehold_journal::conformance::outages;
use leasehold_journal::{Confirmation, Journal, OpenError, Outcome};
use leasehold_testbed::{Fault, Proxy, Setup, redis, redis_with};
use leasehold_types::{Durability, Slot};

use kit::{Node, claim, hasty, journal};

/// A command of the test's own.
async fn raw(url: &str, command: &[&str]) {
    let client = ::redis::Client::open(url).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    ::redis::cmd(command[0]).arg(&command[1..]).exec_async(&mut connection).await.unwrap();
}

#[tokio::test]
async fn an_engine_that_crashed_and_came_back_has_the_batch_once() {
    let server = redis();
    outages::survives_a_crash(&hasty(server.url()), || server.kill(0), || server.restart(0)).await;
}

#[tokio::test]
async fn a_paused_engine_is_unknown_in_time_and_the_append_lands_once() {
    let server = redis();
    outages::survives_a_pause(&hasty(server.url()), || server.pause(0), || server.resume(0)).await;
}

#[tokio::test]
async fn an_answer_that_was_lost_is_found_to_be_ours() {
    let server = redis();
    let proxy = Proxy::before(server.addresses()[0]);
    let journal = hasty(&proxy.in_url(server.url()));
    let unknown = outages::survives_lost_answers(&journal, || proxy.inject(Fault::LoseAnswer)).await;
    assert_eq!(unknown, 5);
}

#[tokio::test]
async fn an_answer_to_another_question_is_not_taken_for_ones_own() {
    let server = redis();
    let proxy = Proxy::before(server.addresses()[0]);
    let through = hasty(&proxy.in_url(server.url()));
    outages::tells_answers_apart(&through, &journal(server.url()), || proxy.inject(Fault::Duplicate)).await;
}

#[tokio::test]
async fn a_stale_writer_is_fenced_in_everything_it_does() {
    let server = redis();
    outages::fences_a_stale_writer(&journal(server.url())).await;
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
    assert!(matches!(node.append(&batch).await, Outcome::Regressed(_)));
    assert!(matches!(node.opened.writer.beat().await, Outcome::Regressed(_)));
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

/// What is logged on this thread, on which the test's own runtime runs everything.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What an opening logs.
async fn logged(url: &str) -> String {
    let lines = Lines::default();
    let written = lines.clone();
    let subscriber = tracing_subscriber::fmt().with_writer(move || written.clone()).finish();
    let guard = tracing::subscriber::set_default(subscriber);
    Node::open(&journal(url)).await;
    drop(guard);
    let bytes = lines.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap()
}

#[tokio::test]
async fn what_a_crash_can_lose_is_logged() {
    let server = redis_with(&Setup::default().set("appendonly", "yes").set("appendfsync", "always"));
    let rights = "on nopass ~* resetchannels +@all -config";
    let command: Vec<_> = ["ACL", "SETUSER", "node"].into_iter().chain(rights.split_whitespace()).collect();
    raw(server.url(), &command).await;
    assert!(!logged(server.url()).await.contains("can be lost"));
    let unasked = logged(&server.url().replace("redis://", "redis://node:any@")).await;
    assert!(unasked.contains("appendfsync could not be read"), "{unasked}");
    raw(server.url(), &["CONFIG", "SET", "appendfsync", "everysec"]).await;
    let told = logged(server.url()).await;
    assert!(told.contains("can be lost") && told.contains("appendfsync is everysec"), "{told}");
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
                  +hkeys +del +info +config|get";
    let command: Vec<_> = ["ACL", "SETUSER", "node"].into_iter().chain(rights.split_whitespace()).collect();
    raw(server.url(), &command).await;
    let as_node = server.url().replace("redis://", "redis://node:secret@");
    let mut node = Node::open(&journal(&as_node)).await;
    node.commit("allowed").await;
    node.opened.snapshots.begin(node.tail).await.unwrap();
    node.opened.snapshots.chunk("state".into()).await.unwrap();
    assert_eq!(node.opened.snapshots.install(Slot(2)).await, Outcome::Committed);
    let wrong = journal(&as_node.replace("secret", "guess")).open(claim()).await;
    assert!(matches!(wrong, Err(OpenError::Refused(_))), "{wrong:?}");
}
