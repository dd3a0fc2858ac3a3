//! Questions. They change nothing; the node confirms its epoch before it lets the answers out.

use std::ops::Bound;

use leasehold_types::{
    FencingToken, LeaseId, Mode, Now, Permit, ResourceKey, ResourceName, SessionId, TenantName, limits,
};

use crate::audit::AuditEntry;
use crate::clocks::LifeIx;
use crate::command::{LockCursor, LockFilter, Query};
use crate::journaled::name_of;
use crate::lease::{Lease, LeaseIx, SessionIx};
use crate::queue::Queue;
use crate::reply::{Explained, LeaseView, LocksPage, Refusal, Reply, SessionView, Successor, WaiterView};
use crate::resource::Resource;
use crate::table::LockTable;

impl LockTable {
    pub(crate) fn query(&self, tenant: &TenantName, query: Query, now: Now) -> Reply {
        match query {
            Query::Lease(id) => self.show_lease(tenant, id, now),
            Query::Locks(filter) => Reply::Locks(self.list_locks(tenant, &filter, now)),
            Query::Explain(resource) => Reply::Explained(Box::new(self.explain(tenant, resource, now))),
            Query::Validate { resource, token, permit } => self.validate(tenant, &resource, token, permit),
            Query::Successor(id) => Reply::Successor(self.successor(tenant, id).map(Box::new)),
            Query::Session(id) => self.show_session(tenant, id, now),
            Query::Sessions { after, page_size } => self.list_sessions(tenant, after, page_size, now),
            Query::Audit { resource, after, page_size } => {
                let key = resource.map(|resource| ResourceKey::new(tenant, &resource));
                // Entries without a tenant are about the whole journal, and everybody may know of them.
                self.list_audit(after, page_size, |entry| {
                    (entry.tenant.is_empty() || *entry.tenant == *tenant.as_str())
                        && key.as_ref().is_none_or(|key| entry.resource.as_ref() == Some(key))
                })
            }
            Query::WholeAudit { after, page_size } => self.list_audit(after, page_size, |_| true),
            Query::Credentials { after, page_size } => self.list_credentials(after, page_size),
            Query::Usage => Reply::Usage {
                usage: self.journaled.usages.of(tenant.as_str()),
                waiters: self.queues.of_tenant(tenant),
            },
            Query::AuditVerify => Reply::AuditVerified(self.journaled.audit.verify()),
        }
    }

    fn show_lease(&self, tenant: &TenantName, id: LeaseId, now: Now) -> Reply {
        if let Some(ix) = self.lease_of(tenant.as_str(), id) {
            return Reply::Lease(Box::new(self.lease_view(ix, now)));
        }
        // An id that was closed before anything was granted under it is as unknown as before.
        match self.ended_lease_of(tenant.as_str(), id).filter(|ended| ended.was.is_some()) {
            Some(_) => Reply::Refused(self.not_held(tenant.as_str(), id)),
            None => Reply::Refused(Refusal::NotFound),
        }
    }

    fn lease_view(&self, ix: LeaseIx, now: Now) -> LeaseView {
        let lease = self.journaled.leases.get(ix);
        let life = self.life_clock(self.life_of(ix));
        let remaining_ms = self.promised_ms(ix, now.time);
        LeaseView {
            resource: name_of(&lease.resource),
            owner: self.journaled.owner_of(lease).clone(),
            lease_id: lease.id,
            token: lease.token(),
            permit: lease.permit(),
            mode: lease.mode(),
            limit: match lease.sharing() {
                crate::Sharing::Semaphore { limit } => Some(limit),
                crate::Sharing::Exclusive | crate::Sharing::Shared => None,
            },
            class: lease.class(),
            guarantee: self.guarantee(lease.class()),
            session: lease.session().map(|ix| self.journaled.sessions.get(ix).id),
            created_at: lease.created_at(),
            expires_at: now.wall.plus_ms(remaining_ms),
            ttl_ms: self.journaled.ttl_of(lease).ms(),
            remaining_ms,
            held_ms: self.leases.age_ms(ix, now.time),
            max_hold_ms: lease.max_hold_ms(),
            lock_delay_ms: lease.lock_delay_ms(),
            labels: lease.labels().cloned().unwrap_or_default(),
            value: lease.value().map(Into::into),
            renewals: life.renewals,
            missed: life.report.missed,
            last_error: life.report.last_error.clone(),
            max_gap_ms: life.report.max_gap_ms,
            waiters: self.queues.waiting_for(&lease.resource),
        }
    }

