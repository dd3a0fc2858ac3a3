//! kill -9 under load (F3): nothing that was acknowledged is lost, tokens only grow, waiters recover by asking again.
//!
//! `cargo xtask drill kill9 KILLS` runs it for longer, `LEASEHOLD_KILL_EVERY_MS` lets every life last that long; what
//! clients asked and were told is written to a history, which the checker judges; `LEASEHOLD_SEED` repeats a run.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use leasehold_history::{Answer, Call};
use leasehold_tests::{Http, Seed, Server, StopOnDrop, Stopwatch, Story, free_port, until};
use serde_json::{Value, json};

const KILLS: u64 = 30;
const WORKERS: u64 = 6;
const WAITERS: u64 = 3;
const TTL_MS: u64 = 120_000;

/// How long the server lives between kills, and how much of what is acquired stays held meanwhile.
#[derive(Clone, Copy)]
struct Pace {
    every: Option<Duration>,
    keep_one_of: u64,
}

impl Pace {
    /// In a long drill almost everything is given back, else the checks of what is held would take over.
    fn from_env() -> Self {
        match std::env::var("LEASEHOLD_KILL_EVERY_MS") {
            Ok(ms) => Self { every: Some(Duration::from_millis(ms.parse().unwrap())), keep_one_of: 128 },
            Err(_) => Self { every: None, keep_one_of: 2 },
        }
    }
}

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
    let mut restarts = Vec::new();
    let pace = Pace::from_env();
    let story = Story::begin("kill9");
    let mut loaded = Duration::ZERO;

    std::thread::scope(|scope| {
        let _stop = StopOnDrop(&stop);
        for number in 0..WAITERS {
            let (seed, stop, count, tokens) = (seed.part(1_000 + number), &stop, &handed_over, &hot_tokens);
            let story = &story;
            scope.spawn(move || wait_again_and_again(port, seed, stop, count, tokens, story));
        }
        let mut server = Server::start_on(port, &data);
        for round in 0..kills {
            let watch = Stopwatch::start();
            load_and_kill(server, &seed.part(round), round, &mut told, pace, &story);
            loaded += watch.elapsed();
            let watch = Stopwatch::start();
            server = Server::start_on(port, &data);
            restarts.push(watch.elapsed());
            settle(&mut server.http(), &mut told, &story);
            check(&mut server.http(), &told, round, &story);
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
    let verdict = story.judge();
    restarts.sort_unstable();
    let p99 = restarts[(restarts.len() * 99).div_ceil(100) - 1];
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let rate = count as f64 / loaded.as_secs_f64();
    println!(
        "{kills} kills, {count} acquires, {rate:.0} a second under load, restart p99 {p99:.0?}, slowest {:.0?}; \
         {} records with {} unknown outcomes judged, every promise held",
        restarts[restarts.len() - 1],
        verdict.records,
        verdict.unknown,
    );
}

/// Lets the workers work until a number of grants drawn from the seed was acknowledged, then kills the server.
fn load_and_kill(server: Server, seed: &Seed, round: u64, told: &mut Told, pace: Pace, story: &Story) {
    let enough = 20 + seed.part(7).below(400);
    let acknowledged = AtomicU64::new(0);
    let port = server.port();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS)
            .map(|number| {
                let (seed, acknowledged) = (seed.part(100 + number), &acknowledged);
                let prefix = format!("r/{round}/{number}");
                scope.spawn(move || work(port, seed, &prefix, acknowledged, pace.keep_one_of, story))
            })
            .collect();
        let watch = Stopwatch::start();
        until("acknowledged grants", Duration::from_secs(30), || match pace.every {
            Some(every) => (watch.elapsed() >= every).then_some(()),
            None => (acknowledged.load(Ordering::Relaxed) >= enough).then_some(()),
        });
        server.kill9();
        for worker in workers {
            told.add(worker.join().unwrap());
        }
    });
}

/// Acquires, and gives half of it back, until the connection breaks.
fn work(
    port: u16,
    mut seed: Seed,
    prefix: &str,
    acknowledged: &AtomicU64,
    keep_one_of: u64,
    story: &Story,
) -> Told {
    let mut http = Http::new(port);
    let mut told = Told::default();
    for number in 0.. {
        let (resource, lease) = (format!("{prefix}/{number}"), seed.uuid());
        let op = story.acquires(prefix, &resource, &lease);
        let Ok(granted) = http.acquire(&resource, &lease, TTL_MS) else {
            told.acquiring.insert(resource, lease);
            break;
        };
        assert!(granted.is_acquired(), "nobody else wants {resource}: {}", granted.body);
        let token = granted.token();
        story.told(op, Answer::Granted { token, ttl_ms: TTL_MS });
        told.tokens.push(token);
        acknowledged.fetch_add(1, Ordering::Relaxed);
        if seed.below(keep_one_of) == 0 {
            told.held.insert(resource, (lease, token));
            continue;
        }
        let op = story.releases(prefix, &lease);
        match http.delete(&format!("/v1/locks/{lease}")) {
            Ok(released) => story.told(op, Answer::Released { token: released.token() }),
            Err(_) => {
                told.releasing.insert(resource, (lease, token));
                break;
            }
        }
    }
    told
}

