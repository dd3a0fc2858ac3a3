//! `/v1/elections`.

use leasehold_api as api;
use leasehold_api::Problem;
use leasehold_core::{Command, Explained, Query as CoreQuery, Reply};
use leasehold_types::{LeaseId, ResourceName};

use super::answer::{Answer, Failure, json};
use super::convert::{self, bad_field};
use super::received::Received;
use super::request;
use super::{App, unexpected};

/// An election by its name.
pub(crate) struct Election {
    pub(crate) name: String,
    pub(crate) resource: ResourceName,
}

impl Election {
    /// Reads the part of the path.
    pub(super) fn named(raw: &str) -> Result<Self, Problem> {
        Self::new(request::path_part("name", raw)?.into_owned())
    }

    /// Under its plain name.
    pub(crate) fn new(name: String) -> Result<Self, Problem> {
        Ok(Self { resource: convert::election_resource(&name)?, name })
    }

    /// Refuses a lease of something else: whoever names an election means that one. A lease that has ended, or that
    /// nobody knows, is left to the command itself, which may be a retry.
    pub(crate) async fn check_lease(&self, app: &App, lease_id: LeaseId) -> Result<(), Problem> {
        match app.query(CoreQuery::Lease(lease_id)).await {
            Ok(Reply::Lease(lease)) if lease.resource != self.resource => {
                Err(bad_field("leaseId", "is not of this election"))
            }
            _ => Ok(()),
        }
    }
}

/// Everything about the resource of an election.
pub(crate) async fn explain(app: &App, resource: &ResourceName) -> Result<Box<Explained>, Problem> {
    match app.query(CoreQuery::Explain(resource.clone())).await? {
        Reply::Explained(explained) => Ok(explained),
        other => unexpected(&other),
    }
}

/// `POST /v1/elections/{name}/campaign`.
pub(super) async fn campaign(app: &App, name: &str, received: Received<'_>) -> Result<Answer, Failure> {
    let election = Election::named(name)?;
    let (key, request) = received.change::<api::CampaignRequest>().await?;
    let acquire = convert::campaign(election.resource, request, &app.limits)?;
    match app.acquire(key, acquire).await? {
        Reply::Granted(grant) => {
            let signed = app.signed(&*grant);
            Ok(json(&convert::elected(*grant, signed)))
        }
        Reply::NotGranted(not) => Ok(json(&convert::not_elected(*not))),
        other => unexpected(&other),
    }
}

/// `GET /v1/elections/{name}`.
pub(super) async fn show(app: &App, name: &str, received: Received<'_>) -> Result<Answer, Failure> {
    received.nothing()?;
    let election = Election::named(name)?;
    let explained = explain(app, &election.resource).await?;
    Ok(json(&api::ElectionAnswer {
        name: election.name,
        leader: convert::leader(&explained),
        candidates: explained.waiters.into_iter().map(|waiter| waiter.owner).collect(),
    }))
}

/// `POST /v1/elections/{name}/proclaim`.
pub(super) async fn proclaim(app: &App, name: &str, received: Received<'_>) -> Result<Answer, Failure> {
    let election = Election::named(name)?;
    let (key, request) = received.change::<api::ProclaimRequest>().await?;
    let (lease_id, value) = (request.lease_id, convert::value(request.value)?);
    election.check_lease(app, lease_id).await?;
    match app.submit(key, Command::Proclaim { lease_id, value }).await? {
        Reply::Proclaimed { token, .. } => {
            Ok(json(&api::ProclaimAnswer { proclaimed: api::Yes, name: election.name, fencing_token: token }))
        }
        other => unexpected(&other),
    }
}

/// `POST /v1/elections/{name}/resign`.
pub(super) async fn resign(app: &App, name: &str, received: Received<'_>) -> Result<Answer, Failure> {
    let election = Election::named(name)?;
    let (key, api::ResignRequest { lease_id, to }) = received.change().await?;
    election.check_lease(app, lease_id).await?;
    let (_, token) = app.free(key, lease_id, Command::Resign { lease_id, to }).await?;
    Ok(json(&api::ResignAnswer { resigned: api::Yes, name: election.name, fencing_token: token }))
}