    /// Looks at a bounded number of leases, so that a filter which few match cannot hold up the loop.
    fn list_locks(&self, tenant: &TenantName, filter: &LockFilter, now: Now) -> LocksPage {
        let page_size = filter.page_size.clamp(1, limits::PAGE_SIZE);
        let mut page = LocksPage { locks: Vec::new(), next: None, as_of: now.wall };
        let mut last = None;
        for (looked_at, (key, ix)) in self.leases_from(tenant, filter).enumerate() {
            if page.locks.len() >= page_size || looked_at >= limits::PAGE_SCAN {
                page.next = last;
                break;
            }
            let lease = self.journaled.leases.get(ix);
            last = Some(LockCursor { resource: name_of(key), token: lease.token().get() });
            if self.matches(ix, filter, now) {
                page.locks.push(self.lease_view(ix, now));
            }
        }
        page
    }

    /// The tenant's leases in resource order and then by token, from the cursor on and within the prefix.
    fn leases_from<'a>(
        &'a self,
        tenant: &'a TenantName,
        filter: &'a LockFilter,
    ) -> impl Iterator<Item = (&'a ResourceKey, LeaseIx)> {
        let prefix = filter.prefix.as_deref().unwrap_or("");
        let lowest = ResourceKey::lower_bound(tenant, prefix);
        let from = match &filter.cursor {
            Some(cursor) => lowest.max(ResourceKey::new(tenant, &cursor.resource)),
            None => lowest,
        };
        let is_within =
            move |key: &ResourceKey| key.tenant() == tenant.as_str() && key.name().starts_with(prefix);
        let after = move |key: &ResourceKey, token: u64| {
            filter
                .cursor
                .as_ref()
                .is_none_or(|cursor| key.name() != cursor.resource.as_str() || token > cursor.token)
        };
        self.journaled
            .resources
            .held_within(&from, is_within, &self.journaled.leases)
            .flat_map(move |(key, resource)| resource.holders().map(move |ix| (key, ix)))
            .filter(move |(key, ix)| after(key, self.journaled.leases.get(*ix).token().get()))
    }

    fn matches(&self, ix: LeaseIx, filter: &LockFilter, now: Now) -> bool {
        let lease = self.journaled.leases.get(ix);
        let session = lease.session().map(|ix| self.journaled.sessions.get(ix).id);
        let held_ms = self.leases.age_ms(ix, now.time);
        let missed = self.life_clock(self.life_of(ix)).report.missed;
        filter.owner.as_ref().is_none_or(|owner| owner == self.journaled.owner_of(lease))
            && filter
                .session
                .is_none_or(|id| session == Some(id) && self.is_ours(self.journaled.principal_of(lease)))
            && filter.held_longer_than_ms.is_none_or(|ms| held_ms > ms)
            && filter.missed_at_least.is_none_or(|least| missed >= least)
    }

    fn explain(&self, tenant: &TenantName, resource: ResourceName, now: Now) -> Explained {
        let key = ResourceKey::new(tenant, &resource);
        let known = self.journaled.resource(&key);
        let queue = self.queues.of(&key);
        let view = |waiter: &crate::queue::Waiter| WaiterView {
            owner: waiter.owner.clone(),
            mode: waiter.acquire.sharing.mode(),
            waiting_ms: now.time.ms_since(waiter.since),
        };
        Explained {
            resource,
            holders: known
                .into_iter()
                .flat_map(Resource::holders)
                .take(limits::PAGE_SIZE)
                .map(|ix| self.lease_view(ix, now))
                .collect(),
            waiters: queue.into_iter().flat_map(Queue::iter).take(limits::PAGE_SIZE).map(view).collect(),
            last_token: known.and_then(|known| self.last_token_of(known)),
            endings: known.into_iter().flat_map(|known| known.endings().rev().cloned()).collect(),
            contended: queue.map_or(0, |queue| queue.contended),
            earliest_regrant_at: self.earliest_regrant_at(&key, now),
            as_of: now.wall,
        }
    }

    /// The largest token of a resource that is still known: of a holder, or of an ending that is kept.
    fn last_token_of(&self, resource: Resource<'_>) -> Option<FencingToken> {
        let held = resource.holders().map(|ix| self.journaled.leases.get(ix).token());
        held.chain(resource.endings().map(|ending| ending.token)).max()
    }

    fn validate(
        &self,
        tenant: &TenantName,
        resource: &ResourceName,
        token: FencingToken,
        permit: Option<Permit>,
    ) -> Reply {
        let Some(known) = self.journaled.resource(&ResourceKey::new(tenant, resource)) else {
            return Reply::Validated { current: false, last_token: None };
        };
        let mut holders = known.holders().map(|ix| self.journaled.leases.get(ix));
        let current =
            holders.any(|lease| lease.token() == token && (permit.is_none() || lease.permit() == permit));
        Reply::Validated { current, last_token: self.last_token_of(known) }
    }

    /// Who holds what this ended lease held, unless both may hold it. Of a semaphore nothing is told: which permit the
    /// ended lease had is not remembered.
    fn successor(&self, tenant: &TenantName, id: LeaseId) -> Option<Successor> {
        let was = self.ended_lease_of(tenant.as_str(), id)?.was.as_ref()?;
        let holders = self.journaled.resource(&was.resource)?.holders();
        let newer = holders.map(|ix| self.journaled.leases.get(ix)).filter(|lease| lease.token() > was.token);
        let excluded = newer.filter(|lease| was.asked_for.is_exclusive() || lease.mode() == Mode::Exclusive);
        let token = excluded.map(Lease::token).max()?;
        Some(Successor { resource: name_of(&was.resource), ended: was.token, token })
    }

    fn show_session(&self, tenant: &TenantName, id: SessionId, now: Now) -> Reply {
        if let Some(ix) = self.session_of(tenant, id) {
            return Reply::Session(Box::new(self.session_view(ix, now)));
        }
        match self.ended_session_of(tenant, id) {
            Some(_) => Reply::Refused(Refusal::SessionEnded),
            None => Reply::Refused(Refusal::NotFound),
        }
    }

    fn session_view(&self, ix: SessionIx, now: Now) -> SessionView {
        let session = self.journaled.sessions.get(ix);
        let clock = &self.sessions[ix.number()];
        let remaining_ms = self.life_promised_ms(LifeIx::Session(ix), now.time);
        SessionView {
            session_id: session.id,
            owner: session.owner.clone(),
            ttl_ms: session.ttl.ms(),
            created_at: session.created_at,
            expires_at: now.wall.plus_ms(remaining_ms),
            remaining_ms,
            lock_count: session.leases.len(),
            labels: session.labels.clone(),
            renewals: clock.renewals,
            missed: clock.report.missed,
            last_error: clock.report.last_error.clone(),
            max_gap_ms: clock.report.max_gap_ms,
        }
    }

    fn list_sessions(
        &self,
        tenant: &TenantName,
        after: Option<SessionId>,
        page_size: usize,
        now: Now,
    ) -> Reply {
        let page_size = page_size.clamp(1, limits::PAGE_SIZE);
        let begin = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut ours = self
            .journaled
            .session_ids
            .range((begin, Bound::Unbounded))
            .filter(|(_, ix)| self.journaled.sessions.get(**ix).tenant == *tenant)
            .map(|(_, ix)| *ix);
        let sessions: Vec<_> = ours.by_ref().take(page_size).map(|ix| self.session_view(ix, now)).collect();
        let next = ours.next().and_then(|_| sessions.last().map(|session| session.session_id));
        Reply::Sessions { sessions, next }
    }

    fn list_audit(&self, after: u64, page_size: usize, is_asked_for: impl Fn(&AuditEntry) -> bool) -> Reply {
        let page_size = page_size.clamp(1, limits::PAGE_SIZE);
        let entries = &self.journaled.audit.entries;
        let begin = entries.partition_point(|entry| entry.seq <= after);
        let mut found = entries.range(begin..).filter(|entry| is_asked_for(entry));
        let page = found.by_ref().take(page_size).cloned().collect();
        Reply::Audit { entries: page, more: found.next().is_some() }
    }
}
