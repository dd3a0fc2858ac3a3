//! kill -9 under load (F3): nothing that was acknowledged is lost, tokens only grow, waiters recover by asking again.
//!
//! `cargo xtask drill kill9 KILLS` runs it for longer, with `LEASEHOLD_KILL_EVERY_MS` from kill to kill; what clients asked
//! and were told is written to a history, which the checker judges; `LEASEHOLD_SEED` repeats a run.

use std::collections::BTreeMap;
use std::path::Path;
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

/// The time from kill to kill, how much of what is acquired stays held meanwhile, and across how many kills.
#[derive(Clone, Copy)]
struct Pace {
    every: Option<Duration>,
    keep_one_of: u64,
    keep_rounds: u64,
}

impl Pace {
    /// In a long drill little is held across kills, and not across many of them, else the checks of what is held would
    /// take over.
    fn from_env() -> Self {
        match std::env::var("LEASEHOLD_KILL_EVERY_MS") {
            Ok(ms) => {
                let every = Duration::from_millis(ms.parse().unwrap());
                Self { every: Some(every), keep_one_of: 128, keep_rounds: 8 }
            }
            Err(_) => Self { every: None, keep_one_of: 2, keep_rounds: u64::MAX },
        }
    }
}

/// Where the time went.
#[derive(Default)]
struct Spent {
    loaded: Duration,
    restarts: Vec<Duration>,
    checked: Duration,
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
    /// The largest of them.
    largest: u64,
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
    let mut spent = Spent::default();
    let pace = Pace::from_env();
    let story = Story::begin("kill9");
    let whole = Stopwatch::start();

    std::thread::scope(|scope| {
        let _stop = StopOnDrop(&stop);
        for number in 0..WAITERS {
            let (seed, stop, count, tokens) = (seed.part(1_000 + number), &stop, &handed_over, &hot_tokens);
            let story = &story;
            scope.spawn(move || wait_again_and_again(port, seed, stop, count, tokens, story));
        }
        let mut server = Server::start_on(port, &data);
        let mut since_kill = Stopwatch::start();
        for round in 0..kills {
            let watch = Stopwatch::start();
            load_and_kill(server, &seed.part(round), round, &mut told, (pace, since_kill), &story);
            spent.loaded += watch.elapsed();
            since_kill = Stopwatch::start();
            server = Server::start_on(port, &data);
            spent.restarts.push(since_kill.elapsed());
            let (watch, mut http) = (Stopwatch::start(), server.http());
            settle(&mut http, &mut told, &story);
            check(&mut http, &told, round, &story);
            if let Some(old) = round.checked_sub(pace.keep_rounds) {
                give_back(&mut http, &mut told, old, &story);
            }
            spent.checked += watch.elapsed();
            if pace.every.is_some() && round % 20 == 19 {
                spent.so_far(round + 1, &data.join("journal"));
            }
        }
        let before = handed_over.load(Ordering::Relaxed);
        until("waiters to be served after the last restart", Duration::from_secs(30), || {
            (handed_over.load(Ordering::Relaxed) > before + WAITERS).then_some(())
        });
        stop.store(true, Ordering::Relaxed);
    });

    let whole = whole.elapsed();
    let mut tokens = told.tokens;
    tokens.extend(hot_tokens.into_inner().unwrap());
    let count = tokens.len();
    tokens.sort_unstable();
    tokens.dedup();
    assert_eq!(tokens.len(), count, "PROMISE BROKEN: a token was told for two grants");
    spent.show(kills, count, whole);
    story.judge();
}

/// Lets the workers work until a number of grants drawn from the seed was acknowledged, and the time since the last kill has
/// passed, then kills the server.
fn load_and_kill(
    server: Server,
    seed: &Seed,
    round: u64,
    told: &mut Told,
    (pace, since_kill): (Pace, Stopwatch),
    story: &Story,
) {
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
        until("acknowledged grants", Duration::from_secs(30), || {
            let is_time = pace.every.is_none_or(|every| since_kill.elapsed() >= every);
            (is_time && acknowledged.load(Ordering::Relaxed) >= enough).then_some(())
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
        told.token(token);
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
        told.token(granted.token());
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
    let (token, largest) = (probe.token(), told.largest);
    assert!(token > largest, "PROMISE BROKEN: token {token} after {largest} was told");
}

/// What has been held since that round is given back.
fn give_back(http: &mut Http, told: &mut Told, round: u64, story: &Story) {
    let prefix = format!("r/{round}/");
    for (_, (lease, token)) in told.held.extract_if(.., |name, _| name.starts_with(&prefix)) {
        let op = story.releases("settling", &lease);
        let released = http.delete(&format!("/v1/locks/{lease}")).unwrap();
        assert_eq!((released.status, released.token()), (200, token), "{}", released.body);
        story.told(op, Answer::Released { token });
    }
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
    fn token(&mut self, token: u64) {
        self.tokens.push(token);
        self.largest = self.largest.max(token);
    }

    fn add(&mut self, other: Self) {
        self.held.extend(other.held);
        self.acquiring.extend(other.acquiring);
        self.releasing.extend(other.releasing);
        self.tokens.extend(other.tokens);
        self.largest = self.largest.max(other.largest);
    }
}

impl Spent {
    /// How the last rounds went: a restart must not take longer the longer the drill has gone on.
    fn so_far(&self, kills: u64, journal: &Path) {
        let files = std::fs::read_dir(journal).unwrap().filter_map(|file| file.ok()?.metadata().ok());
        let bytes: u64 = files.map(|file| file.len()).sum();
        let slowest = self.restarts.iter().rev().take(20).max().copied().unwrap_or_default();
        println!("{kills} kills, slowest restart of the last 20 {slowest:.0?}, journal {} MiB", bytes >> 20);
    }

    #[expect(clippy::cast_precision_loss, reason = "for people")]
    fn show(mut self, kills: u64, acquires: usize, whole: Duration) {
        self.restarts.sort_unstable();
        let p99 = self.restarts[(self.restarts.len() * 99).div_ceil(100) - 1];
        let slowest = self.restarts[self.restarts.len() - 1];
        let restarted: Duration = self.restarts.iter().sum();
        let rate = acquires as f64 / whole.as_secs_f64();
        println!(
            "{kills} kills in {whole:.0?}, {acquires} acquires, {rate:.0} a second; {:.0?} under load, {restarted:.0?} \
             restarting (p99 {p99:.0?}, slowest {slowest:.0?}), {:.0?} asking again and looking",
            self.loaded, self.checked,
        );
    }
}
