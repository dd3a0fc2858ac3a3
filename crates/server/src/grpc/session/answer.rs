//! What a stream is told.

use leasehold_core::{Reply, SessionRenewed};
use leasehold_proto::v1 as pb;
use leasehold_proto::v1::answer::Outcome;
use leasehold_types::{EndReason, FencingToken, LeaseId};

use super::super::{convert, problem};
use super::request::{Asked, Done};
use crate::http::{App, unexpected};

/// Puts an outcome into a frame.
pub(super) fn put(app: &App, done: Done, frame: &mut pb::ServerFrame) {
    let id = done.asked.id();
    let outcome = match done.outcome {
        Ok(Reply::SessionRenewed(renewed)) => return kept_alive(id, renewed, frame),
        Err(problem) if matches!(done.asked, Asked::KeepAlive(_)) => {
            // Without its session a stream has nothing more to say.
            frame.end = Some(problem::wire(problem));
            return;
        }
        Err(problem) => Outcome::Problem(problem::wire(problem)),
        Ok(Reply::Granted(grant)) => Outcome::Granted(convert::stream_grant(&grant, app.signed(&*grant))),
        Ok(Reply::NotGranted(not)) => Outcome::NotGranted(convert::not_granted(*not)),
        Ok(Reply::Released { token, .. }) => {
            Outcome::Released(pb::StreamReleased { fencing_token: token.get() })
        }
        Ok(Reply::Renewed(renewed)) => Outcome::Renewed(pb::StreamRenewed {
            ttl_ms: renewed.ttl_ms,
            expires_at_ms: renewed.expires_at.0,
        }),
        Ok(Reply::Proclaimed { token, .. }) => {
            Outcome::Proclaimed(pb::StreamProclaimed { fencing_token: token.get() })
        }
        Ok(other) => unexpected(&other),
    };
    frame.answers.push(pb::Answer { id, outcome: Some(outcome) });
}

fn kept_alive(id: u64, renewed: SessionRenewed, frame: &mut pb::ServerFrame) {
    frame.kept_alive.push(pb::KeptAlive {
        id,
        ttl_ms: renewed.ttl_ms,
        expires_at_ms: renewed.expires_at.0,
        lock_count: renewed.lock_count as u64,
    });
    for ended in renewed.ended {
        frame.losses.push(loss(ended.lease_id, ended.resource.as_str(), Some(ended.token), ended.reason));
    }
}

/// A loss as it is told.
pub(super) fn loss(
    lease_id: LeaseId,
    resource: &str,
    token: Option<FencingToken>,
    reason: EndReason,
) -> pb::Loss {
    pb::Loss {
        lease_id: lease_id.as_bytes().to_vec().into(),
        resource: resource.to_owned(),
        fencing_token: token.map_or(0, FencingToken::get),
        reason: convert::end_reason(reason).into(),
    }
}
