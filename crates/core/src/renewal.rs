//! Renewals move deadlines in memory; only a changed ttl and the first renewal after a note are journaled.

use leasehold_types::{Now, RequestKey, SessionId, TenantName, Time, Ttl, limits};

use crate::clocks::LifeIx;
use crate::command::{OpenSession, Renew, RenewSession, RenewalReport};
use crate::event::EventKind;
use crate::fact::{Fact, SessionBegan};
use crate::fingerprint;
use crate::journaled::name_of;
use crate::lease::{LeaseIx, SessionIx};
use crate::outcomes::Keyed;
use crate::reply::{Refusal, Renewed, RenewedLock, Reply, SessionOpened, SessionRenewed};
use crate::table::{Decision, EventAt, LockTable};

impl LockTable {
    pub(crate) fn renew(&mut self, tenant: &TenantName, renew: Renew, now: Now, out: &mut Decision) -> Reply {
        let Some(ix) = self.lease_of(tenant.as_str(), renew.lease_id) else {
            return Reply::Refused(self.not_held(tenant.as_str(), renew.lease_id));
        };
        if self.is_past_max_hold(ix, now) {
            let lease_id = renew.lease_id;
            self.record(Fact::Expired { lease_id, max_hold: true, at: now.wall }, now, out);
            return Reply::Refused(self.not_held(tenant.as_str(), lease_id));
        }
        let missed = renew.report.missed;
        let life = self.life_of(ix);
        self.renew_life(life, renew.ttl, renew.report, now, out);
        let lease = self.journaled.leases.get(ix);
        let event = self.journaled.event_of(lease, EventKind::Renewed { missed });
        out.events.push((EventAt::Nowhere, event));
        let ttl_ms = self.promised_ms(ix, now.time);
        let locks = match life {
            _ if !renew.lists_locks => Vec::new(),
            LifeIx::Lease(ix) => vec![self.renewed_lock(ix)],
            LifeIx::Session(session) => self.locks_of(session),
        };
        let expires_at = now.wall.plus_ms(ttl_ms);
        Reply::Renewed(Box::new(Renewed { lease_id: renew.lease_id, ttl_ms, expires_at, locks }))
    }

    fn is_past_max_hold(&self, ix: LeaseIx, now: Now) -> bool {
        self.leases.max_hold_at(ix).is_some_and(|at| at <= now.time)
    }

    fn renew_life(
        &mut self,
        life: LifeIx,
        ttl: Option<Ttl>,
        report: RenewalReport,
        now: Now,
        out: &mut Decision,
    ) {
        self.change_ttl(life, ttl, now, out);
        let of = self.life_id(life);
        if self.journaled.note(of).is_some_and(|note| !note.cleared) {
            self.record(Fact::NoteCleared { of }, now, out);
        }
        let deadline = now.time.plus_ms(self.life_ttl(life).armed_ms());
        let clock = self.life_clock_mut(life);
        // Never back: a longer ttl may have promised more, and so may the spread after a restart.
        clock.deadline = clock.deadline.max(deadline);
        clock.take_report(report);
    }

    /// Journals another ttl (R5), and what the one before it still promises; later, that the promise is over.
    fn change_ttl(&mut self, life: LifeIx, ttl: Option<Ttl>, now: Now, out: &mut Decision) {
        let present = self.life_ttl(life);
        let clock = self.life_clock(life);
        let (deadline, floor) = (clock.deadline, clock.floor);
        let is_over = floor > Time(0) && floor <= now.time;
        let ttl = ttl.unwrap_or(present);
        if ttl == present && !is_over {
            return;
        }
        let left_ms = deadline.ms_since(now.time);
        let floor_ms = if ttl != present && left_ms > ttl.armed_ms() { left_ms } else { 0 };
        let of = self.life_id(life);
        self.record(Fact::TtlChanged { of, ttl, floor_ms }, now, out);
        let floor = if floor_ms > 0 { now.time.plus_ms(floor_ms) } else { Time(0) };
        self.life_clock_mut(life).floor = floor;
        self.arm_note(life, now.time);
    }

    fn life_ttl(&self, life: LifeIx) -> Ttl {
        match life {
            LifeIx::Lease(ix) => self.journaled.ttl_of(self.journaled.leases.get(ix)),
            LifeIx::Session(ix) => self.journaled.sessions.get(ix).ttl,
        }
    }

    fn renewed_lock(&self, ix: LeaseIx) -> RenewedLock {
        let lease = self.journaled.leases.get(ix);
        let (mode, permit) = (lease.mode(), lease.permit());
        RenewedLock { resource: name_of(&lease.resource), token: lease.token(), mode, permit }
    }

