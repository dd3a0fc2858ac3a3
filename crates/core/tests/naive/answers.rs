//! What each command should be answered, and what it does.

use leasehold_core::{
    Command, Fact, ForceRelease, ForceTarget, OpenSession, Refusal, RenewSession, Request, Ticket,
};
use leasehold_types::{EndReason, LeaseId, OwnerId, RequestKey, ResourceName, SessionId, TenantName};

use super::retry::token;
use super::{Life, Naive, Session, Use, Waiter, What};

/// The answer that is right. Lengths of time are windows.
#[derive(Debug)]
pub(crate) enum Answer {
    Granted {
        id: LeaseId,
        session_renewed: bool,
    },
    NotGranted {
        tokens: Vec<u64>,
        waiters: usize,
    },
    Renewed {
        id: LeaseId,
        locks: Vec<u64>,
    },
    Released {
        resource: ResourceName,
        token: u64,
    },
    Proclaimed {
        token: u64,
    },
    Opened(SessionId),
    Kept {
        id: SessionId,
        locks: usize,
        ended: Vec<LeaseId>,
    },
    Closed {
        released: u64,
    },
    Forced {
        tokens: Vec<u64>,
        seq: u64,
    },
    Recovered {
        generation: u64,
        floor: u64,
    },
    Refused(Refusal),
    /// No answer yet: it waits, or needs none.
    None,
}

/// An answer, how many facts the command itself makes, and waiters that it turns away.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) answer: Answer,
    pub(crate) facts: usize,
    pub(crate) turned_away: Vec<(Ticket, Refusal)>,
}

impl From<Answer> for Outcome {
    fn from(answer: Answer) -> Self {
        Self { answer, facts: 0, turned_away: Vec::new() }
    }
}

pub(super) fn refused(refusal: Refusal) -> Outcome {
    Answer::Refused(refusal).into()
}

pub(super) fn did(answer: Answer) -> Outcome {
    Outcome { facts: 1, ..answer.into() }
}

impl Naive {
    /// `facts` are looked at only where the rules leave room: for how long a shortened ttl keeps its promise.
    pub(crate) fn command(&mut self, request: &Request, facts: &[Fact]) -> Outcome {
        let (tenant, key) = (&request.tenant, request.key.as_ref());
        match &request.command {
            Command::Acquire(acquire) => self.acquire(request.ticket, tenant, key, acquire.clone(), facts),
            Command::Renew(renew) => self.renew(tenant, renew.lease_id, renew.ttl.map(|ttl| ttl.ms()), facts),
            Command::Release { lease_id } => self.release(tenant, *lease_id, key),
            Command::Resign { lease_id, to } => self.resign(tenant, *lease_id, to.as_ref(), key),
            Command::Proclaim { lease_id, value } => self.proclaim(tenant, *lease_id, value),
            Command::Withdraw { waiter } => {
                self.waiters.retain(|waiting| waiting.ticket != *waiter);
                Answer::None.into()
            }
            Command::OpenSession(open) => self.open(tenant, open, key),
            Command::RenewSession(renew) => self.keep(tenant, renew, facts),
            Command::CloseSession { session_id, by_operator } => {
                self.close(tenant, *session_id, by_operator.is_some(), key)
            }
            Command::ForceRelease(force) => self.force(tenant, force, key),
            Command::Recover(recover) => {
                self.generation += 1;
                self.audited += 1;
                self.last_token = self.last_token.max(recover.token_floor);
                did(Answer::Recovered { generation: self.generation, floor: self.last_token })
            }
            Command::AddCredential(_)
            | Command::RevokeCredential(_)
            | Command::NoteBackup(_)
            | Command::NoteSettings { .. } => {
                unreachable!("they change no lock, and have tests of their own")
            }
            Command::RaiseFormat(_) => unreachable!("it changes no lock, and has a scenario"),
            Command::Query(_) => unreachable!("questions are compared elsewhere"),
        }
    }

    fn renew(&mut self, tenant: &TenantName, id: LeaseId, ttl: Option<u64>, facts: &[Fact]) -> Outcome {
        let Some(lease) = self.lease(tenant, id) else { return refused(self.not_held(tenant, id)) };
        if lease.hold_ends.is_some_and(|ends| ends <= self.now) {
            self.end(id, EndReason::Expired, true, true);
            return did(Answer::Refused(self.not_held(tenant, id)));
        }
        let (session, own_token, now) = (lease.session, lease.token, self.now);
        let facts = match session {
            Some(session) => {
                let session = self.sessions.iter_mut().find(|live| live.id == session).unwrap();
                session.life.renew(ttl, now, facts)
            }
            None => {
                let lease = self.leases.iter_mut().find(|lease| lease.id == id).unwrap();
                lease.life.as_mut().unwrap().renew(ttl, now, facts)
            }
        };
        let mut locks = match session {
            Some(_) => {
                let ours = self.leases.iter().filter(|lease| lease.session == session);
                ours.map(|lease| lease.token).collect()
            }
            None => vec![own_token],
        };
        locks.sort_unstable();
        Outcome { facts, ..Answer::Renewed { id, locks }.into() }
    }

