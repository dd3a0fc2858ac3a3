//! The session stream, frame by frame.

use std::time::Duration;

use leasehold_journal::MemoryJournal;
use leasehold_proto::v1 as pb;
use leasehold_proto::v1::answer::Outcome;
use leasehold_proto::v1::request::Ask;
use leasehold_server::RawConfig;
use leasehold_types::{Durability, LeaseId, SessionId, ids};
use tokio::sync::mpsc;
use tonic::{Code, Status, Streaming};

use crate::support::Fixture;

/// One stream.
pub(crate) struct Stream {
    frames: mpsc::UnboundedSender<pb::ClientFrame>,
    answers: Streaming<pb::ServerFrame>,
}

impl Stream {
    async fn begin(fixture: &Fixture, first: pb::ClientFrame) -> Result<Self, Status> {
        let (frames, queue) = mpsc::unbounded_channel();
        frames.send(first).unwrap();
        let outbound = futures_util::stream::unfold(queue, |mut queue| async {
            queue.recv().await.map(|frame| (frame, queue))
        });
        let answers = fixture.client().await.session(outbound).await?.into_inner();
        Ok(Self { frames, answers })
    }

    pub(crate) async fn open(fixture: &Fixture, key: &str) -> (Self, pb::Opened) {
        Self::try_open(fixture, key).await.unwrap()
    }

    /// The same where there may be nobody to open it, or a server that is just changing its part and ends the stream.
    pub(crate) async fn try_open(fixture: &Fixture, key: &str) -> Result<(Self, pb::Opened), Status> {
        let mut stream = Self::begin(fixture, opening(key)).await?;
        let first =
            stream.next_or_end().await?.ok_or_else(|| Status::unavailable("ended before it began"))?;
        Ok((stream, first.opened.unwrap()))
    }

    /// The next frame; `None` at the end.
    pub(crate) async fn next_or_end(&mut self) -> Result<Option<pb::ServerFrame>, Status> {
        let frame = tokio::time::timeout(Duration::from_secs(10), self.answers.message());
        frame.await.expect("a frame in time")
    }

    pub(crate) fn send(&self, requests: Vec<pb::Request>) {
        self.frames.send(pb::ClientFrame { requests, ..Default::default() }).unwrap();
    }

    pub(crate) async fn next(&mut self) -> Result<pb::ServerFrame, Status> {
        let frame = tokio::time::timeout(Duration::from_secs(10), self.answers.message());
        frame.await.expect("a frame in time").map(|frame| frame.expect("the stream goes on"))
    }

    /// So many answers, in the order of their numbers.
    pub(crate) async fn outcomes(&mut self, n: usize) -> Vec<Outcome> {
        let mut answers = Vec::new();
        while answers.len() < n {
            answers.extend(self.next().await.unwrap().answers);
        }
        answers.sort_by_key(|answer| answer.id);
        answers.into_iter().map(|answer| answer.outcome.unwrap()).collect()
    }
}

fn opening(key: &str) -> pb::ClientFrame {
    let open =
        pb::Open { resume_key: key.into(), owner_id: "me".into(), ttl_ms: Some(5_000), ..Default::default() };
    pb::ClientFrame { open: Some(open), ..Default::default() }
}

pub(crate) fn acquire(id: u64, resource: &str, lease: [u8; 16], wait_ms: u64) -> pb::Request {
    let acquire = pb::StreamAcquire {
        resource: resource.into(),
        lease_id: lease.to_vec().into(),
        wait_ms,
        ..Default::default()
    };
    pb::Request { id, ask: Some(Ask::Acquire(acquire)) }
}

pub(crate) fn release(id: u64, lease: [u8; 16]) -> pb::Request {
    pb::Request { id, ask: Some(Ask::Release(pb::StreamRelease { lease_id: lease.to_vec().into() })) }
}

