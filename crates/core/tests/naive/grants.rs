//! Who is given a resource, who waits, who is next.

use leasehold_core::{Acquire, Fact, Granted, Refusal, Ticket};
use leasehold_types::{
    Class, LeaseId, OwnerId, RequestKey, ResourceName, TenantName, limits, time::armed_ms,
};

use super::answers::{Answer, Outcome, refused};
use super::{Lease, Life, Naive, Use, Waiter};

impl Naive {
    pub(super) fn acquire(
        &mut self,
        ticket: Ticket,
        tenant: &TenantName,
        key: Option<&RequestKey>,
        mut acquire: Acquire,
        facts: &[Fact],
    ) -> Outcome {
        match self.used(tenant, key) {
            None => {}
            Some(Use::Acquired(id)) if !acquire.lease_id_chosen || *id == acquire.lease_id => {
                acquire.lease_id = *id
            }
            Some(_) => return refused(Refusal::IdempotencyMismatch),
        }
        if let Some(lease) = self.leases.iter().find(|lease| lease.id == acquire.lease_id) {
            return match lease.was_for(tenant, &acquire) {
                true => Answer::Granted { id: lease.id, session_renewed: false }.into(),
                false => refused(Refusal::IdempotencyMismatch),
            };
        }
        if let Some((whose, _, _, was)) = self.ended(acquire.lease_id) {
            let same = whose == tenant && was.is_none_or(|was| was.was_for(tenant, &acquire));
            let gone = self.not_held(tenant, acquire.lease_id);
            return refused(if same { gone } else { Refusal::IdempotencyMismatch });
        }
        if let Some(place) = self.waiting(tenant, acquire.lease_id, key) {
            return self.supersede(place, ticket, tenant, &acquire);
        }
        let (owner, ttl) = match self.who(tenant, &acquire) {
            Ok(who) => who,
            Err(refusal) => return refused(refusal),
        };
        if !self.room {
            return refused(Refusal::NoRoom);
        }
        let resource = acquire.resource.clone();
        let queue = self.queue(tenant, &resource);
        match self.place(tenant, &resource, acquire.sharing) {
            Some(permit) if queue == 0 => {
                let (id, session) = (acquire.lease_id, acquire.session.filter(|_| acquire.renews_session));
                let renewal = session.map_or(0, |session| self.renew_with_grant(session, facts));
                self.grant(tenant, owner, ttl, key.cloned(), acquire, permit);
                let answer = Answer::Granted { id, session_renewed: session.is_some() };
                Outcome { facts: 1 + renewal, ..answer.into() }
            }
            _ if acquire.wait_ms == 0 => {
                let mut tokens: Vec<_> =
                    self.holders(tenant, &resource).iter().map(|lease| lease.token).collect();
                tokens.sort_unstable();
                Answer::NotGranted { tokens, waiters: queue }.into()
            }
            _ => {
                let deadline = self.now + acquire.wait_ms.min(limits::WAIT_MAX_MS);
                let (tenant, key) = (tenant.clone(), key.cloned());
                self.waiters.push(Waiter { ticket, tenant, key, owner, acquire, deadline });
                Answer::None.into()
            }
        }
    }

    pub(super) fn queue(&self, tenant: &TenantName, resource: &ResourceName) -> usize {
        let here = |waiter: &&Waiter| waiter.tenant == *tenant && waiter.acquire.resource == *resource;
        self.waiters.iter().filter(here).count()
    }

    /// Who waits under this lease id, whoever it is, or under this key of the tenant's.
    fn waiting(&self, tenant: &TenantName, id: LeaseId, key: Option<&RequestKey>) -> Option<usize> {
        let by_id = self.waiters.iter().position(|waiter| waiter.acquire.lease_id == id);
        let by_key = || {
            let same = |waiter: &Waiter| waiter.tenant == *tenant && waiter.key.as_ref() == key;
            self.waiters.iter().position(same).filter(|_| key.is_some())
        };
        by_id.or_else(by_key)
    }

