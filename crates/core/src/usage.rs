//! What each tenant has, and how much it may have (S21). Counted as facts are applied, so that it is the same after a
//! replay; the bounds themselves are settings and are not journaled.

use std::collections::BTreeMap;

use leasehold_types::{Labels, ResourceKey, TenantName};

use crate::command::{Acquire, OpenSession};
use crate::journaled::Journaled;
use crate::lease::{Lease, Session};
use crate::reply::Refusal;
use crate::table::LockTable;

/// How much a tenant may have at the same time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quota {
    /// Live leases.
    pub leases: u64,
    /// Live sessions.
    pub sessions: u64,
    /// Waiting acquires.
    pub waiters: u64,
    /// Bytes of names, labels and values of live leases and sessions.
    pub bytes: u64,
}

impl Default for Quota {
    /// No bound but those of the whole node.
    fn default() -> Self {
        Self { leases: u64::MAX, sessions: u64::MAX, waiters: u64::MAX, bytes: u64::MAX }
    }
}

/// The quotas of every tenant.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Quotas {
    /// Of a tenant that is not named.
    pub others: Quota,
    /// Of those that are.
    pub named: BTreeMap<TenantName, Quota>,
}

impl Quotas {
    /// What this tenant may have.
    pub fn of(&self, tenant: &str) -> &Quota {
        self.named.get(tenant).unwrap_or(&self.others)
    }
}

/// What a tenant has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// Live leases.
    pub leases: u64,
    /// Live sessions.
    pub sessions: u64,
    /// Bytes of names, labels and values of both.
    pub bytes: u64,
}

/// What every tenant has; those that have nothing are not in it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Usages(BTreeMap<Box<str>, Usage>);

impl Usages {
    pub(crate) fn of(&self, tenant: &str) -> Usage {
        self.0.get(tenant).copied().unwrap_or_default()
    }

    pub(crate) fn lease_begins(&mut self, lease: &Lease) {
        let (tenant, name) = lease.resource.parts();
        self.change(tenant, |usage| {
            usage.leases += 1;
            usage.bytes += lease_bytes(name, lease);
        });
    }

    pub(crate) fn lease_ends(&mut self, lease: &Lease) {
        let (tenant, name) = lease.resource.parts();
        self.change(tenant, |usage| {
            usage.leases -= 1;
            usage.bytes -= lease_bytes(name, lease);
        });
    }

    pub(crate) fn session_begins(&mut self, session: &Session) {
        self.change(session.tenant.as_str(), |usage| {
            usage.sessions += 1;
            usage.bytes += session_bytes(session.owner.as_str(), &session.labels);
        });
    }

    pub(crate) fn session_ends(&mut self, session: &Session) {
        self.change(session.tenant.as_str(), |usage| {
            usage.sessions -= 1;
            usage.bytes -= session_bytes(session.owner.as_str(), &session.labels);
        });
    }

    fn change(&mut self, tenant: &str, change: impl FnOnce(&mut Usage)) {
        let Some(usage) = self.0.get_mut(tenant) else {
            let mut usage = Usage::default();
            change(&mut usage);
            self.0.insert(tenant.into(), usage);
            return;
        };
        change(usage);
        if *usage == Usage::default() {
            self.0.remove(tenant);
        }
    }
}

fn lease_bytes(name: &str, lease: &Lease) -> u64 {
    let labels = lease.labels().map_or(0, label_bytes);
    (name.len() + labels + lease.value().map_or(0, str::len)) as u64
}

fn session_bytes(owner: &str, labels: &Labels) -> u64 {
    (owner.len() + label_bytes(labels)) as u64
}

fn label_bytes(labels: &Labels) -> usize {
    labels.iter().map(|(name, value)| name.len() + value.len()).sum()
}

impl Journaled {
    /// What this tenant has.
    pub fn usage_of(&self, tenant: &str) -> Usage {
        self.usages.of(tenant)
    }
}

impl LockTable {
    /// Whether the tenant may have one more lease.
    pub(crate) fn may_hold(&self, resource: &ResourceKey, acquire: &Acquire) -> Result<(), Refusal> {
        let tenant = resource.tenant();
        let quota = self.quotas.of(tenant);
        if *quota == Quota::default() {
            return Ok(());
        }
        let usage = self.journaled.usages.of(tenant);
        let value = acquire.value.as_deref().map_or(0, str::len);
        let bytes = (resource.name().len() + label_bytes(&acquire.labels) + value) as u64;
        within("locks", usage.leases, 1, quota.leases)?;
        within("bytes", usage.bytes, bytes, quota.bytes)
    }

    /// Whether one more of the tenant may wait.
    pub(crate) fn may_wait(&self, tenant: &TenantName) -> Result<(), Refusal> {
        let waiting = self.queues.of_tenant(tenant) as u64;
        within("waiters", waiting, 1, self.quotas.of(tenant.as_str()).waiters)
    }

    /// Whether the tenant may have one more session.
    pub(crate) fn may_open_session(&self, tenant: &TenantName, open: &OpenSession) -> Result<(), Refusal> {
        let (quota, usage) = (self.quotas.of(tenant.as_str()), self.journaled.usages.of(tenant.as_str()));
        within("sessions", usage.sessions, 1, quota.sessions)?;
        within("bytes", usage.bytes, session_bytes(open.owner.as_str(), &open.labels), quota.bytes)
    }
}

fn within(what: &'static str, has: u64, wants: u64, limit: u64) -> Result<(), Refusal> {
    match has.saturating_add(wants) > limit {
        true => Err(Refusal::QuotaExceeded { what, limit }),
        false => Ok(()),
    }
}
