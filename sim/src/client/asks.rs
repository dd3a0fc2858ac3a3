//! What a client asks.

use std::sync::Arc;
use std::time::Duration;

use leasehold::deadline::Life;
use leasehold_core::{
    Acquire, Command, ForceRelease, ForceTarget, OpenSession, Operator, Query, Renew, RenewSession,
    RenewalReport, Sharing,
};
use leasehold_history::{Call as Shown, Id, Record};
use leasehold_node::Call;
use leasehold_types::{Labels, LeaseId, RequestKey, SessionId, Ttl};

use super::{Kept, Pending, Stage, Wanted};
use crate::clock::MS;
use crate::event::ClientIx;
use crate::mistake::Mistake;
use crate::world::World;

impl World {
    /// An idle client finds something to do.
    pub(super) fn begin(&mut self, ix: ClientIx) {
        match self.chance.below(100) {
            0..10 => self.read(ix),
            10..12 => self.force(ix),
            12..20 if self.clients[ix].session.is_none() => self.open_session(ix),
            20..22 if self.clients[ix].session.is_some() => self.close_session(ix),
            _ => self.acquire(ix),
        }
    }

    fn ttl(&mut self) -> Ttl {
        let ms = match self.long_lives {
            true if self.chance.per_mille(600) => self.chance.within(60_000, 80_000),
            _ => self.chance.within(1_000, 5_000),
        };
        Ttl::from_journal(ms).expect("more than nothing")
    }

    fn acquire(&mut self, ix: ClientIx) {
        let resource = self.chance.index(self.resources.len());
        let sharing = match resource % 6 {
            4 if self.chance.per_mille(700) => Sharing::Shared,
            5 => Sharing::Semaphore { limit: 2 },
            _ => Sharing::Exclusive,
        };
        let session = self.clients[ix].session.as_ref();
        let in_session = session.is_some_and(|session| session.life.confirmed().is_some());
        let ttl = match session.filter(|_| in_session) {
            Some(session) => session.ttl,
            None => self.ttl(),
        };
        let wait_ms = if self.chance.per_mille(500) { self.chance.within(50, 4_000) } else { 0 };
        let wanted = Wanted {
            lease: LeaseId::from_bytes(self.chance.id()),
            resource,
            sharing,
            wait_ms,
            in_session,
            longest_ms: ttl.ms(),
            life: Life::new(Duration::from_millis(ttl.ms())),
            token: 0,
            permit: None,
            believed_from: None,
            hold_until: 0,
            next_write: 0,
        };
        let session_id = self.clients[ix].session.as_ref().filter(|_| in_session).map(|session| session.id);
        let command = Command::Acquire(Acquire {
            owner: (!in_session).then(|| self.owner.clone()),
            ttl: (!in_session).then_some(ttl),
            wait_ms,
            sharing,
            session: session_id,
            // As good as a coin, and takes no chance from what comes after it.
            renews_session: wanted.lease.as_bytes()[0].is_multiple_of(2),
            ..Acquire::plain(self.names[resource].clone(), wanted.lease)
        });
        let shown = Shown::Acquire {
            resource: Arc::clone(&self.resources[resource]),
            lease: Id(*wanted.lease.as_bytes()),
            session: session_id.map(|id| Id(*id.as_bytes())),
        };
        self.clients[ix].wanted = Some(wanted);
        self.ask(ix, Stage::Asking, command, None, shown, wait_ms * MS);
    }

    fn read(&mut self, ix: ClientIx) {
        let resource = self.chance.index(self.resources.len());
        let command = Command::Query(Query::Explain(self.names[resource].clone()));
        let shown = Shown::Read { resource: Arc::clone(&self.resources[resource]) };
        self.ask(ix, Stage::Other, command, None, shown, 0);
    }

    fn force(&mut self, ix: ClientIx) {
        let resource = self.chance.index(self.resources.len());
        let command = Command::ForceRelease(ForceRelease {
            resource: self.names[resource].clone(),
            target: ForceTarget::All,
            skip_lock_delay: true,
            operator: Operator { actor: "operator".into(), reason: "a drill".into() },
        });
        let request = Some(Id(self.chance.id()));
        let shown = Shown::ForceRelease { resource: Arc::clone(&self.resources[resource]), request };
        // Asked again it would be another: it has a key.
        let key = self.key();
        self.ask(ix, Stage::Other, command, Some(key), shown, 0);
    }

    fn key(&mut self) -> RequestKey {
        RequestKey::new(&format!("k{:x}", self.chance.bits())).expect("letters and digits are a key")
    }

    fn open_session(&mut self, ix: ClientIx) {
        let (id, ttl) = (SessionId::from_bytes(self.chance.id()), self.ttl());
        let life = Life::new(Duration::from_millis(ttl.ms()));
        self.clients[ix].session = Some(Kept { id, ttl, life });
        let owner = self.owner.clone();
        let command =
            Command::OpenSession(OpenSession { session_id: id, owner, ttl, labels: Labels::default() });
        let key = self.key();
        let shown = Shown::OpenSession { session: Id(*id.as_bytes()) };
        self.ask(ix, Stage::Opening, command, Some(key), shown, 0);
    }

    fn close_session(&mut self, ix: ClientIx) {
        let Some(session) = self.clients[ix].session.take() else { return };
        self.clients[ix].renewal = None;
        let command = Command::CloseSession { session_id: session.id, by_operator: None };
        let shown = Shown::CloseSession { session: Id(*session.id.as_bytes()) };
        self.ask(ix, Stage::Other, command, None, shown, 0);
    }

