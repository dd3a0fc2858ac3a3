//! From replies to the wire.

use leasehold_api as api;
use leasehold_api::Timestamp;
use leasehold_core as core;
use leasehold_types::FencingToken;

/// A grant as it is told.
pub(crate) fn granted(grant: core::Grant, signed_token: Option<String>) -> api::AcquireAnswer {
    api::AcquireAnswer::Granted(api::GrantedAnswer {
        acquired: api::Yes,
        resource: grant.resource,
        owner_id: grant.owner,
        lease_id: grant.lease_id,
        fencing_token: grant.token,
        permit: grant.permit,
        signed_token,
        ttl_ms: grant.ttl_ms,
        expires_at: Timestamp(grant.expires_at),
        created_at: Timestamp(grant.created_at),
        mode: grant.mode,
        class: grant.class,
        guarantee: grant.guarantee,
        session_id: grant.session,
        warning: grant.warning.map(str::to_owned),
    })
}

/// A refusal of an acquire as it is told.
pub(crate) fn not_granted(not: core::NotGranted) -> api::AcquireAnswer {
    api::AcquireAnswer::NotGranted(api::NotGrantedAnswer {
        acquired: api::No,
        resource: not.resource,
        holders: not.holders.into_iter().map(holder).collect(),
        waiters: not.waiters as u64,
        earliest_regrant_at: not.earliest_regrant_at.map(Timestamp),
    })
}

/// A holder as others may see it.
pub(crate) fn holder(holder: core::Holder) -> api::Holder {
    api::Holder {
        owner_id: holder.owner,
        fencing_token: holder.token,
        permit: holder.permit,
        expires_at: Timestamp(holder.expires_at),
        mode: holder.mode,
    }
}

/// A renewal as it is told, with each lock as `signed` signs it.
pub(crate) fn renewed(
    renewed: core::Renewed,
    signed: impl Fn(&core::RenewedLock) -> Option<String>,
) -> api::RenewAnswer {
    let lock = |lock: core::RenewedLock| api::RenewedLock {
        signed_token: signed(&lock),
        resource: lock.resource,
        fencing_token: lock.token,
    };
    api::RenewAnswer {
        renewed: api::Yes,
        lease_id: renewed.lease_id,
        ttl_ms: renewed.ttl_ms,
        expires_at: Timestamp(renewed.expires_at),
        locks: renewed.locks.into_iter().map(lock).collect(),
    }
}

/// A renewed session as it is told.
pub(crate) fn session_renewed(renewed: core::SessionRenewed) -> api::RenewSessionAnswer {
    let ended = |ended: core::EndedInSession| api::EndedLease {
        lease_id: ended.lease_id,
        resource: ended.resource,
        fencing_token: ended.token,
        reason: ended.reason,
    };
    api::RenewSessionAnswer {
        session_id: renewed.session_id,
        ttl_ms: renewed.ttl_ms,
        expires_at: Timestamp(renewed.expires_at),
        lock_count: renewed.lock_count as u64,
        ended: renewed.ended.into_iter().map(ended).collect(),
    }
}

/// Everything known of a lease; without its id where others may read it.
pub(crate) fn record(view: core::LeaseView, show_id: bool) -> api::LockRecord {
    api::LockRecord {
        resource: view.resource,
        owner_id: view.owner,
        lease_id: show_id.then_some(view.lease_id),
        fencing_token: view.token,
        permit: view.permit,
        // For the holder alone; the handler that shows one lease to it knows the keys.
        signed_token: None,
        mode: view.mode,
        limit: view.limit,
        class: view.class,
        guarantee: view.guarantee,
        session_id: view.session,
        created_at: Timestamp(view.created_at),
        expires_at: Timestamp(view.expires_at),
        ttl_ms: view.ttl_ms,
        remaining_ms: view.remaining_ms,
        held_ms: view.held_ms,
        max_hold_ms: view.max_hold_ms,
        lock_delay_ms: view.lock_delay_ms,
        labels: view.labels,
        renewals: view.renewals,
        missed: view.missed,
        last_error: view.last_error.map(String::from),
        max_gap_ms: view.max_gap_ms,
        waiters: view.waiters as u64,
    }
}

/// An explanation as it is told.
pub(crate) fn explained(explained: core::Explained) -> api::ExplainAnswer {
    let waiter = |waiter: core::WaiterView| api::WaiterRecord {
        owner_id: waiter.owner,
        mode: waiter.mode,
        waiting_ms: waiter.waiting_ms,
    };
    let ending = |ending: core::Ending| api::EndingRecord {
        owner_id: ending.owner,
        fencing_token: ending.token,
        reason: ending.reason,
        max_hold: ending.max_hold,
        at: Timestamp(ending.at),
    };
    api::ExplainAnswer {
        resource: explained.resource,
        holders: explained.holders.into_iter().map(|view| record(view, false)).collect(),
        waiters: explained.waiters.into_iter().map(waiter).collect(),
        last_token: explained.last_token,
        endings: explained.endings.into_iter().map(ending).collect(),
        contention: explained.contended,
        // What was reported is not the table's; the handler knows it.
        fence_rejections: 0,
        earliest_regrant_at: explained.earliest_regrant_at.map(Timestamp),
        as_of: Timestamp(explained.as_of),
    }
}

/// A session as it is told.
pub(crate) fn session(view: core::SessionView) -> api::SessionRecord {
    api::SessionRecord {
        session_id: view.session_id,
        owner_id: view.owner,
        ttl_ms: view.ttl_ms,
        created_at: Timestamp(view.created_at),
        expires_at: Timestamp(view.expires_at),
        remaining_ms: view.remaining_ms,
        lock_count: view.lock_count as u64,
        labels: view.labels,
        renewals: view.renewals,
        missed: view.missed,
        last_error: view.last_error.map(String::from),
        max_gap_ms: view.max_gap_ms,
    }
}

/// An audit entry as it is told.
pub(crate) fn audit_record(entry: core::AuditEntry) -> api::AuditRecord {
    api::AuditRecord {
        seq: entry.seq,
        action: entry.action.as_str().to_owned(),
        resource: entry.resource.map(|key| key.name().to_owned()),
        tenant: entry.tenant.into(),
        actor_id: entry.actor.into(),
        identity: entry.identity.map(String::from),
        reason: entry.reason.into(),
        fencing_token: match entry.tokens[..] {
            [token] => FencingToken::new(token).ok(),
            _ => None,
        },
        fencing_tokens: entry.tokens,
        created_at: Timestamp(entry.at),
        prev_hash: hex(&entry.prev_hash),
        hash: hex(&entry.hash),
    }
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
