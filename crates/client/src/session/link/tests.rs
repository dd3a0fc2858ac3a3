//! Frames in orders that a real server gives by chance alone: they are handed to the session by hand, and its callers
//! are polled by hand.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, Wake, Waker};

use leasehold_proto::v1::request::Ask;
use leasehold_types::{LeaseId, ids};
use tokio::sync::oneshot;
use tonic::codegen::tokio_stream::Stream as _;

use super::super::outbound::Reporter;
use super::super::{Handle, Session};
use super::*;
use crate::acquire::Acquire;
use crate::client::Client;
use crate::error::{AcquireError, LostReason};
use crate::guard::{LeaseGuard, LeaseState};

/// Longer than any test.
const TTL: Duration = Duration::from_secs(3_600);

/// A session that is open, with nobody at the other end.
fn opened() -> Session {
    let client = Client::new("http://127.0.0.1:1").unwrap();
    let settings = Arc::clone(&client.session(TTL).shared().settings);
    let session = Session { handle: Arc::new(Handle { shared: Arc::new(Shared::new(settings, TTL)) }) };
    let opened =
        pb::Opened { cluster_id: "c".into(), ttl_ms: TTL.as_millis() as u64, ..pb::Opened::default() };
    assert!(session.shared().opened(&opened, 1, clock::now()).is_ok());
    session
}

/// An acquire that was asked.
struct Asked {
    session: Session,
    acquiring: Pin<Box<dyn Future<Output = Result<LeaseGuard, AcquireError>> + Send>>,
    number: u64,
    lease_id: Vec<u8>,
}

impl Asked {
    fn new(acquire: impl FnOnce(Acquire) -> Acquire) -> Self {
        let session = opened();
        let acquiring = acquire(session.acquire("r")).into_future();
        let mut asked = Self { session, acquiring, number: 0, lease_id: Vec::new() };
        assert!(asked.poll().is_pending());
        let request = asked.session.shared().wire.lock().places.unanswered(clock::now()).remove(0);
        let Some(Ask::Acquire(acquire)) = request.ask else { panic!("{request:?}") };
        (asked.number, asked.lease_id) = (request.id, acquire.lease_id.to_vec());
        asked
    }

    fn poll(&mut self) -> Poll<Result<LeaseGuard, AcquireError>> {
        self.acquiring.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    }

    /// What came of it, which must be known.
    fn done(&mut self) -> Result<LeaseGuard, AcquireError> {
        match self.poll() {
            Poll::Ready(done) => done,
            Poll::Pending => panic!("it still waits"),
        }
    }

    fn hear(&self, frame: pb::ServerFrame) {
        assert!(take(self.session.shared(), pb::ServerFrame { epoch: 1, ..frame }).is_ok());
    }

    fn grant(&self) -> pb::ServerFrame {
        let ttl_ms = TTL.as_millis() as u64;
        let grant = pb::StreamGrant { fencing_token: 7, ttl_ms, ..pb::StreamGrant::default() };
        let answer = pb::Answer { id: self.number, outcome: Some(Outcome::Granted(grant)) };
        pb::ServerFrame { answers: vec![answer], ..pb::ServerFrame::default() }
    }

    fn loss(&self) -> pb::ServerFrame {
        loss_of(&self.lease_id)
    }

    /// Sends a keep-alive; gives the answer to it.
    fn kept_alive(&self) -> pb::ServerFrame {
        let shared = Arc::clone(self.session.shared());
        shared.wire.keep_alive();
        self.sent_keep_alive()
    }

    /// The answer to the keep-alive that is wanted, which is sent.
    fn sent_keep_alive(&self) -> pb::ServerFrame {
        let shared = Arc::clone(self.session.shared());
        let reporter: Reporter = Box::new(move || shared.report());
        let keep_alive = self.session.shared().wire.lock().make_keep_alive(&reporter).expect("it is wanted");
        let kept =
            pb::KeptAlive { id: keep_alive.id, ttl_ms: TTL.as_millis() as u64, ..pb::KeptAlive::default() };
        pb::ServerFrame { kept_alive: vec![kept], ..pb::ServerFrame::default() }
    }
}

fn loss_of(lease_id: &[u8]) -> pb::ServerFrame {
    let reason = pb::EndReason::Forced.into();
    let loss = pb::Loss { lease_id: lease_id.to_vec().into(), reason, ..pb::Loss::default() };
    pb::ServerFrame { losses: vec![loss], ..pb::ServerFrame::default() }
}

