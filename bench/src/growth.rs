//! What an acquire costs beside many held locks, many sessions, many waiters. Each size has a server of its own, and the
//! servers take turns, so that a slow moment of the machine meets all sizes.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use crate::args::Plan;
use crate::lockers::{Connections, LeaseholdLocker, Locker, StreamLocker, Wait};
use crate::measured::Rounds;
use crate::served::Served;
use crate::summary::Summary;
use crate::workload::{self, Workload};

/// Tasks that ask.
const TASKS: usize = 64;
/// Tasks that take the locks which are only held.
const FILLERS: usize = 256;
/// What is compared here is one server with itself: a part of a contest's turn is enough.
const TURNS_A_CONTEST: u32 = 2;
/// A crowd joins a queue within a fraction of this.
const JOINED_WITHIN: Duration = Duration::from_secs(30);

/// What it costs at each size.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Growth {
    /// Cycles beside so many held locks.
    pub(crate) held: Vec<Step>,
    /// Cycles beside so many sessions.
    pub(crate) sessions: Vec<Step>,
    /// Cycles beside so many waiters of one other lock.
    pub(crate) waiters: Vec<Step>,
    /// Hand-offs of one lock among so many who want it.
    pub(crate) queue: Vec<Step>,
}

/// One size.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Step {
    pub(crate) size: usize,
    pub(crate) summary: Summary,
    /// Processor time of the server for each operation, in microseconds.
    pub(crate) cpu_us: f64,
}

impl Step {
    /// How many times as long as at another size an operation takes.
    pub(crate) fn time_cost(&self, first: &Self) -> f64 {
        first.summary.median() / self.summary.median().max(1e-9)
    }

    /// How many times as much of the server's processor it takes.
    pub(crate) fn cpu_cost(&self, first: &Self) -> f64 {
        self.cpu_us / first.cpu_us.max(1e-9)
    }
}

/// Measures.
pub(crate) async fn run(plan: &Plan) -> anyhow::Result<Growth> {
    Ok(Growth {
        held: held(plan).await?,
        sessions: sessions(plan).await?,
        waiters: waiters(plan).await?,
        queue: queue(plan).await?,
    })
}

/// A server in the state that belongs to one size, and what keeps it so.
struct Place {
    size: usize,
    served: Served,
    /// Whoever holds something, or waits.
    crowd: Vec<StreamLocker>,
    waiting: JoinSet<anyhow::Result<()>>,
}

impl Place {
    fn start(size: usize) -> anyhow::Result<Self> {
        Ok(Self { size, served: Served::start(None)?, crowd: Vec::new(), waiting: JoinSet::new() })
    }

    async fn connect(&self, count: usize) -> anyhow::Result<Vec<StreamLocker>> {
        StreamLocker::connect(&self.served.node.url(), Connections::One, count).await
    }
}

async fn held(plan: &Plan) -> anyhow::Result<Vec<Step>> {
    let mut places = Vec::new();
    for size in [1_000, 100_000, 1_000_000] {
        eprintln!("bench: growth, {size} held locks");
        let mut place = Place::start(size)?;
        place.crowd = place.connect(FILLERS).await?;
        fill(&mut place.crowd, size).await?;
        places.push(place);
    }
    cycles(plan, &places).await
}

/// Lets the clients take so many locks together.
pub(crate) async fn fill(fillers: &mut Vec<StreamLocker>, locks: usize) -> anyhow::Result<()> {
    let (count, mut tasks) = (fillers.len(), JoinSet::new());
    for (first, mut filler) in std::mem::take(fillers).into_iter().enumerate() {
        tasks.spawn(async move {
            for number in (first..locks).step_by(count) {
                filler.acquire(&format!("held/{number}"), Wait::No).await?;
            }
            anyhow::Ok(filler)
        });
    }
    while let Some(task) = tasks.join_next().await {
        fillers.push(task??);
    }
    Ok(())
}

async fn sessions(plan: &Plan) -> anyhow::Result<Vec<Step>> {
    let mut places = Vec::new();
    for size in [1, 100, 1_000, 10_000] {
        eprintln!("bench: growth, {size} sessions");
        let place = Place::start(size)?;
        let mut http = place.served.node.http();
        for number in 0..size {
            let body = serde_json::json!({ "ownerId": format!("worker-{number}"), "ttlMs": 3_600_000 });
            let opened = http.post("/v1/sessions", &body)?;
            anyhow::ensure!(opened.status == 200, "a session was not opened: {}", opened.body);
        }
        places.push(place);
    }
    cycles(plan, &places).await
}

