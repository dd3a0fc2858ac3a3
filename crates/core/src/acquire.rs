//! Grants: who gets a resource at once, who waits, and who is next.

use leasehold_types::{
    Class, EndReason, Guarantee, Now, OwnerId, RequestKey, ResourceKey, ResourceName, TenantName, Ttl,
    WallTime, limits,
};

use crate::clocks::Timer;
use crate::command::{Acquire, Sharing, Ticket};
use crate::event::{Event, EventKind};
use crate::fact::Granted;
use crate::fingerprint;
use crate::journaled::name_of;
use crate::lease::LeaseIx;
use crate::lease_ids::Known;
use crate::outcomes::Keyed;
use crate::queue::Waiter;
use crate::reply::{Grant, Holder, NotGranted, Refusal, Reply};
use crate::resource::{Held, Place, Resource, place_for};
use crate::table::{Decision, EventAt, LockTable};

const WARN_SHORT: &str = "a ttl below 5 s may end during an ordinary pause of the holder";
const WARN_LONG: &str = "a ttl above 5 min keeps the resource closed that long after a crash of its holder";

impl LockTable {
    /// `None`: the caller waits, and is answered under its ticket later.
    pub(crate) fn acquire(
        &mut self,
        ticket: Ticket,
        tenant: TenantName,
        key: Option<RequestKey>,
        mut acquire: Acquire,
        now: Now,
        out: &mut Decision,
    ) -> Option<Reply> {
        let resource = ResourceKey::new(&tenant, &acquire.resource);
        if let Err(refusal) = self.take_id_from_key(&tenant, key.as_ref(), &mut acquire) {
            return Some(Reply::Refused(refusal));
        }
        if let Some(reply) = self.acquired_before(&tenant, &resource, &acquire, now) {
            return Some(reply);
        }
        if let Some(waiter) = self.queues.find(&tenant, acquire.lease_id, key.as_ref()) {
            if !self.is_ours(waiter.principal.as_deref()) {
                return Some(Reply::Refused(nobody_knows()));
            }
            if !is_same_wait(waiter, &tenant, &acquire) {
                return Some(Reply::Refused(Refusal::IdempotencyMismatch));
            }
            let earlier = waiter.ticket;
            self.supersede(earlier, ticket, acquire.wait_ms, now, out);
            return None;
        }
        let (owner, ttl) = match self.holder_of(&tenant, &acquire) {
            Ok(holder) => holder,
            Err(refusal) => return Some(Reply::Refused(refusal)),
        };
        if let Err(refusal) = self.may_grant(&acquire) {
            return Some(Reply::Refused(refusal));
        }
        if let Err(refusal) = self.may_hold(&resource, &acquire) {
            return Some(Reply::Refused(refusal));
        }
        if self.queues.waiting_for(&resource) == 0
            && let Some(place) = self.place_for(&resource, acquire.sharing)
        {
            let principal = self.principal_for(&acquire);
            let session = acquire.session.filter(|_| acquire.renews_session);
            if let Some(session) = session {
                self.renew_with_grant(session, now, out);
            }
            let asked = Asked { resource, owner, ttl, key, principal, acquire };
            let mut reply = self.grant(asked, place, 0, now, out);
            if let Reply::Granted(grant) = &mut reply {
                grant.session_renewed = session.is_some();
            }
            return Some(reply);
        }
        self.queues.count_contended(&resource);
        if acquire.wait_ms == 0 {
            return Some(self.not_granted(&resource, now));
        }
        if let Err(refusal) = self.may_wait(&tenant) {
            return Some(Reply::Refused(refusal));
        }
        let wait_ms = acquire.wait_ms.min(limits::WAIT_MAX_MS);
        let deadline = now.time.plus_ms(wait_ms);
        out.events.push((EventAt::Nowhere, queued_event(&resource, &owner, &acquire, ttl)));
        self.timers.arm(deadline, Timer::Wait(ticket));
        let principal = self.deciding_for.clone();
        let waiter = Waiter { ticket, tenant, key, principal, owner, acquire, since: now.time, deadline };
        self.queues.push(resource, waiter);
        None
    }

