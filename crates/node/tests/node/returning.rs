//! Callers on an engine whose commits take much longer than they need to ask again.

use std::time::Duration;

use leasehold_node::Lane;

use super::lanes::answered;
use super::world::*;

const CALLERS: u8 = 16;
/// A commit takes twice this.
const HALF_A_COMMIT_MS: u64 = 200;
const NEEDED_TO_ASK_AGAIN: Duration = Duration::from_millis(10);

/// Leases of the few; those of the many have lower numbers.
const FEW: u8 = 200;

struct Distant {
    world: World,
    many: Lane<u8>,
    few: Lane<u8>,
    turns: u8,
}

impl Distant {
    /// Callers that are known to ask again soon.
    async fn new() -> Self {
        let world = World::new().await;
        let (many, few) = (world.handle.lane(), world.handle.lane());
        let mut distant = Self { world, many, few, turns: 0 };
        for _ in 0..4 {
            distant.commit_of_many(0).await;
            distant.world.clock.manual.advance(NEEDED_TO_ASK_AGAIN);
        }
        distant
    }

    /// The many acquire, or release what they hold.
    async fn many_ask(&mut self) {
        let first = self.turns / 2 * CALLERS;
        let is_acquire = self.turns.is_multiple_of(2);
        self.turns += 1;
        self.many.send((0..CALLERS).map(|tag| match is_acquire {
            true => (tag, acquire(&format!("r{tag}"), first + tag)),
            false => (tag, release(first + tag)),
        }));
        // Taken before time goes on.
        let taken = async {
            while self.world.handle.status().queued > 0 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), taken).await.expect("the loop takes what it is asked");
    }

    /// What the many ask is committed, and answered; so many others ask meanwhile.
    async fn commit_of_many(&mut self, few: u8) {
        self.world.journal.set_paused(true);
        self.many_ask().await;
        self.world.clock.pass(HALF_A_COMMIT_MS).await;
        self.few.send((0..few).map(|tag| (tag, acquire(&format!("other/{tag}"), FEW + tag))));
        self.world.clock.pass(HALF_A_COMMIT_MS).await;
        self.world.journal.set_paused(false);
        answered(&mut self.many, CALLERS.into()).await;
    }

    fn last_commit(&self) -> usize {
        *self.world.seen.batches.lock().unwrap().last().unwrap()
    }
}

#[tokio::test]
async fn whoever_waits_for_a_commit_is_joined_by_those_who_were_just_answered() {
    let mut distant = Distant::new().await;
    distant.commit_of_many(4).await;
    distant.many_ask().await;
    answered(&mut distant.many, CALLERS.into()).await;
    answered(&mut distant.few, 4).await;
    assert_eq!(distant.last_commit(), 20, "one commit for both");
}

#[tokio::test]
async fn if_those_who_were_answered_do_not_come_back_nobody_waits_for_long() {
    let mut distant = Distant::new().await;
    distant.commit_of_many(4).await;
    distant.world.clock.manual.advance(2 * NEEDED_TO_ASK_AGAIN);
    answered(&mut distant.few, 4).await;
    assert_eq!(distant.last_commit(), 4);
}

#[tokio::test]
async fn more_do_not_wait_for_fewer() {
    let mut distant = Distant::new().await;
    distant.commit_of_many(CALLERS + 1).await;
    answered(&mut distant.few, usize::from(CALLERS) + 1).await;
    assert_eq!(distant.last_commit(), 17, "without any time passing");
}
