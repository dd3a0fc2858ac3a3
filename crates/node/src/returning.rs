//! Callers that were answered a moment ago, and how long such callers usually need to ask again.
//!
//! An engine takes about as long for a few facts as for many. Where its commits take longer than answers and the next
//! questions are under way, two groups of callers would take turns for ever, each waiting for the other's commit. So the
//! loop waits for those whom it has just answered, but only as long as they usually need, only if that is well below a
//! commit, and only if at least as many are expected as wait for them.
//!
//! Nothing but speed depends on it: a wait is short against a beat, and ends also if nobody comes.

use std::time::Duration;

/// Fewer answers tell nothing of how long callers need.
const FEWEST: usize = 8;
/// Nobody is waited for where a commit takes less: answers and questions on one machine take as long, and a timer that
/// rings in vain is a millisecond late.
const LEAST_COMMIT: Duration = Duration::from_millis(2);
/// Nobody is waited for longer, whatever a commit takes: standbys expect a sign of life every few hundred milliseconds.
const LONGEST: Duration = Duration::from_millis(50);

/// See the module. All times are on the monotonic clock.
#[derive(Debug, Default)]
pub(crate) struct Returning {
    /// Those who were answered last, until most of them are back.
    answered: Option<Answered>,
    /// How long they usually need; `None` before the first have come.
    usual: Option<Duration>,
}

#[derive(Debug)]
struct Answered {
    callers: usize,
    back: usize,
    at: Duration,
}

impl Returning {
    /// So many were answered now.
    pub(crate) fn answered(&mut self, callers: usize, now: Duration) {
        if callers < FEWEST {
            return;
        }
        // Those before were not back yet: it takes them that long, or longer.
        if let Some(before) = self.answered.replace(Answered { callers, back: 0, at: now }) {
            let so_far = now.saturating_sub(before.at);
            self.learn(self.usual.map_or(so_far, |usual| usual.max(so_far)));
        }
    }

    /// Whether some who were answered are not back yet.
    pub(crate) fn is_expecting(&self) -> bool {
        self.answered.is_some()
    }

    /// So many have asked.
    pub(crate) fn came(&mut self, callers: usize, now: Duration) {
        let Some(answered) = &mut self.answered else { return };
        answered.back += callers;
        // A few may have other things to do.
        if answered.back >= answered.callers - answered.callers / 8 {
            let took = now.saturating_sub(answered.at);
            self.answered = None;
            self.learn(took);
        }
    }

    /// Whether callers usually come back well before a commit of this length is done.
    pub(crate) fn is_quick(&self, commit: Duration) -> bool {
        commit >= LEAST_COMMIT && self.usual.is_some_and(|usual| usual * 2 < commit)
    }

    /// Until when it is worth to wait for those who were answered, with so many who wait for it and a commit of this length.
    pub(crate) fn awaited_until(&self, waiting: usize, commit: Duration) -> Option<Duration> {
        let (answered, usual) = (self.answered.as_ref()?, self.usual?);
        (self.is_quick(commit) && answered.callers >= waiting).then(|| answered.at + (usual * 2).min(LONGEST))
    }

    /// They did not come in time.
    pub(crate) fn waited_in_vain(&mut self, now: Duration) {
        if let Some(answered) = self.answered.take() {
            self.learn(now.saturating_sub(answered.at) * 4);
        }
    }

    /// The newest counts for a quarter.
    fn learn(&mut self, took: Duration) {
        self.usual = Some(self.usual.map_or(took, |usual| (usual * 3 + took) / 4));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: Duration = Duration::from_millis(2);

    fn us(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    /// Callers who were answered again and again, and came back after `need`.
    fn used_to(need: Duration) -> Returning {
        let mut returning = Returning::default();
        for turn in 1..10 {
            returning.answered(64, COMMIT * turn * 1_000);
            returning.came(56, COMMIT * turn * 1_000 + need);
        }
        returning
    }

    #[test]
    fn those_who_are_quick_are_awaited_as_long_as_they_usually_need_and_as_long_again() {
        let mut returning = used_to(us(300));
        assert_eq!(returning.awaited_until(3, COMMIT), None, "all are back");
        returning.answered(64, us(50_000));
        assert_eq!(returning.awaited_until(3, COMMIT), Some(us(50_600)));
        assert_eq!(returning.awaited_until(65, COMMIT), None, "more would wait than are expected");
        assert_eq!(returning.awaited_until(3, us(1_999)), None, "the engine is near");
        returning.came(55, us(50_100));
        assert!(returning.awaited_until(3, COMMIT).is_some(), "one in eight may stay away, not more");
        returning.came(1, us(50_100));
        assert_eq!(returning.awaited_until(3, COMMIT), None, "they are back");
    }

    #[test]
    fn those_who_take_their_time_are_not_awaited() {
        let mut slow = used_to(us(1_000));
        slow.answered(64, us(50_000));
        assert_eq!(slow.awaited_until(1, COMMIT), None);
        assert!(slow.awaited_until(1, COMMIT + us(1)).is_some());
        // Answered again and again before they are back: nobody has seen how long they need, but it is long.
        let mut never = used_to(us(300));
        (0..8).for_each(|turn| never.answered(64, us(50_000) + COMMIT * turn));
        assert_eq!(never.awaited_until(1, COMMIT), None);
    }

    #[test]
    fn nobody_is_awaited_before_anything_is_known_or_after_a_few_disappointments() {
        let mut returning = Returning::default();
        returning.answered(64, us(1_000));
        assert_eq!(returning.awaited_until(1, COMMIT), None);
        let mut returning = used_to(us(300));
        for turn in 1..=3u32 {
            let at = us(50_000) + COMMIT * turn;
            returning.answered(64, at);
            if let Some(until) = returning.awaited_until(1, COMMIT) {
                returning.waited_in_vain(until);
            }
        }
        assert_eq!(returning.awaited_until(1, COMMIT), None);
    }

    #[test]
    fn a_wait_is_short_however_long_a_commit_takes() {
        let mut returning = used_to(us(300_000));
        returning.answered(64, us(50_000));
        assert_eq!(returning.awaited_until(1, COMMIT * 1_000), Some(us(100_000)));
    }

    #[test]
    fn a_few_answers_change_nothing() {
        let mut returning = used_to(us(300));
        returning.answered(64, us(50_000));
        returning.answered(7, us(50_010));
        assert!(returning.awaited_until(3, COMMIT).is_some());
    }
}
