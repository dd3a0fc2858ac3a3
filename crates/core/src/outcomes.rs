//! What is remembered for retries: how leases and sessions ended, and what came of commands with a key. Bounded by
//! number here and by time through [`crate::Fact::Forgotten`]; nothing that tokens depend on is in it.

use std::collections::{BTreeMap, VecDeque};

use leasehold_types::{
    EndReason, FencingToken, LeaseId, RequestKey, ResourceKey, SessionId, TenantName, limits,
};

use crate::arena::{Arena, Ix};
use crate::fingerprint::AskedFor;
use crate::lease::Lease;
use crate::lease_ids::{Known, LeaseIds, Records};
use crate::reply::Holder;

pub(crate) type EndedIx = Ix<EndedLease>;

/// So many are looked at together before they are forgotten: about as many as a processor fetches at the same time.
const AHEAD: u64 = 16;

/// How a lease ended.
#[derive(Clone, Debug)]
pub(crate) struct EndedLease {
    pub(crate) id: LeaseId,
    pub(crate) tenant: TenantName,
    pub(crate) reason: EndReason,
    pub(crate) max_hold: bool,
    /// Whom it was bound to.
    pub(crate) principal: Option<Box<str>>,
    /// What it was; `None` when the id was closed before anything was granted under it.
    pub(crate) was: Option<WasLease>,
}

/// What an ended lease was.
#[derive(Clone, Debug)]
pub(crate) struct WasLease {
    pub(crate) resource: ResourceKey,
    pub(crate) token: FencingToken,
    pub(crate) asked_for: AskedFor,
    /// The key it was acquired under.
    pub(crate) key: Option<RequestKey>,
}

impl WasLease {
    /// Of the acquire that it was granted to.
    pub(crate) fn fingerprint(&self) -> u64 {
        self.asked_for.fingerprint(&self.resource)
    }
}

/// How a session ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct EndedSession {
    pub(crate) tenant: TenantName,
    /// Closed by its client, and so a retried close succeeds.
    pub(crate) closed: bool,
    pub(crate) released: u64,
    /// The key it was opened under.
    pub(crate) key: Option<RequestKey>,
    /// Whom it was bound to.
    pub(crate) principal: Option<Box<str>>,
}

/// What came of a command with a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Keyed {
    /// An acquire was granted this lease.
    Acquired(LeaseId),
    /// A session was opened.
    Opened { session_id: SessionId, fingerprint: u64 },
    /// A lease was released, or its unknown id closed.
    Released(LeaseId),
    /// A session was closed.
    Closed(SessionId),
    /// A resource was force-released.
    Forced { fingerprint: u64, released: Vec<Holder>, audit_seq: u64 },
}

/// Names one remembered thing, in the order of remembering.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Remembered {
    Lease(EndedIx),
    Session(SessionId),
    Key(RequestKey),
}

/// See the module. Leases stand in the order of all ids, which is given along where one is forgotten.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcomes {
    leases: Arena<EndedLease>,
    sessions: BTreeMap<SessionId, EndedSession>,
    keyed: BTreeMap<(TenantName, RequestKey), Keyed>,
    /// For each tenant what is remembered, oldest first, with its number.
    order: BTreeMap<TenantName, VecDeque<(u64, Remembered)>>,
    /// The number of the newest remembered thing.
    pub(crate) count: u64,
}

/// The order of all ids, and the live leases in it.
pub(crate) struct Ids<'a> {
    pub(crate) ids: &'a mut LeaseIds,
    pub(crate) leases: &'a Arena<Lease>,
}

impl Outcomes {
    /// Every ended lease.
    pub(crate) fn leases(&self) -> &Arena<EndedLease> {
        &self.leases
    }

    pub(crate) fn session(&self, id: SessionId) -> Option<&EndedSession> {
        self.sessions.get(&id)
    }

    /// Whom what is remembered was bound to.
    pub(crate) fn principal_of(&self, what: &Remembered) -> Option<&str> {
        match what {
            Remembered::Lease(ix) => self.leases.get(*ix).principal.as_deref(),
            Remembered::Session(id) => self.session(*id)?.principal.as_deref(),
            Remembered::Key(_) => None,
        }
    }

