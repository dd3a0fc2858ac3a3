//! gRPC on a protected server: every method of the service, every operation in a batch, streams whose credential ends.

use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::unfold;
use http_body_util::Full;
use hyper_util::client::legacy::Client as HyperClient;
use hyper_util::rt::TokioExecutor;
use leasehold_proto::v1 as pb;
use leasehold_proto::v1::answer::Outcome;
use leasehold_proto::v1::locks_client::LocksClient;
use leasehold_proto::v1::request::Ask;
use leasehold_types::ids;
use prost::Message as _;
use serde_json::json;
use tokio::sync::mpsc;
use tonic::metadata::MetadataValue;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status, Streaming};

use super::Protected;
use crate::support::PATIENCE;

/// Every method, as the committed description has them.
fn methods() -> Vec<String> {
    let files = prost_types::FileDescriptorSet::decode(leasehold_proto::DESCRIPTORS).unwrap();
    let services = files.file.iter().flat_map(|file| {
        let package = file.package().to_owned();
        file.service.iter().map(move |service| (format!("{package}.{}", service.name()), service))
    });
    let paths: Vec<_> = services
        .flat_map(|(name, service)| {
            service.method.iter().map(move |method| format!("/{name}/{}", method.name()))
        })
        .collect();
    assert!(paths.len() >= 10, "{paths:?}");
    paths
}

async fn status_of(protected: &Protected, path: &str, authorization: Option<&str>) -> String {
    let client = HyperClient::builder(TokioExecutor::new()).http2_only(true).build_http();
    let mut request = http::Request::post(format!("{}{path}", protected.server.server.url()))
        .header("content-type", "application/grpc")
        .header("te", "trailers");
    if let Some(value) = authorization {
        request = request.header("authorization", value);
    }
    // One empty message.
    let request = request.body(Full::new(Bytes::from_static(&[0; 5]))).unwrap();
    let answer = tokio::time::timeout(PATIENCE, client.request(request)).await.unwrap().unwrap();
    answer.headers().get("grpc-status").map(|code| code.to_str().unwrap().to_owned()).unwrap_or_default()
}

#[tokio::test]
async fn no_method_opens_without_a_credential_that_counts() {
    let protected = Protected::start().await;
    let web = protected.credential("web", "acme", "client").await;
    let forged =
        format!("Bearer {}{}", &web[..web.len() - 4], if web.ends_with("0000") { "1111" } else { "0000" });
    let revoked = protected.credential("web", "acme", "admin").await;
    protected.revoke(&revoked).await;
    let revoked = format!("Bearer {revoked}");
    let unauthenticated = (Code::Unauthenticated as i32).to_string();
    for path in methods() {
        for shown in [None, Some("Bearer x"), Some(forged.as_str()), Some(revoked.as_str())] {
            assert_eq!(status_of(&protected, &path, shown).await, unauthenticated, "{path} {shown:?}");
        }
    }
    let reflection = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
    assert_eq!(status_of(&protected, reflection, None).await, unauthenticated);
}

struct Grpc {
    client: LocksClient<Channel>,
    bearer: MetadataValue<tonic::metadata::Ascii>,
}

impl Grpc {
    async fn connect(protected: &Protected, secret: &str) -> Self {
        let channel = Endpoint::from_shared(protected.server.server.url()).unwrap().connect().await.unwrap();
        Self { client: LocksClient::new(channel), bearer: format!("Bearer {secret}").parse().unwrap() }
    }

    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.metadata_mut().insert("authorization", self.bearer.clone());
        request
    }

    async fn session(&mut self, key: &str) -> Result<Stream, Status> {
        let (frames, queue) = mpsc::unbounded_channel();
        let open = pb::Open {
            owner_id: "w".into(),
            ttl_ms: Some(60_000),
            resume_key: key.into(),
            ..Default::default()
        };
        frames.send(pb::ClientFrame { open: Some(open), ..Default::default() }).unwrap();
        let outbound = unfold(queue, |mut queue: mpsc::UnboundedReceiver<_>| async {
            queue.recv().await.map(|frame| (frame, queue))
        });
        let request = self.request(outbound);
        let answers = self.client.session(request).await?.into_inner();
        let mut stream = Stream { frames, answers };
        stream.next().await?;
        Ok(stream)
    }
}

struct Stream {
    frames: mpsc::UnboundedSender<pb::ClientFrame>,
    answers: Streaming<pb::ServerFrame>,
}

