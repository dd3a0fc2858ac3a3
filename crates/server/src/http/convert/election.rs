//! Elections: leadership is a lease with a value on the resource `election/{name}`.

use leasehold_api as api;
use leasehold_api::{ELECTION_PREFIX, Problem, Timestamp};
use leasehold_core as core;
use leasehold_types::{ResourceName, limits};

use super::{acquire, bad_field, granted, not_granted};
use crate::config::Limits;

/// The resource of an election.
pub(crate) fn election_resource(name: &str) -> Result<ResourceName, Problem> {
    ResourceName::new(&format!("{ELECTION_PREFIX}{name}"))
        .map_err(|invalid| bad_field("name", invalid.of("the name of the election")))
}

/// What a leader tells; any text, for programs as well as for people.
pub(crate) fn value(text: String) -> Result<Box<str>, Problem> {
    match text.len() {
        bytes if bytes > limits::VALUE_BYTES => {
            Err(bad_field("value", format_args!("has {bytes} bytes, more than {}", limits::VALUE_BYTES)))
        }
        _ => Ok(text.into()),
    }
}

/// Parses a campaign: an exclusive correctness acquire that carries a value.
pub(crate) fn campaign(
    resource: ResourceName,
    request: api::CampaignRequest,
    limits: &Limits,
) -> Result<core::Acquire, Problem> {
    let told = request.value.map(value).transpose()?;
    let asked = api::AcquireRequest {
        owner_id: request.owner_id,
        ttl_ms: request.ttl_ms,
        ttl_seconds: request.ttl_seconds,
        wait_ms: request.wait_ms,
        session_id: request.session_id,
        lease_id: request.lease_id,
        ..api::AcquireRequest::new(resource)
    };
    Ok(core::Acquire { value: told, ..acquire(asked, limits)? })
}

/// A won campaign as it is told.
pub(crate) fn elected(grant: core::Grant, signed_token: Option<String>) -> api::CampaignAnswer {
    match granted(grant, signed_token) {
        api::AcquireAnswer::Granted(grant) => api::CampaignAnswer::Elected(api::ElectedAnswer {
            elected: api::Yes,
            resource: grant.resource,
            owner_id: grant.owner_id,
            lease_id: grant.lease_id,
            fencing_token: grant.fencing_token,
            signed_token: grant.signed_token,
            ttl_ms: grant.ttl_ms,
            expires_at: grant.expires_at,
            created_at: grant.created_at,
            mode: grant.mode,
            class: grant.class,
            guarantee: grant.guarantee,
            session_id: grant.session_id,
            warning: grant.warning,
        }),
        api::AcquireAnswer::NotGranted(not) => lost(not),
    }
}

/// A lost campaign as it is told.
pub(crate) fn not_elected(not: core::NotGranted) -> api::CampaignAnswer {
    match not_granted(not) {
        api::AcquireAnswer::NotGranted(not) => lost(not),
        api::AcquireAnswer::Granted(_) => unreachable!("a refusal is told as a refusal"),
    }
}

fn lost(not: api::NotGrantedAnswer) -> api::CampaignAnswer {
    api::CampaignAnswer::NotElected(api::NotElectedAnswer {
        elected: api::No,
        resource: not.resource,
        holders: not.holders,
        waiters: not.waiters,
        earliest_regrant_at: not.earliest_regrant_at,
    })
}

/// The leader as everybody may see it.
pub(crate) fn leader(explained: &core::Explained) -> Option<api::Leader> {
    let lease = explained.holders.first()?;
    Some(api::Leader {
        owner_id: lease.owner.clone(),
        fencing_token: lease.token,
        value: lease.value.as_deref().map(str::to_owned),
        elected_at: Timestamp(lease.created_at),
    })
}