    pub(crate) fn keyed(&self, tenant: &TenantName, key: &RequestKey) -> Option<&Keyed> {
        self.keyed.get(&(tenant.clone(), key.clone()))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// The number of the oldest remembered thing.
    pub(crate) fn oldest(&self) -> Option<u64> {
        self.order.values().filter_map(|order| order.front()).map(|(number, _)| *number).min()
    }

    /// The tenant's name, shared with what is remembered of it already.
    pub(crate) fn tenant(&self, name: &str) -> TenantName {
        match self.order.get_key_value(name) {
            Some((tenant, _)) => tenant.clone(),
            None => TenantName::new(name).expect("a resource key begins with a tenant"),
        }
    }

    /// Ties a key to a live lease or session; it is forgotten with the ending of that.
    pub(crate) fn tie(&mut self, tenant: &TenantName, key: &RequestKey, keyed: Keyed) {
        self.keyed.insert((tenant.clone(), key.clone()), keyed);
    }

    pub(crate) fn remember_lease(&mut self, ended: EndedLease, ids: &mut Ids<'_>) {
        let tenant = ended.tenant.clone();
        let ix = self.put_ended(ended, ids);
        self.remember(tenant, Remembered::Lease(ix), ids);
    }

    pub(crate) fn remember_session(&mut self, id: SessionId, ended: EndedSession, ids: &mut Ids<'_>) {
        let tenant = ended.tenant.clone();
        self.sessions.insert(id, ended);
        self.remember(tenant, Remembered::Session(id), ids);
    }

    pub(crate) fn remember_key(
        &mut self,
        tenant: &TenantName,
        key: &RequestKey,
        keyed: Keyed,
        ids: &mut Ids<'_>,
    ) {
        let before = self.keyed.insert((tenant.clone(), key.clone()), keyed);
        // A key stands in the order once: what was forgotten of its command may be done under it again.
        if before.is_none() {
            self.remember(tenant.clone(), Remembered::Key(key.clone()), ids);
        }
    }

    fn remember(&mut self, tenant: TenantName, what: Remembered, ids: &mut Ids<'_>) {
        self.count += 1;
        // Nearly always the tenant is there, and its name need not be shared once more.
        let order = match self.order.get_mut(&tenant) {
            Some(order) => order,
            None => self.order.entry(tenant.clone()).or_default(),
        };
        order.push_back((self.count, what));
        if order.len() > limits::OUTCOMES_PER_TENANT {
            let oldest = order.pop_front();
            if self.count.is_multiple_of(AHEAD) {
                // The next ones that are forgotten were not looked at for long.
                for (_, next) in order.iter().take(AHEAD as usize) {
                    if let Remembered::Lease(ix) = next {
                        ids.ids.look_ahead(self.leases.get(*ix).id);
                    }
                }
            }
            if let Some((_, oldest)) = oldest {
                self.forget(&tenant, oldest, ids);
            }
        }
    }

    /// Forgets everything with a number up to this.
    pub(crate) fn forget_through(&mut self, through: u64, ids: &mut Ids<'_>) {
        let tenants: Vec<_> = self.order.keys().cloned().collect();
        for tenant in tenants {
            while self
                .order
                .get(&tenant)
                .and_then(VecDeque::front)
                .is_some_and(|(number, _)| *number <= through)
            {
                self.forget_oldest(&tenant, ids);
            }
        }
    }

    fn forget_oldest(&mut self, tenant: &TenantName, ids: &mut Ids<'_>) {
        let Some(order) = self.order.get_mut(tenant) else { return };
        let oldest = order.pop_front();
        if order.is_empty() {
            self.order.remove(tenant);
        }
        if let Some((_, oldest)) = oldest {
            self.forget(tenant, oldest, ids);
        }
    }

    /// Forgets what stands in the order no more.
    fn forget(&mut self, tenant: &TenantName, what: Remembered, ids: &mut Ids<'_>) {
        let key = match what {
            Remembered::Lease(ix) => self.forget_lease(ix, ids).was.and_then(|was| was.key),
            Remembered::Session(id) => self.sessions.remove(&id).and_then(|ended| ended.key),
            Remembered::Key(key) => Some(key),
        };
        if let Some(key) = key {
            self.keyed.remove(&(tenant.clone(), key));
        }
    }

    fn forget_lease(&mut self, ix: EndedIx, ids: &mut Ids<'_>) -> EndedLease {
        let records = Records { leases: ids.leases, ended: &self.leases };
        ids.ids.remove(self.leases.get(ix).id, Known::Ended(ix), records);
        self.leases.remove(ix)
    }

    /// Makes a record of an ending and lets its id name that.
    fn put_ended(&mut self, ended: EndedLease, ids: &mut Ids<'_>) -> EndedIx {
        let id = ended.id;
        let ix = self.leases.insert(ended);
        ids.ids.set(id, Known::Ended(ix), Records { leases: ids.leases, ended: &self.leases });
        ix
    }

    /// Everything in a canonical order, for snapshots: tenants by name, then oldest first.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = (&TenantName, u64, &Remembered)> {
        self.order.iter().flat_map(|(tenant, order)| order.iter().map(move |(n, what)| (tenant, *n, what)))
    }

    /// Whether a snapshot may go on with this number.
    pub(crate) fn may_be_next(&self, tenant: &TenantName, number: u64) -> bool {
        let last = self.order.get(tenant).and_then(VecDeque::back).map_or(0, |(last, _)| *last);
        last < number && number <= self.count
    }

    /// Puts something at the end of its tenant's order, under this number, as a snapshot has it.
    pub(crate) fn push(&mut self, tenant: &TenantName, number: u64, what: Remembered) {
        self.order.entry(tenant.clone()).or_default().push_back((number, what));
    }