fn is_lost(done: Result<LeaseGuard, AcquireError>) {
    match done {
        Err(AcquireError::Lost(lost)) => assert_eq!(lost.reason, LostReason::Forced),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_loss_that_overtakes_its_grant_is_not_forgotten() {
    let mut asked = Asked::new(Acquire::no_wait);
    asked.hear(asked.loss());
    asked.hear(asked.grant());
    is_lost(asked.done());
}

#[tokio::test]
async fn a_loss_that_comes_before_its_caller_has_taken_the_grant_is_not_forgotten() {
    let mut asked = Asked::new(Acquire::no_wait);
    asked.hear(asked.grant());
    asked.hear(asked.loss());
    is_lost(asked.done());

    let mut asked = Asked::new(Acquire::no_wait);
    asked.hear(pb::ServerFrame { losses: asked.loss().losses, ..asked.grant() });
    is_lost(asked.done());
}

#[tokio::test]
async fn a_loss_that_overtakes_the_grant_of_a_waiter_outlives_the_confirmation() {
    let mut asked = Asked::new(|acquire| acquire.wait(TTL));
    asked.hear(asked.loss());
    // The end of the lease is said to have been seen with this one.
    asked.hear(asked.kept_alive());
    assert!(asked.poll().is_pending());
    asked.hear(asked.grant());
    is_lost(asked.done());
}

#[tokio::test]
async fn the_loss_of_another_lease_takes_nothing_away() {
    let mut asked = Asked::new(Acquire::no_wait);
    asked.hear(loss_of(LeaseId::from_bytes(ids::random()).as_bytes()));
    asked.hear(asked.grant());
    let guard = asked.done().unwrap();
    assert_eq!(guard.state(), LeaseState::Held);
    asked.hear(asked.loss());
    assert!(matches!(guard.state(), LeaseState::Lost(lost) if lost.reason == LostReason::Forced));
}

#[tokio::test]
async fn a_waiters_grant_is_held_with_the_keep_alive_of_its_frame() {
    let mut asked = Asked::new(|acquire| acquire.wait(TTL));
    let kept_alive = asked.kept_alive();
    asked.hear(pb::ServerFrame { kept_alive: kept_alive.kept_alive, ..asked.grant() });
    assert_eq!(asked.done().unwrap().state(), LeaseState::Held);

    let mut lost = Asked::new(|acquire| acquire.wait(TTL));
    let (kept_alive, losses) = (lost.kept_alive().kept_alive, lost.loss().losses);
    lost.hear(pb::ServerFrame { kept_alive, losses, ..lost.grant() });
    is_lost(lost.done());
}

#[tokio::test]
async fn a_keep_alive_that_was_answered_before_a_waiters_grant_does_not_confirm_it() {
    let mut asked = Asked::new(|acquire| acquire.wait(TTL));
    asked.hear(asked.kept_alive());
    asked.hear(asked.grant());
    assert!(asked.poll().is_pending());
    asked.hear(asked.sent_keep_alive());
    assert_eq!(asked.done().unwrap().state(), LeaseState::Held);
}

#[tokio::test]
async fn a_keep_alive_under_way_confirms_a_waiters_grant_that_comes_before_its_answer() {
    let mut asked = Asked::new(|acquire| acquire.wait(TTL));
    let kept_alive = asked.kept_alive();
    asked.hear(asked.grant());
    assert!(asked.poll().is_pending());
    assert!(asked.session.shared().wire.lock().is_quiet(), "none is sent beside it");
    asked.hear(kept_alive);
    assert_eq!(asked.done().unwrap().state(), LeaseState::Held);
}

#[tokio::test]
async fn a_keep_alive_goes_with_a_release_while_somebody_waits() {
    let asked = Asked::new(|acquire| acquire.wait(TTL));
    let wire = &asked.session.shared().wire;
    let shared = Arc::clone(asked.session.shared());
    let mut outbound = wire.connect(pb::Open::default(), Box::new(move || shared.report()));
    let mut has_keep_alive = || {
        let mut cx = Context::from_waker(Waker::noop());
        // It may step back once before it makes a frame.
        let frames = [1, 2].map(|_| Pin::new(&mut outbound).poll_next(&mut cx));
        match frames.into_iter().find(Poll::is_ready) {
            Some(Poll::Ready(Some(frame))) => frame.has_keep_alive(),
            _ => panic!("nothing is sent"),
        }
    };
    assert!(has_keep_alive(), "an opening always has one");
    wire.ask_unheard(Ask::Renew(pb::StreamRenew::default()));
    assert!(!has_keep_alive(), "it gives nothing to anybody");
    wire.ask_unheard(super::super::release(LeaseId::from_bytes(ids::random())));
    assert!(has_keep_alive());
    asked.hear(pb::ServerFrame { answers: asked.grant().answers, ..pb::ServerFrame::default() });
    wire.ask_unheard(super::super::release(LeaseId::from_bytes(ids::random())));
    assert!(!has_keep_alive(), "nobody waits any more");
}

#[tokio::test]
async fn a_grant_that_renewed_its_session_is_held_at_once() {
    let mut asked = Asked::new(|acquire| acquire.wait(TTL));
    let mut grant = asked.grant();
    match &mut grant.answers[0].outcome {
        Some(Outcome::Granted(grant)) => grant.session_renewed = true,
        other => panic!("{other:?}"),
    }
    let before = asked.session.shared().life().clone();
    asked.hear(grant);
    assert_eq!(asked.done().unwrap().state(), LeaseState::Held);
    let life = asked.session.shared().life();
    assert!(life.deadline() > before.deadline());
    assert_eq!(life.confirmed(), before.confirmed(), "keep-alives and what they report go on");
}

/// Looks at a guard when it is woken, as a caller on another thread would.
struct Looks {
    guard: LeaseGuard,
    found_lost: AtomicBool,
}

impl Wake for Looks {
    fn wake(self: Arc<Self>) {
        self.found_lost.store(matches!(self.guard.state(), LeaseState::Lost(_)), Relaxed);
    }
}

#[tokio::test]
async fn a_confirmation_does_not_come_before_the_losses_of_its_frame() {
    let mut asked = Asked::new(Acquire::no_wait);
    asked.hear(asked.grant());
    let looks = Arc::new(Looks { guard: asked.done().unwrap(), found_lost: AtomicBool::new(false) });
    let (waiter, mut confirmation) = oneshot::channel();
    asked.session.shared().wire.confirm(waiter);
    let waker = Waker::from(Arc::clone(&looks));
    assert!(Pin::new(&mut confirmation).poll(&mut Context::from_waker(&waker)).is_pending());
    asked.hear(pb::ServerFrame { losses: asked.loss().losses, ..asked.kept_alive() });
    assert_eq!(confirmation.try_recv(), Ok(()));
    assert!(looks.found_lost.load(Relaxed));
}