/// Its connection is served on the loop's thread, which a disk that hangs blocks: nobody could tell it anything there (N5).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_a_disk_that_hangs_a_stream_is_ended_and_whoever_comes_back_is_told() {
    let journal = MemoryJournal::with_durability(Durability::Durable);
    let fixture = Fixture::over(journal.clone(), RawConfig::default()).await;
    let (mut stream, opened) = Stream::open(&fixture, "0123456789abcdef").await;
    journal.set_stuck(true);
    let lease = ids::random();
    stream.send(vec![acquire(1, "r", lease, 0)]);
    let ended = stream.next_or_end().await;
    assert!(!matches!(ended, Ok(Some(_))), "nothing is told of what is not durable: {ended:?}");
    let refused = Stream::try_open(&fixture, "0123456789abcdef").await.map(|_| ()).unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable);
    assert!(refused.message().contains("no commit has made progress"), "{refused:?}");

    journal.set_stuck(false);
    let resumed = async {
        loop {
            if let Ok(resumed) = Stream::try_open(&fixture, "0123456789abcdef").await {
                return resumed;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let (mut stream, again) =
        tokio::time::timeout(Duration::from_secs(10), resumed).await.expect("it moves again");
    assert_eq!(again.session_id, opened.session_id);
    stream.send(vec![acquire(1, "r", lease, 0)]);
    assert!(matches!(&stream.outcomes(1).await[..], [Outcome::Granted(_)]), "the same id, the same grant");
}

#[tokio::test]
async fn a_batch_is_done_in_order_and_answered_by_number() {
    let fixture = Fixture::start().await;
    let (mut stream, _) = Stream::open(&fixture, "0123456789abcdef").await;
    let (first, second) = (ids::random(), ids::random());
    stream.send(vec![
        acquire(1, "a", first, 0),
        release(2, first),
        acquire(3, "a", second, 0),
        acquire(4, "a", ids::random(), 0),
    ]);
    let outcomes = stream.outcomes(4).await;
    assert!(matches!(&outcomes[0], Outcome::Granted(grant) if grant.fencing_token == 1), "{outcomes:?}");
    assert!(matches!(&outcomes[1], Outcome::Released(released) if released.fencing_token == 1));
    assert!(matches!(&outcomes[2], Outcome::Granted(grant) if grant.fencing_token == 2));
    assert!(matches!(&outcomes[3], Outcome::NotGranted(not) if not.holders.len() == 1));
}

/// The client asks again after the first of them while the others are still being written.
#[tokio::test]
async fn many_answers_of_one_commit_come_in_several_frames_in_order() {
    let fixture = Fixture::start().await;
    let (mut stream, _) = Stream::open(&fixture, "many answers at once").await;
    stream.send((0..100).map(|n| acquire(n, &format!("many/{n}"), ids::random(), 0)).collect());
    let (mut numbers, mut sizes) = (Vec::new(), Vec::new());
    while numbers.len() < 100 {
        let frame = stream.next().await.unwrap();
        sizes.push(frame.answers.len());
        numbers.extend(frame.answers.iter().map(|answer| answer.id));
    }
    assert_eq!(numbers, (0..100).collect::<Vec<_>>());
    assert_eq!(sizes, [32, 32, 32, 4]);
}

#[tokio::test]
async fn what_is_not_understood_is_refused_and_the_stream_goes_on() {
    let fixture = Fixture::start().await;
    for (first, code) in
        [(pb::ClientFrame::default(), Code::InvalidArgument), (opening("short"), Code::InvalidArgument)]
    {
        let mut stream = Stream::begin(&fixture, first).await.unwrap();
        assert_eq!(stream.next().await.unwrap_err().code(), code);
    }
    let (mut stream, _) = Stream::open(&fixture, "0123456789abcdef").await;
    let not_sixteen = pb::StreamRelease { lease_id: vec![1, 2, 3].into() };
    stream.send(vec![
        pb::Request { id: 1, ask: None },
        pb::Request { id: 2, ask: Some(Ask::Release(not_sixteen)) },
        acquire(3, "", ids::random(), 0),
        acquire(4, "a", [0; 16], 0),
        acquire(5, "a", ids::random(), u64::MAX),
        acquire(6, "a", ids::random(), 0),
    ]);
    let outcomes = stream.outcomes(6).await;
    for outcome in &outcomes[..5] {
        assert!(matches!(outcome, Outcome::Problem(problem) if problem.code == "bad_request"), "{outcome:?}");
    }
    assert!(matches!(outcomes[5], Outcome::Granted(_)));
}

#[tokio::test]
async fn another_connection_resumes_and_its_waiter_keeps_the_place() {
    let fixture = Fixture::start().await;
    let (mut holder, _) = Stream::open(&fixture, "the-holder-0123456").await;
    let held = ids::random();
    holder.send(vec![acquire(1, "a", held, 0)]);
    holder.outcomes(1).await;

    let key = "the-first-waiter-01";
    let (broken, opened) = Stream::open(&fixture, key).await;
    let waiting = ids::random();
    broken.send(vec![acquire(1, "a", waiting, 60_000)]);
    let mut unary = fixture.client().await;
    let mut until_waiters = async |n: usize| {
        let explain = pb::ExplainRequest { resource: "a".into() };
        while unary.explain(explain.clone()).await.unwrap().into_inner().waiters.len() != n {
            tokio::task::yield_now().await;
        }
    };
    until_waiters(1).await;
    let (second, _) = Stream::open(&fixture, "the-second-waiter-0").await;
    second.send(vec![acquire(1, "a", ids::random(), 60_000)]);
    until_waiters(2).await;

    drop(broken);
    let (mut resumed, again) = Stream::open(&fixture, key).await;
    assert_eq!(again.session_id, opened.session_id);
    resumed.send(vec![acquire(1, "a", waiting, 60_000)]);
    holder.send(vec![release(2, held)]);
    holder.outcomes(1).await;
    assert!(matches!(resumed.outcomes(1).await[0], Outcome::Granted(_)));
    until_waiters(1).await;
}

#[tokio::test]
async fn keep_alives_are_answered_and_losses_pushed_until_they_are_seen() {
    let fixture = Fixture::start().await;
    let (mut stream, opened) = Stream::open(&fixture, "0123456789abcdef").await;
    let lease = ids::random();
    stream.send(vec![acquire(1, "a", lease, 0)]);
    stream.outcomes(1).await;
    let force = pb::ForceReleaseRequest {
        resource: "a".into(),
        actor_id: "ops".into(),
        reason: "test".into(),
        all: true,
        ..Default::default()
    };
    fixture.client().await.force_release(force).await.unwrap();
    let pushed = stream.next().await.unwrap().losses;
    assert_eq!((pushed.len(), pushed[0].reason()), (1, pb::EndReason::Forced));
    let keep_alive = |id, seen: Vec<[u8; 16]>| {
        let seen_ended = seen.iter().map(|lease| lease.to_vec().into()).collect();
        let keep_alive = Some(pb::KeepAlive { id, seen_ended, report: None });
        stream.frames.send(pb::ClientFrame { keep_alive, ..Default::default() }).unwrap();
    };
    keep_alive(7, Vec::new());
    keep_alive(8, vec![lease]);
    keep_alive(9, Vec::new());
    let (mut kept, mut losses) = (Vec::new(), 0);
    while kept.len() < 3 {
        let frame = stream.next().await.unwrap();
        kept.extend(frame.kept_alive.iter().map(|kept| kept.id));
        losses += frame.losses.len();
    }
    kept.sort_unstable();
    assert_eq!((kept, losses), (vec![7, 8, 9], 1), "told once more, and not after it was seen");
    assert!(opened.ttl_ms <= 5_000);
}

#[tokio::test]
async fn a_keep_alive_confirms_what_its_frame_has_handed_on_and_nothing_that_was_asked_later() {
    let fixture = Fixture::start().await;
    let (mut stream, _) = Stream::open(&fixture, "0123456789abcdef").await;
    let (held, waits) = (ids::random(), ids::random());
    stream.send(vec![acquire(1, "a", held, 0), acquire(2, "a", waits, 60_000)]);
    assert!(matches!(&stream.outcomes(1).await[..], [Outcome::Granted(_)]));
    let with_keep_alive = |id, requests| {
        let keep_alive = Some(pb::KeepAlive { id, ..Default::default() });
        pb::ClientFrame { requests, keep_alive, ..Default::default() }
    };
    stream.frames.send(with_keep_alive(7, vec![release(3, held)])).unwrap();
    for id in 8..40 {
        stream
            .frames
            .send(with_keep_alive(id, vec![acquire(id, &format!("later/{id}"), ids::random(), 0)]))
            .unwrap();
    }
    let first = stream.next().await.unwrap();
    let ids = |frame: &pb::ServerFrame| frame.answers.iter().map(|answer| answer.id).collect::<Vec<_>>();
    assert_eq!((ids(&first), first.kept_alive[0].id), (vec![3, 2], 7), "released, handed on, confirmed");
    let mut kept = 7;
    while kept < 39 {
        let frame = stream.next().await.unwrap();
        if let [confirmed] = &frame.kept_alive[..] {
            kept = confirmed.id;
        }
        assert!(ids(&frame).iter().all(|id| *id <= kept), "{frame:?}");
    }
}

#[tokio::test]
async fn a_grant_renews_its_session_if_that_is_asked_and_it_did_not_have_to_wait() {
    let fixture = Fixture::start().await;
    let (mut stream, _) = Stream::open(&fixture, "0123456789abcdef").await;
    let renewing = |id, lease| {
        let mut request = acquire(id, "a", lease, 60_000);
        if let Some(Ask::Acquire(acquire)) = &mut request.ask {
            acquire.renew_session = true;
        }
        request
    };
    let (at_once, waits) = (ids::random(), ids::random());
    stream.send(vec![renewing(1, at_once), renewing(2, waits), release(3, at_once)]);
    let outcomes = stream.outcomes(3).await;
    let Outcome::Granted(first) = &outcomes[0] else { panic!("{outcomes:?}") };
    assert_eq!((first.session_renewed, first.ttl_ms), (true, 5_000));
    assert!(matches!(&outcomes[1], Outcome::Granted(second) if !second.session_renewed), "{outcomes:?}");
}

#[tokio::test]
async fn a_stream_whose_session_has_ended_elsewhere_says_so_and_ends() {
    let fixture = Fixture::start().await;
    let (mut stream, opened) = Stream::open(&fixture, "0123456789abcdef").await;
    let session_id = SessionId::from_bytes(opened.session_id.as_ref().try_into().unwrap()).to_string();
    let close = pb::CloseSessionRequest { session_id, ..Default::default() };
    fixture.client().await.close_session(close).await.unwrap();
    let keep_alive = Some(pb::KeepAlive { id: 1, ..Default::default() });
    stream.frames.send(pb::ClientFrame { keep_alive, ..Default::default() }).unwrap();
    assert!(stream.next().await.unwrap().end.is_some());
    assert!(stream.next_or_end().await.unwrap().is_none());
}

#[tokio::test]
async fn a_release_by_id_past_the_stream_is_told_to_it_and_its_own_is_not() {
    let fixture = Fixture::start().await;
    let (mut stream, _) = Stream::open(&fixture, "0123456789abcdef").await;
    let [own, elsewhere] = [ids::random(), ids::random()];
    stream.send(vec![acquire(1, "own", own, 0), acquire(2, "elsewhere", elsewhere, 0)]);
    stream.outcomes(2).await;
    stream.send(vec![release(3, own)]);
    assert!(matches!(stream.outcomes(1).await[0], Outcome::Released(_)));
    let request =
        pb::ReleaseRequest { lease_id: LeaseId::from_bytes(elsewhere).to_string(), ..Default::default() };
    fixture.client().await.release(request).await.unwrap();
    let told = stream.next().await.unwrap().losses;
    assert_eq!((told.len(), told[0].reason()), (1, pb::EndReason::Released));
    assert_eq!(told[0].lease_id[..], elsewhere);
}

#[tokio::test]
async fn a_closed_session_frees_its_leases_and_cannot_be_resumed() {
    let fixture = Fixture::start().await;
    let key = "0123456789abcdef";
    let (mut stream, _) = Stream::open(&fixture, key).await;
    stream.send(vec![acquire(1, "a", ids::random(), 0)]);
    stream.outcomes(1).await;
    stream.frames.send(pb::ClientFrame { close: true, ..Default::default() }).unwrap();
    assert_eq!(stream.next().await.unwrap().end, None);
    assert!(stream.answers.message().await.unwrap().is_none());
    let mut resumed = Stream::begin(&fixture, opening(key)).await.unwrap();
    assert_eq!(resumed.next().await.unwrap_err().code(), Code::FailedPrecondition);
    let free = pb::AcquireRequest { resource: "a".into(), owner_id: "me".into(), ..Default::default() };
    assert!(fixture.client().await.acquire(free).await.unwrap().into_inner().acquired);
}

#[tokio::test]
async fn a_server_that_shuts_down_says_so_on_every_stream() {
    let fixture = Fixture::start().await;
    let (mut stream, _) = Stream::open(&fixture, "0123456789abcdef").await;
    let Fixture { server, .. } = fixture;
    let ended = tokio::spawn(server.shutdown());
    let end = stream.next().await.unwrap().end.unwrap();
    assert_eq!((end.code.as_str(), end.retryable), ("not_active", true));
    drop(stream);
    ended.await.unwrap().unwrap();
}
