//! F10: the server's wall clock steps by an hour, forwards and backwards, all the time; and after a crash it is started
//! again where the other clocks show an hour more or an hour less, as on another machine. Leases end by none of that: not
//! before the time that was promised, and not never. (Clocks that run too fast or too slow are the simulator's.)
//!
//! `cargo xtask drill clock-steps SECONDS` runs it for longer.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use leasehold_history::{Answer as Recorded, Mode, Record};
use leasehold_tests::{Answer, Http, Seed, Server, StopOnDrop, Stopwatch, Story, binary, free_port, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

const SECONDS: u64 = 120;
const CLIENTS: u64 = 6;
const RESOURCES: u64 = 3;
const TTL_MS: u64 = 2_000;
/// Of a ttl a client trusts so much: clocks may differ by one part in a hundred (R2).
const TRUSTED_US: u64 = TTL_MS * 990;
const STEP_EVERY: Duration = Duration::from_millis(150);
const PATIENCE: Duration = Duration::from_secs(60);
/// What the monotonic clocks of the server's lives show beyond those of the machine: back by an hour, and on by two.
const LIVES: [u64; 3] = [7_200, 3_600, 10_800];

/// The wall clock that the server is shown.
struct WallClock {
    library: PathBuf,
    file: PathBuf,
}

impl WallClock {
    fn new(dir: &Path) -> Self {
        let libraries = std::fs::read_dir("/usr/lib").unwrap().flatten();
        let library = libraries
            .map(|dir| dir.path().join("faketime/libfaketimeMT.so.1"))
            .find(|library| library.is_file())
            .expect("libfaketime is installed: cargo xtask needs install");
        let clock = Self { library, file: dir.join("offset") };
        clock.step(0);
        clock
    }

    /// From now on it shows so many seconds more than the machine's.
    fn step(&self, seconds: i64) {
        let next = self.file.with_extension("next");
        std::fs::write(&next, format!("{seconds:+}\n")).unwrap();
        std::fs::rename(next, &self.file).unwrap();
    }

    /// `leasehold serve` under this clock, with the other clocks ahead of the machine's by so many seconds.
    fn serve(&self, ahead: u64) -> Command {
        let mut command = Command::new("unshare");
        let ahead = ahead.to_string();
        command.args([
            "--time",
            "--fork",
            "--kill-child",
            "--monotonic",
            &ahead,
            "--boottime",
            &ahead,
            "env",
        ]);
        command.arg(format!("LD_PRELOAD={}", self.library.display()));
        command.arg(format!("FAKETIME_TIMESTAMP_FILE={}", self.file.display()));
        command.args(["FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1"]);
        command.arg(binary::path()).arg("serve");
        command
    }
}

#[test]
fn leases_end_neither_early_nor_never() {
    let seed = Seed::from_env(2_236);
    let seconds: u64 = std::env::var("LEASEHOLD_SECONDS").map_or(SECONDS, |text| text.parse().unwrap());
    println!("to repeat: LEASEHOLD_SEED={} cargo xtask drill clock-steps {seconds}", seed.number());
    let allowed = Command::new("unshare").args(["--time", "--fork", "true"]).output().unwrap();
    if !allowed.status.success() {
        let why = String::from_utf8_lossy(&allowed.stderr).trim().to_owned();
        return println!("NOT RUN: clock_steps: no time namespaces here: {why}");
    }
    let dir = tempfile::tempdir().unwrap();
    let (clock, story, stop) =
        (WallClock::new(dir.path()), Story::begin("clock-steps"), AtomicBool::new(false));
    let (port, seen) = (free_port(), Seen::default());
    let mut steps = 0;
    std::thread::scope(|scope| {
        let _stop = StopOnDrop(&stop);
        for number in 0..CLIENTS {
            let (http, seed, stop) = (Http::new(port), seed.part(number), &stop);
            let (name, story, seen) = (format!("c{number}"), &story, &seen);
            scope.spawn(move || Client { name, http, seed, story, seen }.work(stop));
        }
        for (life, ahead) in LIVES.iter().enumerate() {
            let mut server = start(&clock, port, &dir.path().join("data"), *ahead);
            let (watch, life_lasts) = (Stopwatch::start(), Duration::from_secs(seconds) / 3);
            let last = life + 1 == LIVES.len();
            let too_little = || last && watch.elapsed() < PATIENCE && !seen.enough();
            while watch.elapsed() < life_lasts || too_little() {
                clock.step([-3_600, 0, 3_600][steps % 3]);
                steps += 1;
                std::thread::park_timeout(STEP_EVERY);
            }
            if last {
                stop.store(true, Ordering::Relaxed);
                all_is_free_again(&clock, &server, seed.part(99));
            }
            kill9(&mut server);
        }
    });
    println!("{steps} steps of the wall clock, {} lives of the server", LIVES.len());
    let verdict = story.judge();
    assert!(seen.enough(), "too little was seen, or the server's clock did not step: {seen:?}");
    let beliefs = verdict.examined.iter().find(|(promise, _)| promise.to_string() == "S10");
    assert_eq!(beliefs.map(|(_, count)| *count), Some(seen.held.into_inner()), "all of it was judged");
}

/// What clients saw of the server and its clock.
#[derive(Default, Debug)]
struct Seen {
    /// The hours that the server's answers spoke of.
    hours: Mutex<BTreeSet<String>>,
    /// How often a client believed to hold something.
    held: AtomicU64,
}

impl Seen {
    fn enough(&self) -> bool {
        self.hours.lock().unwrap().len() > 1 && self.held.load(Ordering::Relaxed) > 2 * CLIENTS
    }
}

fn start(clock: &WallClock, port: u16, data: &Path, ahead: u64) -> Server {
    let mut server = Server::spawn_by(clock.serve(ahead), ([127, 0, 0, 1], port).into(), data, &[]);
    server.wait_ready();
    server
}

/// Kills the server itself; the command that started it ends with it.
fn kill9(server: &mut Server) {
    let parent = server.pid().as_raw_nonzero();
    let children = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap();
    let child = children.split_whitespace().next().and_then(|pid| Pid::from_raw(pid.parse().unwrap()));
    kill_process(child.expect("the server runs"), Signal::KILL).unwrap();
    until("the server to be gone", PATIENCE, || server.ended());
}

/// What nobody keeps alive ends, also while the wall clock stands an hour back.
fn all_is_free_again(clock: &WallClock, server: &Server, mut seed: Seed) {
    clock.step(-3_600);
    let mut http = server.http();
    for number in 0..RESOURCES {
        let lease = seed.uuid();
        until("a lease that nobody renews to end", PATIENCE, || {
            http.acquire(&format!("stepped/{number}"), &lease, TTL_MS).ok().filter(Answer::is_acquired)
        });
    }
}

/// One client: takes, renews, gives back or walks away.
struct Client<'a> {
    name: String,
    http: Http,
    seed: Seed,
    story: &'a Story,
    seen: &'a Seen,
}

