//! How long a lease is surely held: arithmetic on given times, without a clock, so that a simulator can drive it.
//!
//! The server promises `ttl` from the moment it decides, and arms ttl (1 + rho). The client counts from the moment
//! *before it sent* what was confirmed, and stops at ttl (1 - rho): however late the answer and however different the
//! two clocks run within rho, the client has stopped before the server lets anybody else in (K1, R2).

use std::time::Duration;

use leasehold_types::limits;

/// A reading of the clock that goes on while the machine is suspended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Stamp(pub Duration);

impl Stamp {
    /// This much later.
    #[must_use]
    pub fn plus(self, by: Duration) -> Self {
        Self(self.0.saturating_add(by))
    }

    /// From `earlier` to this, or nothing.
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

/// What is kept free before the deadline, so that work is stopped before the lease can have ended: a sixth of the ttl,
/// at most two seconds.
pub fn margin(ttl: Duration) -> Duration {
    (ttl / 6).min(Duration::from_secs(2))
}

/// What of a promised ttl may be trusted: the part that clock drift cannot eat.
pub fn trusted(ttl: Duration) -> Duration {
    ttl.saturating_sub(ttl * u32::try_from(limits::CLOCK_DRIFT_PERCENT).expect("a small number") / 100)
}

/// How sure the holder may be.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Phase {
    /// Confirmed a short time ago.
    Held,
    /// Still surely held, but a renewal is overdue or has failed.
    Late,
    /// Within the margin before the deadline: work has been told to stop.
    Uncertain,
    /// The deadline has passed without a confirmation.
    Lost,
}

/// What a client saw of its renewals since the last success, for operators.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Renewals that failed.
    pub missed: u32,
    /// Why the last one failed.
    pub last_error: Option<String>,
    /// Longest time between two successes, or longest pause of this process.
    pub max_gap: Duration,
}

/// The life of a session, or of a lease with a max hold, as its holder may trust it.
#[derive(Clone, Debug)]
pub struct Life {
    ttl: Duration,
    /// When the newest confirmed renewal was sent; `None` before the first.
    confirmed: Option<Stamp>,
    deadline: Stamp,
    missed: u32,
    last_error: Option<String>,
    max_gap: Duration,
}

impl Life {
    /// A life that nobody has confirmed yet: lost until somebody does.
    pub fn new(ttl: Duration) -> Self {
        Self {
            ttl,
            confirmed: None,
            deadline: Stamp::default(),
            missed: 0,
            last_error: None,
            max_gap: Duration::ZERO,
        }
    }

    /// The ttl asked for.
    pub fn ttl(&self) -> Duration {
        self.ttl
    }

    /// The server gave `promised` in answer to what was sent at `sent`. Answers may come in any order: every promise
    /// holds, so the latest deadline counts.
    pub fn confirm(&mut self, sent: Stamp, promised: Duration) {
        if let Some(before) = self.confirmed {
            self.max_gap = self.max_gap.max(sent.since(before));
        }
        self.confirmed = self.confirmed.max(Some(sent));
        self.extend(sent, promised);
        self.missed = 0;
        self.last_error = None;
    }

    /// The same for a promise that came with something else than a renewal: those go on at their time.
    pub fn extend(&mut self, sent: Stamp, promised: Duration) {
        self.deadline = self.deadline.max(sent.plus(trusted(promised)));
    }

    /// A renewal failed, or was not answered in time.
    pub fn miss(&mut self, error: &str) {
        self.missed = self.missed.saturating_add(1);
        self.last_error = Some(error.to_owned());
    }

    /// The process, or its machine, stood still for this long.
    pub fn pause(&mut self, gap: Duration) {
        self.max_gap = self.max_gap.max(gap);
    }

    /// Renewals missed since the last success.
    pub fn missed(&self) -> u32 {
        self.missed
    }

    /// When the newest confirmed renewal was sent.
    pub fn confirmed(&self) -> Option<Stamp> {
        self.confirmed
    }

    /// From here on somebody else may hold it.
    pub fn deadline(&self) -> Stamp {
        self.deadline
    }

    /// From here on work is told to stop (K4).
    pub fn cutoff(&self) -> Stamp {
        Stamp(self.deadline.0.saturating_sub(margin(self.ttl)))
    }

