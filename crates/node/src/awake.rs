//! Whether the loop stays awake for a moment when it has nothing to do.
//!
//! To wake a thread that has gone to sleep takes as long as a third of a durable write, and costs both sides about as much
//! processor time as staying awake that long would have. So where calls come one shortly after the other the loop looks
//! around for a moment before it sleeps. A machine has other work to do, too: a thread that only looks around is put aside
//! for whoever has something to do, and would then come late to its own work. The loop notices that by a look that took far
//! too long, and sleeps as usual for a while.

use std::time::Duration;

use crate::Clock;

/// Looks before it sleeps: a tenth of a millisecond or two, the time in which a client on the same machine asks again.
const LOOKS: u32 = 200;
/// Calls that come within this are worth staying awake for: what that many looks take.
const SOON: Duration = Duration::from_micros(150);
/// So many calls in succession must have come soon.
const STREAK: u32 = 4;
/// A look that takes this long was interrupted by somebody else's work: less than a scheduler's slice, and far more than a
/// look. Those beside the loop may have a turn that long; it then sleeps for nothing, which costs little.
const HELD_UP: Duration = Duration::from_millis(1);
/// The loop then sleeps as usual for this long at first, since whoever works there works for longer; and for twice as long
/// each time that it is held up again soon, as it is where its share of the processor is rationed and looking around uses
/// that up.
const ASIDE: Duration = Duration::from_secs(1);
const ASIDE_MOST: Duration = Duration::from_secs(64);

/// See the module.
#[derive(Debug)]
pub(crate) struct Awake {
    /// Only where an append blocks the loop: on an engine there is always somebody else to wait for, and much longer.
    is_allowed: bool,
    streak: u32,
    sleeps_until: Duration,
    /// For how long it last stepped aside.
    aside: Duration,
}

impl Awake {
    pub(crate) fn new(is_allowed: bool) -> Self {
        Self { is_allowed, streak: 0, sleeps_until: Duration::ZERO, aside: Duration::ZERO }
    }

    /// Looks around for a moment, if that is worth it; never completes. Every look lets those beside the loop have a turn.
    /// Cancel-safe.
    pub(crate) async fn stay(&mut self, clock: &dyn Clock) {
        let mut last = clock.monotonic();
        let looks = if self.is_worth_it(last) { LOOKS } else { 0 };
        for _ in 0..looks {
            tokio::task::yield_now().await;
            let now = clock.monotonic();
            if self.is_held_up(last, now) {
                break;
            }
            last = now;
        }
        std::future::pending().await
    }

    /// Notes how long it took until calls came; `None` if something else did.
    pub(crate) fn woken(&mut self, calls_after: Option<Duration>) {
        let soon = calls_after.is_some_and(|after| after <= SOON);
        self.streak = if soon { (self.streak + 1).min(STREAK) } else { 0 };
    }

    fn is_worth_it(&self, now: Duration) -> bool {
        self.is_allowed && self.streak == STREAK && now >= self.sleeps_until
    }

    fn is_held_up(&mut self, last: Duration, now: Duration) -> bool {
        let is_held_up = now.saturating_sub(last) >= HELD_UP;
        if is_held_up {
            let went_well = now.saturating_sub(self.sleeps_until);
            self.aside = if went_well > self.aside { ASIDE } else { (2 * self.aside).min(ASIDE_MOST) };
            self.sleeps_until = now + self.aside;
        }
        is_held_up
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(10);

    fn after_calls_that_came_soon(is_allowed: bool) -> Awake {
        let mut awake = Awake::new(is_allowed);
        for _ in 0..STREAK {
            assert!(!awake.is_worth_it(NOW));
            awake.woken(Some(SOON));
        }
        awake
    }

    #[test]
    fn it_is_worth_it_after_some_calls_that_came_soon_and_until_one_does_not() {
        let late = Some(SOON + Duration::from_micros(1));
        for other in [late, None] {
            let mut awake = after_calls_that_came_soon(true);
            assert!(awake.is_worth_it(NOW));
            awake.woken(other);
            assert!(!awake.is_worth_it(NOW));
        }
    }

    #[test]
    fn it_is_never_worth_it_on_an_engine() {
        assert!(!after_calls_that_came_soon(false).is_worth_it(NOW));
    }

    #[test]
    fn whoever_is_held_up_sleeps_as_usual_for_a_while() {
        let mut awake = after_calls_that_came_soon(true);
        assert!(!awake.is_held_up(NOW, NOW + HELD_UP / 2) && awake.is_worth_it(NOW));
        assert!(awake.is_held_up(NOW, NOW + HELD_UP));
        assert!(!awake.is_worth_it(NOW + ASIDE));
        assert!(awake.is_worth_it(NOW + HELD_UP + ASIDE));
    }

    #[test]
    fn whoever_is_held_up_again_soon_sleeps_for_twice_as_long() {
        let mut awake = after_calls_that_came_soon(true);
        let mut now = NOW;
        let mut held_up_after = |well: Duration| {
            now = now.max(awake.sleeps_until) + well;
            assert!(awake.is_held_up(now - HELD_UP, now));
            awake.aside.as_secs()
        };
        let soon = Duration::from_millis(100);
        let asides: Vec<_> = (0..8).map(|_| held_up_after(soon)).collect();
        assert_eq!(asides, [1, 2, 4, 8, 16, 32, 64, 64]);
        assert_eq!(held_up_after(ASIDE_MOST + soon), 1, "after it went well for longer than that");
    }
}