    /// A key that was used before names the lease that was granted under it.
    fn take_id_from_key(
        &self,
        tenant: &TenantName,
        key: Option<&RequestKey>,
        acquire: &mut Acquire,
    ) -> Result<(), Refusal> {
        match key.and_then(|key| self.journaled.outcomes.keyed(tenant, key)) {
            None => Ok(()),
            Some(Keyed::Acquired(id)) if !acquire.lease_id_chosen || *id == acquire.lease_id => {
                acquire.lease_id = *id;
                Ok(())
            }
            Some(_) => Err(Refusal::IdempotencyMismatch),
        }
    }

    /// What came of an earlier attempt under the same lease id, if there was one that came to something.
    fn acquired_before(
        &self,
        tenant: &TenantName,
        resource: &ResourceKey,
        acquire: &Acquire,
        now: Now,
    ) -> Option<Reply> {
        let ended = match self.journaled.known(acquire.lease_id)? {
            Known::Ended(ix) => self.journaled.outcomes.leases().get(ix),
            Known::Live(ix) => {
                let lease = self.journaled.leases.get(ix);
                let session = lease.session().map(|ix| self.journaled.sessions.get(ix).id);
                if !self.is_ours(self.journaled.principal_of(lease)) {
                    return Some(Reply::Refused(nobody_knows()));
                }
                return Some(match lease.was_asked_by(acquire, resource, session) {
                    true => Reply::Granted(Box::new(self.grant_of(ix, acquire.resource.clone(), now))),
                    false => Reply::Refused(Refusal::IdempotencyMismatch),
                });
            }
        };
        if !self.is_ours(ended.principal.as_deref()) {
            return Some(Reply::Refused(nobody_knows()));
        }
        let same = ended.tenant == *tenant
            && ended
                .was
                .as_ref()
                .is_none_or(|was| was.fingerprint() == fingerprint::of_acquire(acquire, resource));
        Some(Reply::Refused(match same {
            true => self.not_held(tenant.as_str(), acquire.lease_id),
            false => Refusal::IdempotencyMismatch,
        }))
    }

    /// Gives the place in the queue to a later attempt of the same caller.
    fn supersede(&mut self, earlier: Ticket, later: Ticket, wait_ms: u64, now: Now, out: &mut Decision) {
        let deadline = now.time.plus_ms(wait_ms.min(limits::WAIT_MAX_MS));
        let Some(waiter) = self.queues.replace(earlier, later, deadline) else { return };
        self.timers.disarm(waiter.deadline, Timer::Wait(earlier));
        self.timers.arm(deadline, Timer::Wait(later));
        out.replies.push((earlier, Reply::Refused(Refusal::Superseded)));
    }

    /// Owner and ttl: the session's where there is one, and then nothing else may be asked for.
    fn holder_of(&self, tenant: &TenantName, acquire: &Acquire) -> Result<(OwnerId, Ttl), Refusal> {
        let Some(id) = acquire.session else {
            let owner = acquire.owner.clone().ok_or(Refusal::NotAsSession { field: "ownerId" })?;
            let ttl = acquire.ttl.ok_or(Refusal::NotAsSession { field: "ttlMs" })?;
            return Ok((owner, ttl));
        };
        let ix = self.journaled.session_ids.get(&id).ok_or(Refusal::SessionEnded)?;
        let session = self.journaled.sessions.get(*ix);
        if session.tenant != *tenant || !self.is_ours(session.principal.as_deref()) {
            return Err(Refusal::SessionEnded);
        }
        if acquire.owner.as_ref().is_some_and(|owner| *owner != session.owner) {
            return Err(Refusal::NotAsSession { field: "ownerId" });
        }
        if acquire.ttl.is_some_and(|ttl| ttl != session.ttl) {
            return Err(Refusal::NotAsSession { field: "ttlMs" });
        }
        Ok((session.owner.clone(), session.ttl))
    }

    /// Whom a lease is to be bound to; one in a session is its session's.
    fn principal_for(&self, acquire: &Acquire) -> Option<Box<str>> {
        if acquire.session.is_some() { None } else { self.deciding_for.clone() }
    }

    fn may_grant(&self, acquire: &Acquire) -> Result<(), Refusal> {
        if acquire.class == Class::Correctness && !self.settings.grants_correctness() {
            return Err(Refusal::ClassNotSupported);
        }
        if !self.room {
            return Err(Refusal::NoRoom);
        }
        Ok(())
    }

    /// The place for one more holder, whoever waits.
    pub(crate) fn place_for(&self, resource: &ResourceKey, sharing: Sharing) -> Option<Place> {
        match self.journaled.resource(resource) {
            None => place_for(sharing, &Held::Free, &[]),
            Some(known) => place_for(sharing, &self.held(known), known.delays()),
        }
    }