    /// How long it is surely still held.
    pub fn remaining(&self, now: Stamp) -> Duration {
        self.deadline.since(now)
    }

    /// When to renew: a third of the ttl after the last confirmed renewal, spread by `jitter` (0 to 1) over ten per
    /// cent before and after, so that a fleet that started together does not renew together.
    pub fn renewal_due(&self, jitter: f64) -> Stamp {
        let third = self.ttl / 3;
        self.confirmed.unwrap_or_default().plus(third.mul_f64(0.9 + 0.2 * jitter.clamp(0.0, 1.0)))
    }

    /// How sure the holder may be.
    pub fn phase(&self, now: Stamp) -> Phase {
        let Some(confirmed) = self.confirmed else { return Phase::Lost };
        if now >= self.deadline {
            Phase::Lost
        } else if now >= self.cutoff() {
            Phase::Uncertain
        } else if self.missed > 0 || now.since(confirmed) >= self.ttl / 2 {
            Phase::Late
        } else {
            Phase::Held
        }
    }

    /// What to tell with the next renewal; the gaps begin anew.
    pub fn take_report(&mut self) -> Report {
        Report {
            missed: self.missed,
            last_error: self.last_error.clone(),
            max_gap: std::mem::take(&mut self.max_gap),
        }
    }
}

/// How much of a max hold or a wait is left is asked in whole milliseconds.
pub(crate) fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ms: u64) -> Stamp {
        Stamp(Duration::from_millis(ms))
    }

    fn confirmed(ttl_ms: u64, sent_ms: u64) -> Life {
        let ttl = Duration::from_millis(ttl_ms);
        let mut life = Life::new(ttl);
        life.confirm(at(sent_ms), ttl);
        life
    }

    #[test]
    fn the_deadline_counts_from_send_and_leaves_out_the_drift() {
        let life = confirmed(15_000, 1_000);
        assert_eq!(life.deadline(), at(1_000 + 14_850));
        assert_eq!(life.cutoff(), at(1_000 + 14_850 - 2_000));
        assert_eq!(confirmed(3_000, 0).cutoff(), at(2_970 - 500));
    }

    #[test]
    fn phases_follow_each_other_and_nothing_is_held_unconfirmed() {
        let mut life = confirmed(3_000, 0);
        let phases =
            [(0, Phase::Held), (1_499, Phase::Held), (1_500, Phase::Late), (2_470, Phase::Uncertain)];
        for (now, phase) in phases {
            assert_eq!(life.phase(at(now)), phase, "{now}");
        }
        assert_eq!(life.phase(at(2_970)), Phase::Lost);
        life.miss("no route");
        assert_eq!(life.phase(at(10)), Phase::Late);
        assert_eq!(Life::new(Duration::from_secs(1)).phase(at(0)), Phase::Lost);
    }

    #[test]
    fn a_late_answer_to_an_early_renewal_takes_nothing_away() {
        let mut life = confirmed(3_000, 1_000);
        life.confirm(at(500), Duration::from_secs(3));
        assert_eq!(life.deadline(), at(3_970));
        assert_eq!(life.confirmed(), Some(at(1_000)));
    }

    #[test]
    fn a_shorter_promise_near_the_max_hold_never_breaks_an_earlier_one() {
        let mut life = confirmed(3_000, 1_000);
        life.confirm(at(2_000), Duration::from_millis(100));
        assert_eq!(life.deadline(), at(3_970));
    }

    #[test]
    fn gaps_pauses_and_misses_are_reported_once() {
        let mut life = confirmed(3_000, 0);
        life.miss("reset");
        life.pause(Duration::from_millis(40));
        assert_eq!(
            life.take_report(),
            Report { missed: 1, last_error: Some("reset".into()), max_gap: Duration::from_millis(40) }
        );
        life.confirm(at(1_100), Duration::from_secs(3));
        assert_eq!(
            life.take_report(),
            Report { missed: 0, last_error: None, max_gap: Duration::from_millis(1_100) }
        );
    }

    #[test]
    fn renewals_are_due_after_a_third_more_or_less() {
        let life = confirmed(3_000, 1_000);
        assert_eq!(life.renewal_due(0.0), at(1_900));
        assert_eq!(life.renewal_due(1.0), at(2_100));
    }
}
