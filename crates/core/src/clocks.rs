//! Deadlines: when each lease, session, wait and lock delay ends, and which comes next. Volatile: built anew after a
//! restart, when every life gets its full ttl again.

use std::collections::BTreeSet;

use leasehold_types::{FencingToken, ResourceKey, Time};

use crate::command::{RenewalReport, Ticket};
use crate::lease::{LeaseIx, SessionIx};

/// What a timer is for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Timer {
    Life(LifeIx),
    MaxHold(LeaseIx),
    Note(LifeIx),
    Wait(Ticket),
    Delay(ResourceKey, FencingToken),
    Forget,
}

/// Whatever has a deadline of its own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum LifeIx {
    Lease(LeaseIx),
    Session(SessionIx),
}

/// Timers in the order of their time. A tree rather than a wheel: renewals do not touch it (see [`LifeClock`]), so it
/// is changed about once a ttl for each lease, and a simulator may jump by hours.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timers(BTreeSet<(Time, Timer)>);

impl Timers {
    pub(crate) fn arm(&mut self, at: Time, timer: Timer) {
        self.0.insert((at, timer));
    }

    /// Takes a timer back; one that is just firing is no longer there.
    pub(crate) fn disarm(&mut self, at: Time, timer: Timer) {
        self.0.remove(&(at, timer));
    }

    pub(crate) fn next(&self) -> Option<Time> {
        self.0.first().map(|(at, _)| *at)
    }

    /// Takes the first timer that has come.
    pub(crate) fn take_due(&mut self, now: Time) -> Option<Timer> {
        if self.next()? > now {
            return None;
        }
        self.0.pop_first().map(|(_, timer)| timer)
    }

    pub(crate) fn is_armed(&self, at: Time, life: LifeIx) -> bool {
        self.0.contains(&(at, Timer::Life(life)))
    }
}

/// The deadline of a lease without a session, or of a session, and what is known of its renewals.
#[derive(Clone, Debug, Default)]
pub(crate) struct LifeClock {
    /// Ends here unless renewed. A renewal moves this alone.
    pub(crate) deadline: Time,
    /// No renewal moves the deadline before this: a longer ttl had promised it.
    pub(crate) floor: Time,
    /// Where its timer stands: at or before the deadline. When it fires early it is armed again at the deadline.
    pub(crate) armed: Time,
    pub(crate) note_at: Option<Time>,
    pub(crate) renewals: u32,
    /// Sums of what the client reported.
    pub(crate) report: RenewalReport,
}

impl LifeClock {
    pub(crate) fn new(deadline: Time, floor: Time) -> Self {
        let deadline = deadline.max(floor);
        Self { deadline, floor, armed: deadline, ..Self::default() }
    }

    pub(crate) fn take_report(&mut self, report: RenewalReport) {
        self.renewals = self.renewals.saturating_add(1);
        self.report.missed = self.report.missed.saturating_add(report.missed);
        self.report.max_gap_ms = self.report.max_gap_ms.max(report.max_gap_ms);
        if report.last_error.is_some() {
            self.report.last_error = report.last_error;
        }
    }
}

/// What the volatile part knows of a lease.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeaseClock {
    /// When it was granted, or would have been by its noted age. Signed: time begins anew with each life of a node, and
    /// a lease is often older than the node.
    since: i64,
    /// Absent for a lease that lives with its session and has no max hold: almost all where there are many.
    more: Option<Box<MoreClock>>,
}

#[derive(Clone, Debug, Default)]
struct MoreClock {
    life: Option<LifeClock>,
    max_hold_at: Option<Time>,
    /// When the age of a lease with a max hold in a session is noted; one with a life of its own uses that clock's.
    note_at: Option<Time>,
}

impl LeaseClock {
    pub(crate) fn new(now: Time, age_ms: u64, life: Option<LifeClock>, max_hold_at: Option<Time>) -> Self {
        let more = (life.is_some() || max_hold_at.is_some())
            .then(|| Box::new(MoreClock { life, max_hold_at, note_at: None }));
        Self { since: signed(now.0) - signed(age_ms), more }
    }

    /// How old the lease is.
    pub(crate) fn age_ms(&self, now: Time) -> u64 {
        u64::try_from(signed(now.0) - self.since).unwrap_or(0)
    }

    pub(crate) fn life(&self) -> Option<&LifeClock> {
        self.more.as_ref()?.life.as_ref()
    }

    pub(crate) fn life_mut(&mut self) -> Option<&mut LifeClock> {
        self.more.as_mut()?.life.as_mut()
    }

    pub(crate) fn max_hold_at(&self) -> Option<Time> {
        self.more.as_ref()?.max_hold_at
    }

    pub(crate) fn note_at(&self) -> Option<Time> {
        let more = self.more.as_ref()?;
        more.life.as_ref().map_or(more.note_at, |life| life.note_at)
    }

    pub(crate) fn set_note_at(&mut self, at: Option<Time>) {
        if let Some(more) = &mut self.more {
            match &mut more.life {
                Some(life) => life.note_at = at,
                None => more.note_at = at,
            }
        }
    }
}

fn signed(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}