    fn supersede(&mut self, place: usize, ticket: Ticket, tenant: &TenantName, acquire: &Acquire) -> Outcome {
        let now = self.now;
        let waiter = &mut self.waiters[place];
        if !waiter.is_for(tenant, acquire) {
            return refused(Refusal::IdempotencyMismatch);
        }
        let earlier = std::mem::replace(&mut waiter.ticket, ticket);
        waiter.deadline = now + acquire.wait_ms.min(limits::WAIT_MAX_MS);
        Outcome { turned_away: vec![(earlier, Refusal::Superseded)], ..Answer::None.into() }
    }

    fn who(&self, tenant: &TenantName, acquire: &Acquire) -> Result<(OwnerId, u64), Refusal> {
        let Some(id) = acquire.session else {
            return Ok((acquire.owner.clone().unwrap(), acquire.ttl.unwrap().ms()));
        };
        let session = self.session(tenant, id).ok_or(Refusal::SessionEnded)?;
        if acquire.owner.as_ref().is_some_and(|owner| *owner != session.owner) {
            return Err(Refusal::NotAsSession { field: "ownerId" });
        }
        if acquire.ttl.is_some_and(|ttl| ttl.ms() != session.life.ttl) {
            return Err(Refusal::NotAsSession { field: "ttlMs" });
        }
        Ok((session.owner.clone(), session.life.ttl))
    }

    fn grant(
        &mut self,
        tenant: &TenantName,
        owner: OwnerId,
        ttl: u64,
        key: Option<RequestKey>,
        acquire: Acquire,
        permit: Option<u32>,
    ) {
        assert_eq!(acquire.class, Class::Correctness, "the world has a durable journal and one class");
        self.last_token += 1;
        if let Some(key) = &key {
            self.keys.push((tenant.clone(), key.clone(), Use::Acquired(acquire.lease_id)));
        }
        self.leases.push(Lease {
            id: acquire.lease_id,
            tenant: tenant.clone(),
            resource: acquire.resource,
            owner,
            sharing: acquire.sharing,
            permit,
            class: acquire.class,
            session: acquire.session,
            asked_ttl: acquire.ttl.map(|ttl| ttl.ms()),
            life: acquire.session.is_none().then(|| Life::new(ttl, self.now)),
            max_hold: acquire.max_hold_ms,
            hold_ends: acquire.max_hold_ms.map(|ms| self.now + armed_ms(ms)),
            noted_age: 0,
            lock_delay: acquire.lock_delay_ms,
            token: self.last_token,
            key,
            value: acquire.value,
        });
    }

    /// The table gave a resource to a waiter: it must be the first there, and there must be a place.
    pub(crate) fn hand_over(&mut self, granted: &Granted) {
        let here = |waiter: &Waiter| {
            waiter.tenant.as_str() == granted.resource.tenant()
                && waiter.acquire.resource.as_str() == granted.resource.name()
        };
        let first = self.waiters.iter().position(here).expect("a grant that nobody asked for");
        let waiter = self.waiters.remove(first);
        assert_eq!(waiter.acquire.lease_id, granted.lease_id, "L4: another was first in the queue");
        assert!(self.room, "a grant without room");
        assert!(waiter.deadline > self.now, "a grant to a wait that is over");
        let permit = self
            .place(&waiter.tenant, &waiter.acquire.resource, waiter.acquire.sharing)
            .expect("S1: a grant where there is no place");
        let ttl = match waiter.acquire.session {
            Some(id) => self.session(&waiter.tenant, id).expect("a grant in an ended session").life.ttl,
            None => waiter.acquire.ttl.unwrap().ms(),
        };
        let Waiter { tenant, owner, key, acquire, .. } = waiter;
        self.grant(&tenant, owner, ttl, key, acquire, permit);
    }
}
