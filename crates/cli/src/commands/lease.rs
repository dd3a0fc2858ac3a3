//! `renew` and `release`.

use leasehold_api::{ReleaseAnswer, RenewAnswer, RenewRequest};
use leasehold_types::LeaseId;

use crate::client::{Call, Client};
use crate::duration;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Format, Out};

/// Renews a lease, or its session.
pub(crate) async fn renew(
    client: &Client,
    out: &mut Out,
    lease_id: LeaseId,
    ttl_ms: Option<u64>,
) -> Result<Exit, Failure> {
    let request = RenewRequest { ttl_ms, ..RenewRequest::default() };
    let call = Call::post(format!("/v1/locks/{lease_id}/renew"), &request, "renew again");
    let answer = client.call(&call).await?;
    if out.format() == Format::Json {
        out.line(&answer.text)?;
        return Ok(Exit::Done);
    }
    let renewed: RenewAnswer = answer.read()?;
    for lock in &renewed.locks {
        let ttl = duration::shown(renewed.ttl_ms);
        out.line(&format!("renewed {} with token {} for {ttl}", lock.resource, lock.fencing_token))?;
    }
    Ok(Exit::Done)
}

/// Gives a lease back.
pub(crate) async fn release(client: &Client, out: &mut Out, lease_id: LeaseId) -> Result<Exit, Failure> {
    let call =
        Call::delete(format!("/v1/locks/{lease_id}"), "release again; a repeated release is the same one");
    let answer = client.call(&call).await?;
    if out.format() == Format::Json {
        out.line(&answer.text)?;
        return Ok(Exit::Done);
    }
    let released: ReleaseAnswer = answer.read()?;
    out.line(&format!("released {} with token {}", released.resource, released.fencing_token))?;
    Ok(Exit::Done)
}