    fn release(&mut self, tenant: &TenantName, id: LeaseId, key: Option<&RequestKey>) -> Outcome {
        if !self.may_release(tenant, id, key) {
            return refused(Refusal::IdempotencyMismatch);
        }
        let mut facts = 0;
        let mut turned_away = Vec::new();
        if self.lease(tenant, id).is_some() {
            self.end(id, EndReason::Released, false, false);
            self.use_key(tenant, key, Use::Released(id));
            facts = 1;
        } else {
            let waiting = self.waiters.iter().position(|waiter| waiter.acquire.lease_id == id);
            let known = self.leases.iter().any(|lease| lease.id == id) || self.ended(id).is_some();
            if !known && waiting.is_none_or(|place| self.waiters[place].tenant == *tenant) {
                self.remember(
                    tenant.clone(),
                    What::Lease { id, reason: EndReason::Unknown, max_hold: false, was: None },
                );
                self.use_key(tenant, key, Use::Released(id));
                facts = 1;
                if let Some(place) = waiting {
                    turned_away.push((self.waiters.remove(place).ticket, self.not_held(tenant, id)));
                }
            }
        }
        let answer = match self.ended(id).filter(|(whose, ..)| *whose == tenant) {
            Some((_, EndReason::Released, _, Some(was))) => {
                Answer::Released { resource: was.resource.clone(), token: was.token }
            }
            _ => Answer::Refused(self.not_held(tenant, id)),
        };
        Outcome { answer, facts, turned_away }
    }

    fn may_release(&self, tenant: &TenantName, id: LeaseId, key: Option<&RequestKey>) -> bool {
        let same = match self.used(tenant, key) {
            None => true,
            Some(Use::Released(earlier)) => *earlier == id,
            Some(_) => false,
        };
        same && !self.waits_under(tenant, key)
    }

    fn resign(
        &mut self,
        tenant: &TenantName,
        id: LeaseId,
        to: Option<&OwnerId>,
        key: Option<&RequestKey>,
    ) -> Outcome {
        if !self.may_release(tenant, id, key) {
            return refused(Refusal::IdempotencyMismatch);
        }
        if let (Some(to), Some(lease)) = (to, self.lease(tenant, id)) {
            let resource = lease.resource.clone();
            let here = |waiter: &Waiter| waiter.tenant == *tenant && waiter.acquire.resource == resource;
            let Some(chosen) = self.waiters.iter().position(|waiter| here(waiter) && waiter.owner == *to)
            else {
                return refused(Refusal::NoSuchWaiter);
            };
            let first = self.waiters.iter().position(here).unwrap();
            let waiter = self.waiters.remove(chosen);
            self.waiters.insert(first, waiter);
        }
        self.release(tenant, id, key)
    }

    fn proclaim(&mut self, tenant: &TenantName, id: LeaseId, value: &str) -> Outcome {
        let gone = self.not_held(tenant, id);
        let live = self.leases.iter_mut().find(|lease| lease.id == id && lease.tenant == *tenant);
        let Some(lease) = live else { return refused(gone) };
        let answer = Answer::Proclaimed { token: lease.token };
        let before = lease.value.replace(value.into());
        Outcome { facts: usize::from(before.as_deref() != Some(value)), ..answer.into() }
    }

    fn open(&mut self, tenant: &TenantName, open: &OpenSession, key: Option<&RequestKey>) -> Outcome {
        if self.waits_under(tenant, key) {
            return refused(Refusal::IdempotencyMismatch);
        }
        match self.used(tenant, key) {
            None => {}
            Some(Use::Opened { id, owner, ttl }) if *owner == open.owner && *ttl == open.ttl.ms() => {
                return match self.session(tenant, *id) {
                    Some(_) => Answer::Opened(*id).into(),
                    None => refused(Refusal::SessionEnded),
                };
            }
            Some(_) => return refused(Refusal::IdempotencyMismatch),
        }
        if !self.room {
            return refused(Refusal::NoRoom);
        }
        let (id, owner, ttl) = (open.session_id, open.owner.clone(), open.ttl.ms());
        if let Some(key) = key {
            self.keys.push((tenant.clone(), key.clone(), Use::Opened { id, owner: owner.clone(), ttl }));
        }
        let life = Life::new(ttl, self.now);
        let (tenant, key) = (tenant.clone(), key.cloned());
        self.sessions.push(Session { id, tenant, owner, life, key, unseen: Vec::new() });
        did(Answer::Opened(id))
    }