/// Asks again with the same ids what had no answer; each must now have one.
fn settle(http: &mut Http, told: &mut Told, story: &Story) {
    for (resource, lease) in std::mem::take(&mut told.acquiring) {
        let op = story.acquires("settling", &resource, &lease);
        let granted = http.acquire(&resource, &lease, TTL_MS).unwrap();
        assert!(granted.is_acquired(), "asking again is the same acquire: {}", granted.body);
        let ttl_ms = granted.json()["ttlMs"].as_u64().unwrap();
        story.told(op, Answer::Granted { token: granted.token(), ttl_ms });
        told.tokens.push(granted.token());
        told.held.insert(resource, (lease, granted.token()));
    }
    for (resource, (lease, token)) in std::mem::take(&mut told.releasing) {
        let op = story.releases("settling", &lease);
        let released = http.delete(&format!("/v1/locks/{lease}")).unwrap();
        story.told(op, Answer::Released { token: released.token() });
        assert_eq!((released.status, released.token()), (200, token), "{resource}: {}", released.body);
    }
}

/// What is held is exactly what clients were told, and the next token is above all of theirs.
fn check(http: &mut Http, told: &Told, round: u64, story: &Story) {
    let fresh = told.held.keys().filter(|name| name.starts_with(&format!("r/{round}/")));
    let reads: Vec<(&String, u64)> = fresh
        .map(|name| (name, story.asks("looking", Call::Read { resource: name.as_str().into() })))
        .collect();
    let held = http.held("r/").unwrap();
    for (name, op) in reads {
        story.told(op, Answer::Holders { tokens: held.get(name).copied().into_iter().collect() });
    }
    let expected: BTreeMap<String, u64> =
        told.held.iter().map(|(name, (_, token))| (name.clone(), *token)).collect();
    let lost: Vec<_> = expected.iter().filter(|(name, token)| held.get(*name) != Some(token)).collect();
    let ghosts: Vec<_> = held.keys().filter(|name| !expected.contains_key(*name)).collect();
    assert!(lost.is_empty(), "PROMISE BROKEN: acknowledged and lost in round {round}: {lost:?}");
    assert!(
        ghosts.is_empty(),
        "PROMISE BROKEN: held in round {round} although nobody was told or it was given back: {ghosts:?}"
    );
    let probe = http
        .post(
            "/v1/locks/acquire",
            &json!({ "resource": format!("probe/{round}"), "ownerId": "probe", "ttlMs": 1_000 }),
        )
        .unwrap();
    let largest = told.tokens.iter().max().unwrap();
    assert!(probe.token() > *largest, "PROMISE BROKEN: token {} after {largest} was told", probe.token());
}

/// A client that waits for one contended lock, holds it for a moment, and waits again; across every restart.
fn wait_again_and_again(
    port: u16,
    mut seed: Seed,
    stop: &AtomicBool,
    count: &AtomicU64,
    tokens: &Mutex<Vec<u64>>,
    story: &Story,
) {
    let mut http = Http::new(port);
    while !stop.load(Ordering::Relaxed) {
        let lease = seed.uuid();
        let body = json!({ "resource": "hot", "ownerId": "waiter", "leaseId": lease, "ttlMs": 10_000, "waitMs": 60_000 });
        // One attempt or many: asked under one id from here on, and answered once.
        let op = story.acquires("waiter", "hot", &lease);
        let Some(granted) = ask_until_answered(stop, || http.post("/v1/locks/acquire", &body)) else {
            return;
        };
        assert_eq!(granted["acquired"], json!(true), "{granted}");
        let token = granted["fencingToken"].as_u64().unwrap();
        // The wait may have been longer than the ttl: nothing is promised from its beginning on.
        story.told(op, Answer::Granted { token, ttl_ms: 0 });
        tokens.lock().unwrap().push(token);
        count.fetch_add(1, Ordering::Relaxed);
        let op = story.releases("waiter", &lease);
        if ask_until_answered(stop, || http.delete(&format!("/v1/locks/{lease}"))).is_some() {
            story.told(op, Answer::Released { token });
        }
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
