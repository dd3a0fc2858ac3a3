//! A record that was changed behind our back (J12).

use leasehold_journal::{Claim, Journal, OpenError, Outcome, ReadError};
use leasehold_types::Slot;

use crate::kit::{Node, claim, engine, journal, raw, read_all};

#[tokio::test]
async fn a_damaged_slot_is_named_and_cut_only_by_recover() {
    // Another body, and a column of a wrong length, which hid the whole slots before it.
    for damage in ["body = 'forged'", "hash = 'cut'", "batch_id = 'cut'"] {
        let server = engine();
        let journal = journal(server.url());
        let mut node = Node::open(&journal).await;
        for body in ["one", "two", "three"] {
            node.commit(body).await;
        }
        let operator = raw(server.url()).await;
        let change = format!("UPDATE leasehold.slots SET {damage} WHERE slot = 2");
        operator.execute(&change, &[]).await.unwrap();
        assert_eq!(read_all(node.opened.reader.as_mut()).await.len(), 1, "{damage}");
        let read = node.opened.reader.slots(Slot(2)).await;
        assert!(
            matches!(&read, Err(ReadError::Corrupt { place, .. }) if place == "slot 2"),
            "{damage}: {read:?}"
        );

        let mut recovered = journal.open(Claim { accept_loss: true, ..claim() }).await.unwrap();
        assert_eq!(recovered.tail.slot, Slot(1), "{damage}");
        let loss = recovered.loss.as_deref();
        assert!(loss.is_some_and(|loss| loss.starts_with("slots 2 to 3")), "{damage}: {recovered:?}");
        assert_eq!(read_all(recovered.reader.as_mut()).await.len(), 1, "{damage}");
        let mut node = Node { tail: recovered.tail, opened: recovered };
        node.commit("goes on").await;
    }
}

#[tokio::test]
async fn a_missing_last_slot_is_refused() {
    let server = engine();
    let journal = journal(server.url());
    let mut node = Node::open(&journal).await;
    node.commit("one").await;
    node.commit("two").await;
    let operator = raw(server.url()).await;
    operator.execute("DELETE FROM leasehold.slots WHERE slot = 2", &[]).await.unwrap();
    let opened = journal.open(claim()).await;
    assert!(matches!(&opened, Err(OpenError::Corrupt { place, .. }) if place == "slot 2"), "{opened:?}");
}

#[tokio::test]
async fn a_damaged_chunk_is_not_given_as_the_last() {
    let server = engine();
    let mut node = Node::open(&journal(server.url())).await;
    node.commit("one").await;
    node.opened.snapshots.begin(node.tail).await.unwrap();
    for chunk in ["first", "second"] {
        node.opened.snapshots.chunk(chunk.into()).await.unwrap();
    }
    assert_eq!(node.opened.snapshots.install(Slot(1)).await, Outcome::Committed);
    let operator = raw(server.url()).await;
    operator.execute("UPDATE leasehold.chunks SET body = 'forged' WHERE index = 0", &[]).await.unwrap();
    let info = node.opened.reader.snapshot().await.unwrap().unwrap();
    assert!(matches!(node.opened.reader.chunk(&info, 1).await, Err(ReadError::Corrupt { .. })));
}

#[tokio::test]
async fn a_newer_format_is_left_alone() {
    let server = engine();
    let journal = journal(server.url());
    Node::open(&journal).await;
    let operator = raw(server.url()).await;
    operator.execute("UPDATE leasehold.head SET format = 2", &[]).await.unwrap();
    assert!(matches!(journal.open(claim()).await, Err(OpenError::TooNew(_))));
}

/// As after the promotion of a standby that had not got everything: the claim is there, the last commit is not.
#[tokio::test]
async fn an_engine_that_forgot_a_commit_confirms_nothing_and_takes_nothing() {
    let server = engine();
    let mut node = Node::open(&journal(server.url())).await;
    node.commit("one").await;
    let before = node.tail;
    node.commit("two").await;
    let operator = raw(server.url()).await;
    let hash: &[u8] = &before.hash.0;
    operator.execute("DELETE FROM leasehold.slots WHERE slot = 2", &[]).await.unwrap();
    operator.execute("UPDATE leasehold.head SET tail = 1, hash = $1", &[&hash]).await.unwrap();
    let is_loss = |outcome: &Outcome| matches!(outcome, Outcome::Regressed(why) if why.contains("recover"));
    let beat = node.opened.writer.beat().await;
    assert!(is_loss(&beat), "{beat:?}");
    let batch = node.batch("three");
    let append = node.append(&batch).await;
    assert!(is_loss(&append), "{append:?}");
}

/// A node that has not seen what is missing takes nothing over after a fail-over that can have lost something.
#[tokio::test]
async fn an_engine_on_another_timeline_is_refused_unless_a_standby_was_waited_for() {
    let server = engine();
    let journal = journal(server.url());
    Node::open(&journal).await.commit("one").await;
    let operator = raw(server.url()).await;
    let was = |synchronous| format!("UPDATE leasehold.head SET timeline = 77, synchronous = {synchronous}");
    operator.batch_execute(&was(false)).await.unwrap();
    let is_regression = |opened: Result<_, OpenError>| match opened {
        Err(OpenError::Regressed(text)) => text.contains("recover"),
        _ => false,
    };
    assert!(is_regression(journal.open(claim()).await));
    let recovering = journal.open(Claim { accept_loss: true, ..claim() }).await.unwrap();
    assert!(is_regression(journal.open(claim()).await), "a recovery that was interrupted is none");
    drop(recovering);
    let recovered = journal.open(Claim { accept_loss: true, ..claim() }).await.unwrap();
    Node { tail: recovered.tail, opened: recovered }.commit("recovered").await;
    Node::open(&journal).await.commit("goes on").await;
    operator.batch_execute(&was(true)).await.unwrap();
    Node::open(&journal).await.commit("and again").await;
}
