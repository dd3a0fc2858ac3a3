//! Unary calls.

use leasehold_proto::v1 as pb;
use prost::Message as _;
use tonic::{Code, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

use crate::support::Fixture;

fn acquire(resource: &str) -> pb::AcquireRequest {
    pb::AcquireRequest { resource: resource.into(), owner_id: "me".into(), ..Default::default() }
}

fn problem(status: &Status) -> pb::Problem {
    let bytes = status.metadata().get_bin("leasehold-problem-bin").unwrap().to_bytes().unwrap();
    pb::Problem::decode(bytes).unwrap()
}

#[tokio::test]
async fn a_lease_from_acquire_to_release() {
    let fixture = Fixture::start().await;
    let mut client = fixture.client().await;
    let answer = client.acquire(acquire("a")).await.unwrap();
    let durability = answer.metadata().get("leasehold-durability").cloned();
    let answer = answer.into_inner();
    let grant = answer.grant.unwrap();
    assert!(answer.acquired && grant.fencing_token == 1 && grant.ttl_ms == 15_000);
    let (cluster, epoch) = answer.epoch.split_once('/').unwrap();
    let status = client.status(pb::StatusRequest {}).await.unwrap().into_inner();
    assert_eq!((cluster, epoch), (status.cluster_id.as_str(), status.epoch.to_string().as_str()));
    assert_eq!(durability.unwrap(), status.durability.as_str());

    let held = client.acquire(acquire("a")).await.unwrap().into_inner();
    assert_eq!(held.not_granted.unwrap().holders[0].fencing_token, 1);

    let lease_id = grant.lease_id;
    let renew = pb::RenewRequest { lease_id: lease_id.clone(), ..Default::default() };
    assert_eq!(client.renew(renew).await.unwrap().into_inner().locks[0].resource, "a");
    let record =
        client.get_lock(pb::GetLockRequest { lease_id: lease_id.clone() }).await.unwrap().into_inner();
    assert_eq!((record.resource.as_str(), record.renewals), ("a", 1));
    let page = client.list_locks(pb::ListLocksRequest::default()).await.unwrap().into_inner();
    assert_eq!((page.locks.len(), page.locks[0].lease_id.as_str()), (1, ""));
    let explained = client.explain(pb::ExplainRequest { resource: "a".into() }).await.unwrap().into_inner();
    assert_eq!((explained.holders.len(), explained.last_token), (1, Some(1)));
    let ask = pb::ValidateTokenRequest { resource: "a".into(), fencing_token: 1, permit: None };
    assert!(client.validate_token(ask).await.unwrap().into_inner().current);

    let release = pb::ReleaseRequest { lease_id, request_key: String::new() };
    for _ in 0..2 {
        assert_eq!(client.release(release.clone()).await.unwrap().into_inner().fencing_token, 1);
    }
}

#[tokio::test]
async fn errors_have_the_codes_of_the_closed_list() {
    let fixture = Fixture::start().await;
    let mut client = fixture.client().await;
    let nobody = "00000000-0000-4000-8000-000000000000".to_owned();
    let renew = pb::RenewRequest { lease_id: nobody.clone(), ..Default::default() };
    let status = client.renew(renew).await.unwrap_err();
    assert_eq!(status.code(), Code::FailedPrecondition);
    assert_eq!(status.metadata().get("leasehold-code").unwrap(), "lease_not_held");
    assert_eq!(problem(&status).reason(), pb::EndReason::Unknown);
    for bad in [
        acquire(""),
        pb::AcquireRequest { owner_id: String::new(), ..acquire("a") },
        pb::AcquireRequest { mode: 9, ..acquire("a") },
        pb::AcquireRequest { limit: Some(2), ..acquire("a") },
        pb::AcquireRequest { ttl_ms: Some(1), ..acquire("a") },
        pb::AcquireRequest { lease_id: "x".into(), ..acquire("a") },
    ] {
        let status = client.acquire(bad.clone()).await.unwrap_err();
        assert_eq!(
            (status.code(), problem(&status).code.as_str()),
            (Code::InvalidArgument, "bad_request"),
            "{bad:?}"
        );
    }
    let force = pb::ForceReleaseRequest {
        resource: "a".into(),
        actor_id: "ops".into(),
        reason: "test".into(),
        ..Default::default()
    };
    assert_eq!(client.force_release(force.clone()).await.unwrap_err().code(), Code::InvalidArgument);
    client.acquire(acquire("a")).await.unwrap();
    let stale = pb::ForceReleaseRequest { fencing_token: Some(7), ..force.clone() };
    assert_eq!(problem(&client.force_release(stale).await.unwrap_err()).code, "stale_token");
    let all = pb::ForceReleaseRequest { all: true, ..force };
    assert!(client.force_release(all).await.unwrap().into_inner().released.len() == 1);
}

#[tokio::test]
async fn a_session_of_calls_lives_and_ends() {
    let fixture = Fixture::start().await;
    let mut client = fixture.client().await;
    let open = pb::OpenSessionRequest { owner_id: "me".into(), ttl_ms: Some(5_000), ..Default::default() };
    let session_id = client.open_session(open).await.unwrap().into_inner().session_id;
    let request =
        pb::AcquireRequest { resource: "a".into(), session_id: session_id.clone(), ..Default::default() };
    assert!(client.acquire(request).await.unwrap().into_inner().acquired);
    let renew = pb::RenewSessionRequest { session_id: session_id.clone(), ..Default::default() };
    assert_eq!(client.renew_session(renew).await.unwrap().into_inner().lock_count, 1);
    let close = pb::CloseSessionRequest { session_id, ..Default::default() };
    assert_eq!(client.close_session(close).await.unwrap().into_inner().released, 1);
}

#[tokio::test]
async fn operators_read_sessions_the_audit_log_and_what_happens() {
    let fixture = Fixture::start().await;
    let mut client = fixture.client().await;
    let watch = |after: &str| pb::WatchRequest { prefix: "a".into(), after: after.into() };
    let mut live = client.watch(watch("")).await.unwrap().into_inner();
    let open = pb::OpenSessionRequest { owner_id: "me".into(), ..Default::default() };
    let session_id = client.open_session(open).await.unwrap().into_inner().session_id;
    for resource in ["a", "b"] {
        client.acquire(acquire(resource)).await.unwrap();
    }
    let force = pb::ForceReleaseRequest {
        resource: "a".into(),
        actor_id: "ops".into(),
        reason: "test".into(),
        all: true,
        ..Default::default()
    };
    client.force_release(force).await.unwrap();

    let granted = live.message().await.unwrap().unwrap();
    let ended = live.message().await.unwrap().unwrap();
    let kind = |event: &pb::WatchEvent| match event.what.clone().unwrap() {
        pb::watch_event::What::Lock(lock) => (lock.kind(), lock.resource.clone(), lock.reason()),
        other => panic!("{other:?}"),
    };
    assert_eq!(kind(&granted).0, pb::lock_event::Kind::Granted);
    assert_eq!(kind(&ended), (pb::lock_event::Kind::Ended, "a".into(), pb::EndReason::Forced));
    let mut resumed = client.watch(watch(&granted.id)).await.unwrap().into_inner();
    assert_eq!(resumed.message().await.unwrap().unwrap(), ended, "b's events are not asked for");
    assert_eq!(client.watch(watch("x")).await.unwrap_err().code(), Code::InvalidArgument);

    let session = client.get_session(pb::GetSessionRequest { session_id: session_id.clone() }).await.unwrap();
    assert_eq!(session.into_inner().owner_id, "me");
    let page = client.list_sessions(pb::ListSessionsRequest::default()).await.unwrap().into_inner();
    assert_eq!((page.sessions.len(), page.sessions[0].session_id.as_str()), (1, session_id.as_str()));
    let audit = client.list_audit(pb::ListAuditRequest::default()).await.unwrap().into_inner();
    assert_eq!((audit.entries.len(), audit.entries[0].action.as_str()), (1, "FORCE_RELEASE"));
    let verified = client.verify_audit(pb::VerifyAuditRequest {}).await.unwrap().into_inner();
    assert!(verified.intact && verified.entries == 1 && verified.head == audit.entries[0].hash);
}

#[tokio::test]
async fn health_and_reflection_are_on() {
    let fixture = Fixture::start().await;
    let channel = fixture.channel().await;
    let ask = HealthCheckRequest { service: "leasehold.v1.Locks".into() };
    let health = HealthClient::new(channel.clone()).check(ask).await.unwrap().into_inner();
    assert_eq!(health.status(), ServingStatus::Serving);
    let unknown = HealthCheckRequest { service: "nobody".into() };
    assert_eq!(HealthClient::new(channel.clone()).check(unknown).await.unwrap_err().code(), Code::NotFound);

    let list = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    let asked = futures_util::stream::iter([list]);
    let mut answers =
        ServerReflectionClient::new(channel).server_reflection_info(asked).await.unwrap().into_inner();
    let answer = answers.message().await.unwrap().unwrap().message_response.unwrap();
    let MessageResponse::ListServicesResponse(list) = answer else { panic!("{answer:?}") };
    let names: Vec<_> = list.service.into_iter().map(|service| service.name).collect();
    assert!(names.contains(&"leasehold.v1.Locks".to_owned()), "{names:?}");
}
