//! A session stream that is resumed knows what ended meanwhile, by whatever way.
#![allow(clippy::unwrap_used, reason = "whatever fails, fails the test")]

use std::time::Duration;

use leasehold::testing::TestServer;
use leasehold::{Client, LeaseGuard, Lost, LostReason};
use tokio::time::timeout;

/// So long that no keep-alive is due within a test: whatever is learned is learned by resuming or by a push.
const TTL: Duration = Duration::from_secs(600);
const PATIENCE: Duration = Duration::from_secs(60);

async fn held(client: &Client, resource: &str) -> LeaseGuard {
    client.acquire(resource).ttl(TTL).no_wait().await.unwrap()
}

async fn lost(guard: &LeaseGuard) -> Lost {
    timeout(PATIENCE, guard.lost()).await.expect("the loss is told")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_ended_while_its_stream_was_cut_is_lost_when_it_resumes() {
    let server = TestServer::start().await;
    let client = server.client();
    let released = held(&client, "released").await;
    let forced = held(&client, "forced").await;
    let kept = held(&client, "kept").await;
    server.cut();
    server.release(released.lease_id()).await;
    server.force_release("forced").await;
    server.heal();
    assert_eq!(lost(&released).await.reason, LostReason::Released);
    assert_eq!(lost(&forced).await.reason, LostReason::Forced);
    assert!(kept.checkpoint(Duration::ZERO).is_ok(), "{:?}", kept.state());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_successor_of_a_lease_that_ended_meanwhile_is_never_beside_it_for_long() {
    let server = TestServer::start().await;
    let guard = held(&server.client(), "a").await;
    server.cut();
    server.release(guard.lease_id()).await;
    let successor = server.direct_client().acquire("a").no_wait().await.unwrap();
    server.heal();
    let lost = lost(&guard).await;
    assert!(lost.token < successor.token().unwrap());
    assert!(guard.checkpoint(Duration::ZERO).is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn losses_are_pushed_to_a_stream_that_was_resumed() {
    let server = TestServer::start().await;
    let client = server.client();
    let (first, second) = (held(&client, "first").await, held(&client, "second").await);
    server.cut();
    server.heal();
    // An answer shows that the stream is resumed.
    held(&client, "third").await.release().await.unwrap();
    server.force_release("first").await;
    assert_eq!(lost(&first).await.reason, LostReason::Forced);
    assert!(second.checkpoint(Duration::ZERO).is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_starts_again_tells_what_ended_before_it_stopped() {
    let mut server = TestServer::start().await;
    let client = server.client();
    let (gone, kept) = (held(&client, "gone").await, held(&client, "kept").await);
    server.cut();
    server.release(gone.lease_id()).await;
    server.restart().await;
    server.heal();
    assert_eq!(lost(&gone).await.reason, LostReason::Released);
    assert!(kept.checkpoint(Duration::ZERO).is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn many_requests_that_wait_are_asked_again_in_frames_that_a_server_takes() {
    // Two megabytes of them; a server takes one at a time.
    let (resources, each) = (40, 50);
    let server = TestServer::start().await;
    let client = server.client();
    let label = "x".repeat(200);
    let wait = |resource: &str| {
        let mut acquire = client.acquire(resource).ttl(TTL);
        for name in ["one", "two", "three", "four"] {
            acquire = acquire.label(name, &label);
        }
        tokio::spawn(acquire.into_future())
    };
    let (mut holders, mut waiting) = (Vec::new(), Vec::new());
    for n in 0..resources {
        let resource = format!("r{n}");
        holders.push(held(&client, &resource).await);
        waiting.extend((0..each).map(|_| wait(&resource)));
        server.until_waiters(&resource, each).await;
    }
    server.cut();
    server.heal();
    // All of them are asked again before this one; it is answered, so they were taken.
    held(&client, "last").await.release().await.unwrap();
    for holder in &holders {
        assert!(holder.checkpoint(Duration::ZERO).is_ok(), "{:?}", holder.state());
        assert_eq!(server.waiters(holder.resource()).await, each);
    }
    waiting.into_iter().for_each(|waiting| waiting.abort());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_loss_names_who_holds_it_now() {
    let server = TestServer::start().await;
    let guard = held(&server.client(), "a").await;
    let next = Client::builder().endpoint(server.url()).owner("next").build().unwrap();
    let next = tokio::spawn(next.acquire("a").into_future());
    server.until_waiters("a", 1).await;
    server.force_release("a").await;
    let next = timeout(PATIENCE, next).await.expect("a grant").unwrap().unwrap();
    lost(&guard).await;
    let named = timeout(PATIENCE, async {
        loop {
            if let Some(holder) = lost(&guard).await.holder {
                return holder;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    let holder = named.await.expect("the look-up ends");
    assert_eq!((holder.owner.as_str(), holder.token), ("next", next.token().unwrap().get()));
}