impl Stream {
    async fn next(&mut self) -> Result<pb::ServerFrame, Status> {
        let frame = tokio::time::timeout(PATIENCE, self.answers.message()).await.expect("a frame in time")?;
        frame.ok_or_else(|| Status::cancelled("the stream ended"))
    }

    /// What came of each of these, in order.
    async fn ask(&mut self, asks: Vec<Ask>) -> Vec<Result<(), String>> {
        let count = asks.len();
        let requests = (1..).zip(asks).map(|(id, ask)| pb::Request { id, ask: Some(ask) }).collect();
        self.frames.send(pb::ClientFrame { requests, ..Default::default() }).unwrap();
        let mut answers = Vec::new();
        while answers.len() < count {
            answers.extend(self.next().await.unwrap().answers);
        }
        answers.sort_by_key(|answer| answer.id);
        let told = |answer: pb::Answer| match answer.outcome.unwrap() {
            Outcome::Problem(problem) => Err(problem.code),
            _ => Ok(()),
        };
        answers.into_iter().map(told).collect()
    }
}

fn acquire(resource: &str) -> (Ask, Vec<u8>) {
    let id = ids::random().to_vec();
    let ask =
        pb::StreamAcquire { resource: resource.into(), lease_id: id.clone().into(), ..Default::default() };
    (Ask::Acquire(ask), id)
}

fn release(id: &[u8]) -> Ask {
    Ask::Release(pb::StreamRelease { lease_id: id.to_vec().into() })
}

#[tokio::test]
async fn each_operation_in_a_batch_is_authorized_by_itself() {
    let protected = Protected::start().await;
    let body = json!({"principal": "web", "role": "client", "scopes": ["orders/"]});
    let secret = protected.create(body).await["secret"].as_str().unwrap().to_owned();
    let mut stream = Grpc::connect(&protected, &secret).await.session("0123456789abcdef-a").await.unwrap();
    let (own, id) = acquire("orders/1");
    let (foreign, _) = acquire("billing/1");
    let told = stream.ask(vec![own, foreign, release(&id)]).await;
    assert_eq!(told, [Ok(()), Err("forbidden".to_owned()), Ok(())]);
}

#[tokio::test]
async fn a_stream_reaches_no_lease_and_no_session_of_another_principal() {
    let protected = Protected::start().await;
    let (web, batch) = (
        protected.credential("web", "acme", "client").await,
        protected.credential("batch", "acme", "client").await,
    );
    let mut held = Grpc::connect(&protected, &web).await.session("0123456789abcdef-b").await.unwrap();
    let (ask, id) = acquire("a");
    assert_eq!(held.ask(vec![ask]).await, [Ok(())]);
    // The same resume key is another session for another principal.
    let mut other = Grpc::connect(&protected, &batch).await.session("0123456789abcdef-b").await.unwrap();
    let renew = Ask::Renew(pb::StreamRenew { lease_id: id.clone().into() });
    let gone = Err("lease_not_held".to_owned());
    assert_eq!(other.ask(vec![renew, release(&id)]).await, [gone.clone(), gone]);
    assert_eq!(held.ask(vec![release(&id)]).await, [Ok(())], "it was held all the time");
    let mut unary = Grpc::connect(&protected, &batch).await;
    let (ask, id) = acquire("b");
    assert_eq!(held.ask(vec![ask]).await, [Ok(())]);
    let lease_id = leasehold_types::LeaseId::from_bytes(id.try_into().unwrap()).to_string();
    let request = unary.request(pb::ReleaseRequest { lease_id, ..Default::default() });
    assert!(unary.client.release(request).await.is_err());
}

#[tokio::test]
async fn a_stream_ends_with_its_credential() {
    let protected = Protected::start().await;
    let web = protected.credential("web", "acme", "client").await;
    let mut stream = Grpc::connect(&protected, &web).await.session("0123456789abcdef-c").await.unwrap();
    let mut watch = Grpc::connect(&protected, &web).await;
    let request = watch.request(pb::WatchRequest::default());
    let mut events = watch.client.watch(request).await.unwrap().into_inner();
    assert_eq!(protected.revoke(&web).await.status, 200);
    let (ask, _) = acquire("a");
    assert_eq!(stream.ask(vec![ask]).await, [Err("unauthenticated".to_owned())]);
    let other = protected.credential("batch", "acme", "client").await;
    protected.as_caller(&other).acquire("b").await;
    let told = tokio::time::timeout(Duration::from_secs(30), events.message()).await.expect("it ends");
    assert_eq!(told.unwrap_err().code(), Code::Unauthenticated, "no event is told any more");
}