    fn held(&self, resource: Resource<'_>) -> Held {
        let holders = resource.holders().map(|ix| self.journaled.leases.get(ix));
        let Some(first) = holders.clone().next() else { return Held::Free };
        match first.sharing() {
            Sharing::Exclusive => Held::Exclusively,
            Sharing::Shared => Held::Shared,
            Sharing::Semaphore { .. } => {
                let mut limit = u32::MAX;
                let permits = holders.map(|lease| {
                    if let Sharing::Semaphore { limit: accepted } = lease.sharing() {
                        limit = limit.min(accepted);
                    }
                    lease.permit().map_or(0, |permit| permit.0)
                });
                let permits = permits.collect();
                Held::BySemaphore { permits, limit }
            }
        }
    }

    fn grant(&mut self, asked: Asked, place: Place, waited_ms: u64, now: Now, out: &mut Decision) -> Reply {
        let Ok(token) = leasehold_types::FencingToken::new(self.journaled.last_token + 1) else {
            return Reply::Refused(Refusal::TokensUsedUp);
        };
        let Asked { resource, owner, ttl, key, principal, acquire } = asked;
        let granted = Granted {
            lease_id: acquire.lease_id,
            resource,
            owner,
            session: acquire.session,
            sharing: acquire.sharing,
            permit: place.permit,
            class: acquire.class,
            ttl,
            max_hold_ms: acquire.max_hold_ms,
            lock_delay_ms: acquire.lock_delay_ms,
            labels: acquire.labels,
            value: acquire.value,
            token,
            at: now.wall,
            key,
            principal,
        };
        let ix = self.record_grant(granted, waited_ms, now, out);
        Reply::Granted(Box::new(self.grant_of(ix, acquire.resource, now)))
    }

    /// The grant as it stands now, of the resource with this name. Its `ttl_ms` is what is left, so that a caller who counts from this answer's
    /// request never counts past the deadline.
    pub(crate) fn grant_of(&self, ix: LeaseIx, resource: ResourceName, now: Now) -> Grant {
        let lease = self.journaled.leases.get(ix);
        let ttl = self.journaled.ttl_of(lease);
        let ttl_ms = self.promised_ms(ix, now.time);
        Grant {
            resource,
            owner: self.journaled.owner_of(lease).clone(),
            lease_id: lease.id,
            token: lease.token(),
            permit: lease.permit(),
            ttl_ms,
            created_at: lease.created_at(),
            expires_at: now.wall.plus_ms(ttl_ms),
            mode: lease.mode(),
            class: lease.class(),
            guarantee: self.guarantee(lease.class()),
            session: lease.session().map(|ix| self.journaled.sessions.get(ix).id),
            session_renewed: false,
            warning: match ttl.ms() {
                ms if ms < limits::TTL_WARN_BELOW_MS => Some(WARN_SHORT),
                ms if ms > limits::TTL_WARN_ABOVE_MS => Some(WARN_LONG),
                _ => None,
            },
        }
    }

    /// What a grant of this class is worth. No fence is known to the table yet, so none is claimed.
    pub(crate) fn guarantee(&self, class: Class) -> Guarantee {
        match class {
            Class::Correctness if self.settings.durability.keeps_tokens() => Guarantee::LeaseOnly,
            Class::Correctness | Class::Efficiency => Guarantee::BestEffort,
        }
    }

    pub(crate) fn not_granted(&self, key: &ResourceKey, now: Now) -> Reply {
        let holders = self.journaled.resource(key).into_iter().flat_map(Resource::holders);
        let holders = holders.take(limits::HOLDERS_SHOWN).map(|ix| self.holder_view(ix, now)).collect();
        Reply::NotGranted(Box::new(NotGranted {
            resource: name_of(key),
            holders,
            waiters: self.queues.waiting_for(key),
            earliest_regrant_at: self.earliest_regrant_at(key, now),
        }))
    }

    pub(crate) fn holder_view(&self, ix: LeaseIx, now: Now) -> Holder {
        self.journaled.holder(ix, now.wall.plus_ms(self.promised_ms(ix, now.time)))
    }

    /// When the last open lock delay ends.
    pub(crate) fn earliest_regrant_at(&self, key: &ResourceKey, now: Now) -> Option<WallTime> {
        let delays = self.journaled.resource(key)?.delays();
        let until = delays.iter().filter_map(|delay| self.delays.get(&(key.clone(), delay.token))).max()?;
        Some(now.wall.plus_ms(until.ms_since(now.time)))
    }

