//! What a stream asks, on its way through the node.

use leasehold_api as api;
use leasehold_api::Problem;
use leasehold_core::{Command, Renew, Reply};
use leasehold_proto::v1 as pb;
use leasehold_proto::v1::request::Ask;
use leasehold_types::{LeaseId, SessionId};

use super::super::convert;
use crate::http::{App, convert as http_convert};

/// What was asked, as far as the answer needs it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Asked {
    Acquire(u64, LeaseId),
    Release(u64),
    Renew(u64, LeaseId),
    Proclaim(u64),
    KeepAlive(u64),
    /// Not understood.
    Nothing(u64),
}

impl Asked {
    /// What this request asks.
    pub(super) fn of(request: &pb::Request) -> Self {
        let id = request.id;
        let lease = |bytes: &[u8]| convert::lease_bytes(bytes).ok();
        match &request.ask {
            Some(Ask::Acquire(ask)) => {
                lease(&ask.lease_id).map_or(Self::Nothing(id), |lease| Self::Acquire(id, lease))
            }
            Some(Ask::Release(_) | Ask::Resign(_)) => Self::Release(id),
            Some(Ask::Renew(ask)) => {
                lease(&ask.lease_id).map_or(Self::Nothing(id), |lease| Self::Renew(id, lease))
            }
            Some(Ask::Proclaim(_)) => Self::Proclaim(id),
            None => Self::Nothing(id),
        }
    }

    /// The client's number of the request.
    pub(super) fn id(self) -> u64 {
        match self {
            Self::Acquire(id, _)
            | Self::Release(id)
            | Self::Renew(id, _)
            | Self::Proclaim(id)
            | Self::KeepAlive(id)
            | Self::Nothing(id) => id,
        }
    }
}

/// What came of a request.
pub(super) struct Done {
    pub(super) asked: Asked,
    pub(super) outcome: Result<Reply, Problem>,
}

/// The command of a request.
pub(super) fn command(app: &App, session: SessionId, request: pb::Request) -> Result<Command, Problem> {
    match request.ask {
        Some(Ask::Acquire(ask)) => Ok(Command::Acquire(convert::stream_acquire(ask, session, &app.limits)?)),
        Some(Ask::Release(ask)) => Ok(Command::Release { lease_id: convert::lease_bytes(&ask.lease_id)? }),
        Some(Ask::Renew(ask)) => {
            let lease_id = convert::lease_bytes(&ask.lease_id)?;
            let renew = http_convert::renew(lease_id, api::RenewRequest::default(), &app.limits)?;
            // A stream is not told what else is in its session.
            Ok(Command::Renew(Renew { lists_locks: false, ..renew }))
        }
        Some(Ask::Proclaim(ask)) => {
            let lease_id = convert::lease_bytes(&ask.lease_id)?;
            Ok(Command::Proclaim { lease_id, value: http_convert::value(ask.value)? })
        }
        Some(Ask::Resign(ask)) => {
            let to = convert::given(&ask.to).map(convert::owner).transpose()?;
            Ok(Command::Resign { lease_id: convert::lease_bytes(&ask.lease_id)?, to })
        }
        None => Err(http_convert::bad_field("ask", "is none of acquire, release, renew, proclaim, resign")),
    }
}

/// Notes leases that ended while their holder was still at work.
pub(in super::super) fn note_expired(app: &App, report: Option<&pb::RenewalReport>) {
    let expired = report.map_or(0, |report| report.expired_while_executing);
    if expired > 0 {
        app.metrics.expired_while_executing(&app.tenant, expired);
        tracing::warn!(
            event = "lock_lost_suspected",
            expired,
            "a client was still working when its lease had ended"
        );
    }
}

/// The command of a keep-alive.
pub(super) fn keep_alive(
    app: &App,
    session: SessionId,
    keep_alive: pb::KeepAlive,
) -> Result<Command, Problem> {
    note_expired(app, keep_alive.report.as_ref());
    let (missed, last_error, max_gap_ms) = convert::report(keep_alive.report);
    let seen_ended =
        keep_alive.seen_ended.iter().map(|id| convert::lease_bytes(id)).collect::<Result<_, _>>()?;
    let renew = api::RenewSessionRequest {
        ttl_ms: None,
        ttl_seconds: None,
        seen_ended,
        missed,
        last_error,
        max_gap_ms,
    };
    Ok(Command::RenewSession(http_convert::renew_session(session, renew, &app.limits)?))
}
