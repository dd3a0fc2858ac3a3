//! What a lock in front of a database saves: many writers change one row, by conditional writes alone, and one after
//! the other under a lock with a fence in the write.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_postgres::{Client, Statement};

use crate::contestant::Contestant;
use crate::engines::Engines;
use crate::lockers::{Connections, LeaseholdLocker, Locker as _, Wait, connect_postgres};
use crate::processes::{number_of, parent_of, time_of};
use crate::summary::median;

/// Writers that want to change the row, once each.
const WRITERS: usize = 1_000;
/// Connections that they share, as a pool of a real service would.
const POOL: usize = 64;
/// Of each way.
const ROUNDS: usize = 3;
/// What a writer does between reading the row and writing it back.
const WORK: Duration = Duration::from_millis(1);

const TABLE: &str = "DROP TABLE IF EXISTS bench_row; \
    CREATE TABLE bench_row (id int PRIMARY KEY, value bigint, version bigint, token bigint); \
    INSERT INTO bench_row VALUES (1, 0, 0, 0)";

const READ: &str = "SELECT value, version FROM bench_row WHERE id = 1";
const WRITE_IF_UNCHANGED: &str =
    "UPDATE bench_row SET value = $1, version = version + 1 WHERE id = 1 AND version = $2";
const WRITE_WITH_TOKEN: &str = "UPDATE bench_row SET value = $1, token = $2 WHERE id = 1 AND token <= $2";

/// What one way of writing came to, in the middle of several rounds.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Way {
    pub(crate) wasted: f64,
    pub(crate) seconds: f64,
    /// Of all processes of the database.
    pub(crate) cpu_seconds: f64,
}

/// Both ways.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Shield {
    pub(crate) writers: usize,
    pub(crate) alone: Way,
    pub(crate) shielded: Way,
}

/// Measures both ways in turn.
pub(crate) async fn run(engines: &mut Engines) -> anyhow::Result<Shield> {
    let lock_url = engines.served(Contestant::Embedded)?.node.url();
    let engine = engines.engine(Contestant::Postgres);
    let (url, pid) = (engine.url().to_owned(), engine.pid(0));
    let (mut alone, mut shielded) = (Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        eprintln!("bench: shield, round {round} of {ROUNDS}");
        alone.push(way(&url, pid, None).await?);
        shielded.push(way(&url, pid, Some(&lock_url)).await?);
    }
    Ok(Shield { writers: WRITERS, alone: middle(&alone), shielded: middle(&shielded) })
}

fn middle(ways: &[Way]) -> Way {
    let of = |part: fn(&Way) -> f64| median(&ways.iter().map(part).collect::<Vec<_>>());
    Way {
        wasted: of(|way| way.wasted),
        seconds: of(|way| way.seconds),
        cpu_seconds: of(|way| way.cpu_seconds),
    }
}

/// A connection with its statements.
struct Connection {
    client: Client,
    read: Statement,
    write_if_unchanged: Statement,
    write_with_token: Statement,
}

impl Connection {
    async fn open(url: &str) -> anyhow::Result<Self> {
        let client = connect_postgres(url).await?;
        let read = client.prepare(READ).await?;
        let write_if_unchanged = client.prepare(WRITE_IF_UNCHANGED).await?;
        let write_with_token = client.prepare(WRITE_WITH_TOKEN).await?;
        Ok(Self { client, read, write_if_unchanged, write_with_token })
    }
}

async fn way(url: &str, pid: u32, lock_url: Option<&str>) -> anyhow::Result<Way> {
    connect_postgres(url).await?.batch_execute(TABLE).await?;
    let mut pool = Vec::new();
    for _ in 0..POOL {
        pool.push(Arc::new(Connection::open(url).await?));
    }
    let mut lockers = match lock_url {
        Some(url) => LeaseholdLocker::connect(url, Connections::One, WRITERS).await?,
        None => Vec::new(),
    };
    let places = Arc::new(Semaphore::new(POOL));
    let wasted = Arc::new(AtomicU64::new(0));
    let (began, cpu_before) = (Instant::now(), cpu(pid));
    let mut tasks = JoinSet::new();
    for writer in 0..WRITERS {
        let (connection, places, wasted) =
            (Arc::clone(&pool[writer % POOL]), Arc::clone(&places), Arc::clone(&wasted));
        let locker = lockers.pop();
        tasks.spawn(async move {
            match locker {
                Some(locker) => under_lock(locker, &connection).await,
                None => alone(&connection, &places, &wasted).await,
            }
        });
    }
    while let Some(task) = tasks.join_next().await {
        task.context("a writer panicked")??;
    }
    let seconds = began.elapsed().as_secs_f64();
    let cpu_seconds = cpu(pid).saturating_sub(cpu_before).as_secs_f64();
    let Connection { client, read, .. } = &*pool[0];
    let written: i64 = client.query_one(read, &[]).await?.get(0);
    anyhow::ensure!(usize::try_from(written) == Ok(WRITERS), "{written} of {WRITERS} writes are there");
    Ok(Way { wasted: wasted.load(Relaxed) as f64, seconds, cpu_seconds })
}

/// Reads, works, writes back if nobody else did; again until it succeeds.
async fn alone(connection: &Connection, places: &Semaphore, wasted: &AtomicU64) -> anyhow::Result<()> {
    let Connection { client, read, write_if_unchanged, .. } = connection;
    loop {
        let _place = places.acquire().await?;
        let row = client.query_one(read, &[]).await?;
        let (value, version): (i64, i64) = (row.get(0), row.get(1));
        tokio::time::sleep(WORK).await;
        if client.execute(write_if_unchanged, &[&(value + 1), &version]).await? == 1 {
            return Ok(());
        }
        wasted.fetch_add(1, Relaxed);
    }
}

/// The same once, under the lock, with the token checked by the write itself.
async fn under_lock(mut locker: LeaseholdLocker, connection: &Connection) -> anyhow::Result<()> {
    let Connection { client, read, write_with_token, .. } = connection;
    let held = locker.acquire("bench/row", Wait::Yes).await?.context("a waiter gets its turn")?;
    let token = i64::try_from(held.token()?.get())?;
    let value: i64 = client.query_one(read, &[]).await?.get(0);
    tokio::time::sleep(WORK).await;
    let written = client.execute(write_with_token, &[&(value + 1), &token]).await?;
    anyhow::ensure!(written == 1, "the fence rejected the holder");
    locker.release(held).await
}

/// Processor time of a process and its children that live, which have one thread each, from the kernel.
fn cpu(parent: u32) -> Duration {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let ours = processes.filter_map(|entry| {
        let folder = entry.path();
        let is_ours = number_of(&folder)? == parent || parent_of(&folder)? == parent;
        if is_ours { time_of(&folder) } else { None }
    });
    ours.sum()
}
