//! kill -9 under load (F3): nothing that was acknowledged is lost, tokens only grow, waiters recover by asking again.
//!
//! `cargo xtask drill kill9 KILLS` runs it for longer; `LEASEHOLD_SEED` repeats a run.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use leasehold_tests::{Http, Seed, Server, Stopwatch, free_port, until};
use serde_json::{Value, json};

const KILLS: u64 = 30;
const WORKERS: u64 = 6;
const WAITERS: u64 = 3;
const TTL_MS: u64 = 120_000;

/// What clients were told, as they would have written it down.
#[derive(Default)]
struct Told {
    /// Acknowledged and not given back: resource to (lease, token).
    held: BTreeMap<String, (String, u64)>,
    /// Asked for, without an answer: resource to lease.
    acquiring: BTreeMap<String, String>,
    /// Given back, without an answer: resource to (lease, token).
    releasing: BTreeMap<String, (String, u64)>,
    /// Every token that was told.
    tokens: Vec<u64>,
}

#[test]
fn kill9_under_load_loses_nothing_that_was_acknowledged() {
    let seed = Seed::from_env(3_141);
    let kills: u64 = std::env::var("LEASEHOLD_KILLS").map_or(KILLS, |text| text.parse().unwrap());
    println!("to repeat: LEASEHOLD_SEED={} cargo xtask drill kill9 {kills}", seed.number());
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let port = free_port();
    let stop = AtomicBool::new(false);
    let handed_over = AtomicU64::new(0);
    let hot_tokens = Mutex::new(Vec::new());
    let mut told = Told::default();
    let mut slowest = Duration::ZERO;

    std::thread::scope(|scope| {
        let _stop = StopOnDrop(&stop);
        for number in 0..WAITERS {
            let (seed, stop, count, tokens) = (seed.part(1_000 + number), &stop, &handed_over, &hot_tokens);
            scope.spawn(move || wait_again_and_again(port, seed, stop, count, tokens));
        }
        let mut server = Server::start_on(port, &data);
        for round in 0..kills {
            load_and_kill(server, &seed.part(round), round, &mut told);
            let watch = Stopwatch::start();
            server = Server::start_on(port, &data);
            slowest = slowest.max(watch.elapsed());
            settle(&mut server.http(), &mut told);
            check(&mut server.http(), &told, round);
        }
        let before = handed_over.load(Ordering::Relaxed);
        until("waiters to be served after the last restart", Duration::from_secs(30), || {
            (handed_over.load(Ordering::Relaxed) > before + WAITERS).then_some(())
        });
        stop.store(true, Ordering::Relaxed);
    });

    let mut tokens = told.tokens;
    tokens.extend(hot_tokens.into_inner().unwrap());
    let count = tokens.len();
    tokens.sort_unstable();
    tokens.dedup();
    assert_eq!(tokens.len(), count, "every token was told for one grant only");
    println!("{kills} kills, {count} grants acknowledged, slowest restart {slowest:?}");
}

/// A failed check must not leave the waiters asking for ever.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Lets the workers work until a number of grants drawn from the seed was acknowledged, then kills the server.
fn load_and_kill(server: Server, seed: &Seed, round: u64, told: &mut Told) {
    let enough = 20 + seed.part(7).below(400);
    let acknowledged = AtomicU64::new(0);
    let port = server.port();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS)
            .map(|number| {
                let (seed, acknowledged) = (seed.part(100 + number), &acknowledged);
                scope.spawn(move || work(port, seed, &format!("r/{round}/{number}"), acknowledged))
            })
            .collect();
        until("acknowledged grants", Duration::from_secs(30), || {
            (acknowledged.load(Ordering::Relaxed) >= enough).then_some(())
        });
        server.kill9();
        for worker in workers {
            told.add(worker.join().unwrap());
        }
    });
}

