//! Many locks held at once: memory for each, and the time to be ready again after a crash.

use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use leasehold_testbed::{self as testbed, Server as Engine};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::task::JoinSet;

use crate::lockers::{Connections, EtcdLocker, Locker, RedisLocker, RedisRecipe, StreamLocker, Wait};
use crate::served::Served;
use crate::workload::{self, Workload};

/// Clients that take the locks; each holds an equal part.
const CLIENTS: usize = 64;
/// The same over HTTP, where each has a thread.
const HTTP_CLIENTS: usize = 16;
/// Locks in each session of theirs.
const SESSION_LOCKS: usize = 1_000;

/// Long enough for more events than the ring keeps.
const WARM_UP: Duration = Duration::from_secs(3);

/// What a start has thrown away is given back within this, where it is given back at all.
const SETTLED: Duration = Duration::from_secs(5);

/// Locks that are held at once.
const LOCKS: usize = 200_000;

/// What one keeper of locks needs for each.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Held {
    pub(crate) who: Keeper,
    pub(crate) locks: usize,
    /// Resident memory above that of the same process without them.
    pub(crate) bytes_each: u64,
    /// The same after kill -9 and a restart.
    pub(crate) bytes_each_restarted: u64,
    /// From the start of the process to its first answer, everything held.
    pub(crate) ready_after_ms: u64,
}

/// Who keeps the locks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Keeper {
    /// Over HTTP, a session for each thousand.
    Leasehold,
    /// All in one session, over its stream.
    LeaseholdStream,
    Redis,
    Etcd,
}

impl Keeper {
    /// Its name in tables.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Leasehold => "Leasehold, over HTTP",
            Self::LeaseholdStream => "Leasehold, over a session stream",
            Self::Redis => "Redis, synced, with token",
            Self::Etcd => "etcd Lock service",
        }
    }
}

/// Measures Leasehold, Redis and etcd, one after the other.
pub(crate) async fn run() -> anyhow::Result<Vec<Held>> {
    eprintln!("bench: {LOCKS} held locks");
    // A tenth of them for etcd: its own recipe is slow, and what it needs for each does not depend on the number.
    Ok(vec![
        leasehold(Keeper::Leasehold, LOCKS).await?,
        leasehold(Keeper::LeaseholdStream, LOCKS).await?,
        redis(LOCKS).await?,
        etcd(LOCKS / 10).await?,
    ])
}

async fn leasehold(who: Keeper, locks: usize) -> anyhow::Result<Held> {
    let served = Served::start(None)?;
    let mut lockers = StreamLocker::connect(&served.node.url(), Connections::One, CLIENTS).await?;
    // What is allocated once, whatever is held, is there before the count begins: buffers, and the ring of events.
    workload::turn(Workload::Cycle, &mut lockers, WARM_UP).await?;
    let before = served.node.resident_bytes();
    match who {
        Keeper::LeaseholdStream => drop(take(&mut lockers, locks).await?),
        _ => take_over_http(&served, locks)?,
    }
    tokio::time::sleep(SETTLED).await;
    let bytes_each = each(served.node.resident_bytes(), before, locks);
    let began = Instant::now();
    let served = served.restart();
    let ready_after_ms = millis(began.elapsed());
    let status = served.node.http().get("/v1/status").context("a server that is ready answers")?.json();
    let kept = status["locksHeld"].as_u64().unwrap_or(0);
    anyhow::ensure!(kept >= locks as u64, "{kept} of {locks} locks are held after the restart");
    tokio::time::sleep(SETTLED).await;
    let bytes_each_restarted = each(served.node.resident_bytes(), before, locks);
    Ok(Held { who, locks, bytes_each, bytes_each_restarted, ready_after_ms })
}

async fn redis(locks: usize) -> anyhow::Result<Held> {
    let engine = testbed::redis();
    let lockers = RedisLocker::connect(engine.url(), RedisRecipe::Token, Connections::OneEach, CLIENTS);
    of_engine(Keeper::Redis, &engine, lockers.await?, locks).await
}

async fn etcd(locks: usize) -> anyhow::Result<Held> {
    let engine = testbed::etcd();
    let lockers = EtcdLocker::connect(engine.endpoints(), CLIENTS).await?;
    of_engine(Keeper::Etcd, &engine, lockers, locks).await
}

async fn of_engine<L: Locker>(
    who: Keeper,
    engine: &Engine,
    mut lockers: Vec<L>,
    locks: usize,
) -> anyhow::Result<Held> {
    let before = resident_bytes(engine)?;
    let held = take(&mut lockers, locks).await?;
    tokio::time::sleep(SETTLED).await;
    let bytes_each = each(resident_bytes(engine)?, before, locks);
    drop((held, lockers));
    let ready_after_ms = millis(restart(engine));
    tokio::time::sleep(SETTLED).await;
    let bytes_each_restarted = each(resident_bytes(engine)?, before, locks);
    Ok(Held { who, locks, bytes_each, bytes_each_restarted, ready_after_ms })
}

fn each(now: u64, before: u64, locks: usize) -> u64 {
    now.saturating_sub(before) / locks as u64
}

fn millis(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}

fn restart(engine: &Engine) -> Duration {
    engine.kill(0);
    let began = Instant::now();
    engine.restart(0);
    began.elapsed()
}

/// Takes so many locks over HTTP, in sessions of a thousand.
fn take_over_http(served: &Served, locks: usize) -> anyhow::Result<()> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..HTTP_CLIENTS)
            .map(|client| scope.spawn(move || hold_sessions(served, locks, client)))
            .collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| anyhow!("a client panicked"))?)
    })
}

/// One client's part of the sessions.
fn hold_sessions(served: &Served, locks: usize, client: usize) -> anyhow::Result<()> {
    let mut http = served.node.http();
    for session in (client..locks / SESSION_LOCKS).step_by(HTTP_CLIENTS) {
        let body = json!({ "ownerId": format!("worker-{session}"), "ttlMs": 3_600_000 });
        let opened = http.post("/v1/sessions", &body)?.json();
        for number in 0..SESSION_LOCKS {
            let body =
                json!({ "resource": format!("held/{session}/{number}"), "sessionId": opened["sessionId"] });
            let granted = http.post("/v1/locks/acquire", &body)?;
            anyhow::ensure!(granted.is_acquired(), "a lock was not free: {}", granted.body);
        }
    }
    Ok(())
}

/// Lets the clients take so many locks together.
async fn take<L: Locker>(lockers: &mut Vec<L>, locks: usize) -> anyhow::Result<Vec<L::Held>> {
    let (each, mut tasks) = (locks / lockers.len(), JoinSet::new());
    for (client, mut locker) in std::mem::take(lockers).into_iter().enumerate() {
        tasks.spawn(async move {
            let mut held = Vec::with_capacity(each);
            for number in 0..each {
                held.extend(locker.acquire(&format!("held/{client}/{number}"), Wait::No).await?);
            }
            anyhow::ensure!(held.len() == each, "a lock was not free");
            Ok((locker, held))
        });
    }
    let mut all = Vec::with_capacity(locks);
    while let Some(task) = tasks.join_next().await {
        let (locker, held) = task.context("a client panicked")??;
        lockers.push(locker);
        all.extend(held);
    }
    Ok(all)
}

/// Resident memory of an engine's first member.
fn resident_bytes(engine: &Engine) -> anyhow::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", engine.pid(0)))?;
    let line =
        status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("a process has a VmRSS line")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? * 1024)
}
