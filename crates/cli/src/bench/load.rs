//! The clients over HTTP.

use std::io::{IsTerminal as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hdrhistogram::Histogram;
use leasehold_types::LeaseId;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep_until};

use super::connection::Connection;
use super::{BenchPlan, HANDED_ON, Workload};
use crate::client::Server;
use crate::failure::Failure;

/// Each client goes round so many names, so that the table sees many resources but does not only grow.
pub(super) const NAMES: u64 = 1_000;
/// Longer than any run needs: nothing expires while it is measured, unless the server is very slow.
const TTL_MS: u64 = 60_000;
/// Nobody in the queue of a hand-off gives up.
pub(super) const WAIT: Duration = Duration::from_secs(60);

/// What came of it.
pub(super) struct Measured {
    /// Microseconds from the moment an operation was due, or began, to its answer.
    pub(super) latency_us: Histogram<u64>,
    /// Operations done.
    pub(super) operations: u64,
    /// Operations that failed, and what the first of them met.
    pub(super) errors: u64,
    pub(super) first_error: Option<Failure>,
    /// How long it really took.
    pub(super) took: Duration,
}

impl Measured {
    pub(super) fn new() -> Self {
        let latency_us = Histogram::new_with_bounds(1, 120_000_000, 3).expect("the bounds are valid");
        Self { latency_us, operations: 0, errors: 0, first_error: None, took: Duration::ZERO }
    }

    pub(super) fn add(&mut self, other: Self) {
        self.latency_us.add(other.latency_us).expect("all have the same bounds");
        self.operations += other.operations;
        self.errors += other.errors;
        self.first_error = self.first_error.take().or(other.first_error);
    }
}

/// Runs every client for the duration.
pub(super) async fn load(plan: &BenchPlan, server: &Server, prefix: &str) -> Result<Measured, Failure> {
    let mut connections = Vec::with_capacity(plan.clients);
    for _ in 0..plan.clients {
        connections.push(Connection::open(server).await?);
    }
    let done = Arc::new(AtomicU64::new(0));
    let began = Instant::now();
    let until = began + plan.duration;
    let clients = connections.into_iter().enumerate().map(|(number, connection)| {
        let pace = Pace::new(plan, number, began);
        let (workload, prefix, done) = (plan.workload, prefix.to_owned(), Arc::clone(&done));
        Client { number, prefix, workload, connection, pace, done }.run(until)
    });
    let measured = together(clients, progress(Arc::clone(&done), plan.duration)).await;
    Ok(Measured { took: began.elapsed(), ..measured })
}

/// Runs all clients to their end, and shows the progress meanwhile. They are tasks of the runtime itself: a set of local
/// ones polls 61 at a time, which parts what asks together.
pub(super) async fn together<C>(
    clients: impl Iterator<Item = C>,
    progress: impl Future<Output = ()> + Send + 'static,
) -> Measured
where
    C: Future<Output = Measured> + Send + 'static,
{
    let mut clients: JoinSet<_> = clients.collect();
    let progress = tokio::spawn(progress);
    let mut measured = Measured::new();
    while let Some(client) = clients.join_next().await {
        measured.add(client.expect("a client does not panic"));
    }
    progress.abort();
    measured
}

/// When the next operation is due.
pub(super) struct Pace {
    every: Option<Duration>,
    due: Instant,
}

impl Pace {
    /// Clients begin evenly spread over one interval.
    pub(super) fn new(plan: &BenchPlan, number: usize, began: Instant) -> Self {
        let clients = u32::try_from(plan.clients).unwrap_or(u32::MAX);
        let every =
            plan.rate.map(|rate| Duration::from_secs(1) * clients / u32::try_from(rate).unwrap_or(u32::MAX));
        let offset = every.unwrap_or_default() * u32::try_from(number).unwrap_or(0) / clients;
        Self { every, due: began + offset }
    }

