//! Waiting acquires: one queue a resource, first come first served. Volatile: after a restart callers ask again.

use std::collections::{BTreeMap, BTreeSet};

use leasehold_types::{LeaseId, OwnerId, RequestKey, ResourceKey, SessionId, TenantName, Time};

use crate::command::{Acquire, Ticket};

/// A queued acquire.
#[derive(Clone, Debug)]
pub(crate) struct Waiter {
    pub(crate) ticket: Ticket,
    pub(crate) tenant: TenantName,
    pub(crate) key: Option<RequestKey>,
    pub(crate) principal: Option<Box<str>>,
    pub(crate) owner: OwnerId,
    pub(crate) acquire: Acquire,
    pub(crate) since: Time,
    pub(crate) deadline: Time,
}

/// The queue of one resource, in the order of asking.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    waiters: BTreeMap<u64, Waiter>,
    /// Acquires that met a holder or a waiter.
    pub(crate) contended: u64,
}

/// Every queue, and where each waiter stands.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queues {
    by_resource: BTreeMap<ResourceKey, Queue>,
    places: BTreeMap<Ticket, (ResourceKey, u64)>,
    by_lease: BTreeMap<LeaseId, Ticket>,
    by_key: BTreeMap<(TenantName, RequestKey), Ticket>,
    by_session: BTreeSet<(SessionId, Ticket)>,
    /// How many wait, of each tenant that has any.
    by_tenant: BTreeMap<TenantName, usize>,
    /// How many have asked; the last one's place is so far after [`FIRST_PLACE`].
    asked: u64,
}

/// Leaves room before the first place for waiters that are moved to the front.
const FIRST_PLACE: u64 = 1 << 32;

impl Queue {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Waiter> {
        self.waiters.values()
    }

    pub(crate) fn len(&self) -> usize {
        self.waiters.len()
    }
}

impl Queues {
    pub(crate) fn of(&self, resource: &ResourceKey) -> Option<&Queue> {
        self.by_resource.get(resource)
    }

    pub(crate) fn waiting_for(&self, resource: &ResourceKey) -> usize {
        self.of(resource).map_or(0, Queue::len)
    }

    pub(crate) fn first(&self, resource: &ResourceKey) -> Option<&Waiter> {
        self.of(resource)?.waiters.values().next()
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// How many of this tenant wait.
    pub(crate) fn of_tenant(&self, tenant: &TenantName) -> usize {
        self.by_tenant.get(tenant).copied().unwrap_or(0)
    }

    pub(crate) fn resources(&self) -> impl Iterator<Item = (&ResourceKey, &Queue)> {
        self.by_resource.iter()
    }

    /// The waiter under this lease id or key.
    pub(crate) fn find(
        &self,
        tenant: &TenantName,
        lease_id: LeaseId,
        key: Option<&RequestKey>,
    ) -> Option<&Waiter> {
        let by_key = || self.by_key.get(&(tenant.clone(), key?.clone()));
        let ticket = self.by_lease.get(&lease_id).or_else(by_key)?;
        self.get(*ticket)
    }

    pub(crate) fn is_waiting_under(&self, tenant: &TenantName, key: &RequestKey) -> bool {
        self.by_key.contains_key(&(tenant.clone(), key.clone()))
    }

    pub(crate) fn get(&self, ticket: Ticket) -> Option<&Waiter> {
        let (resource, place) = self.places.get(&ticket)?;
        self.by_resource.get(resource)?.waiters.get(place)
    }

    /// Counts an acquire that met somebody.
    pub(crate) fn count_contended(&mut self, resource: &ResourceKey) {
        self.by_resource.entry(resource.clone()).or_default().contended += 1;
    }

    pub(crate) fn push(&mut self, resource: ResourceKey, waiter: Waiter) {
        self.asked += 1;
        self.insert(resource, FIRST_PLACE + self.asked, waiter);
    }

    fn insert(&mut self, resource: ResourceKey, place: u64, waiter: Waiter) {
        self.places.insert(waiter.ticket, (resource.clone(), place));
        self.by_lease.insert(waiter.acquire.lease_id, waiter.ticket);
        if let Some(key) = &waiter.key {
            self.by_key.insert((waiter.tenant.clone(), key.clone()), waiter.ticket);
        }
        if let Some(session) = waiter.acquire.session {
            self.by_session.insert((session, waiter.ticket));
        }
        *self.by_tenant.entry(waiter.tenant.clone()).or_default() += 1;
        self.by_resource.entry(resource).or_default().waiters.insert(place, waiter);
    }

    pub(crate) fn remove(&mut self, ticket: Ticket) -> Option<(ResourceKey, Waiter)> {
        let (resource, place) = self.places.remove(&ticket)?;
        let queue = self.by_resource.get_mut(&resource).expect("a place is in a queue");
        let waiter = queue.waiters.remove(&place).expect("a place has a waiter");
        self.by_lease.remove(&waiter.acquire.lease_id);
        if let Some(key) = &waiter.key {
            self.by_key.remove(&(waiter.tenant.clone(), key.clone()));
        }
        if let Some(session) = waiter.acquire.session {
            self.by_session.remove(&(session, waiter.ticket));
        }
        if let Some(waiting) = self.by_tenant.get_mut(&waiter.tenant) {
            *waiting -= 1;
            if *waiting == 0 {
                self.by_tenant.remove(&waiter.tenant);
            }
        }
        Some((resource, waiter))
    }

    /// Gives the place of one attempt to a later one with the same command; returns the earlier waiter.
    pub(crate) fn replace(&mut self, earlier: Ticket, later: Ticket, deadline: Time) -> Option<Waiter> {
        let place = self.places.get(&earlier)?.1;
        let (resource, waiter) = self.remove(earlier)?;
        let replacement = Waiter { ticket: later, deadline, ..waiter.clone() };
        self.insert(resource, place, replacement);
        Some(waiter)
    }

    /// Moves the first waiter of this owner before all others. False if there is none.
    pub(crate) fn move_to_front(&mut self, resource: &ResourceKey, owner: &OwnerId) -> bool {
        let Some(queue) = self.by_resource.get_mut(resource) else { return false };
        let Some((&place, _)) = queue.waiters.iter().find(|(_, waiter)| waiter.owner == *owner) else {
            return false;
        };
        let first = queue.waiters.first_key_value().map_or(place, |(first, _)| *first);
        if place != first {
            let waiter = queue.waiters.remove(&place).expect("it was just found");
            self.places.insert(waiter.ticket, (resource.clone(), first - 1));
            queue.waiters.insert(first - 1, waiter);
        }
        true
    }

    /// The waiters that would live in this session.
    pub(crate) fn in_session(&self, session: SessionId) -> Vec<Ticket> {
        self.by_session
            .range((session, Ticket(0))..=(session, Ticket(u64::MAX)))
            .map(|(_, ticket)| *ticket)
            .collect()
    }

    /// Forgets the queue of a resource that nobody waits for and nobody holds.
    pub(crate) fn forget_if_idle(&mut self, resource: &ResourceKey, is_held: impl FnOnce() -> bool) {
        if self.by_resource.get(resource).is_some_and(|queue| queue.waiters.is_empty()) && !is_held() {
            self.by_resource.remove(resource);
        }
    }
}

#[cfg(test)]
mod tests {
    use leasehold_types::ResourceName;

