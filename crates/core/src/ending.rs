//! Endings that somebody asks for: release, close, force-release; and `recover`.

use leasehold_types::{
    EndReason, Generation, LeaseId, Now, OwnerId, RequestKey, ResourceKey, SessionId, TenantName, limits,
};

use crate::command::{ForceRelease, ForceTarget, RaiseFormat, Recover};
use crate::fact::{Fact, Forced, RaisedBy, SessionEnd};
use crate::fingerprint;
use crate::journaled::name_of;
use crate::lease::LeaseIx;
use crate::outcomes::Keyed;
use crate::reply::{FormatRaised, Refusal, Reply};
use crate::resource::Resource;
use crate::table::{Decision, LockTable};

impl LockTable {
    pub(crate) fn release(
        &mut self,
        tenant: &TenantName,
        lease_id: LeaseId,
        key: Option<RequestKey>,
        now: Now,
        out: &mut Decision,
    ) -> Reply {
        if !self.is_release_of(tenant, lease_id, key.as_ref()) {
            return Reply::Refused(Refusal::IdempotencyMismatch);
        }
        if let Some(ix) = self.lease_of(tenant.as_str(), lease_id) {
            let lease = self.journaled.leases.get(ix);
            let (resource, token) = (lease.resource.clone(), lease.token());
            let session = self.journaled.session_id_of(lease);
            self.record(Fact::Released { lease_id, at: now.wall, key }, now, out);
            return Reply::Released { resource, token, session };
        }
        if self.is_unknown(tenant, lease_id) {
            self.close_id(tenant, lease_id, key, now, out);
        }
        self.released(tenant, lease_id)
    }

    /// Whether nobody has or had this id, and nobody else waits under it: an id that one principal can be granted,
    /// another cannot close.
    fn is_unknown(&self, tenant: &TenantName, lease_id: LeaseId) -> bool {
        let waiting = self.queues.find(tenant, lease_id, None);
        self.journaled.known(lease_id).is_none()
            && waiting
                .is_none_or(|waiter| waiter.tenant == *tenant && self.is_ours(waiter.principal.as_deref()))
    }

    /// Whether the key is new, or was used for this very release.
    fn is_release_of(&self, tenant: &TenantName, lease_id: LeaseId, key: Option<&RequestKey>) -> bool {
        match self.keyed(tenant, key) {
            Ok(None) => true,
            Ok(Some(earlier)) => *earlier == Keyed::Released(lease_id),
            Err(_) => false,
        }
    }

    /// Gives leadership back. With `to`, the candidate of that name comes before the order of asking: the leader's own
    /// choice, and the only exception to that order.
    pub(crate) fn resign(
        &mut self,
        tenant: &TenantName,
        lease_id: LeaseId,
        to: Option<OwnerId>,
        key: Option<RequestKey>,
        now: Now,
        out: &mut Decision,
    ) -> Reply {
        if !self.is_release_of(tenant, lease_id, key.as_ref()) {
            return Reply::Refused(Refusal::IdempotencyMismatch);
        }
        if let Some((to, ix)) = to.zip(self.lease_of(tenant.as_str(), lease_id)) {
            let resource = self.journaled.leases.get(ix).resource.clone();
            if !self.queues.move_to_front(&resource, &to) {
                return Reply::Refused(Refusal::NoSuchWaiter);
            }
        }
        self.release(tenant, lease_id, key, now, out)
    }

    pub(crate) fn proclaim(
        &mut self,
        tenant: &TenantName,
        lease_id: LeaseId,
        value: Box<str>,
        now: Now,
        out: &mut Decision,
    ) -> Reply {
        let Some(ix) = self.lease_of(tenant.as_str(), lease_id) else {
            return Reply::Refused(self.not_held(tenant.as_str(), lease_id));
        };
        let lease = self.journaled.leases.get(ix);
        let (resource, token, same) =
            (name_of(&lease.resource), lease.token(), lease.value() == Some(&*value));
        if !same {
            self.record(Fact::Proclaimed { lease_id, value }, now, out);
        }
        Reply::Proclaimed { resource, token }
    }

    /// Nobody knows the id. A first attempt to acquire under it may still be on its way, or in the queue: it must not
    /// be granted after its caller was told that nothing is held.
    fn close_id(
        &mut self,
        tenant: &TenantName,
        lease_id: LeaseId,
        key: Option<RequestKey>,
        now: Now,
        out: &mut Decision,
    ) {
        if let Some(ticket) = self.queues.find(tenant, lease_id, None).map(|waiter| waiter.ticket) {
            self.withdraw(ticket);
            let refusal = Refusal::LeaseNotHeld { reason: EndReason::Unknown, max_hold: false, token: None };
            out.replies.push((ticket, Reply::Refused(refusal)));
        }
        self.record(Fact::IdClosed { tenant: tenant.clone(), lease_id, key }, now, out);
    }

    /// The answer to a release of what is not held any more: the same as the first time, if that was a release.
    fn released(&self, tenant: &TenantName, lease_id: LeaseId) -> Reply {
        let ended = self.ended_lease_of(tenant.as_str(), lease_id);
        match ended.and_then(|ended| Some((ended.reason, ended.was.as_ref()?))) {
            Some((EndReason::Released, was)) => {
                let session = was.asked_for.session();
                Reply::Released { resource: was.resource.clone(), token: was.token, session }
            }
            _ => Reply::Refused(self.not_held(tenant.as_str(), lease_id)),
        }
    }

