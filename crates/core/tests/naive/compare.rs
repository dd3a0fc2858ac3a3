//! The table's answers and what it shows, against what is right.

use leasehold_core::{Explained, Reply, SessionView};
use leasehold_types::{ResourceName, TenantName, time::armed_ms};

use super::answers::Answer;
use super::{Lease, Life, Naive};

impl Naive {
    /// Panics unless the table answered what is right.
    pub(crate) fn compare(&self, right: &Answer, reply: Option<&Reply>) {
        let agrees = match (right, reply) {
            (Answer::None, None) => true,
            (Answer::Granted { id, session_renewed }, Some(Reply::Granted(grant))) => {
                let lease = self.leases.iter().find(|lease| lease.id == *id).unwrap();
                grant.lease_id == *id
                    && grant.resource == lease.resource
                    && grant.token.get() == lease.token
                    && grant.permit.map(|permit| permit.0) == lease.permit
                    && grant.owner == lease.owner
                    && grant.session_renewed == *session_renewed
                    && self.gives(lease, grant.ttl_ms)
            }
            (Answer::NotGranted { tokens, waiters }, Some(Reply::NotGranted(no))) => {
                no.holders.iter().map(|holder| holder.token.get()).eq(tokens.iter().copied())
                    && no.waiters == *waiters
            }
            (Answer::Renewed { id, locks }, Some(Reply::Renewed(renewed))) => {
                let lease = self.leases.iter().find(|lease| lease.id == *id).unwrap();
                renewed.lease_id == *id
                    && renewed.locks.iter().map(|lock| lock.token.get()).eq(locks.iter().copied())
                    && self.gives(lease, renewed.ttl_ms)
            }
            (
                Answer::Released { resource, token },
                Some(Reply::Released { resource: freed, token: told, .. }),
            ) => *resource == freed.to_name() && told.get() == *token,
            (Answer::Proclaimed { token }, Some(Reply::Proclaimed { token: told, .. })) => {
                told.get() == *token
            }
            (Answer::Opened(id), Some(Reply::SessionOpened(opened))) => {
                let session = self.sessions.iter().find(|session| session.id == *id).unwrap();
                opened.session_id == *id && self.left(&session.life).contains(&opened.ttl_ms)
            }
            (Answer::Kept { id, locks, ended }, Some(Reply::SessionRenewed(kept))) => {
                let session = self.sessions.iter().find(|session| session.id == *id).unwrap();
                kept.session_id == *id
                    && kept.lock_count == *locks
                    && kept.ended.iter().map(|ended| ended.lease_id).eq(ended.iter().copied())
                    && self.left(&session.life).contains(&kept.ttl_ms)
            }
            (Answer::Closed { released }, Some(Reply::SessionClosed { released: told, .. })) => {
                released == told
            }
            (Answer::Forced { tokens, seq }, Some(Reply::ForceReleased { released, audit_seq })) => {
                released.iter().map(|holder| holder.token.get()).eq(tokens.iter().copied())
                    && audit_seq == seq
            }
            (
                Answer::Recovered { generation, floor },
                Some(Reply::Recovered { generation: told, token_floor }),
            ) => told.0 == *generation && token_floor == floor,
            (Answer::Refused(right), Some(Reply::Refused(told))) => right == told,
            _ => false,
        };
        assert!(agrees, "right is {right:?}, the table answered {reply:?}");
    }

    /// What clients may still count on, as a window.
    fn left(&self, life: &Life) -> std::ops::RangeInclusive<u64> {
        let drift = armed_ms(life.ttl) - life.ttl;
        let left = |end: u64| end.saturating_sub(self.now).saturating_sub(drift).min(life.ttl);
        left(life.earliest)..=left(life.latest)
    }

    fn gives(&self, lease: &Lease, ttl_ms: u64) -> bool {
        let window = self.left(self.life_of(lease));
        let hold = lease
            .max_hold
            .zip(lease.hold_ends)
            .map_or(u64::MAX, |(ms, ends)| ends.saturating_sub(self.now).saturating_sub(armed_ms(ms) - ms));
        (*window.start().min(&hold)..=*window.end().min(&hold)).contains(&ttl_ms)
    }

    /// Panics unless the table shows a resource as it is.
    pub(crate) fn compare_resource(&self, tenant: &TenantName, resource: &ResourceName, shown: &Explained) {
        let mut holders = self.holders(tenant, resource);
        holders.sort_by_key(|lease| lease.token);
        let right: Vec<_> = holders
            .iter()
            .map(|lease| (lease.id, lease.token, lease.permit, &lease.owner, lease.value.as_deref()))
            .collect();
        let told: Vec<_> = shown
            .holders
            .iter()
            .map(|lease| {
                let permit = lease.permit.map(|permit| permit.0);
                (lease.lease_id, lease.token.get(), permit, &lease.owner, lease.value.as_deref())
            })
            .collect();
        assert_eq!(right, told, "holders of {resource}");
        let here = self.waiters.iter().filter(|w| w.tenant == *tenant && w.acquire.resource == *resource);
        let right: Vec<_> = here.map(|waiter| (&waiter.owner, waiter.acquire.sharing.mode())).collect();
        let told: Vec<_> = shown.waiters.iter().map(|waiter| (&waiter.owner, waiter.mode)).collect();
        assert_eq!(right, told, "waiters for {resource}");
        let of_it = self.endings.iter().rev().filter(|ending| ending.0 == *tenant && ending.1 == *resource);
        let right: Vec<_> = of_it.take(8).map(|ending| (ending.2, ending.3)).collect();
        let told: Vec<_> = shown.endings.iter().map(|ending| (ending.token.get(), ending.reason)).collect();
        assert_eq!(right, told, "endings of {resource}");
        if let (Some(first), true) =
            (self.waiters.iter().find(|w| w.tenant == *tenant && w.acquire.resource == *resource), self.room)
        {
            assert!(
                self.place(tenant, resource, first.acquire.sharing).is_none(),
                "L1: {resource} has a place"
            );
        }
    }

    /// Panics unless the table shows the live sessions of a tenant.
    pub(crate) fn compare_sessions(&self, tenant: &TenantName, shown: &[SessionView]) {
        let ours = self.sessions.iter().filter(|session| session.tenant == *tenant);
        let mut right: Vec<_> = ours.map(|session| (session.id, session.life.ttl)).collect();
        right.sort_unstable();
        let told: Vec<_> = shown.iter().map(|session| (session.session_id, session.ttl_ms)).collect();
        assert_eq!(right, told, "sessions of {tenant}");
    }
}
