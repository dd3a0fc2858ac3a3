//! Many held locks: memory, and the time to be ready again after kill -9.

use std::time::Duration;

use leasehold_tests::{Http, Seed, Server, Stopwatch, free_port};
use serde_json::json;

const SESSIONS: usize = 200;
const LOCKS_EACH: usize = 1_000;
const THREADS: usize = 8;
const BYTES_EACH: u64 = 300;
const READY: Duration = Duration::from_secs(2);
/// Whatever else the machine does makes a restart slower, never faster: the best of a few is the one to judge.
const RESTARTS: usize = 3;

#[test]
fn many_held_locks_are_small_and_ready_again_soon() {
    let _alone = crate::alone();
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let port = free_port();
    let server = Server::start_on(port, &data);
    warm_up(&mut server.http());
    let empty = server.resident_bytes();
    let watch = Stopwatch::start();
    hold(&server);
    let locks = (SESSIONS * LOCKS_EACH) as u64;
    let grown = server.resident_bytes().saturating_sub(empty);
    println!("{locks} locks in {:?}; resident {} bytes each", watch.elapsed(), grown / locks);
    assert!(grown / locks <= BYTES_EACH, "{} bytes a lock, at most {BYTES_EACH}", grown / locks);

    server.kill9();

    let ready = (0..RESTARTS).any(|_| {
        let watch = Stopwatch::start();
        let server = Server::start_on(port, &data);
        let took = watch.elapsed();
        let status = server.http().get("/v1/status").unwrap().json();
        assert_eq!(status["locksHeld"], json!(locks), "{status}");
        let resident = server.resident_bytes().saturating_sub(empty);
        println!("ready again after {took:?}; resident {} bytes each", resident / locks);
        server.kill9();
        took < READY
    });
    assert!(ready, "not ready within {READY:?} in any of {RESTARTS} restarts");
}

/// Everything that is allocated once, whatever is held, is there before the count begins.
fn warm_up(http: &mut Http) {
    let mut seed = Seed::from_env(20);
    for number in 0..200 {
        let lease = seed.uuid();
        assert!(http.acquire(&format!("warm/{number}"), &lease, 60_000).unwrap().is_acquired());
        http.delete(&format!("/v1/locks/{lease}")).unwrap();
    }
}

fn hold(server: &Server) {
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let mut http = server.http();
            scope.spawn(move || {
                for session in (0..SESSIONS).filter(|session| session % THREADS == thread) {
                    hold_in_session(&mut http, session);
                }
            });
        }
    });
}

fn hold_in_session(http: &mut Http, number: usize) {
    let opened =
        http.post("/v1/sessions", &json!({ "ownerId": format!("worker-{number}"), "ttlMs": 3_600_000 }));
    let session = opened.unwrap().json()["sessionId"].as_str().unwrap().to_owned();
    for lock in 0..LOCKS_EACH {
        let body = json!({ "resource": format!("orders/{number}/{lock}"), "sessionId": session });
        let granted = http.post("/v1/locks/acquire", &body).unwrap();
        assert!(granted.is_acquired(), "{}", granted.body);
    }
}