    use super::*;

    fn resource() -> ResourceKey {
        ResourceKey::new(&TenantName::default_tenant(), &ResourceName::new("r").unwrap())
    }

    fn waiter(number: u8) -> Waiter {
        let owner = OwnerId::new(&format!("owner-{number}")).unwrap();
        let plain = Acquire::plain(ResourceName::new("r").unwrap(), LeaseId::from_bytes([number; 16]));
        let acquire = Acquire { owner: Some(owner.clone()), wait_ms: 1_000, ..plain };
        let (ticket, tenant) = (Ticket(number.into()), TenantName::default_tenant());
        let (since, deadline) = (Time(0), Time(1_000));
        Waiter { ticket, tenant, key: None, principal: None, owner, acquire, since, deadline }
    }

    fn queues(waiters: u8) -> Queues {
        let mut queues = Queues::default();
        (1..=waiters).for_each(|number| queues.push(resource(), waiter(number)));
        queues
    }

    fn order(queues: &Queues) -> Vec<u64> {
        queues.of(&resource()).into_iter().flat_map(Queue::iter).map(|waiter| waiter.ticket.0).collect()
    }

    #[test]
    fn everybody_who_waits_is_counted_until_they_leave() {
        let (mut queues, tenant) = (queues(3), TenantName::default_tenant());
        let counts = |queues: &Queues| (queues.len(), queues.of_tenant(&tenant), queues.resources().count());
        assert_eq!(counts(&queues), (3, 3, 1));
        queues.remove(Ticket(2));
        assert_eq!((counts(&queues), order(&queues)), ((2, 2, 1), vec![1, 3]));
        queues.remove(Ticket(1));
        queues.remove(Ticket(3));
        assert_eq!(counts(&queues), (0, 0, 1));
    }

    #[test]
    fn the_queue_of_a_resource_is_forgotten_when_nobody_waits_for_it_or_holds_it() {
        let mut queues = queues(1);
        queues.forget_if_idle(&resource(), || false);
        assert!(queues.of(&resource()).is_some(), "somebody waits");
        queues.remove(Ticket(1));
        queues.forget_if_idle(&resource(), || true);
        assert!(queues.of(&resource()).is_some(), "somebody holds it");
        queues.forget_if_idle(&resource(), || false);
        assert!(queues.of(&resource()).is_none());
    }

    #[test]
    fn one_after_the_other_is_moved_to_the_front() {
        let mut queues = queues(3);
        for (number, expected) in [(3, [3, 1, 2]), (2, [2, 3, 1]), (2, [2, 3, 1]), (1, [1, 2, 3])] {
            assert!(queues.move_to_front(&resource(), &waiter(number).owner));
            assert_eq!(order(&queues), expected);
        }
        assert!(!queues.move_to_front(&resource(), &waiter(9).owner));
    }

    #[test]
    fn whoever_asks_again_keeps_the_place_and_has_the_new_deadline() {
        let mut queues = queues(2);
        let earlier = queues.replace(Ticket(1), Ticket(7), Time(5_000)).unwrap();
        assert_eq!((earlier.ticket, earlier.deadline), (Ticket(1), Time(1_000)));
        assert_eq!(order(&queues), [7, 2]);
        assert_eq!(queues.get(Ticket(7)).map(|waiter| waiter.deadline), Some(Time(5_000)));
    }

    #[test]
    fn a_node_that_was_asked_billions_of_times_has_places_left() {
        let mut queues = Queues { asked: 1 << 33, ..Queues::default() };
        queues.push(resource(), waiter(1));
        queues.push(resource(), waiter(2));
        assert_eq!(order(&queues), [1, 2]);
    }
}
