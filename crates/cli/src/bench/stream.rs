//! The clients over gRPC: tasks of the Rust client, all on one session stream, as the tasks of one process are.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use leasehold::Client;
use tokio::time::Instant;

use super::load::{Measured, NAMES, Pace, WAIT, note, progress, together};
use super::{BenchPlan, HANDED_ON, Workload};
use crate::client::Server;
use crate::failure::Failure;

/// Runs every task for the duration.
pub(super) async fn load(plan: &BenchPlan, server: &Server, prefix: &str) -> Result<Measured, Failure> {
    let security = server.security().clone();
    let client = Client::builder().endpoint(server.to_string()).owner("bench").security(security);
    let client = client.build().map_err(|error| Failure::Usage(error.to_string()))?;
    // The first acquire opens the session; that is no part of the figure.
    let warm_up = format!("{prefix}/warm-up");
    cycle(&client, warm_up, Workload::Cycle, Instant::now(), &mut Measured::new()).await?;
    let done = Arc::new(AtomicU64::new(0));
    let numbers: Arc<[String]> = (0..NAMES).map(|number| number.to_string()).collect();
    let began = Instant::now();
    let until = began + plan.duration;
    let tasks = (0..plan.clients).map(|number| {
        let pace = Pace::new(plan, number, began);
        let names = Names { prefix: format!("{prefix}/{number}/"), numbers: Arc::clone(&numbers) };
        task(client.clone(), plan.workload, names, pace, Arc::clone(&done), until)
    });
    let measured = together(tasks, progress(Arc::clone(&done), plan.duration)).await;
    Ok(Measured { took: began.elapsed(), ..measured })
}

/// The names that a client goes round. Formatting one costs a good part of what the Rust client does for a lock, so they
/// are put together.
struct Names {
    prefix: String,
    numbers: Arc<[String]>,
}

impl Names {
    fn name(&self, count: usize) -> String {
        [&self.prefix, self.numbers[count % self.numbers.len()].as_str()].concat()
    }
}

async fn task(
    client: Client,
    workload: Workload,
    names: Names,
    mut pace: Pace,
    done: Arc<AtomicU64>,
    until: Instant,
) -> Measured {
    let mut measured = Measured::new();
    let mut count = 0;
    while Instant::now() < until {
        let begun = pace.next().await;
        let name = match workload {
            Workload::Handoff => HANDED_ON.to_owned(),
            Workload::Cycle | Workload::Renew => names.name(count),
        };
        count += 1;
        match cycle(&client, name, workload, begun, &mut measured).await {
            Ok(()) => drop(done.fetch_add(1, Ordering::Relaxed)),
            Err(failure) => {
                measured.errors += 1;
                measured.first_error.get_or_insert(failure);
            }
        }
    }
    measured
}

/// The latency is that of the acquire, as the promise about it is.
async fn cycle(
    client: &Client,
    name: String,
    workload: Workload,
    begun: Instant,
    measured: &mut Measured,
) -> Result<(), Failure> {
    let acquire = client.acquire(name);
    let acquire = if workload == Workload::Handoff { acquire.wait(WAIT) } else { acquire.no_wait() };
    let guard = acquire.await.map_err(|error| Failure::Failed(error.to_string()))?;
    note(measured, begun);
    guard.release().await.map_err(|error| Failure::Failed(error.to_string()))?;
    measured.operations += 1;
    Ok(())
}