    fn keep(&mut self, tenant: &TenantName, renew: &RenewSession, facts: &[Fact]) -> Outcome {
        let id = renew.session_id;
        let now = self.now;
        let live = self.sessions.iter_mut().find(|session| session.id == id && session.tenant == *tenant);
        let Some(session) = live else { return refused(Refusal::SessionEnded) };
        let mut facts = session.life.renew(renew.ttl.map(|ttl| ttl.ms()), now, facts);
        let before = session.unseen.len();
        session.unseen.retain(|ended| !renew.seen_ended.contains(ended));
        facts += usize::from(session.unseen.len() < before);
        let ended = session.unseen.clone();
        let locks = self.leases.iter().filter(|lease| lease.session == Some(id)).count();
        Outcome { facts, ..Answer::Kept { id, locks, ended }.into() }
    }

    /// How many facts it makes.
    pub(super) fn renew_with_grant(&mut self, id: SessionId, facts: &[Fact]) -> usize {
        let now = self.now;
        let session = self.sessions.iter_mut().find(|session| session.id == id);
        session.expect("who asks was looked up").life.renew(None, now, facts)
    }

    fn close(
        &mut self,
        tenant: &TenantName,
        id: SessionId,
        by_operator: bool,
        key: Option<&RequestKey>,
    ) -> Outcome {
        let again = match self.used(tenant, key) {
            None => false,
            Some(Use::Closed(earlier)) if *earlier == id => true,
            Some(_) => return refused(Refusal::IdempotencyMismatch),
        };
        if self.waits_under(tenant, key) {
            return refused(Refusal::IdempotencyMismatch);
        }
        if self.session(tenant, id).is_some() {
            let released =
                self.end_session(id, EndReason::SessionEnded, by_operator, !by_operator).len() as u64;
            self.audited += u64::from(by_operator);
            self.use_key(tenant, key, Use::Closed(id));
            return Outcome { turned_away: self.leave_with(id), ..did(Answer::Closed { released }) };
        }
        let remembered = self.remembered.iter().find_map(|remembered| match &remembered.what {
            What::Session { id: ended, closed, released, .. }
                if *ended == id && remembered.tenant == *tenant =>
            {
                Some((*closed, *released))
            }
            _ => None,
        });
        match remembered {
            Some((closed, released)) if closed || again => Answer::Closed { released }.into(),
            Some(_) => refused(Refusal::SessionEnded),
            None => refused(Refusal::NotFound),
        }
    }

    /// Its waiters leave with a session.
    pub(super) fn leave_with(&mut self, id: SessionId) -> Vec<(Ticket, Refusal)> {
        let (leaving, staying) =
            self.waiters.drain(..).partition(|waiter| waiter.acquire.session == Some(id));
        self.waiters = staying;
        let leaving: Vec<Waiter> = leaving;
        leaving.into_iter().map(|waiter| (waiter.ticket, Refusal::SessionEnded)).collect()
    }

    fn force(&mut self, tenant: &TenantName, force: &ForceRelease, key: Option<&RequestKey>) -> Outcome {
        if self.waits_under(tenant, key) {
            return refused(Refusal::IdempotencyMismatch);
        }
        match self.used(tenant, key) {
            None => {}
            Some(Use::Forced { force: earlier, tokens, seq }) if **earlier == *force => {
                return Answer::Forced { tokens: tokens.clone(), seq: *seq }.into();
            }
            Some(_) => return refused(Refusal::IdempotencyMismatch),
        }
        let mut holders: Vec<_> =
            self.holders(tenant, &force.resource).iter().map(|lease| (lease.token, lease.id)).collect();
        holders.sort_unstable();
        if let ForceTarget::Token(wanted) = force.target
            && !holders.is_empty()
        {
            let current = holders.iter().map(|(number, _)| token(*number)).collect();
            holders.retain(|(number, _)| *number == wanted.get());
            if holders.is_empty() {
                return refused(Refusal::StaleToken { current });
            }
        }
        for (_, id) in &holders {
            self.end(*id, EndReason::Forced, false, !force.skip_lock_delay);
        }
        self.audited += 1;
        let (tokens, seq): (Vec<_>, _) =
            (holders.into_iter().map(|(number, _)| number).collect(), self.audited);
        self.use_key(
            tenant,
            key,
            Use::Forced { force: Box::new(force.clone()), tokens: tokens.clone(), seq },
        );
        did(Answer::Forced { tokens, seq })
    }
}
