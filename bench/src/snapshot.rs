//! What callers feel while a snapshot of very many held locks is made: the same load with and without one.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::growth;
use crate::lockers::{Connections, LeaseholdLocker, StreamLocker};
use crate::measured::Measured;
use crate::processes::time_of;
use crate::served::Served;
use crate::summary::Latency;
use crate::workload::{self, Workload};

/// Locks that are held.
const HELD: usize = 1_000_000;
/// Tasks that take them, and tasks that ask meanwhile.
const FILLERS: usize = 256;
const TASKS: usize = 16;
/// Each turn is judged by whether the snapshot's thread worked in it.
const TURN: Duration = Duration::from_secs(1);
/// A snapshot comes after so much was written that this is enough by far.
const TURNS: usize = 120;
/// Turns without a snapshot that are compared with.
const QUIET: usize = 10;
/// The thread that makes snapshots, as the kernel shortens its name.
const THREAD: &str = "leasehold-snaps";

/// Acquires beside a snapshot, and without one.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Snapshots {
    pub(crate) held: usize,
    /// Whole turns, of a second, in which one was made.
    pub(crate) turns: usize,
    pub(crate) during: Latency,
    pub(crate) without: Latency,
}

/// Measures.
pub(crate) async fn run() -> anyhow::Result<Snapshots> {
    eprintln!("bench: a snapshot of {HELD} held locks");
    let served = Served::start(None)?;
    let url = served.node.url();
    let mut fillers = StreamLocker::connect(&url, Connections::One, FILLERS).await?;
    growth::fill(&mut fillers, HELD).await?;
    let mut lockers = LeaseholdLocker::connect(&url, Connections::One, TASKS).await?;
    let (mut during, mut without) = (Measured::new(), Measured::new());
    let (mut busy, mut quiet) = (0, 0);
    for _ in 0..TURNS {
        let before = snapshot_time(&served);
        let turn = workload::turn(Workload::Cycle, &mut lockers, TURN).await?;
        if snapshot_time(&served) == before {
            quiet += 1;
            without.add(&turn);
            if busy > 0 && quiet >= QUIET {
                break;
            }
        } else if quiet > 0 {
            // Before that it is the end of one that was begun while the locks were taken, and that has fewer.
            busy += 1;
            during.add(&turn);
        }
    }
    anyhow::ensure!(busy > 0, "no snapshot was made in {TURNS} turns");
    Ok(Snapshots { held: HELD, turns: busy, during: during.latency(), without: without.latency() })
}

/// What the thread that makes snapshots has used of the processor.
fn snapshot_time(served: &Served) -> Duration {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", served.node.pid().as_raw_nonzero()));
    let mut folders = tasks.into_iter().flatten().flatten().map(|task| task.path());
    let thread = folders.find(|folder| {
        std::fs::read_to_string(folder.join("comm")).is_ok_and(|name| name.starts_with(THREAD))
    });
    thread.and_then(|folder| time_of(&folder)).unwrap_or_default()
}
