//! The guard against a real server in the same process: what it says is true, in time.
#![allow(clippy::unwrap_used, reason = "whatever fails, fails the test")]

use std::time::Duration;

use leasehold::testing::TestServer;
use leasehold::{AcquireError, CheckpointError, Client, LeaseState, LostReason};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// For leases that are to be lost.
const TTL: Duration = Duration::from_secs(2);
/// For leases that are to live: no busy machine stands still for so long.
const LONG: Duration = Duration::from_secs(9);
const NOW: Duration = Duration::ZERO;

fn impatient(server: &TestServer) -> Client {
    Client::builder().endpoint(server.url()).patience(Duration::from_millis(300)).build().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_is_held_renewed_and_given_back() {
    let server = TestServer::start().await;
    let client = server.client();
    let ttl = LONG / 3;
    let guard = client.acquire("a").ttl(ttl).await.unwrap();
    let token = guard.token().unwrap();
    assert_eq!(guard.state(), LeaseState::Held);
    assert!(guard.remaining() <= ttl);
    // After more than its ttl it is the same lease: it was renewed.
    tokio::time::sleep(ttl * 3 / 2).await;
    assert_eq!(guard.checkpoint(NOW).unwrap(), token);
    guard.release().await.unwrap();
    let next = client.acquire("a").ttl(ttl).no_wait().await.unwrap();
    assert!(next.token().unwrap() > token);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_resource_is_told_with_its_holder() {
    let server = TestServer::start().await;
    let _held = server.client().acquire("a").await.unwrap();
    let other = Client::builder().endpoint(server.url()).owner("other").build().unwrap();
    match other.acquire("a").no_wait().await {
        Err(AcquireError::NotAcquired(not)) => {
            assert_eq!((not.resource.as_str(), not.holders.len()), ("a", 1))
        }
        other => panic!("{other:?}"),
    }
    let waited = other.acquire("a").wait(Duration::from_millis(50)).await;
    assert!(matches!(waited, Err(AcquireError::NotAcquired(_))), "{waited:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_stood_still_past_its_ttl_passes_no_checkpoint() {
    let server = TestServer::start().await;
    let guard = server.client().acquire("a").ttl(TTL).await.unwrap();
    // The client's side stands still; the server's time goes on and somebody else takes over.
    server.freeze();
    server.jump(2 * TTL).await;
    let direct = server.client();
    server.heal();
    let successor = direct.acquire("a").ttl(Duration::from_secs(5)).await.unwrap();
    let lost = guard.lost().await;
    assert!(
        matches!(lost.reason, LostReason::Expired | LostReason::NotRenewed | LostReason::SessionEnded),
        "{lost}"
    );
    assert!(matches!(guard.checkpoint(NOW), Err(CheckpointError::Lost(_))));
    assert!(guard.token().is_err());
    assert!(successor.token().unwrap() > lost.token);
}

#[tokio::test]
async fn a_blocked_thread_is_noticed_at_the_next_checkpoint() {
    let server = TestServer::start().await;
    let guard = server.client().acquire("a").ttl(TTL).await.unwrap();
    assert!(guard.checkpoint(NOW).is_ok());
    #[expect(clippy::disallowed_methods, reason = "the one thread of this test is to stand still")]
    std::thread::sleep(2 * TTL);
    // Nothing ran meanwhile, and no background task has had a chance to say anything.
    assert!(matches!(guard.checkpoint(NOW), Err(CheckpointError::Lost(_))), "{:?}", guard.state());
}

#[tokio::test(flavor = "multi_thread")]
async fn work_is_cancelled_before_the_lease_can_end() {
    let server = TestServer::start().await;
    // The margin is a second: the test looks within it, however busy the machine is.
    let guard = server.client().acquire("a").ttl(Duration::from_secs(6)).await.unwrap();
    let token = guard.cancelled();
    server.cut();
    let left = guard.run(async |guard| guard.lost().await).await;
    let stopped = left.unwrap_err();
    assert_eq!(stopped.reason, LostReason::NotRenewed);
    // It was stopped a margin before the deadline, and the lease is still surely held at this moment.
    assert_eq!(guard.state(), LeaseState::Uncertain);
    token.cancelled().await;
    guard.lost().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_takes_a_lease_away_and_the_guard_knows_at_once() {
    let server = TestServer::start().await;
    let guard = server.client().acquire("a").await.unwrap();
    server.force_release("a").await;
    assert_eq!(guard.lost().await.reason, LostReason::Forced);
    assert!(guard.checkpoint(NOW).is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_or_restart_shorter_than_half_the_ttl_loses_nothing() {
    let mut server = TestServer::start().await;
    let client = server.client();
    let guard = client.acquire("a").ttl(LONG).await.unwrap();
    let token = guard.token().unwrap();
    server.cut();
    tokio::time::sleep(LONG * 2 / 5).await;
    server.heal();
    let reported = async {
        while metric(&server, "lease_renewals_missed_total").await < 1.0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), reported).await.expect("what failed is reported");
    server.restart().await;
    tokio::time::sleep(LONG / 2).await;
    assert_eq!(guard.checkpoint(NOW).unwrap(), token);
    guard.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_out_of_reach_is_told_and_nothing_runs() {
    let mut server = TestServer::start().await;
    let client = impatient(&server);
    server.stop().await;
    let error = client.acquire("a").await.unwrap_err();
    assert!(matches!(error, AcquireError::Unavailable(_)), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn max_hold_ends_a_lease_however_often_it_is_renewed() {
    let server = TestServer::start().await;
    let (ttl, begun) = (LONG / 3, tokio::time::Instant::now());
    let guard = server.client().acquire("a").ttl(ttl).max_hold(ttl * 3 / 2).await.unwrap();
    tokio::time::timeout(Duration::from_secs(60), guard.lost()).await.expect("max hold ends it");
    assert!(begun.elapsed() > ttl, "it was renewed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guard_is_lost_the_moment_its_session_is_closed() {
    let server = TestServer::start().await;
    let client = server.client();
    let guard = client.acquire("a").no_wait().await.unwrap();
    let closing = tokio::spawn(client.clone().close());
    assert_eq!(guard.lost().await.reason, LostReason::SessionEnded);
    closing.await.unwrap();
    // The client goes on with another session.
    client.acquire("a").no_wait().await.unwrap();
}

#[test]
fn a_client_outlives_the_runtime_that_its_session_lived_on() {
    let runtime = || tokio::runtime::Runtime::new().unwrap();
    let (servers, first, second) = (runtime(), runtime(), runtime());
    let server = servers.block_on(TestServer::start());
    let client = server.client();
    let guard = first.block_on(client.acquire("a").no_wait().into_future()).unwrap();
    drop(first);
    // Nobody renews it any more.
    assert!(matches!(guard.state(), LeaseState::Lost(_)), "{:?}", guard.state());
    second.block_on(client.acquire("b").into_future()).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn many_sessions_share_connections_and_survive_their_loss() {
    let server = TestServer::start().await;
    let client = server.client();
    let sessions: Vec<_> = (0..250).map(|_| client.session(Duration::from_secs(5))).collect();
    let mut guards = Vec::new();
    for (n, session) in sessions.iter().enumerate() {
        guards.push(session.acquire(format!("r{n}")).no_wait().await.unwrap());
    }
    server.cut();
    server.heal();
    for guard in guards {
        guard.release().await.unwrap();
    }
}

/// A number from the server's page of metrics.
async fn metric(server: &TestServer, name: &str) -> f64 {
    let mut socket = tokio::net::TcpStream::connect(server.address()).await.unwrap();
    let request = format!("GET /metrics HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", server.address());
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut page = String::new();
    socket.read_to_string(&mut page).await.unwrap();
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in {page}")).parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ended_under_work_is_reported_with_the_next_session() {
    let server = TestServer::start().await;
    let client = server.client();
    let guard = client.acquire("a").ttl(TTL).await.unwrap();
    // Nothing is reported of a lease that an operator took away: its time had not ended.
    let taken = client.acquire("b").ttl(TTL).await.unwrap();
    server.force_release("b").await;
    taken.lost().await;
    assert_eq!(metric(&server, "lease_expired_while_executing_total").await, 0.0);
    server.cut();
    guard.lost().await;
    server.heal();
    client.acquire("c").ttl(3 * TTL).await.unwrap().release().await.unwrap();
    let reported = async {
        while metric(&server, "lease_expired_while_executing_total").await != 1.0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), reported).await.expect("it is reported once");
}
