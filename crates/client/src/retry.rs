//! When to try again: pure, the randomness is given.

use std::time::Duration;

/// Exponential back-off with full jitter: the n-th pause is drawn between nothing and `first` doubled n times, at most
/// `most`. The first retry of a series is immediate, since most breaks are over at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Backoff {
    first: Duration,
    most: Duration,
    tries: u32,
}

impl Default for Backoff {
    /// For one call: soon at first, since a change of node is over in a moment, and once a second at last.
    fn default() -> Self {
        Self::new(Duration::from_millis(20), Duration::from_secs(1))
    }
}

impl Backoff {
    /// A series that begins.
    pub fn new(first: Duration, most: Duration) -> Self {
        Self { first, most, tries: 0 }
    }

    /// The pause before the next try; `random` is from 0 to 1.
    pub fn pause(&mut self, random: f64) -> Duration {
        let tries = self.tries;
        self.tries = self.tries.saturating_add(1);
        let Some(doublings) = tries.checked_sub(1) else { return Duration::ZERO };
        let ceiling = self.first.saturating_mul(2u32.saturating_pow(doublings)).min(self.most);
        // Never nothing: a peer that refuses at once is not to be asked in a tight loop.
        ceiling.mul_f64(random.clamp(0.0, 1.0)).max(ceiling / 4)
    }

    /// A try succeeded: the next series begins anew.
    pub fn reset(&mut self) {
        self.tries = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_ceiling_and_begin_anew() {
        let ms = Duration::from_millis;
        let mut backoff = Backoff::new(ms(20), ms(100));
        let pauses: Vec<_> = (0..5).map(|_| backoff.pause(1.0)).collect();
        assert_eq!(pauses, [ms(0), ms(20), ms(40), ms(80), ms(100)]);
        assert_eq!(backoff.pause(0.0), ms(25));
        backoff.reset();
        assert_eq!(backoff.pause(1.0), ms(0));
    }

    #[test]
    fn many_tries_do_not_overflow() {
        let mut backoff =
            Backoff { tries: u32::MAX, ..Backoff::new(Duration::from_secs(1), Duration::from_secs(2)) };
        assert_eq!(backoff.pause(1.0), Duration::from_secs(2));
    }
}