/// Acquires, and gives half of it back, until the connection breaks.
fn work(port: u16, mut seed: Seed, prefix: &str, acknowledged: &AtomicU64) -> Told {
    let mut http = Http::new(port);
    let mut told = Told::default();
    for number in 0.. {
        let (resource, lease) = (format!("{prefix}/{number}"), seed.uuid());
        let Ok(granted) = http.acquire(&resource, &lease, TTL_MS) else {
            told.acquiring.insert(resource, lease);
            break;
        };
        assert!(granted.is_acquired(), "nobody else wants {resource}: {}", granted.body);
        let token = granted.token();
        told.tokens.push(token);
        acknowledged.fetch_add(1, Ordering::Relaxed);
        if seed.below(2) == 0 {
            told.held.insert(resource, (lease, token));
        } else if http.delete(&format!("/v1/locks/{lease}")).is_err() {
            told.releasing.insert(resource, (lease, token));
            break;
        }
    }
    told
}

/// Asks again with the same ids what had no answer; each must now have one.
fn settle(http: &mut Http, told: &mut Told) {
    for (resource, lease) in std::mem::take(&mut told.acquiring) {
        let granted = http.acquire(&resource, &lease, TTL_MS).unwrap();
        assert!(granted.is_acquired(), "asking again is the same acquire: {}", granted.body);
        told.tokens.push(granted.token());
        told.held.insert(resource, (lease, granted.token()));
    }
    for (resource, (lease, token)) in std::mem::take(&mut told.releasing) {
        let released = http.delete(&format!("/v1/locks/{lease}")).unwrap();
        assert_eq!((released.status, released.token()), (200, token), "{resource}: {}", released.body);
    }
}

/// What is held is exactly what clients were told, and the next token is above all of theirs.
fn check(http: &mut Http, told: &Told, round: u64) {
    let held = http.held("r/").unwrap();
    let expected: BTreeMap<String, u64> =
        told.held.iter().map(|(name, (_, token))| (name.clone(), *token)).collect();
    let lost: Vec<_> = expected.iter().filter(|(name, token)| held.get(*name) != Some(token)).collect();
    let ghosts: Vec<_> = held.keys().filter(|name| !expected.contains_key(*name)).collect();
    assert!(lost.is_empty(), "acknowledged and lost in round {round}: {lost:?}");
    assert!(
        ghosts.is_empty(),
        "held in round {round} although nobody was told or it was given back: {ghosts:?}"
    );
    let probe = http
        .post(
            "/v1/locks/acquire",
            &json!({ "resource": format!("probe/{round}"), "ownerId": "probe", "ttlMs": 1_000 }),
        )
        .unwrap();
    let largest = told.tokens.iter().max().unwrap();
    assert!(probe.token() > *largest, "token {} after {largest} was told", probe.token());
}

/// A client that waits for one contended lock, holds it for a moment, and waits again; across every restart.
fn wait_again_and_again(
    port: u16,
    mut seed: Seed,
    stop: &AtomicBool,
    count: &AtomicU64,
    tokens: &Mutex<Vec<u64>>,
) {
    let mut http = Http::new(port);
    while !stop.load(Ordering::Relaxed) {
        let lease = seed.uuid();
        let body = json!({ "resource": "hot", "ownerId": "waiter", "leaseId": lease, "ttlMs": 10_000, "waitMs": 60_000 });
        let Some(granted) = ask_until_answered(stop, || http.post("/v1/locks/acquire", &body)) else {
            return;
        };
        assert_eq!(granted["acquired"], json!(true), "{granted}");
        tokens.lock().unwrap().push(granted["fencingToken"].as_u64().unwrap());
        count.fetch_add(1, Ordering::Relaxed);
        ask_until_answered(stop, || http.delete(&format!("/v1/locks/{lease}")));
    }
}

/// Asks the same again while nobody is there, or the server says that it is on its way out.
fn ask_until_answered(
    stop: &AtomicBool,
    mut ask: impl FnMut() -> std::io::Result<leasehold_tests::Answer>,
) -> Option<Value> {
    until("an answer across restarts", Duration::from_secs(120), || match ask() {
        _ if stop.load(Ordering::Relaxed) => Some(None),
        Ok(answer) if answer.status == 200 => Some(Some(answer.json())),
        Ok(answer) if answer.status == 503 => None,
        Ok(answer) => panic!("{}", answer.body),
        Err(_) => None,
    })
}

impl Told {
    fn add(&mut self, other: Self) {
        self.held.extend(other.held);
        self.acquiring.extend(other.acquiring);
        self.releasing.extend(other.releasing);
        self.tokens.extend(other.tokens);
    }
}
