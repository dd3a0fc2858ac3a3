//! A queue of waiters on one lock.

use std::sync::Mutex;
use std::time::Duration;

use leasehold_tests::{Http, Seed, Server, until};
use serde_json::json;

const WAITERS: usize = 256;

#[test]
fn many_waiters_on_one_lock_are_served_in_order_and_woken_once() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"));
    let mut http = server.http();
    let mut seed = Seed::from_env(4);
    let first = seed.uuid();
    assert!(http.acquire("hot", &first, 60_000).unwrap().is_acquired());

    let served = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for number in 0..WAITERS {
            let (lease, served, mut waiter) = (seed.uuid(), &served, server.http());
            scope.spawn(move || wait_then_pass_on(&mut waiter, number, &lease, served));
            // Only once this one stands in the queue does the next begin: the order of asking is then known.
            until("the waiter to be queued", Duration::from_secs(20), || {
                (waiting(&mut http) > number).then_some(())
            });
        }
        http.delete(&format!("/v1/locks/{first}")).unwrap();
    });

    let served = served.into_inner().unwrap();
    let order: Vec<usize> = served.iter().map(|(number, _)| *number).collect();
    assert_eq!(order, (0..WAITERS).collect::<Vec<_>>(), "first come, first served");
    assert!(served.windows(2).all(|two| two[0].1 < two[1].1), "tokens grow along the queue");
    // Had anyone been woken without being served there would be more grants than holders.
    assert_eq!(
        served.last().unwrap().1 - served[0].1,
        WAITERS as u64 - 1,
        "one grant for each waiter, no more"
    );
}

fn wait_then_pass_on(http: &mut Http, number: usize, lease: &str, served: &Mutex<Vec<(usize, u64)>>) {
    let body = json!({ "resource": "hot", "ownerId": number.to_string(), "leaseId": lease, "ttlMs": 60_000,
                       "waitMs": 80_000 });
    let granted = http.post("/v1/locks/acquire", &body).unwrap();
    assert!(granted.is_acquired(), "{}", granted.body);
    served.lock().unwrap().push((number, granted.token()));
    http.delete(&format!("/v1/locks/{lease}")).unwrap();
}

fn waiting(http: &mut Http) -> usize {
    let explained = http.get("/v1/resources/hot").unwrap().json();
    explained["waiters"].as_array().map_or(0, Vec::len)
}

#[test]
fn a_waiter_that_hangs_up_leaves_the_queue() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"));
    let mut http = server.http();
    let mut seed = Seed::from_env(5);
    let first = seed.uuid();
    assert!(http.acquire("hot", &first, 60_000).unwrap().is_acquired());

    // A waiter whose process dies: its connection closes in the middle of the wait.
    let mut gone = std::process::Command::new(leasehold_tests::binary::path())
        .args(["acquire", "hot", "--wait", "60s"])
        .env("LEASEHOLD_SERVER", server.url())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    until("the waiter to be queued", Duration::from_secs(20), || (waiting(&mut http) == 1).then_some(()));
    gone.kill().unwrap();
    gone.wait().unwrap();
    until("the waiter to leave", Duration::from_secs(20), || (waiting(&mut http) == 0).then_some(()));

    http.delete(&format!("/v1/locks/{first}")).unwrap();
    assert!(
        http.acquire("hot", &seed.uuid(), 60_000).unwrap().is_acquired(),
        "nobody holds it for the dead waiter"
    );
}
