//! The passing of time: what may end, what must have ended.

use leasehold_core::{Fact, LifeId, SessionEnd, Ticket};
use leasehold_types::{EndReason, limits, time::armed_ms};

use super::{Life, Naive, What};

/// Remembered outcomes are looked through once a minute, and from the minute they were remembered in.
const FORGOTTEN_AFTER_MS: u64 = limits::OUTCOME_MS + 2 * 60_000;

impl Life {
    /// A renewal; returns how many facts it must have made. Those are looked at for what the rules leave open: how much
    /// of the time before, somewhere in its window, a shortened ttl still promises.
    pub(super) fn renew(&mut self, ttl: Option<u64>, now: u64, facts: &[Fact]) -> usize {
        let mut expected = 0;
        let changed = ttl.is_some_and(|ttl| ttl != self.ttl);
        let is_over = self.floor.is_some_and(|(_, until)| until <= now);
        if changed || is_over {
            expected += 1;
            self.ttl = ttl.unwrap_or(self.ttl);
            let told = facts.iter().find_map(|fact| match fact {
                Fact::TtlChanged { floor_ms, .. } => Some(*floor_ms),
                _ => None,
            });
            let floor_ms = told.expect("R5: another ttl is journaled");
            let (least, most) = (self.earliest.saturating_sub(now), self.latest.saturating_sub(now));
            let armed = armed_ms(self.ttl);
            let lawful = match floor_ms {
                0 => !changed || least <= armed,
                ms => changed && ms > armed && (least..=most).contains(&ms),
            };
            assert!(lawful, "a ttl of {armed} has a floor of {floor_ms}, {least} to {most} were left");
            self.floor = (floor_ms > 0).then_some((floor_ms, now + floor_ms));
        }
        expected += usize::from(self.noted.take().is_some());
        let ends = now + armed_ms(self.ttl);
        self.earliest = self.earliest.max(ends);
        self.latest = self.latest.max(ends);
        expected
    }
}

impl Naive {
    /// A fact that time alone brought about.
    pub(crate) fn time_brought(&mut self, fact: &Fact) -> Vec<Ticket> {
        match fact {
            Fact::Granted(granted) => self.hand_over(granted),
            Fact::Expired { lease_id, max_hold, .. } => {
                let lease =
                    self.leases.iter().find(|lease| lease.id == *lease_id).expect("S13: ended before");
                let due = match max_hold {
                    true => lease.hold_ends,
                    false => lease.life.as_ref().map(|life| life.earliest),
                };
                assert!(due.is_some_and(|due| due <= self.now), "A4: {lease_id} expired early, due {due:?}");
                self.end(*lease_id, EndReason::Expired, *max_hold, true);
            }
            Fact::SessionEnded { session_id, cause: SessionEnd::Expired, .. } => {
                let session =
                    self.sessions.iter().find(|live| live.id == *session_id).expect("S13: ended before");
                assert!(session.life.earliest <= self.now, "A4: {session_id} expired early");
                self.end_session(*session_id, EndReason::Expired, true, false);
                return self.leave_with(*session_id).into_iter().map(|(ticket, _)| ticket).collect();
            }
            Fact::DelayEnded { resource, token } => {
                let is_it = |delay: &super::Delay| {
                    delay.token == token.get() && delay.resource.as_str() == resource.name()
                };
                let place = self.delays.iter().position(is_it).expect("a lock delay that was not open");
                assert_eq!(self.delays.remove(place).until.max(self.now), self.now, "A11: ended early");
            }
            Fact::Noted { of, remaining_ms, age_ms } => self.noted(*of, *remaining_ms, *age_ms),
            Fact::Forgotten { through } => self.forget(*through),
            other => panic!("time cannot bring about {other:?}"),
        }
        Vec::new()
    }

    fn noted(&mut self, of: LifeId, remaining_ms: u64, age_ms: u64) {
        let now = self.now;
        let life = match of {
            LifeId::Session(id) => {
                Some(&mut self.sessions.iter_mut().find(|live| live.id == id).unwrap().life)
            }
            LifeId::Lease(id) => {
                let lease = self.leases.iter_mut().find(|lease| lease.id == id).unwrap();
                assert!(age_ms >= lease.noted_age, "A11b: an age went back");
                lease.noted_age = age_ms;
                lease.life.as_mut()
            }
        };
        let Some(life) = life else { return };
        let window = life.earliest.saturating_sub(now)..=life.latest.saturating_sub(now);
        assert!(window.contains(&remaining_ms), "R6: noted {remaining_ms}, left {window:?}");
        life.noted = Some(remaining_ms);
        (life.earliest, life.latest) = (now + remaining_ms, now + remaining_ms);
    }

    fn forget(&mut self, through: u64) {
        let (began, now) = (self.node_began, self.now);
        let (gone, kept) = self.remembered.drain(..).partition(|remembered| remembered.number <= through);
        self.remembered = kept;
        let gone: Vec<super::Remembered> = gone;
        for remembered in gone {
            let age = now - remembered.at.max(began);
            assert!(age >= limits::OUTCOME_MS, "{:?} was forgotten after {age} ms", remembered.what);
            let key = match remembered.what {
                What::Lease { was, .. } => was.and_then(|was| was.key),
                What::Session { key, .. } => key,
                What::Key(key) => Some(key),
            };
            self.keys.retain(|(whose, name, _)| *whose != remembered.tenant || Some(name) != key.as_ref());
        }
    }

    /// A wait that ended without a grant: its time must have come.
    pub(crate) fn wait_ended(&mut self, ticket: Ticket) {
        let place = self.waiters.iter().position(|waiter| waiter.ticket == ticket).expect("nobody waits so");
        assert!(self.waiters.remove(place).deadline <= self.now, "a wait ended early");
    }

    /// After the table has ticked as often as it wants, nothing that should have ended is left (L2, L5).
    pub(crate) fn nothing_is_overdue(&self) {
        let now = self.now;
        for lease in &self.leases {
            let life = lease.life.as_ref().map(|life| life.latest);
            let due = life.into_iter().chain(lease.hold_ends).min();
            assert!(due.is_none_or(|due| due > now), "L2: {} was due at {due:?}", lease.id);
        }
        let session = self.sessions.iter().find(|session| session.life.latest <= now);
        assert!(session.is_none(), "L2: {session:?} was due");
        let waiter = self.waiters.iter().find(|waiter| waiter.deadline <= now);
        assert!(waiter.is_none(), "L5: {waiter:?} was due");
        let delay = self.delays.iter().find(|delay| delay.until <= now);
        assert!(delay.is_none(), "A11: {delay:?} was due");
        let old = self.remembered.iter().find(|remembered| {
            now - remembered.at.max(self.node_began) > FORGOTTEN_AFTER_MS + self.stood_still
        });
        assert!(old.is_none(), "{old:?} is remembered for ever");
    }
}
