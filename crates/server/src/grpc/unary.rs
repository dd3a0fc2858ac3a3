//! The service `leasehold.v1.Locks`: unary calls here, the stream in [`super::session`].

use std::pin::Pin;
use std::sync::Arc;

use futures_util::Stream;
use leasehold_api as api;
use leasehold_api::Problem;
use leasehold_core::{Acquire, Command, ForceRelease, LockCursor, LockFilter, Query, Reply};
use leasehold_proto::v1 as pb;
use leasehold_proto::v1::locks_server::Locks;
use leasehold_types::{FencingToken, Permit, RequestKey, ResourceName};
use tonic::{Request, Response, Status, Streaming};

use super::{convert, elections, lookups, problem, session, watch};
use crate::http::{App, convert as http_convert, unexpected};

type Answered<T> = Result<Response<T>, Status>;

/// See the module.
pub(super) struct LocksService {
    app: Arc<App>,
}

impl LocksService {
    pub(super) fn new(app: Arc<App>) -> Self {
        Self { app }
    }

    fn epoch(&self) -> String {
        self.app.epoch.to_str().expect("a UUID and a number").to_owned()
    }

    async fn acquired(&self, request: pb::AcquireRequest) -> Result<pb::AcquireAnswer, Problem> {
        let key = convert::key(&request.request_key)?;
        let acquire = http_convert::acquire(convert::acquire(request)?, &self.app.limits)?;
        self.granted(key, acquire).await
    }

    async fn campaigned(&self, request: pb::CampaignRequest) -> Result<pb::AcquireAnswer, Problem> {
        let key = convert::key(&request.request_key)?;
        self.granted(key, elections::campaign(&self.app, request)?).await
    }

    async fn granted(&self, key: Option<RequestKey>, acquire: Acquire) -> Result<pb::AcquireAnswer, Problem> {
        let (grant, not_granted) = match self.app.acquire(key, acquire).await? {
            Reply::Granted(grant) => {
                let signed = self.app.signed(&*grant);
                (Some(convert::grant(*grant, signed)), None)
            }
            Reply::NotGranted(not) => (None, Some(convert::not_granted(*not))),
            other => unexpected(&other),
        };
        Ok(pb::AcquireAnswer { acquired: grant.is_some(), grant, not_granted, epoch: self.epoch() })
    }

    async fn renewed(&self, request: pb::RenewRequest) -> Result<pb::RenewAnswer, Problem> {
        session::note_expired(&self.app, request.report.as_ref());
        let (lease_id, request) = convert::renew(request)?;
        let renew = http_convert::renew(lease_id, request, &self.app.limits)?;
        match self.app.renew(None, Command::Renew(renew)).await? {
            Reply::Renewed(renewed) => Ok(pb::RenewAnswer {
                lease_id: renewed.lease_id.to_string(),
                ttl_ms: renewed.ttl_ms,
                expires_at_ms: renewed.expires_at.0,
                locks: renewed
                    .locks
                    .into_iter()
                    .map(|lock| pb::RenewedLock {
                        resource: lock.resource.as_str().to_owned(),
                        fencing_token: lock.token.get(),
                        signed_token: self.app.signed(&lock).unwrap_or_default(),
                    })
                    .collect(),
                epoch: self.epoch(),
            }),
            other => unexpected(&other),
        }
    }

    async fn released(&self, request: pb::ReleaseRequest) -> Result<pb::ReleaseAnswer, Problem> {
        let key = convert::key(&request.request_key)?;
        let lease_id = convert::lease_id(&request.lease_id)?;
        let (resource, token) = self.app.free(key, lease_id, Command::Release { lease_id }).await?;
        Ok(self.release_answer(&resource, token))
    }

    fn release_answer(&self, resource: &ResourceName, token: FencingToken) -> pb::ReleaseAnswer {
        let resource = resource.as_str().to_owned();
        pb::ReleaseAnswer { resource, fencing_token: token.get(), epoch: self.epoch() }
    }