    /// Waits until the next operation is due and says from when its latency counts: from when it was due if we are
    /// late, since a client would have asked then; from now if only our timer was coarse.
    pub(super) async fn next(&mut self) -> Instant {
        let Some(every) = self.every else { return Instant::now() };
        let due = self.due;
        self.due += every;
        if Instant::now() >= due {
            return due;
        }
        sleep_until(due).await;
        Instant::now()
    }
}

struct Client {
    number: usize,
    /// What its names begin with.
    prefix: String,
    workload: Workload,
    connection: Connection,
    pace: Pace,
    done: Arc<AtomicU64>,
}

impl Client {
    /// Works until the time is up; a broken connection ends it, a refusal is counted.
    async fn run(mut self, until: Instant) -> Measured {
        let mut measured = Measured::new();
        let mut held = None;
        let mut count = 0;
        while Instant::now() < until {
            let begun = self.pace.next().await;
            let outcome = match self.workload {
                Workload::Cycle => {
                    let name = format!("{}/{}/{}", self.prefix, self.number, count % NAMES);
                    self.acquire_and_release(&name, 0, begun, &mut measured).await
                }
                Workload::Handoff => {
                    self.acquire_and_release(HANDED_ON, WAIT.as_millis(), begun, &mut measured).await
                }
                Workload::Renew => self.renew(&mut held, begun, &mut measured).await,
            };
            count += 1;
            match outcome {
                Ok(()) => drop(self.done.fetch_add(1, Ordering::Relaxed)),
                Err(failure) => {
                    let broken = !matches!(failure, Failure::Failed(_));
                    measured.errors += 1;
                    measured.first_error.get_or_insert(failure);
                    if broken {
                        break;
                    }
                }
            }
        }
        measured
    }

    /// The latency is that of the acquire, as the promise about it is.
    async fn acquire_and_release(
        &mut self,
        name: &str,
        wait_ms: u128,
        begun: Instant,
        measured: &mut Measured,
    ) -> Result<(), Failure> {
        let lease = self.acquire(name, wait_ms).await?;
        note(measured, begun);
        self.connection.call("DELETE", &format!("/v1/locks/{lease}"), "").await?;
        measured.operations += 1;
        Ok(())
    }

    async fn renew(
        &mut self,
        held: &mut Option<LeaseId>,
        begun: Instant,
        measured: &mut Measured,
    ) -> Result<(), Failure> {
        let Some(lease) = *held else {
            *held = Some(self.acquire(&format!("{}/renew/{}", self.prefix, self.number), 0).await?);
            return Ok(());
        };
        self.connection.call("POST", &format!("/v1/locks/{lease}/renew"), "").await?;
        note(measured, begun);
        measured.operations += 1;
        Ok(())
    }

    async fn acquire(&mut self, name: &str, wait_ms: u128) -> Result<LeaseId, Failure> {
        let lease = LeaseId::from_bytes(leasehold_types::ids::random());
        let number = self.number;
        let body = format!(
            r#"{{"resource":"{name}","ownerId":"bench:{number}","leaseId":"{lease}","ttlMs":{TTL_MS},"waitMs":{wait_ms}}}"#
        );
        let answer = self.connection.call("POST", "/v1/locks/acquire", &body).await?;
        match answer.starts_with(br#"{"acquired":true"#) {
            true => Ok(lease),
            false => Err(Failure::Failed(format!("{name} is held: {}", String::from_utf8_lossy(answer)))),
        }
    }
}

pub(super) fn note(measured: &mut Measured, begun: Instant) {
    let us = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
    measured.latency_us.saturating_record(us);
}

/// Says every two seconds how far it is, to a person.
pub(super) async fn progress(done: Arc<AtomicU64>, duration: Duration) {
    if !std::io::stderr().is_terminal() {
        return;
    }
    let mut ticks = interval(Duration::from_secs(2));
    let mut seconds = 0;
    loop {
        ticks.tick().await;
        // A closed terminal leaves nobody to tell.
        let _ = writeln!(
            std::io::stderr(),
            "{seconds} of {} s, {} operations",
            duration.as_secs(),
            done.load(Ordering::Relaxed)
        );
        seconds += 2;
    }
}