    /// What a session holds, up to a page, by token.
    fn locks_of(&self, session: SessionIx) -> Vec<RenewedLock> {
        let leases = self.journaled.leases_of(session);
        leases.into_iter().take(limits::PAGE_SIZE).map(|ix| self.renewed_lock(ix)).collect()
    }

    pub(crate) fn open_session(
        &mut self,
        tenant: TenantName,
        open: OpenSession,
        key: Option<RequestKey>,
        now: Now,
        out: &mut Decision,
    ) -> Reply {
        match self.keyed(&tenant, key.as_ref()) {
            Ok(None) => {}
            Ok(Some(earlier)) => return self.opened_before(earlier, &open, now),
            Err(refusal) => return Reply::Refused(refusal),
        }
        if !self.room {
            return Reply::Refused(Refusal::NoRoom);
        }
        if let Err(refusal) = self.may_open_session(&tenant, &open) {
            return Reply::Refused(refusal);
        }
        let OpenSession { session_id, owner, ttl, labels } = open;
        let principal = self.deciding_for.clone();
        let began = SessionBegan { session_id, tenant, owner, ttl, labels, at: now.wall, key, principal };
        self.record(Fact::SessionOpened(Box::new(began)), now, out);
        self.session_opened(self.journaled.session_ids[&session_id], now)
    }

    fn opened_before(&self, earlier: &Keyed, open: &OpenSession, now: Now) -> Reply {
        let Keyed::Opened { session_id, fingerprint } = earlier else {
            return Reply::Refused(Refusal::IdempotencyMismatch);
        };
        if *fingerprint != fingerprint::of_opening(&open.owner, open.ttl, &open.labels) {
            return Reply::Refused(Refusal::IdempotencyMismatch);
        }
        match self.journaled.session_ids.get(session_id) {
            Some(ix) => self.session_opened(*ix, now),
            None => Reply::Refused(Refusal::SessionEnded),
        }
    }

    fn session_opened(&self, ix: SessionIx, now: Now) -> Reply {
        let ttl_ms = self.life_promised_ms(LifeIx::Session(ix), now.time);
        let session_id = self.journaled.sessions.get(ix).id;
        Reply::SessionOpened(SessionOpened { session_id, ttl_ms, expires_at: now.wall.plus_ms(ttl_ms) })
    }

    pub(crate) fn renew_session(
        &mut self,
        tenant: &TenantName,
        renew: RenewSession,
        now: Now,
        out: &mut Decision,
    ) -> Reply {
        let Some(ix) = self.session_of(tenant, renew.session_id) else {
            return Reply::Refused(Refusal::SessionEnded);
        };
        self.renew_life(LifeIx::Session(ix), renew.ttl, renew.report, now, out);
        self.see_endings(ix, renew.seen_ended, now, out);
        let session = self.journaled.sessions.get(ix);
        let ttl_ms = self.life_promised_ms(LifeIx::Session(ix), now.time);
        Reply::SessionRenewed(SessionRenewed {
            session_id: session.id,
            ttl_ms,
            expires_at: now.wall.plus_ms(ttl_ms),
            lock_count: session.leases.len(),
            ended: session.unseen.clone(),
        })
    }

    /// Renews the session in which something is about to be granted, whose commit confirms the epoch (R1).
    pub(crate) fn renew_with_grant(&mut self, session: SessionId, now: Now, out: &mut Decision) {
        let life = LifeIx::Session(self.journaled.session_ids[&session]);
        self.renew_life(life, None, RenewalReport::default(), now, out);
    }

    /// A live session of this tenant that the caller may use.
    pub(crate) fn session_of(&self, tenant: &TenantName, id: SessionId) -> Option<SessionIx> {
        let ix = *self.journaled.session_ids.get(&id)?;
        let session = self.journaled.sessions.get(ix);
        (session.tenant == *tenant && self.is_ours(session.principal.as_deref())).then_some(ix)
    }

    fn see_endings(
        &mut self,
        ix: SessionIx,
        mut seen: Vec<leasehold_types::LeaseId>,
        now: Now,
        out: &mut Decision,
    ) {
        let session = self.journaled.sessions.get(ix);
        seen.retain(|id| session.unseen.iter().any(|ended| ended.lease_id == *id));
        if !seen.is_empty() {
            let fact = Fact::EndingsSeen { session_id: session.id, lease_ids: seen };
            self.record(fact, now, out);
        }
    }
}
