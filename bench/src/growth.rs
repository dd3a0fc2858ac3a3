//! What an acquire costs beside many held locks, many sessions, many waiters.

use std::time::Duration;

use crate::args::Plan;
use crate::engines::Served;
use crate::lockers::{LeaseholdLocker, Locker as _, StreamLocker, Wait};
use crate::measured::Measured;
use crate::workload::{self, Workload};

/// Tasks that ask.
const TASKS: usize = 16;

/// Cycles a second, and latency, at each size.
pub(crate) struct Growth {
    /// (held locks, cycles a second, p99.9 of acquires in milliseconds).
    pub(crate) held: Vec<(usize, f64, f64)>,
    /// (sessions, cycles a second, p99.9).
    pub(crate) sessions: Vec<(usize, f64, f64)>,
    /// (waiters of one other lock, cycles a second, p99.9).
    pub(crate) waiters: Vec<(usize, f64, f64)>,
}

/// Measures.
pub(crate) async fn run(plan: &Plan) -> anyhow::Result<Growth> {
    eprintln!("bench: growth");
    Ok(Growth { held: held(plan).await?, sessions: sessions(plan).await?, waiters: waiters(plan).await? })
}

async fn held(plan: &Plan) -> anyhow::Result<Vec<(usize, f64, f64)>> {
    let served = Served::start(None)?;
    let mut fillers = StreamLocker::sharing(&served.node.url(), 256).await?;
    let (mut figures, mut there) = (Vec::new(), 0);
    for size in [1_000, 100_000, 1_000_000] {
        fill(&mut fillers, there..size).await?;
        there = size;
        figures.push(figure(size, &served, plan.turn * 3).await?);
    }
    Ok(figures)
}

/// Lets the clients take the locks with these numbers together.
pub(crate) async fn fill(
    fillers: &mut Vec<StreamLocker>,
    numbers: std::ops::Range<usize>,
) -> anyhow::Result<()> {
    let count = fillers.len();
    let tasks: Vec<_> = std::mem::take(fillers)
        .into_iter()
        .enumerate()
        .map(|(first, mut filler)| {
            let numbers = numbers.clone();
            tokio::spawn(async move {
                for number in numbers.skip(first).step_by(count) {
                    filler.acquire(&format!("held/{number}"), Wait::No).await?;
                }
                anyhow::Ok(filler)
            })
        })
        .collect();
    for task in tasks {
        fillers.push(task.await??);
    }
    Ok(())
}

async fn sessions(plan: &Plan) -> anyhow::Result<Vec<(usize, f64, f64)>> {
    let served = Served::start(None)?;
    let mut http = served.node.http();
    let (mut figures, mut there) = (Vec::new(), 0);
    for size in [1, 1_000, 10_000] {
        for number in there..size {
            let body = serde_json::json!({ "ownerId": format!("worker-{number}"), "ttlMs": 600_000 });
            http.post("/v1/sessions", &body)?;
        }
        there = size;
        figures.push(figure(size, &served, plan.turn).await?);
    }
    Ok(figures)
}

async fn waiters(plan: &Plan) -> anyhow::Result<Vec<(usize, f64, f64)>> {
    let served = Served::start(None)?;
    let mut crowd = StreamLocker::sharing(&served.node.url(), 10_001).await?;
    let mut holder = crowd.pop().expect("there are so many");
    let _held = holder.acquire("wanted", Wait::No).await?;
    let (mut figures, mut waiting) = (Vec::new(), Vec::new());
    for size in [1, 1_000, 10_000] {
        while waiting.len() < size {
            let mut waiter = crowd.pop().expect("there are so many");
            waiting.push(tokio::spawn(async move { waiter.acquire("wanted", Wait::Yes).await.map(drop) }));
        }
        // They have joined the queue when an acquire that came after them is answered.
        tokio::time::sleep(Duration::from_millis(200)).await;
        figures.push(figure(size, &served, plan.turn).await?);
    }
    waiting.iter().for_each(tokio::task::JoinHandle::abort);
    Ok(figures)
}

async fn figure(size: usize, served: &Served, length: Duration) -> anyhow::Result<(usize, f64, f64)> {
    let mut lockers = LeaseholdLocker::sharing(&served.node.url(), TASKS).await?;
    let measured: Measured = workload::turn(Workload::Cycle, &mut lockers, length).await?;
    Ok((size, measured.per_second(), measured.latency_ms(0.999)))
}