    /// Puts back what a snapshot held.
    pub(crate) fn put_lease(&mut self, ended: EndedLease, ids: &mut Ids<'_>) -> EndedIx {
        if let Some(key) = ended.was.as_ref().and_then(|was| was.key.clone()) {
            self.tie(&ended.tenant.clone(), &key, Keyed::Acquired(ended.id));
        }
        self.put_ended(ended, ids)
    }

    /// Puts back what a snapshot held, with the fingerprint of its opening where it had a key.
    pub(crate) fn put_session(&mut self, id: SessionId, ended: EndedSession, fingerprint: u64) {
        if let Some(key) = &ended.key {
            self.tie(&ended.tenant.clone(), &key.clone(), Keyed::Opened { session_id: id, fingerprint });
        }
        self.sessions.insert(id, ended);
    }

    /// The fingerprint of the opening that a key is tied to, for snapshots.
    pub(crate) fn opening_fingerprint(&self, tenant: &TenantName, key: Option<&RequestKey>) -> u64 {
        match key.and_then(|key| self.keyed(tenant, key)) {
            Some(Keyed::Opened { fingerprint, .. }) => *fingerprint,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After the ending of its lease was forgotten by number, a release may come again under its key. The key then stood
    /// twice in the order, and a snapshot could not be written once the first place was forgotten.
    #[test]
    fn a_key_stands_once_in_the_order_of_forgetting() {
        let tenant = TenantName::default_tenant();
        let key = RequestKey::new("k").unwrap();
        let id = LeaseId::from_bytes([1; 16]);
        let (mut outcomes, mut ids, leases) = (Outcomes::default(), LeaseIds::default(), Arena::default());
        let ids = &mut Ids { ids: &mut ids, leases: &leases };
        outcomes.remember_key(&tenant, &key, Keyed::Released(id), ids);
        outcomes.remember_key(&tenant, &key, Keyed::Released(id), ids);
        assert_eq!(outcomes.in_order().count(), 1);
        outcomes.forget_through(1, ids);
        assert!(outcomes.is_empty() && outcomes.keyed(&tenant, &key).is_none());
    }

    fn session(principal: Option<&str>, key: &RequestKey) -> EndedSession {
        let (tenant, principal) = (TenantName::default_tenant(), principal.map(Into::into));
        EndedSession { tenant, closed: true, released: 0, key: Some(key.clone()), principal }
    }

    #[test]
    fn a_tenant_has_as_many_as_are_permitted_and_loses_the_oldest_then() {
        let tenant = TenantName::default_tenant();
        let key = |n: usize| RequestKey::new(&format!("k{n}")).unwrap();
        let (mut outcomes, mut ids, leases) = (Outcomes::default(), LeaseIds::default(), Arena::default());
        let ids = &mut Ids { ids: &mut ids, leases: &leases };
        let keyed = Keyed::Closed(SessionId::from_bytes([1; 16]));
        for n in 1..=limits::OUTCOMES_PER_TENANT {
            outcomes.remember_key(&tenant, &key(n), keyed.clone(), ids);
        }
        assert_eq!(outcomes.in_order().count(), limits::OUTCOMES_PER_TENANT);
        assert!(outcomes.keyed(&tenant, &key(1)).is_some());
        outcomes.remember_key(&tenant, &key(0), keyed, ids);
        assert_eq!(outcomes.in_order().count(), limits::OUTCOMES_PER_TENANT);
        assert!(outcomes.keyed(&tenant, &key(1)).is_none() && outcomes.keyed(&tenant, &key(2)).is_some());
    }

    #[test]
    fn numbers_of_a_snapshot_grow_and_end_with_the_count() {
        let tenant = TenantName::default_tenant();
        let mut outcomes = Outcomes { count: 7, ..Outcomes::default() };
        outcomes.push(&tenant, 5, Remembered::Session(SessionId::from_bytes([1; 16])));
        let may_be: Vec<u64> = (0..10).filter(|number| outcomes.may_be_next(&tenant, *number)).collect();
        assert_eq!(may_be, [6, 7]);
    }

    #[test]
    fn a_snapshot_is_told_whose_a_session_was_and_how_it_was_opened() {
        let (tenant, id) = (TenantName::default_tenant(), SessionId::from_bytes([1; 16]));
        let [opened, closed] = ["opened", "closed"].map(|key| RequestKey::new(key).unwrap());
        let mut outcomes = Outcomes::default();
        outcomes.put_session(id, session(Some("somebody"), &opened), 42);
        outcomes.tie(&tenant, &closed, Keyed::Closed(id));
        assert_eq!(outcomes.principal_of(&Remembered::Session(id)), Some("somebody"));
        let fingerprints =
            [Some(&opened), Some(&closed), None].map(|key| outcomes.opening_fingerprint(&tenant, key));
        assert_eq!(fingerprints, [42, 0, 0]);
    }
}
