//! What only a real engine shows: crashes, pauses, lost and doubled answers, and writers that still believe in
//! themselves. The faults are the caller's; what must be true afterwards is the same on every engine (J2–J4).

use leasehold_types::Slot;

use super::small_node::{SmallNode, fresh_claim, read_all};
use crate::{Claim, Confirmation, Journal, Outcome};

fn is_unknown(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Unknown(_))
}

/// An engine that crashed and came back has the batch in doubt once, and goes on.
///
/// # Panics
/// When it does not.
pub async fn survives_a_crash(journal: &dyn Journal, kill: impl FnOnce(), restart: impl FnOnce()) {
    let mut node = SmallNode::open(journal).await;
    node.commit("before").await;
    kill();
    let batch = node.batch("in doubt");
    for _ in 0..2 {
        let outcome = node.append(&batch).await;
        assert!(is_unknown(&outcome), "{outcome:?}");
    }
    assert!(matches!(node.opened.writer.confirm().await, Confirmation::Unknown(_)));
    assert!(node.opened.reader.head().await.is_err());
    restart();
    assert_eq!(node.resolve(&batch).await, Outcome::Committed);
    assert_eq!(node.resolve(&batch).await, Outcome::Committed);
    node.confirmed().await;
    node.commit("after").await;
    assert_eq!(node.slots().await.len(), 3);
}

/// An engine that keeps its connections and answers nothing is unknown in time, and what was sent lands once.
///
/// # Panics
/// When it is not, or does not.
pub async fn survives_a_pause(journal: &dyn Journal, pause: impl FnOnce(), resume: impl FnOnce()) {
    let mut node = SmallNode::open(journal).await;
    node.commit("before").await;
    pause();
    let batch = node.batch("paused");
    let outcome = node.append(&batch).await;
    assert!(is_unknown(&outcome), "{outcome:?}");
    assert!(journal.open(fresh_claim()).await.is_err());
    resume();
    assert_eq!(node.resolve(&batch).await, Outcome::Committed);
    assert_eq!(node.slots().await.len(), 2);
}

/// An answer that was lost on the way is asked for again and found to be ours. `lose` loses the next one. Gives how many
/// of the five rounds were unknown at first: a driver may find out by itself.
///
/// # Panics
/// When a batch is not there once.
pub async fn survives_lost_answers(journal: &dyn Journal, lose: impl Fn()) -> usize {
    let mut node = SmallNode::open(journal).await;
    let mut unknown = 0;
    for round in 1..=5 {
        let batch = node.batch("answer lost");
        lose();
        unknown += usize::from(is_unknown(&node.append(&batch).await));
        assert_eq!(node.resolve(&batch).await, Outcome::Committed, "round {round}");
    }
    assert_eq!(node.slots().await.len(), 5);
    unknown
}

/// On an engine whose protocol has no numbers a message that is delivered twice is answered twice: the second answer must
/// not be taken for that of the next question. `double` doubles the next message; `direct` is the same journal without
/// faults on the way.
///
/// # Panics
/// When it is.
pub async fn tells_answers_apart(journal: &dyn Journal, direct: &dyn Journal, double: impl Fn()) {
    let mut node = SmallNode::open(journal).await;
    let mut reader = direct.reader().await.expect("the journal can be read");
    for round in 1..=30 {
        double();
        let beat = node.opened.writer.beat().await;
        assert!(beat == Outcome::Committed || is_unknown(&beat), "round {round}: {beat:?}");
        let batch = node.batch("after a doubled beat");
        assert_eq!(node.resolve(&batch).await, Outcome::Committed, "round {round}");
        assert_eq!(read_all(reader.as_mut()).await.len(), round, "committed is there");
    }
}

/// A writer that was replaced is refused in everything it does.
///
/// # Panics
/// When it is not.
pub async fn fences_a_stale_writer(journal: &dyn Journal) {
    let mut old = SmallNode::open(journal).await;
    old.commit("old").await;
    old.opened.snapshots.begin(old.tail).await.expect("a snapshot can be begun");
    let mut new = SmallNode::open(journal).await;
    new.commit("new").await;
    let batch = old.batch("zombie");
    assert_eq!(old.resolve(&batch).await, Outcome::Fenced);
    assert_eq!(old.opened.writer.beat().await, Outcome::Fenced);
    assert_eq!(old.opened.writer.confirm().await, Confirmation::Fenced);
    assert!(old.opened.snapshots.chunk("stale".into()).await.is_err());
    assert_eq!(old.opened.snapshots.install(Slot(2)).await, Outcome::Fenced);
    assert_eq!(new.slots().await.len(), 2);
}

/// Of claims that expect the same epoch one is given.
///
/// # Panics
/// When another number is.
pub async fn duels_have_one_winner<J: Journal + Clone>(journal: &J) {
    let seen = SmallNode::open(journal).await.opened.epoch;
    let duels: Vec<_> = (0..8)
        .map(|_| {
            let (journal, claim) = (journal.clone(), Claim { expected_epoch: Some(seen), ..fresh_claim() });
            tokio::spawn(async move { journal.open(claim).await.is_ok() })
        })
        .collect();
    let mut winners = 0;
    for duel in duels {
        winners += usize::from(duel.await.expect("a claim does not panic"));
    }
    assert_eq!(winners, 1);
}

/// Clusters of other names on one engine do not meet.
///
/// # Panics
/// When they do.
pub async fn keeps_names_apart(ours: &dyn Journal, theirs: &dyn Journal) {
    let mut ours = SmallNode::open(ours).await;
    let mut theirs = SmallNode::open(theirs).await;
    ours.commit("ours").await;
    theirs.confirmed().await;
    assert_eq!(theirs.slots().await, Vec::new());
    assert_eq!(theirs.opened.reader.head().await.expect("it is founded").tail.slot, Slot(0));
}