    async fn locks(&self, request: pb::ListLocksRequest) -> Result<pb::LocksPage, Problem> {
        match self.app.query(Query::Locks(filter(request)?)).await? {
            Reply::Locks(page) => Ok(pb::LocksPage {
                locks: page.locks.into_iter().map(|view| convert::record(view, false)).collect(),
                next_cursor: page.next.map(|cursor| pb::Cursor {
                    resource: cursor.resource.as_str().to_owned(),
                    fencing_token: cursor.token,
                }),
                as_of_ms: page.as_of.0,
            }),
            other => unexpected(&other),
        }
    }

    async fn forced(&self, request: pb::ForceReleaseRequest) -> Result<pb::ForceReleaseAnswer, Problem> {
        let key = convert::key(&request.request_key)?;
        let force: ForceRelease = http_convert::force_release(
            convert::resource(&request.resource)?,
            api::ForceReleaseRequest {
                actor_id: request.actor_id,
                reason: request.reason,
                fencing_token: request.fencing_token.map(convert::token).transpose()?,
                all: request.all.then_some(api::Yes),
                skip_lock_delay: Some(request.skip_lock_delay),
            },
        )?;
        match self.app.submit(key, Command::ForceRelease(force)).await? {
            Reply::ForceReleased { released, audit_seq } => Ok(pb::ForceReleaseAnswer {
                released: released.into_iter().map(convert::holder).collect(),
                audit_seq,
            }),
            other => unexpected(&other),
        }
    }

    async fn opened(&self, request: pb::OpenSessionRequest) -> Result<pb::OpenSessionAnswer, Problem> {
        let key = convert::key(&request.request_key)?;
        let open = api::OpenSessionRequest {
            owner_id: convert::owner(&request.owner_id)?,
            ttl_ms: request.ttl_ms,
            ttl_seconds: None,
            labels: convert::labels(request.labels)?,
        };
        let open = http_convert::open_session(open, &self.app.limits)?;
        match self.app.submit(key, Command::OpenSession(open)).await? {
            Reply::SessionOpened(opened) => Ok(pb::OpenSessionAnswer {
                session_id: opened.session_id.to_string(),
                ttl_ms: opened.ttl_ms,
                expires_at_ms: opened.expires_at.0,
                epoch: self.epoch(),
            }),
            other => unexpected(&other),
        }
    }

    async fn session_renewed(
        &self,
        request: pb::RenewSessionRequest,
    ) -> Result<pb::RenewSessionAnswer, Problem> {
        session::note_expired(&self.app, request.report.as_ref());
        let (missed, last_error, max_gap_ms) = convert::report(request.report);
        let seen_ended =
            request.seen_ended.iter().map(|id| convert::lease_id(id)).collect::<Result<_, _>>()?;
        let renew = api::RenewSessionRequest {
            ttl_ms: request.ttl_ms,
            ttl_seconds: None,
            seen_ended,
            missed,
            last_error,
            max_gap_ms,
        };
        let renew =
            http_convert::renew_session(convert::session_id(&request.session_id)?, renew, &self.app.limits)?;
        match self.app.renew(None, Command::RenewSession(renew)).await? {
            Reply::SessionRenewed(renewed) => Ok(pb::RenewSessionAnswer {
                session_id: renewed.session_id.to_string(),
                ttl_ms: renewed.ttl_ms,
                expires_at_ms: renewed.expires_at.0,
                lock_count: renewed.lock_count as u64,
                ended: renewed.ended.into_iter().map(convert::ended_lease).collect(),
                epoch: self.epoch(),
            }),
            other => unexpected(&other),
        }
    }

    async fn session_closed(
        &self,
        request: pb::CloseSessionRequest,
    ) -> Result<pb::CloseSessionAnswer, Problem> {
        let by_operator = match (convert::given(&request.actor_id), convert::given(&request.reason)) {
            (None, None) => None,
            _ => Some(http_convert::operator(&request.actor_id, &request.reason)?),
        };
        let session_id = convert::session_id(&request.session_id)?;
        match self.app.submit(None, Command::CloseSession { session_id, by_operator }).await? {
            Reply::SessionClosed { session_id, released } => {
                Ok(pb::CloseSessionAnswer { session_id: session_id.to_string(), released })
            }
            other => unexpected(&other),
        }
    }

