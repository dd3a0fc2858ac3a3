//! Many locks held at once: memory for each, and the time to be ready again after a crash.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use leasehold_testbed::{self as testbed, Server as Engine};

use crate::engines::Served;
use crate::lockers::{EtcdLocker, Locker, RedisLocker, RedisRecipe, StreamLocker, Wait};
use crate::workload::{self, Workload};

/// Clients that take the locks; each holds an equal part.
const CLIENTS: usize = 64;

/// Long enough for more events than the ring keeps.
const WARM_UP: Duration = Duration::from_secs(3);

/// What one keeper of locks needs for each.
pub(crate) struct Held {
    pub(crate) who: &'static str,
    pub(crate) locks: usize,
    pub(crate) bytes_each: u64,
    /// From the start of the process to its first answer, everything held.
    pub(crate) ready_after: Option<Duration>,
}

/// Measures Leasehold, Redis and etcd, one after the other.
pub(crate) async fn run(locks: usize) -> anyhow::Result<Vec<Held>> {
    eprintln!("bench: {locks} held locks");
    Ok(vec![leasehold(locks).await?, redis(locks).await?, etcd(locks).await?])
}

async fn leasehold(locks: usize) -> anyhow::Result<Held> {
    let served = Served::start(None)?;
    let mut lockers = StreamLocker::sharing(&served.node.url(), CLIENTS).await?;
    // What is allocated once, whatever is held, is there before the count begins: buffers, and the ring of events.
    workload::turn(Workload::Cycle, &mut lockers, WARM_UP).await?;
    let before = served.node.resident_bytes();
    let held = take(&mut lockers, "held", locks).await?;
    let bytes_each = served.node.resident_bytes().saturating_sub(before) / locks as u64;
    drop(held);
    let began = Instant::now();
    let served = served.restart();
    let ready_after = Some(began.elapsed());
    let status = served.node.http().get("/v1/status").context("a server that is ready answers")?.json();
    let kept = status["locksHeld"].as_u64().unwrap_or(0);
    anyhow::ensure!(kept >= locks as u64, "{kept} of {locks} locks are held after the restart");
    Ok(Held { who: "Leasehold", locks, bytes_each, ready_after })
}

async fn redis(locks: usize) -> anyhow::Result<Held> {
    let engine = testbed::redis();
    let mut lockers = RedisLocker::connect(engine.url(), RedisRecipe::Token, CLIENTS).await?;
    let before = resident_bytes(&engine)?;
    take(&mut lockers, "held", locks).await?;
    let bytes_each = resident_bytes(&engine)?.saturating_sub(before) / locks as u64;
    drop(lockers);
    let ready_after = Some(restart(&engine));
    Ok(Held { who: "Redis, synced, with token", locks, bytes_each, ready_after })
}

async fn etcd(locks: usize) -> anyhow::Result<Held> {
    // A tenth of them: etcd's own recipe is slow, and what it needs for each does not depend on the number.
    let locks = locks / 10;
    let engine = testbed::etcd();
    let mut lockers = EtcdLocker::connect(engine.endpoints(), CLIENTS).await?;
    let before = resident_bytes(&engine)?;
    take(&mut lockers, "held", locks).await?;
    let bytes_each = resident_bytes(&engine)?.saturating_sub(before) / locks as u64;
    drop(lockers);
    Ok(Held { who: "etcd Lock service", locks, bytes_each, ready_after: Some(restart(&engine)) })
}

fn restart(engine: &Engine) -> Duration {
    engine.kill(0);
    let began = Instant::now();
    engine.restart(0);
    began.elapsed()
}

/// Lets the clients take so many locks together.
async fn take<L: Locker>(lockers: &mut Vec<L>, prefix: &str, locks: usize) -> anyhow::Result<Vec<L::Held>> {
    let each = locks / lockers.len();
    let tasks: Vec<_> = std::mem::take(lockers)
        .into_iter()
        .enumerate()
        .map(|(client, mut locker)| {
            let prefix = prefix.to_owned();
            tokio::spawn(async move {
                let mut held = Vec::with_capacity(each);
                for number in 0..each {
                    let name = format!("{prefix}/{client}/{number}");
                    held.extend(locker.acquire(&name, Wait::No).await?);
                }
                anyhow::ensure!(held.len() == each, "all locks were free");
                Ok((locker, held))
            })
        })
        .collect();
    let mut all = Vec::with_capacity(locks);
    for task in tasks {
        let (locker, held) = task.await.context("a client panicked")??;
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
