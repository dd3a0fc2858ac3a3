//! What a lock in front of a database saves: many writers change one row, by conditional writes alone, and one after
//! the other under a lock with a fence in the write.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tokio::sync::Semaphore;
use tokio_postgres::Client;

use crate::engines::{Contestant, Engines};
use crate::lockers::{LeaseholdLocker, Locker as _, Wait, connect_postgres};
use crate::processes::{number_of, time_and_parent};

/// Writers that want to change the row, once each.
const WRITERS: usize = 1_000;
/// Connections that they share, as a pool of a real service would.
const POOL: usize = 64;
/// What a writer does between reading the row and writing it back.
const WORK: Duration = Duration::from_millis(1);

const TABLE: &str = "DROP TABLE IF EXISTS bench_row; \
    CREATE TABLE bench_row (id int PRIMARY KEY, value bigint, version bigint, token bigint); \
    INSERT INTO bench_row VALUES (1, 0, 0, 0)";

/// What one way of writing came to.
pub(crate) struct Way {
    pub(crate) wasted: u64,
    pub(crate) took: Duration,
    /// Of all processes of the database.
    pub(crate) cpu: Duration,
}

/// Both ways.
pub(crate) struct Shield {
    pub(crate) writers: usize,
    pub(crate) alone: Way,
    pub(crate) shielded: Way,
}

/// Measures both ways.
pub(crate) async fn run(engines: &mut Engines) -> anyhow::Result<Shield> {
    eprintln!("bench: shield");
    let lock_url = engines.served(Contestant::Embedded)?.node.url();
    let engine = engines.engine(Contestant::Postgres);
    let (url, pid) = (engine.url().to_owned(), engine.pid(0));
    connect_postgres(&url).await?.batch_execute(TABLE).await?;
    let alone = way(&url, pid, None).await?;
    connect_postgres(&url).await?.batch_execute(TABLE).await?;
    let shielded = way(&url, pid, Some(&lock_url)).await?;
    Ok(Shield { writers: WRITERS, alone, shielded })
}

async fn way(url: &str, pid: u32, lock_url: Option<&str>) -> anyhow::Result<Way> {
    let mut pool = Vec::new();
    for _ in 0..POOL {
        pool.push(Arc::new(connect_postgres(url).await?));
    }
    let mut lockers = match lock_url {
        Some(url) => LeaseholdLocker::sharing(url, WRITERS).await?,
        None => Vec::new(),
    };
    let places = Arc::new(Semaphore::new(POOL));
    let wasted = Arc::new(AtomicU64::new(0));
    let (began, cpu_before) = (Instant::now(), cpu(pid));
    let mut tasks = Vec::new();
    for writer in 0..WRITERS {
        let (client, places, wasted) =
            (Arc::clone(&pool[writer % POOL]), Arc::clone(&places), Arc::clone(&wasted));
        let locker = lockers.pop();
        tasks.push(tokio::spawn(async move {
            match locker {
                Some(locker) => under_lock(locker, &client).await,
                None => alone(&client, &places, &wasted).await,
            }
        }));
    }
    for task in tasks {
        task.await.context("a writer panicked")??;
    }
    let way =
        Way { wasted: wasted.load(Relaxed), took: began.elapsed(), cpu: cpu(pid).saturating_sub(cpu_before) };
    let written: i64 = pool[0].query_one("SELECT value FROM bench_row", &[]).await?.get(0);
    anyhow::ensure!(usize::try_from(written) == Ok(WRITERS), "{written} of {WRITERS} writes are there");
    Ok(way)
}

/// Reads, works, writes back if nobody else did; again until it succeeds.
async fn alone(client: &Client, places: &Semaphore, wasted: &AtomicU64) -> anyhow::Result<()> {
    loop {
        let _place = places.acquire().await?;
        let row = client.query_one("SELECT value, version FROM bench_row WHERE id = 1", &[]).await?;
        let (value, version): (i64, i64) = (row.get(0), row.get(1));
        tokio::time::sleep(WORK).await;
        let write = "UPDATE bench_row SET value = $1, version = version + 1 WHERE id = 1 AND version = $2";
        if client.execute(write, &[&(value + 1), &version]).await? == 1 {
            return Ok(());
        }
        wasted.fetch_add(1, Relaxed);
    }
}

/// The same once, under the lock, with the token checked by the write itself.
async fn under_lock(mut locker: LeaseholdLocker, client: &Client) -> anyhow::Result<()> {
    let held = locker.acquire("bench/row", Wait::Yes).await?.context("a waiter gets its turn")?;
    let token = i64::try_from(held.token()?.get())?;
    let row = client.query_one("SELECT value FROM bench_row WHERE id = 1", &[]).await?;
    let value: i64 = row.get(0);
    tokio::time::sleep(WORK).await;
    let write = "UPDATE bench_row SET value = $1, token = $2 WHERE id = 1 AND token <= $2";
    anyhow::ensure!(
        client.execute(write, &[&(value + 1), &token]).await? == 1,
        "the fence rejected the holder"
    );
    locker.release(held).await
}

/// Processor time of a process and its children that live, from the kernel.
fn cpu(parent: u32) -> Duration {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let ours = processes.filter_map(|entry| {
        let number = number_of(&entry.path())?;
        let (time, begun_by) = time_and_parent(&entry.path())?;
        (number == parent || begun_by == parent).then_some(time)
    });
    ours.sum()
}
