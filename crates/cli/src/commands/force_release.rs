//! `force-release`.

use leasehold_api::{ForceReleaseAnswer, ForceReleaseRequest, Yes};
use leasehold_types::ResourceName;

use crate::client::{Call, Client, encoded};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Format, Out};
use crate::plan::{Operator, Target};

/// Takes a resource away from its holders.
pub(crate) async fn force_release(
    client: &Client,
    out: &mut Out,
    resource: &ResourceName,
    target: Target,
    skip_lock_delay: bool,
    operator: Operator,
) -> Result<Exit, Failure> {
    let (fencing_token, all) = match target {
        Target::Token(token) => (Some(token), None),
        Target::All => (None, Some(Yes)),
    };
    let request = ForceReleaseRequest {
        actor_id: operator.actor,
        reason: operator.reason,
        fencing_token,
        all,
        skip_lock_delay: skip_lock_delay.then_some(true),
    };
    let path = format!("/v1/resources/{}/force-release", encoded(resource.as_str()));
    let answer =
        client.call(&Call::post(path, &request, "look with `leasehold show` and `leasehold audit`")).await?;
    if out.format() == Format::Json {
        out.line(&answer.text)?;
        return Ok(Exit::Done);
    }
    let forced: ForceReleaseAnswer = answer.read()?;
    for holder in &forced.released {
        out.line(&format!("forced out {} with token {}", holder.owner_id, holder.fencing_token))?;
    }
    if forced.released.is_empty() {
        out.line(&format!("{resource} was free"))?;
    }
    out.line(&format!("audit entry {}", forced.audit_seq))?;
    Ok(Exit::Done)
}