async fn waiters(plan: &Plan) -> anyhow::Result<Vec<Step>> {
    let mut places = Vec::new();
    for size in [1, 100, 1_000, 10_000] {
        eprintln!("bench: growth, {size} waiters");
        let mut place = Place::start(size)?;
        place.crowd = place.connect(size + 1).await?;
        let holder = place.crowd.last_mut().expect("one more than waiters");
        holder.acquire("wanted", Wait::No).await?;
        for mut waiter in place.crowd.drain(..size) {
            place.waiting.spawn(async move { waiter.acquire("wanted", Wait::Yes).await.map(drop) });
        }
        joined(&place).await?;
        places.push(place);
    }
    let steps = cycles(plan, &places).await?;
    for place in &places {
        anyhow::ensure!(waiting(place)? == place.size as u64, "a waiter has left the queue");
    }
    Ok(steps)
}

/// Waits until the whole crowd stands in the queue.
async fn joined(place: &Place) -> anyhow::Result<()> {
    let began = Instant::now();
    while waiting(place)? < place.size as u64 {
        anyhow::ensure!(began.elapsed() < JOINED_WITHIN, "{} of {} wait", waiting(place)?, place.size);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

fn waiting(place: &Place) -> anyhow::Result<u64> {
    let status = place.served.node.http().get("/v1/status")?.json();
    Ok(status["waiters"].as_u64().unwrap_or(0))
}

async fn cycles(plan: &Plan, places: &[Place]) -> anyhow::Result<Vec<Step>> {
    let mut steps: Vec<_> = places.iter().map(|place| Counted::new(&place.served)).collect();
    for _ in 0..plan.rounds {
        for step in &mut steps {
            let url = step.served.node.url();
            let mut lockers = LeaseholdLocker::connect(&url, Connections::One, TASKS).await?;
            step.turn(Workload::Cycle, &mut lockers, plan.turn / TURNS_A_CONTEST).await?;
        }
    }
    Ok(places.iter().zip(steps).map(|(place, step)| step.step(place.size)).collect())
}

/// Hand-offs, all who want the lock over one stream. One server is enough: between turns nothing is held.
async fn queue(plan: &Plan) -> anyhow::Result<Vec<Step>> {
    eprintln!("bench: growth, length of the queue");
    let place = Place::start(0)?;
    let sizes = [1, 100, 1_000, 10_000];
    let mut steps: Vec<_> = sizes.iter().map(|_| Counted::new(&place.served)).collect();
    for _ in 0..plan.rounds {
        for (size, step) in sizes.into_iter().zip(&mut steps) {
            let mut lockers = place.connect(size).await?;
            step.turn(Workload::Handoff, &mut lockers, plan.turn / TURNS_A_CONTEST).await?;
        }
    }
    Ok(sizes.into_iter().zip(steps).map(|(size, step)| step.step(size)).collect())
}

/// The rounds at one size, with what the server used.
struct Counted<'a> {
    served: &'a Served,
    rounds: Rounds,
    operations: u64,
    cpu: Duration,
}

impl<'a> Counted<'a> {
    fn new(served: &'a Served) -> Self {
        Self { served, rounds: Rounds::new(), operations: 0, cpu: Duration::ZERO }
    }

    async fn turn<L: Locker>(
        &mut self,
        workload: Workload,
        lockers: &mut Vec<L>,
        length: Duration,
    ) -> anyhow::Result<()> {
        let before = self.served.node.processor_time();
        let measured = workload::turn(workload, lockers, length).await?;
        self.cpu += self.served.node.processor_time().saturating_sub(before);
        self.operations += measured.operations();
        self.rounds.add(&measured);
        Ok(())
    }

    fn step(self, size: usize) -> Step {
        let cpu_us = self.cpu.as_secs_f64() * 1e6 / (self.operations.max(1) as f64);
        Step { size, summary: self.rounds.summary(), cpu_us: (cpu_us * 10.0).round() / 10.0 }
    }
}