    /// Renews the session, or the lease without one; now and then with another ttl.
    pub(super) fn renew(&mut self, ix: ClientIx) {
        let Some((command, life)) = self.renewal(ix) else { return };
        let pending = self.pending(ix, command, None, Shown::Renew { life }, 0, 0);
        self.send(ix, &pending);
        self.clients[ix].renewal = Some(pending);
    }

    fn renewal(&mut self, ix: ClientIx) -> Option<(Command, Id)> {
        let another = self.chance.per_mille(120);
        let ttl = self.ttl();
        let client = &self.clients[ix];
        let report = RenewalReport::default();
        if let Some(session) = &client.session {
            let (session_id, seen_ended) = (session.id, Vec::new());
            let renew = RenewSession { session_id, ttl: None, seen_ended, report };
            return Some((Command::RenewSession(renew), Id(*session_id.as_bytes())));
        }
        let wanted = self.clients[ix].wanted.as_mut()?;
        let lease_id = wanted.lease;
        if another {
            wanted.longest_ms = wanted.longest_ms.max(ttl.ms());
        }
        let renew = Renew { lease_id, ttl: another.then_some(ttl), report, lists_locks: true };
        Some((Command::Renew(renew), Id(*lease_id.as_bytes())))
    }

    /// Renews what dead clients held, in nobody's name: a mistake.
    pub(super) fn renew_the_dead(&mut self, ix: ClientIx) {
        let node = self.clients[ix].node % self.nodes.len();
        for (lease, _) in self.orphans.clone() {
            let (lease_id, report) = (LeaseId::from_bytes(lease.0), RenewalReport::default());
            let command = Command::Renew(Renew { lease_id, ttl: None, report, lists_locks: true });
            let call = Call { tenant: self.tenant.clone(), identity: None, key: None, command };
            let op = self.next_op();
            self.ask_node(node, ix, op, Box::new(call), &Shown::Renew { life: lease });
        }
    }

    /// One renewal before the lock counts as held (R7).
    pub(super) fn confirm(&mut self, ix: ClientIx) {
        let Some((command, life)) = self.renewal(ix) else { return };
        self.ask(ix, Stage::Confirming, command, None, Shown::Renew { life }, 0);
    }

    /// Gives back whatever may have come of the acquire.
    pub(super) fn give_back(&mut self, ix: ClientIx) {
        let Some(lease_id) = self.clients[ix].wanted.as_ref().map(|wanted| wanted.lease) else { return };
        if self.clients[ix].session.is_none() {
            self.clients[ix].renewal = None;
        }
        let shown = Shown::Release { lease: Id(*lease_id.as_bytes()) };
        let others = self.mistake == Some(Mistake::OthersReleased) && self.chance.per_mille(100);
        let other = if others { self.lease_of_another(ix) } else { None };
        let command = Command::Release { lease_id: other.unwrap_or(lease_id) };
        self.ask(ix, Stage::Releasing, command, None, shown, 0);
    }

    fn lease_of_another(&self, ix: ClientIx) -> Option<LeaseId> {
        let others = self.clients.iter().enumerate().filter(|(other, _)| *other != ix);
        others.into_iter().find_map(|(_, client)| {
            client.wanted.as_ref().filter(|_| client.stage == Stage::Held).map(|wanted| wanted.lease)
        })
    }

    fn ask(
        &mut self,
        ix: ClientIx,
        stage: Stage,
        command: Command,
        key: Option<RequestKey>,
        shown: Shown,
        wait: u64,
    ) {
        let pending = self.pending(ix, command, key, shown, wait, 0);
        self.send(ix, &pending);
        self.clients[ix].stage = stage;
        self.clients[ix].main = Some(pending);
    }

    /// The same again after a pause, as another attempt (K3).
    pub(super) fn ask_again_later(&mut self, ix: ClientIx, before: Pending) {
        let most = (10 << before.tries.min(6)) * MS;
        self.clients[ix].again = Some((self.now + self.chance.within(MS, most), before));
    }

    /// The same again, as another attempt (K3).
    pub(super) fn ask_again(&mut self, ix: ClientIx, before: Pending) {
        let Pending { command, key, shown, wait, tries, .. } = before;
        let pending = self.pending(ix, command, key, shown, wait, tries + 1);
        self.send(ix, &pending);
        self.clients[ix].main = Some(pending);
    }

    fn pending(
        &mut self,
        ix: ClientIx,
        command: Command,
        key: Option<RequestKey>,
        shown: Shown,
        wait: u64,
        tries: u32,
    ) -> Pending {
        let (op, sent) = (self.next_op(), self.clients[ix].clock.stamp(self.now));
        Pending { op, sent, sent_at: self.now, command, key, shown, wait, tries }
    }

    fn send(&mut self, ix: ClientIx, pending: &Pending) {
        let client = Arc::clone(&self.clients[ix].name);
        self.record(Record::Invoke { at: self.now, op: pending.op, client, call: pending.shown.clone() });
        let call = Call {
            tenant: self.tenant.clone(),
            identity: None,
            key: pending.key.clone(),
            command: pending.command.clone(),
        };
        let node = self.clients[ix].node % self.nodes.len();
        self.ask_node(node, ix, pending.op, Box::new(call), &pending.shown);
    }
}
