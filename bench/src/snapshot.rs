//! What callers feel while a snapshot of very many held locks is made: the same load with and without one.

use std::time::Duration;

use crate::engines::Served;
use crate::growth;
use crate::lockers::{LeaseholdLocker, StreamLocker};
use crate::measured::Measured;
use crate::processes::time_and_parent;
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
pub(crate) struct Snapshots {
    pub(crate) held: usize,
    /// Whole turns in which one was made.
    pub(crate) turns: usize,
    pub(crate) during: Measured,
    pub(crate) without: Measured,
}

/// Measures.
pub(crate) async fn run() -> anyhow::Result<Snapshots> {
    eprintln!("bench: a snapshot of {HELD} held locks");
    let served = Served::start(None)?;
    let mut fillers = StreamLocker::sharing(&served.node.url(), FILLERS).await?;
    growth::fill(&mut fillers, 0..HELD).await?;
    let mut lockers = LeaseholdLocker::sharing(&served.node.url(), TASKS).await?;
    let mut told = Snapshots { held: HELD, turns: 0, during: Measured::new(), without: Measured::new() };
    let mut quiet = 0;
    for _ in 0..TURNS {
        let before = snapshot_time(&served);
        let turn = workload::turn(Workload::Cycle, &mut lockers, TURN).await?;
        if snapshot_time(&served) > before {
            told.turns += 1;
            told.during.add(&turn);
        } else {
            quiet += 1;
            told.without.add(&turn);
        }
        if told.turns > 0 && quiet >= QUIET {
            break;
        }
    }
    anyhow::ensure!(told.turns > 0, "no snapshot was made in {TURNS} turns");
    Ok(told)
}

/// What the thread that makes snapshots has used of the processor.
fn snapshot_time(served: &Served) -> Duration {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", served.node.pid().as_raw_nonzero()));
    let mut folders = tasks.into_iter().flatten().flatten().map(|task| task.path());
    let thread = folders.find(|folder| {
        std::fs::read_to_string(folder.join("comm")).is_ok_and(|name| name.starts_with(THREAD))
    });
    thread.and_then(|folder| time_and_parent(&folder)).map_or(Duration::ZERO, |(time, _)| time)
}
