//! What a client says it holds, when it opens or resumes its session.
//!
//! Leases end by other ways than their stream: given back by their id elsewhere, taken away, gone with their time. Whoever
//! resumes a stream must learn of that with the opening, before the opening counts as a confirmation.

use futures_util::{StreamExt, TryStreamExt, stream};
use leasehold_api::{ErrorCode, Problem};
use leasehold_core::{Query, Reply};
use leasehold_proto::v1 as pb;
use leasehold_types::{EndReason, LeaseId, SessionId};

use super::super::convert;
use super::answer;
use crate::http::{App, unexpected};

/// Questions under way at a time: enough to fill the node's batches, and far below what makes it shed load.
const AT_ONCE: usize = 256;

/// The lease ids of an opening.
pub(super) fn leases(open: &pb::Open) -> Result<Vec<LeaseId>, Problem> {
    open.held.iter().map(|id| convert::lease_bytes(id)).collect()
}

/// Those of `leases` that are not held in this session any more. One question that has no answer fails them all: an
/// opening that does not know must not be given.
pub(super) async fn gone(
    app: &App,
    session: SessionId,
    leases: Vec<LeaseId>,
) -> Result<Vec<pb::Loss>, Problem> {
    let asked = leases.into_iter().map(|lease| gone_one(app, session, lease));
    stream::iter(asked).buffer_unordered(AT_ONCE).try_filter_map(async |loss| Ok(loss)).try_collect().await
}

async fn gone_one(app: &App, session: SessionId, lease: LeaseId) -> Result<Option<pb::Loss>, Problem> {
    let reason = match app.query(Query::Lease(lease)).await {
        Ok(Reply::Lease(view)) if view.session == Some(session) => return Ok(None),
        Ok(Reply::Lease(_)) => EndReason::Unknown,
        Ok(other) => unexpected(&other),
        Err(problem) if problem.code == ErrorCode::LeaseNotHeld => {
            problem.reason.unwrap_or(EndReason::Unknown)
        }
        Err(problem) if problem.code == ErrorCode::NotFound => EndReason::Unknown,
        Err(problem) => return Err(problem),
    };
    Ok(Some(answer::loss(lease, "", None, reason)))
}