    async fn validated(&self, request: pb::ValidateTokenRequest) -> Result<pb::ValidateTokenAnswer, Problem> {
        let query = Query::Validate {
            resource: convert::resource(&request.resource)?,
            token: convert::token(request.fencing_token)?,
            permit: request.permit.map(Permit),
        };
        match self.app.query(query).await? {
            Reply::Validated { current, last_token } => {
                Ok(pb::ValidateTokenAnswer { current, last_token: last_token.map(FencingToken::get) })
            }
            other => unexpected(&other),
        }
    }
}

fn filter(request: pb::ListLocksRequest) -> Result<LockFilter, Problem> {
    let cursor = |cursor: pb::Cursor| {
        Ok::<_, Problem>(LockCursor {
            resource: convert::resource(&cursor.resource)?,
            token: cursor.fencing_token,
        })
    };
    Ok(LockFilter {
        prefix: convert::given(&request.prefix).map(Box::from),
        owner: convert::given(&request.owner_id).map(convert::owner).transpose()?,
        session: convert::given(&request.session_id).map(convert::session_id).transpose()?,
        held_longer_than_ms: request.held_longer_than_ms,
        missed_at_least: request.missed_at_least,
        cursor: request.cursor.map(cursor).transpose()?,
        page_size: convert::page_size(request.page_size),
    })
}

fn answered<T>(outcome: Result<T, Problem>) -> Answered<T> {
    outcome.map(Response::new).map_err(problem::status)
}

#[tonic::async_trait]
impl Locks for LocksService {
    async fn acquire(&self, request: Request<pb::AcquireRequest>) -> Answered<pb::AcquireAnswer> {
        answered(self.acquired(request.into_inner()).await)
    }

    async fn renew(&self, request: Request<pb::RenewRequest>) -> Answered<pb::RenewAnswer> {
        answered(self.renewed(request.into_inner()).await)
    }

    async fn release(&self, request: Request<pb::ReleaseRequest>) -> Answered<pb::ReleaseAnswer> {
        answered(self.released(request.into_inner()).await)
    }

    async fn get_lock(&self, request: Request<pb::GetLockRequest>) -> Answered<pb::LockRecord> {
        let lease_id = convert::lease_id(&request.get_ref().lease_id).map_err(problem::status)?;
        match self.app.query(Query::Lease(lease_id)).await.map_err(problem::status)? {
            Reply::Lease(view) => {
                let signed_token = self.app.signed(&*view).unwrap_or_default();
                Ok(Response::new(pb::LockRecord { signed_token, ..convert::record(*view, true) }))
            }
            other => unexpected(&other),
        }
    }

    async fn list_locks(&self, request: Request<pb::ListLocksRequest>) -> Answered<pb::LocksPage> {
        answered(self.locks(request.into_inner()).await)
    }

    async fn explain(&self, request: Request<pb::ExplainRequest>) -> Answered<pb::ExplainAnswer> {
        let resource = convert::resource(&request.get_ref().resource).map_err(problem::status)?;
        match self.app.query(Query::Explain(resource)).await.map_err(problem::status)? {
            Reply::Explained(explained) => Ok(Response::new(convert::explained(*explained))),
            other => unexpected(&other),
        }
    }

    async fn force_release(
        &self,
        request: Request<pb::ForceReleaseRequest>,
    ) -> Answered<pb::ForceReleaseAnswer> {
        answered(self.forced(request.into_inner()).await)
    }

    async fn validate_token(
        &self,
        request: Request<pb::ValidateTokenRequest>,
    ) -> Answered<pb::ValidateTokenAnswer> {
        answered(self.validated(request.into_inner()).await)
    }

    async fn open_session(
        &self,
        request: Request<pb::OpenSessionRequest>,
    ) -> Answered<pb::OpenSessionAnswer> {
        answered(self.opened(request.into_inner()).await)
    }

