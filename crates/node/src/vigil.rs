//! When it is a standby's turn (N6, J16): arithmetic on given times and heads, without a clock, so that a simulator can
//! drive it.

use std::time::Duration;

use leasehold_journal::Head;
use leasehold_types::{Epoch, Nonce};

/// What a standby has seen of the active node, and how long it is patient with it.
#[derive(Clone, Debug)]
pub struct Vigil {
    /// The patience of the settings; what counts is `patience`, which is drawn from it.
    least: Duration,
    /// The nonce of this node's own last claim.
    own: Option<Nonce>,
    /// The head as it was last seen, and since when it has been like that.
    seen: Option<(Head, Duration)>,
    patience: Duration,
}

impl Vigil {
    /// A vigil that has seen nothing yet. `chance` (0 to 1) spreads the patience over half as much again, so that
    /// standbys do not duel every time; every later one likewise.
    pub fn new(least: Duration, own: Option<Nonce>, chance: f64) -> Self {
        Self { least, own, seen: None, patience: jittered(least, chance) }
    }

    /// A head was seen at `now`. Only a changed one is a sign of life.
    pub fn saw(&mut self, head: Head, now: Duration, chance: f64) {
        if self.seen.as_ref().is_none_or(|(seen, _)| *seen != head) {
            self.seen = Some((head, now));
            self.patience = jittered(self.least, chance);
        }
    }

    /// The journal could not be read: nothing was seen, so silence is counted anew. Else every standby would take over
    /// in the moment an engine comes back.
    pub fn saw_nothing(&mut self, chance: f64) {
        self.seen = None;
        self.patience = jittered(self.least, chance);
    }

    /// A claim failed: even an empty seat is left to others for a while.
    pub fn back_off(&mut self, now: Duration, chance: f64) {
        self.patience = jittered(2 * self.least, chance);
        if let Some((_, since)) = &mut self.seen {
            *since = now;
        }
    }

    /// The epoch to be replaced, once it has resigned or been silent for long enough. An epoch of this node's own that
    /// nobody has replaced since it stepped down has no active node: there is nothing to wait for. `resigned` is the
    /// epoch whose active node resigned as the last thing that was replayed up to the head.
    pub fn turn(&self, now: Duration, resigned: Option<Epoch>) -> Option<Epoch> {
        let (head, since) = self.seen.as_ref()?;
        let nobody = resigned == Some(head.epoch) || self.own == Some(head.nonce);
        let silent = now.saturating_sub(*since) >= self.patience;
        (silent || (nobody && self.patience < 2 * self.least)).then_some(head.epoch)
    }

    /// The head as it was last seen.
    pub fn head(&self) -> Option<&Head> {
        self.seen.as_ref().map(|(head, _)| head)
    }
}

fn jittered(least: Duration, chance: f64) -> Duration {
    least + least.mul_f64(0.5 * chance.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use leasehold_journal::Tail;
    use leasehold_types::ClusterId;

    use super::*;

    const LEAST: Duration = Duration::from_millis(1_200);

    fn head(epoch: u64, beat: u64) -> Head {
        Head {
            cluster: ClusterId::from_bytes([1; 16]),
            epoch: Epoch(epoch),
            nonce: Nonce::from_bytes([u8::try_from(epoch).unwrap(); 16]),
            tail: Tail::default(),
            beat,
        }
    }

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn silence_counts_from_the_last_change() {
        let mut vigil = Vigil::new(LEAST, None, 0.0);
        assert_eq!(vigil.turn(at(60_000), None), None, "nothing was seen yet");
        vigil.saw(head(3, 1), at(0), 0.0);
        vigil.saw(head(3, 2), at(1_000), 0.0);
        vigil.saw(head(3, 2), at(2_000), 0.0);
        assert_eq!(vigil.turn(at(2_199), None), None);
        assert_eq!(vigil.turn(at(2_200), None), Some(Epoch(3)));
    }

    #[test]
    fn chance_makes_it_more_patient_and_a_failed_claim_twice() {
        let mut vigil = Vigil::new(LEAST, None, 0.0);
        vigil.saw(head(3, 1), at(0), 1.0);
        assert_eq!(vigil.turn(at(1_799), None), None);
        assert!(vigil.turn(at(1_800), None).is_some());
        vigil.back_off(at(1_800), 0.0);
        assert_eq!(vigil.turn(at(4_199), Some(Epoch(3))), None, "an empty seat is left to others too");
        assert!(vigil.turn(at(4_200), None).is_some());
    }

    #[test]
    fn an_empty_seat_is_taken_at_once() {
        let mut vigil = Vigil::new(LEAST, Some(Nonce::from_bytes([3; 16])), 0.5);
        vigil.saw(head(3, 1), at(0), 0.5);
        assert!(vigil.turn(at(0), None).is_some(), "its own epoch");
        vigil.saw(head(4, 1), at(0), 0.5);
        assert_eq!(vigil.turn(at(0), Some(Epoch(3))), None, "another took over since the resignation");
        assert!(vigil.turn(at(0), Some(Epoch(4))).is_some());
    }

    #[test]
    fn what_was_not_seen_is_no_silence() {
        let mut vigil = Vigil::new(LEAST, None, 0.0);
        vigil.saw(head(3, 1), at(0), 0.0);
        vigil.saw_nothing(0.0);
        assert_eq!(vigil.turn(at(10_000), None), None);
    }
}