    /// What came of an earlier command under this key. A waiting acquire has come to nothing yet, but has the key:
    /// nothing else may be done under it.
    pub(crate) fn keyed(
        &self,
        tenant: &TenantName,
        key: Option<&RequestKey>,
    ) -> Result<Option<&Keyed>, Refusal> {
        let Some(key) = key else { return Ok(None) };
        if self.queues.is_waiting_under(tenant, key) {
            return Err(Refusal::IdempotencyMismatch);
        }
        Ok(self.journaled.outcomes.keyed(tenant, key))
    }

    pub(crate) fn close_session(
        &mut self,
        tenant: &TenantName,
        session_id: SessionId,
        cause: SessionEnd,
        key: Option<RequestKey>,
        now: Now,
        out: &mut Decision,
    ) -> Reply {
        let is_retry = match self.keyed(tenant, key.as_ref()) {
            Ok(None) => false,
            Ok(Some(Keyed::Closed(id))) if *id == session_id => true,
            Ok(Some(_)) | Err(_) => return Reply::Refused(Refusal::IdempotencyMismatch),
        };
        if let Some(ix) = self.session_of(tenant, session_id) {
            let released = self.journaled.sessions.get(ix).leases.len() as u64;
            self.record(Fact::SessionEnded { session_id, cause, at: now.wall, key }, now, out);
            return Reply::SessionClosed { session_id, released };
        }
        match self.ended_session_of(tenant, session_id) {
            Some(ended) if ended.closed || is_retry => {
                Reply::SessionClosed { session_id, released: ended.released }
            }
            Some(_) => Reply::Refused(Refusal::SessionEnded),
            None => Reply::Refused(Refusal::NotFound),
        }
    }

    pub(crate) fn force_release(
        &mut self,
        tenant: &TenantName,
        force: ForceRelease,
        identity: Option<Box<str>>,
        key: Option<RequestKey>,
        now: Now,
        out: &mut Decision,
    ) -> Reply {
        let resource = ResourceKey::new(tenant, &force.resource);
        match self.keyed(tenant, key.as_ref()) {
            Ok(None) => {}
            Ok(Some(Keyed::Forced { fingerprint, released, audit_seq }))
                if *fingerprint == fingerprint::of_force(&force, &resource) =>
            {
                return Reply::ForceReleased { released: released.clone(), audit_seq: *audit_seq };
            }
            Ok(Some(_)) | Err(_) => return Reply::Refused(Refusal::IdempotencyMismatch),
        }
        let leases = match self.forced_leases(&resource, force.target) {
            Ok(leases) => leases,
            Err(refusal) => return Reply::Refused(refusal),
        };
        // As the journaled outcome has it, so that a retry under the key gets the same answer.
        let released = leases.iter().map(|ix| self.journaled.holder(*ix, now.wall)).collect();
        let forced = Forced {
            resource,
            lease_ids: leases.iter().map(|ix| self.journaled.leases.get(*ix).id).collect(),
            target: force.target,
            skip_lock_delay: force.skip_lock_delay,
            operator: force.operator,
            identity,
            at: now.wall,
            key,
        };
        self.record(Fact::ForceReleased(Box::new(forced)), now, out);
        Reply::ForceReleased { released, audit_seq: self.journaled.audit.count }
    }

    /// Who would be forced out. A token that is not held, while others hold, is the operator looking at old news.
    fn forced_leases(&self, resource: &ResourceKey, target: ForceTarget) -> Result<Vec<LeaseIx>, Refusal> {
        let known = self.journaled.resource(resource);
        let holders: Vec<_> = known.into_iter().flat_map(Resource::holders).collect();
        let token_of = |ix: &LeaseIx| self.journaled.leases.get(*ix).token();
        match target {
            ForceTarget::All => Ok(holders),
            ForceTarget::Token(_) if holders.is_empty() => Ok(Vec::new()),
            ForceTarget::Token(token) => match holders.iter().find(|ix| token_of(ix) == token) {
                Some(ix) => Ok(vec![*ix]),
                None => {
                    let current = holders.iter().take(limits::HOLDERS_SHOWN).map(token_of).collect();
                    Err(Refusal::StaleToken { current })
                }
            },
        }
    }

    /// Decides `upgrade finish`: the gate before facts of a newer format.
    pub(crate) fn raise_format(
        &mut self,
        raise: RaiseFormat,
        identity: Option<Box<str>>,
        now: Now,
        out: &mut Decision,
    ) -> Reply {
        let before = self.journaled.format;
        let format = raise.format.max(before);
        if format > before {
            let by = Some(Box::new(RaisedBy { operator: raise.operator, identity }));
            self.record(Fact::FormatRaised { format, by, at: now.wall }, now, out);
            if self.journaled.secret.is_none() {
                self.record(Fact::SecretMade(raise.secret), now, out);
            }
        }
        let secret = self.journaled.secret.clone();
        Reply::FormatRaised(FormatRaised { format, before, secret })
    }

    pub(crate) fn recover(
        &mut self,
        recover: Recover,
        identity: Option<Box<str>>,
        now: Now,
        out: &mut Decision,
    ) -> Reply {
        if recover.token_floor >= limits::TOKEN_MAX {
            return Reply::Refused(Refusal::TokensUsedUp);
        }
        let generation = Generation(self.journaled.generation.0 + 1);
        let token_floor = recover.token_floor.max(self.journaled.last_token);
        let operator = recover.operator;
        self.record(Fact::Recovered { generation, token_floor, operator, identity, at: now.wall }, now, out);
        Reply::Recovered { generation, token_floor }
    }
}