    async fn renew_session(
        &self,
        request: Request<pb::RenewSessionRequest>,
    ) -> Answered<pb::RenewSessionAnswer> {
        answered(self.session_renewed(request.into_inner()).await)
    }

    async fn close_session(
        &self,
        request: Request<pb::CloseSessionRequest>,
    ) -> Answered<pb::CloseSessionAnswer> {
        answered(self.session_closed(request.into_inner()).await)
    }

    async fn get_session(&self, request: Request<pb::GetSessionRequest>) -> Answered<pb::SessionRecord> {
        answered(lookups::session(&self.app, request.get_ref()).await)
    }

    async fn list_sessions(&self, request: Request<pb::ListSessionsRequest>) -> Answered<pb::SessionsPage> {
        answered(lookups::sessions(&self.app, request.get_ref()).await)
    }

    async fn list_audit(&self, request: Request<pb::ListAuditRequest>) -> Answered<pb::AuditPage> {
        answered(lookups::audit(&self.app, request.get_ref()).await)
    }

    async fn verify_audit(
        &self,
        _request: Request<pb::VerifyAuditRequest>,
    ) -> Answered<pb::VerifyAuditAnswer> {
        answered(lookups::verify_audit(&self.app).await)
    }

    async fn campaign(&self, request: Request<pb::CampaignRequest>) -> Answered<pb::AcquireAnswer> {
        answered(self.campaigned(request.into_inner()).await)
    }

    async fn proclaim(&self, request: Request<pb::ProclaimRequest>) -> Answered<pb::ProclaimAnswer> {
        let proclaimed = elections::proclaim(&self.app, request.into_inner()).await;
        answered(
            proclaimed.map(|token| pb::ProclaimAnswer { fencing_token: token.get(), epoch: self.epoch() }),
        )
    }

    async fn resign(&self, request: Request<pb::ResignRequest>) -> Answered<pb::ReleaseAnswer> {
        let resigned = elections::resign(&self.app, request.into_inner()).await;
        answered(resigned.map(|(resource, token)| self.release_answer(&resource, token)))
    }

    async fn get_election(&self, request: Request<pb::GetElectionRequest>) -> Answered<pb::ElectionAnswer> {
        answered(elections::show(&self.app, request.into_inner()).await)
    }

    type ObserveStream = Pin<Box<dyn Stream<Item = Result<pb::LeaderChange, Status>> + Send>>;

    async fn observe(&self, request: Request<pb::ObserveRequest>) -> Answered<Self::ObserveStream> {
        let changes = elections::observe(&self.app, request.into_inner()).map_err(problem::status)?;
        Ok(Response::new(Box::pin(changes)))
    }

    type WatchStream = Pin<Box<dyn Stream<Item = Result<pb::WatchEvent, Status>> + Send>>;

    async fn watch(&self, request: Request<pb::WatchRequest>) -> Answered<Self::WatchStream> {
        let events = watch::start(&self.app, request.into_inner()).map_err(problem::status)?;
        Ok(Response::new(Box::pin(events)))
    }

    async fn status(&self, _request: Request<pb::StatusRequest>) -> Answered<pb::StatusAnswer> {
        let status = self.app.handle.status();
        Ok(Response::new(pb::StatusAnswer {
            cluster_id: status.cluster.to_string(),
            generation: status.generation.0,
            node: status.node.to_string(),
            role: status.role.as_str().to_owned(),
            epoch: status.epoch.0,
            journal: status.journal.to_owned(),
            durability: status.durability.as_str().to_owned(),
            version: crate::VERSION.to_owned(),
        }))
    }

    type SessionStream = Pin<Box<dyn Stream<Item = Result<pb::ServerFrame, Status>> + Send>>;

    async fn session(&self, request: Request<Streaming<pb::ClientFrame>>) -> Answered<Self::SessionStream> {
        let frames = session::start(Arc::clone(&self.app), request.into_inner());
        Ok(Response::new(Box::pin(frames)))
    }
}
