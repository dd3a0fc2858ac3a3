//! What is the same command again, and what has ended already.

use leasehold_core::{Acquire, Refusal};
use leasehold_types::{EndReason, FencingToken, LeaseId, RequestKey, TenantName};

use super::{Lease, Naive, Use, Waiter, What};

pub(super) fn token(number: u64) -> FencingToken {
    FencingToken::new(number).unwrap()
}

impl Lease {
    /// Whether this acquire asks for what the lease was given for.
    pub(super) fn was_for(&self, tenant: &TenantName, acquire: &Acquire) -> bool {
        let ttl_same = self.session.is_some() || acquire.ttl.map(|ttl| ttl.ms()) == self.asked_ttl;
        ttl_same
            && self.tenant == *tenant
            && self.resource == acquire.resource
            && self.sharing == acquire.sharing
            && self.class == acquire.class
            && self.session == acquire.session
            && self.max_hold == acquire.max_hold_ms
            && self.lock_delay == acquire.lock_delay_ms
    }
}

impl Waiter {
    pub(super) fn is_for(&self, tenant: &TenantName, later: &Acquire) -> bool {
        let earlier = &self.acquire;
        let id_same = !later.lease_id_chosen || later.lease_id == earlier.lease_id;
        id_same
            && self.tenant == *tenant
            && earlier.resource == later.resource
            && earlier.sharing == later.sharing
            && earlier.class == later.class
            && earlier.session == later.session
            && (earlier.session.is_some() || earlier.ttl == later.ttl)
            && earlier.max_hold_ms == later.max_hold_ms
            && earlier.lock_delay_ms == later.lock_delay_ms
    }
}

impl Naive {
    pub(super) fn used(&self, tenant: &TenantName, key: Option<&RequestKey>) -> Option<&Use> {
        let key = key?;
        let found = self.keys.iter().find(|(whose, name, _)| whose == tenant && name == key);
        found.map(|(_, _, used)| used)
    }

    /// Whether a waiting acquire has this key.
    pub(super) fn waits_under(&self, tenant: &TenantName, key: Option<&RequestKey>) -> bool {
        key.is_some()
            && self.waiters.iter().any(|waiter| waiter.tenant == *tenant && waiter.key.as_ref() == key)
    }

    /// Writes down what a key was used for, and remembers it from now on.
    pub(super) fn use_key(&mut self, tenant: &TenantName, key: Option<&RequestKey>, used: Use) {
        let Some(key) = key else { return };
        if self.used(tenant, Some(key)).is_none() {
            self.keys.push((tenant.clone(), key.clone(), used));
            self.remember(tenant.clone(), What::Key(key.clone()));
        }
    }

    pub(super) fn ended(&self, id: LeaseId) -> Option<(&TenantName, EndReason, bool, Option<&Lease>)> {
        self.remembered.iter().find_map(|remembered| match &remembered.what {
            What::Lease { id: ended, reason, max_hold, was } if *ended == id => {
                Some((&remembered.tenant, *reason, *max_hold, was.as_deref()))
            }
            _ => None,
        })
    }

    pub(super) fn not_held(&self, tenant: &TenantName, id: LeaseId) -> Refusal {
        match self.ended(id).filter(|(whose, ..)| *whose == tenant) {
            Some((_, reason, max_hold, was)) => {
                Refusal::LeaseNotHeld { reason, max_hold, token: was.map(|was| token(was.token)) }
            }
            None => Refusal::LeaseNotHeld { reason: EndReason::Unknown, max_hold: false, token: None },
        }
    }
}
