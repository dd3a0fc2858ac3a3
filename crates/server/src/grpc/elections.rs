//! Elections over gRPC: the same as over HTTP.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::Stream;
use futures_util::stream::unfold;
use leasehold_api as api;
use leasehold_api::Problem;
use leasehold_core::{Command, Reply};
use leasehold_proto::v1 as pb;
use leasehold_types::FencingToken;
use tonic::Status;

use super::convert;
use crate::http::elections::{Election, explain};
use crate::http::observe::{Change, Observer};
use crate::http::{App, convert as http_convert, unexpected};

/// An exclusive acquire that carries a value.
pub(super) fn campaign(app: &App, request: pb::CampaignRequest) -> Result<leasehold_core::Acquire, Problem> {
    let election = Election::new(request.name)?;
    let asked = api::CampaignRequest {
        owner_id: convert::given(&request.owner_id).map(convert::owner).transpose()?,
        ttl_ms: request.ttl_ms,
        ttl_seconds: None,
        wait_ms: Some(request.wait_ms),
        value: request.value,
        session_id: convert::given(&request.session_id).map(convert::session_id).transpose()?,
        lease_id: convert::given(&request.lease_id).map(convert::lease_id).transpose()?,
    };
    http_convert::campaign(election.resource, asked, &app.limits)
}

pub(super) async fn proclaim(app: &App, request: pb::ProclaimRequest) -> Result<FencingToken, Problem> {
    let key = convert::key(&request.request_key)?;
    let election = Election::new(request.name)?;
    let (lease_id, value) = (convert::lease_id(&request.lease_id)?, http_convert::value(request.value)?);
    election.check_lease(app, lease_id).await?;
    match app.submit(key, Command::Proclaim { lease_id, value }).await? {
        Reply::Proclaimed { token, .. } => Ok(token),
        other => unexpected(&other),
    }
}

/// The election's resource and the token that led.
pub(super) async fn resign(
    app: &App,
    request: pb::ResignRequest,
) -> Result<(leasehold_types::ResourceName, FencingToken), Problem> {
    let key = convert::key(&request.request_key)?;
    let election = Election::new(request.name)?;
    let lease_id = convert::lease_id(&request.lease_id)?;
    let to = convert::given(&request.to).map(convert::owner).transpose()?;
    election.check_lease(app, lease_id).await?;
    app.free(key, lease_id, Command::Resign { lease_id, to }).await
}

pub(super) async fn show(app: &App, request: pb::GetElectionRequest) -> Result<pb::ElectionAnswer, Problem> {
    let election = Election::new(request.name)?;
    let explained = explain(app, &election.resource).await?;
    Ok(pb::ElectionAnswer {
        name: election.name,
        leader: http_convert::leader(&explained).map(leader),
        candidates: explained.waiters.iter().map(|waiter| waiter.owner.as_str().to_owned()).collect(),
    })
}

/// Who leads, now and after every change.
pub(super) fn observe(
    app: &Arc<App>,
    request: pb::ObserveRequest,
) -> Result<impl Stream<Item = Result<pb::LeaderChange, Status>> + Send + use<>, Problem> {
    let observer = Observer::begin(app, Election::new(request.name)?)?;
    Ok(unfold((observer, VecDeque::new()), |(mut observer, mut ready)| async move {
        if ready.is_empty() {
            ready = observer.next().await?.into();
        }
        let next = ready.pop_front().map_or_else(unchanged, change);
        Some((Ok(next), (observer, ready)))
    }))
}

fn unchanged() -> pb::LeaderChange {
    pb::LeaderChange { leader: None, last_token: None, unchanged: true }
}

fn change(change: Change) -> pb::LeaderChange {
    match change {
        Change::Leads(leads) => {
            pb::LeaderChange { leader: Some(leader(leads)), last_token: None, unchanged: false }
        }
        Change::Vacant { last } => {
            pb::LeaderChange { leader: None, last_token: last.map(FencingToken::get), unchanged: false }
        }
    }
}

fn leader(leader: api::Leader) -> pb::Leader {
    pb::Leader {
        owner_id: leader.owner_id.as_str().to_owned(),
        fencing_token: leader.fencing_token.get(),
        value: leader.value,
        elected_at_ms: leader.elected_at.0.0,
    }
}
