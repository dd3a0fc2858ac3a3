//! Waiting against a real server in the same process: places are kept, and given up when nobody waits any more.

use std::time::Duration;

use leasehold::testing::TestServer;
use leasehold::{Class, Client, RunError, WhenUnavailable};

#[tokio::test(flavor = "multi_thread")]
async fn dropping_a_waiting_acquire_withdraws_it() {
    let server = TestServer::start().await;
    let held = server.client().acquire("a").await.unwrap();
    let other = server.client();
    let waiting = tokio::spawn(other.acquire("a").into_future());
    server.until_waiters("a", 1).await;
    waiting.abort();
    server.until_waiters("a", 0).await;
    held.release().await.unwrap();
    // Nobody was granted it in passing.
    server.client().acquire("a").no_wait().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resumed_stream_keeps_the_places_of_its_waiters() {
    let server = TestServer::start().await;
    let holder = server.client();
    let held = holder.acquire("a").await.unwrap();
    let (first, second) = (server.client(), server.client());
    let first = tokio::spawn(first.acquire("a").into_future());
    server.until_waiters("a", 1).await;
    let second = tokio::spawn(second.acquire("a").into_future());
    server.until_waiters("a", 2).await;
    server.cut();
    server.heal();
    held.release().await.unwrap();
    let first = first.await.unwrap().unwrap();
    assert_eq!(server.waiters("a").await, 1);
    assert!(!second.is_finished());
    let token = first.token().unwrap();
    first.release().await.unwrap();
    assert!(second.await.unwrap().unwrap().token().unwrap() > token);
}

#[tokio::test(flavor = "multi_thread")]
async fn waiters_are_served_in_order_across_many_clients() {
    let server = TestServer::start().await;
    let held = server.client().acquire("a").await.unwrap();
    let mut waiting = Vec::new();
    for n in 1..=5 {
        waiting.push(tokio::spawn(server.client().acquire("a").into_future()));
        server.until_waiters("a", n).await;
    }
    held.release().await.unwrap();
    let mut last = 0;
    for waiter in waiting {
        let guard = waiter.await.unwrap().unwrap();
        let token = guard.token().unwrap().get();
        assert!(token > last);
        last = token;
        guard.release().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn work_runs_under_a_lock_and_only_an_efficiency_lock_runs_without_the_service() {
    let mut server = TestServer::start().await;
    let client = server.client();
    let token = client.acquire("a").run(async |guard| guard.unwrap().token().unwrap()).await.unwrap();
    assert!(client.acquire("a").no_wait().await.unwrap().token().unwrap() > token);
    drop(client);
    let client =
        Client::builder().endpoint(server.url()).patience(Duration::from_millis(300)).build().unwrap();
    server.stop().await;
    let anyway = WhenUnavailable::RunAnyway;
    let ran = client
        .acquire("b")
        .class(Class::Efficiency)
        .when_unavailable(anyway)
        .run(async |guard| guard.is_none());
    assert_eq!(ran.await, Ok(true));
    let refused = client.acquire("b").when_unavailable(anyway).run(async |_| ()).await;
    assert!(matches!(refused, Err(RunError::Acquire(_))));
    assert!(client.acquire("b").run(async |_| panic!("it must not run")).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_semaphore_gives_its_permits_and_readers_share() {
    let server = TestServer::start().await;
    let client = server.client();
    let first = client.acquire("s").semaphore(2).await.unwrap();
    let second = client.acquire("s").semaphore(2).await.unwrap();
    assert_eq!((first.permit(), second.permit()), (Some(0), Some(1)));
    assert!(client.acquire("s").semaphore(2).no_wait().await.is_err());
    let _one = client.acquire("r").shared().await.unwrap();
    let _two = client.acquire("r").shared().await.unwrap();
    assert!(client.acquire("r").no_wait().await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_a_session_frees_everything_in_it() {
    let server = TestServer::start().await;
    let client = server.client();
    let session = client.session(Duration::from_secs(5));
    let guards = [session.acquire("a").await.unwrap(), session.acquire("b").await.unwrap()];
    session.close().await;
    for guard in guards {
        guard.lost().await;
        client.acquire(guard.resource()).no_wait().await.unwrap();
    }
}