impl Client<'_> {
    fn work(mut self, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            let (resource, lease) = (format!("stepped/{}", self.seed.below(RESOURCES)), self.seed.uuid());
            let sent = self.story.at();
            let op = self.story.acquires(&self.name, &resource, &lease);
            if let Ok(answer) = self.http.acquire(&resource, &lease, TTL_MS) {
                self.story.told(op, granted(&answer));
                if answer.status == 200 && answer.is_acquired() {
                    let created = answer.json()["createdAt"].as_str().unwrap_or_default().to_owned();
                    self.seen.hours.lock().unwrap().insert(created.chars().take(13).collect());
                    self.hold(&resource, &lease, answer.token(), sent);
                    continue;
                }
            }
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }

    /// Believes in its lease for as long as what was promised at the last renewal lasts, and no longer.
    fn hold(&mut self, resource: &str, lease: &str, token: u64, sent: u64) {
        let from = self.story.at();
        let mut sent = sent;
        for _ in 0..self.seed.below(6) {
            std::thread::park_timeout(Duration::from_millis(50 + self.seed.below(400)));
            if self.story.at() >= sent + TRUSTED_US {
                break;
            }
            let asked = self.story.at();
            let op = self.story.renews(&self.name, lease);
            let Ok(answer) = self.http.post(&format!("/v1/locks/{lease}/renew"), &json!({})) else {
                continue;
            };
            match answer.status {
                200 => {
                    self.story.told(op, Recorded::Renewed { ttl_ms: TTL_MS });
                    sent = asked;
                }
                410 => {
                    let late = self.story.at() >= sent + 1_000 * TTL_MS;
                    assert!(late, "PROMISE BROKEN: ended before the time that was promised: {}", answer.body);
                    self.story.told(op, Recorded::Refused);
                    break;
                }
                _ => self.story.told(op, failed(&answer)),
            }
        }
        let (at, client, until) = (self.story.at(), self.name.as_str().into(), sent + TRUSTED_US);
        let (mode, resource) = (Mode::Exclusive, resource.into());
        let until = until.min(at);
        self.seen.held.fetch_add((from < until).into(), Ordering::Relaxed);
        self.story.add(&Record::Held { at, from, until, client, resource, token, mode, permit: None });
        if self.seed.below(4) > 0 {
            self.release(lease);
        }
    }

    fn release(&mut self, lease: &str) {
        let op = self.story.releases(&self.name, lease);
        let Ok(answer) = self.http.delete(&format!("/v1/locks/{lease}")) else { return };
        let told = match answer.status {
            200 => Recorded::Released { token: answer.token() },
            410 => Recorded::Refused,
            _ => failed(&answer),
        };
        self.story.told(op, told);
    }
}

fn granted(answer: &Answer) -> Recorded {
    match answer.status {
        200 if answer.is_acquired() => Recorded::Granted { token: answer.token(), ttl_ms: TTL_MS },
        200 => Recorded::NotGranted,
        _ => failed(answer),
    }
}

fn failed(answer: &Answer) -> Recorded {
    match answer.json()["sideEffects"] == "none" {
        true => Recorded::Failed,
        false => Recorded::Unknown,
    }
}
