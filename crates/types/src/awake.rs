//! When whoever waits for the other end of a stream stays awake instead of falling asleep.

use std::time::Duration;

/// So many things in succession must have come soon.
const STREAK: u32 = 4;
/// A look that takes this long was interrupted by somebody else's work: less than a scheduler's slice, and far more than a
/// look. Others on the same thread may have a turn that long; one then sleeps for nothing, which costs little.
const HELD_UP: Duration = Duration::from_millis(1);
/// One then sleeps as usual for this long at first: a machine that is shared by others is held up now and then, by nobody's
/// fault. And for twice as long each time that one is held up again soon, as happens where somebody works for longer, or where
/// the share of the processor is rationed and looking around uses that up.
const ASIDE: Duration = Duration::from_millis(100);
const ASIDE_MOST: Duration = Duration::from_secs(60);

/// Whether it is worth it to stay awake for a moment, by what was seen before.
///
/// To wake a thread that has gone to sleep takes as long as a third of a durable write, and costs both sides about as much
/// processor time as staying awake that long would have. So where one thing comes shortly after the other whoever waits for
/// the next looks around for a moment before it sleeps. A machine has other work to do, too: a thread that only looks around
/// is put aside for whoever has something to do, and would then come late to its own work. That is noticed by a look that took
/// far too long, and one sleeps as usual for a while.
///
/// Times are those of any one clock that does not go back.
#[derive(Clone, Debug, Default)]
pub struct Awake {
    streak: u32,
    sleeps_until: Duration,
    /// For how long it last stepped aside.
    aside: Duration,
}

impl Awake {
    /// Whether it is worth it to stay awake now.
    pub fn is_worth_it(&self, now: Duration) -> bool {
        self.streak == STREAK && now >= self.sleeps_until
    }

    /// Notes whether what came last came so soon that it was worth staying awake for.
    pub fn woken(&mut self, soon: bool) {
        self.streak = if soon { (self.streak + 1).min(STREAK) } else { 0 };
    }

    /// Whether a look from `last` to `now` was held up, so that one sleeps as usual for a while.
    pub fn is_held_up(&mut self, last: Duration, now: Duration) -> bool {
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

    fn after_some_that_came_soon() -> Awake {
        let mut awake = Awake::default();
        for _ in 0..STREAK {
            assert!(!awake.is_worth_it(NOW));
            awake.woken(true);
        }
        awake
    }

    #[test]
    fn it_is_worth_it_after_some_that_came_soon_and_until_one_does_not() {
        let mut awake = after_some_that_came_soon();
        assert!(awake.is_worth_it(NOW));
        awake.woken(false);
        assert!(!awake.is_worth_it(NOW));
    }

    #[test]
    fn whoever_is_held_up_sleeps_as_usual_for_a_while() {
        let mut awake = after_some_that_came_soon();
        assert!(!awake.is_held_up(NOW, NOW + HELD_UP / 2) && awake.is_worth_it(NOW));
        assert!(awake.is_held_up(NOW, NOW + HELD_UP));
        assert!(!awake.is_worth_it(NOW + ASIDE));
        assert!(awake.is_worth_it(NOW + HELD_UP + ASIDE));
    }

    #[test]
    fn whoever_is_held_up_again_soon_sleeps_for_twice_as_long() {
        let mut awake = after_some_that_came_soon();
        let mut now = NOW;
        let mut held_up_after = |well: Duration| {
            now = now.max(awake.sleeps_until) + well;
            assert!(awake.is_held_up(now - HELD_UP, now));
            awake.aside.as_millis()
        };
        let soon = Duration::from_millis(10);
        let asides: Vec<_> = (0..11).map(|_| held_up_after(soon)).collect();
        assert_eq!(asides[..4], [100, 200, 400, 800]);
        assert_eq!(asides[9..], [51_200, 60_000]);
        assert_eq!(held_up_after(ASIDE_MOST + soon), 100, "after it went well for longer than that");
    }
}