    /// Grants to the longest run of waiters at the head of each freed resource's queue that can hold it together.
    pub(crate) fn serve_freed(&mut self, now: Now, out: &mut Decision) {
        while let Some(resource) = self.freed.pop() {
            self.hand_over(&resource, now, out);
            let is_held = || self.journaled.resource(&resource).is_some_and(Resource::is_held);
            self.queues.forget_if_idle(&resource, is_held);
        }
    }

    fn hand_over(&mut self, resource: &ResourceKey, now: Now, out: &mut Decision) {
        while let Some(waiter) = self.queues.first(resource) {
            let (ticket, sharing) = (waiter.ticket, waiter.acquire.sharing);
            if waiter.deadline <= now.time {
                self.end_wait(ticket, now, out);
                continue;
            }
            let Some(place) = self.place_for(resource, sharing) else { break };
            if !self.room {
                self.held_back.insert(resource.clone());
                break;
            }
            let (resource, waiter) = self.queues.remove(ticket).expect("the first waiter waits");
            self.timers.disarm(waiter.deadline, Timer::Wait(ticket));
            if let Err(refusal) = self.may_hold(&resource, &waiter.acquire) {
                out.replies.push((ticket, Reply::Refused(refusal)));
                continue;
            }
            let waited_ms = now.time.ms_since(waiter.since);
            let ttl = match waiter.acquire.session {
                Some(id) => self.journaled.sessions.get(self.journaled.session_ids[&id]).ttl,
                None => waiter.acquire.ttl.expect("a waiter without a session came with a ttl"),
            };
            let Waiter { owner, key, principal, acquire, .. } = waiter;
            let principal = principal.filter(|_| acquire.session.is_none());
            let asked = Asked { resource, owner, ttl, key, principal, acquire };
            let reply = self.grant(asked, place, waited_ms, now, out);
            out.replies.push((ticket, reply));
        }
    }

    /// A wait reached its deadline.
    pub(crate) fn end_wait(&mut self, ticket: Ticket, now: Now, out: &mut Decision) {
        let Some(resource) = self.withdraw(ticket) else { return };
        out.replies.push((ticket, self.not_granted(&resource, now)));
    }

    /// Takes a waiter out of its queue. Those behind it may have a place now.
    pub(crate) fn withdraw(&mut self, ticket: Ticket) -> Option<ResourceKey> {
        let (resource, waiter) = self.queues.remove(ticket)?;
        self.timers.disarm(waiter.deadline, Timer::Wait(ticket));
        self.freed.push(resource.clone());
        Some(resource)
    }
}

/// An acquire with everything about it settled but the place.
struct Asked {
    resource: ResourceKey,
    owner: OwnerId,
    ttl: Ttl,
    key: Option<RequestKey>,
    /// Whom the lease is to be bound to, where no session says so.
    principal: Option<Box<str>>,
    acquire: Acquire,
}

/// An id that is another principal's is as good as unknown to this one.
fn nobody_knows() -> Refusal {
    Refusal::LeaseNotHeld { reason: EndReason::Unknown, max_hold: false, token: None }
}

/// Whether a later attempt asks for what this waiter asks for; wait and labels are not compared.
fn is_same_wait(waiter: &Waiter, tenant: &TenantName, later: &Acquire) -> bool {
    let earlier = &waiter.acquire;
    let id_same = !later.lease_id_chosen || earlier.lease_id == later.lease_id;
    id_same
        && waiter.tenant == *tenant
        && earlier.resource == later.resource
        && earlier.sharing == later.sharing
        && earlier.class == later.class
        && earlier.session == later.session
        && (earlier.session.is_some() || earlier.ttl == later.ttl)
        && earlier.max_hold_ms == later.max_hold_ms
        && earlier.lock_delay_ms == later.lock_delay_ms
}

fn queued_event(resource: &ResourceKey, owner: &OwnerId, acquire: &Acquire, ttl: Ttl) -> Event {
    Event {
        kind: EventKind::Queued,
        resource: resource.clone(),
        owner: owner.clone(),
        lease_id: acquire.lease_id,
        token: None,
        mode: acquire.sharing.mode(),
        permit: None,
        ttl_ms: ttl.ms(),
        session: acquire.session,
    }
}
