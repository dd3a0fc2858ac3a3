//! How fast the loop is by itself: commands through a handle, over a journal in memory.
//!
//! `cargo run --release -p leasehold-node --example loop_speed`
#![allow(clippy::print_stdout, reason = "this is what it is for")]
#![expect(clippy::disallowed_methods, reason = "it measures real time")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use leasehold_core::{Acquire, Command, Sharing};
use leasehold_journal::{Limits, MemoryJournal};
use leasehold_node::{Call, Handle, NoObserver, NodeConfig, RealClock, start};
use leasehold_types::ids::random;
use leasehold_types::{Class, LeaseId, OwnerId, ResourceName, TenantName, Ttl, TtlBounds};

/// How long each part runs.
const RUN: Duration = Duration::from_secs(3);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        let journal = MemoryJournal::new();
        journal.set_limits(Limits { body_bytes: 1 << 20, chunk_bytes: 1 << 20, confirm_is_free: true });
        let config = NodeConfig::new("bench", dir.path());
        let node = start(config, Arc::new(journal), Arc::new(RealClock), Arc::new(NoObserver)).await?;
        for clients in [1, 64, 1_024] {
            let (cycles, p50, p99) = run(&node.handle(), clients).await;
            let rate = cycles as f64 * 2.0 / RUN.as_secs_f64();
            println!("{clients:>5} clients: {rate:>9.0} commands/s, acquire p50 {p50:?}, p99 {p99:?}");
        }
        for calls in [1, 64, 1_024] {
            let rate = lane(&node.handle(), calls).await as f64 / RUN.as_secs_f64();
            println!("a lane with {calls:>5} calls under way: {rate:>9.0} commands/s");
        }
        node.shutdown().await;
        Ok(())
    })
}

async fn run(handle: &Handle, clients: usize) -> (usize, Duration, Duration) {
    let end = Instant::now() + RUN;
    let tasks: Vec<_> = (0..clients).map(|n| tokio::spawn(client(handle.clone(), n, end))).collect();
    let mut latencies = Vec::new();
    for task in tasks {
        latencies.extend(task.await.expect("a client does not panic"));
    }
    latencies.sort_unstable();
    (latencies.len(), latencies[latencies.len() / 2], latencies[latencies.len() * 99 / 100])
}

/// Acquires and releases its own resource until the end.
async fn client(handle: Handle, n: usize, end: Instant) -> Vec<Duration> {
    let mut latencies = Vec::new();
    let resource = ResourceName::new(&format!("bench/{n}")).expect("a short name is valid");
    while Instant::now() < end {
        let lease_id = LeaseId::from_bytes(random());
        let began = Instant::now();
        handle.submit(call(acquire(resource.clone(), lease_id))).await.expect("the journal commits");
        latencies.push(began.elapsed());
        handle.submit(call(Command::Release { lease_id })).await.expect("the journal commits");
    }
    latencies
}

/// Acquires and releases so many resources, all by one lane; gives the number of commands.
async fn lane(handle: &Handle, calls: usize) -> u64 {
    let end = Instant::now() + RUN;
    let mut lane = handle.lane();
    let names: Vec<_> =
        (0..calls).map(|n| ResourceName::new(&format!("lane/{n}")).expect("a short name is valid")).collect();
    let mut next: Vec<_> = names.iter().enumerate().map(|(n, name)| begin(n, name)).collect();
    let (mut answers, mut commands) = (Vec::new(), 0);
    while Instant::now() < end {
        lane.send(next.drain(..));
        lane.answers(&mut answers).await;
        commands += answers.len() as u64;
        for ((n, held), answer) in answers.drain(..) {
            answer.expect("the journal commits");
            next.push(match held {
                Some(lease_id) => ((n, None), call(Command::Release { lease_id })),
                None => begin(n, &names[n]),
            });
        }
    }
    commands
}

/// The next acquire of a resource, with what its answer is to be followed by.
fn begin(n: usize, name: &ResourceName) -> ((usize, Option<LeaseId>), Call) {
    let lease_id = LeaseId::from_bytes(random());
    ((n, Some(lease_id)), call(acquire(name.clone(), lease_id)))
}

fn call(command: Command) -> Call {
    Call { tenant: TenantName::default_tenant(), identity: None, key: None, command }
}

fn acquire(resource: ResourceName, lease_id: LeaseId) -> Command {
    Command::Acquire(Acquire {
        resource,
        owner: Some(OwnerId::new("bench@host:1").expect("a short name is valid")),
        ttl: Some(Ttl::new(15_000, TtlBounds::default()).expect("15 s are within bounds")),
        wait_ms: 0,
        sharing: Sharing::Exclusive,
        class: Class::Efficiency,
        session: None,
        renews_session: false,
        lease_id,
        lease_id_chosen: false,
        lock_delay_ms: 0,
        max_hold_ms: None,
        labels: Default::default(),
        value: None,
    })
}
