//! Deadlines: when each lease, session, wait and lock delay ends, and which comes next. Volatile: built anew after a
//! restart, when every life gets its full ttl again.

use std::collections::BTreeSet;

use leasehold_types::{FencingToken, ResourceKey, Time};

use crate::arena::{Arena, Ix};
use crate::chunked::Chunked;
use crate::command::{RenewalReport, Ticket};
use crate::lease::{LeaseIx, SessionIx};
use crate::narrow::{narrow, wide};

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

/// What the volatile part knows of every lease.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeaseClocks {
    /// By the number of the lease's index.
    clocks: Chunked<LeaseClock>,
    more: Arena<MoreClock>,
}

/// A [`Count`] in six bytes: every lease has one of these.
#[derive(Clone, Copy, Debug, Default)]
struct LeaseClock([u8; 6]);

/// What is counted for a lease.
enum Count {
    /// When it was granted, or would have been by its noted age. Signed: time begins anew with each life of a node, and
    /// a lease is often older than the node. Enough for one that lives with its session and has no max hold: almost all
    /// where there are many.
    Since(i64),
    More(Ix<MoreClock>),
}

/// Set where there is more. What is below it counts two thousand years of milliseconds before and after a node's start.
const MORE: u64 = 1 << 47;
const SINCE_MOST: i64 = (1 << 46) - 1;

impl LeaseClock {
    fn new(count: Count) -> Self {
        Self(narrow(match count {
            Count::Since(since) => (since.clamp(-SINCE_MOST, SINCE_MOST) + SINCE_MOST).unsigned_abs(),
            Count::More(more) => MORE | u64::from(more.place()),
        }))
    }

    fn get(self) -> Count {
        match wide(self.0) {
            number if number & MORE != 0 => Count::More(Ix::from_place((number ^ MORE) as u32)),
            number => Count::Since(number.cast_signed() - SINCE_MOST),
        }
    }
}

/// What a lease has that does not merely live with its session.
#[derive(Clone, Debug, Default)]
pub(crate) struct MoreClock {
    /// As in [`Count::Since`].
    since: i64,
    pub(crate) life: Option<LifeClock>,
    pub(crate) max_hold_at: Option<Time>,
    /// When the age of a lease with a max hold in a session is noted; one with a life of its own uses that clock's.
    note_at: Option<Time>,
}

impl MoreClock {
    pub(crate) fn note_at(&self) -> Option<Time> {
        self.life.as_ref().map_or(self.note_at, |life| life.note_at)
    }
}

impl LeaseClocks {
    /// Begins to count for a lease that is so old already.
    pub(crate) fn start(
        &mut self,
        ix: LeaseIx,
        (now, age_ms): (Time, u64),
        life: Option<LifeClock>,
        max_hold_at: Option<Time>,
    ) {
        let since = signed(now.0) - signed(age_ms);
        let count = match life.is_some() || max_hold_at.is_some() {
            true => Count::More(self.more.insert(MoreClock { since, life, max_hold_at, note_at: None })),
            false => Count::Since(since),
        };
        self.clocks.put(ix.number(), LeaseClock::new(count));
    }

    /// Stops counting; what was to come is given out.
    pub(crate) fn stop(&mut self, ix: LeaseIx) -> Option<MoreClock> {
        match std::mem::take(&mut self.clocks[ix.number()]).get() {
            Count::More(more) => Some(self.more.remove(more)),
            Count::Since(_) => None,
        }
    }

    /// How old the lease is.
    pub(crate) fn age_ms(&self, ix: LeaseIx, now: Time) -> u64 {
        let since = match self.clocks[ix.number()].get() {
            Count::Since(since) => since,
            Count::More(more) => self.more.get(more).since,
        };
        u64::try_from(signed(now.0) - since).unwrap_or(0)
    }

    pub(crate) fn life(&self, ix: LeaseIx) -> Option<&LifeClock> {
        self.more_of(ix)?.life.as_ref()
    }

    pub(crate) fn life_mut(&mut self, ix: LeaseIx) -> Option<&mut LifeClock> {
        self.more_of_mut(ix)?.life.as_mut()
    }

    pub(crate) fn max_hold_at(&self, ix: LeaseIx) -> Option<Time> {
        self.more_of(ix)?.max_hold_at
    }

    pub(crate) fn note_at(&self, ix: LeaseIx) -> Option<Time> {
        self.more_of(ix)?.note_at()
    }

    pub(crate) fn set_note_at(&mut self, ix: LeaseIx, at: Option<Time>) {
        if let Some(more) = self.more_of_mut(ix) {
            match &mut more.life {
                Some(life) => life.note_at = at,
                None => more.note_at = at,
            }
        }
    }

    fn more_of(&self, ix: LeaseIx) -> Option<&MoreClock> {
        match self.clocks[ix.number()].get() {
            Count::More(more) => Some(self.more.get(more)),
            Count::Since(_) => None,
        }
    }

    fn more_of_mut(&mut self, ix: LeaseIx) -> Option<&mut MoreClock> {
        match self.clocks[ix.number()].get() {
            Count::More(more) => Some(self.more.get_mut(more)),
            Count::Since(_) => None,
        }
    }
}

fn signed(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}
